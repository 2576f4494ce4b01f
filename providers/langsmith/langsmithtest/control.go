package langsmithtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/machine"
)

// A box is one sandbox. Its fields are guarded by Server.mu, the commands by mu.
type box struct {
	id, name string
	asked    map[string]any // what it was created with
	labels   map[string]string
	snapshot string // the id of the one it was made from
	status   string
	message  string
	next     string // the status it is on the way to; empty: none
	at       time.Time
	waking   bool // it provisions because a request woke it
	created  time.Time
	used     time.Time // the last request of its dataplane
	stopped  time.Time
	machine  *machine.Machine

	mu       sync.Mutex
	commands map[string]*command
}

// A snapshot is what sandboxes start from.
type snapshot struct {
	id, name, tag string
	image, source string
	status        string
	message       string
	at            time.Time // when it will be ready
	created       time.Time
	capacity      any
	tree          *machine.Machine // nil when it was built from an image
}

// Defaults of the service.
const (
	idleDefault   = 600
	deleteDefault = 14 * 24 * 3600
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(op, method, path string, f http.HandlerFunc) {
		for _, prefix := range []string{"/v2/sandboxes", "/api/v2/sandboxes"} {
			mux.Handle(method+" "+prefix+path, s.Handle(op, s.admit, f))
		}
	}
	handle("create", "POST", "/boxes", s.create)
	handle("list", "GET", "/boxes", s.list)
	handle("get", "GET", "/boxes/{name}", s.one(func(w http.ResponseWriter, r *http.Request, b *box) { emulate.Reply(w, 200, s.show(b)) }))
	handle("status", "GET", "/boxes/{name}/status", s.one(func(w http.ResponseWriter, r *http.Request, b *box) {
		emulate.Reply(w, 200, map[string]any{"status": b.status, "status_message": b.message})
	}))
	handle("update", "PATCH", "/boxes/{name}", s.one(s.update))
	handle("delete", "DELETE", "/boxes/{name}", s.one(s.destroy))
	handle("start", "POST", "/boxes/{name}/start", s.one(s.start))
	handle("stop", "POST", "/boxes/{name}/stop", s.one(s.stop))
	handle("capture", "POST", "/boxes/{name}/snapshot", s.one(s.capture))
	handle("build", "POST", "/snapshots", s.build)
	handle("snapshots", "GET", "/snapshots", s.listSnapshots)
	handle("snapshot", "GET", "/snapshots/{name}", s.getSnapshot)
	handle("snapshot-delete", "DELETE", "/snapshots/{name}", s.deleteSnapshot)
	handle("snapshot-tags", "GET", "/snapshots-by-name/{name}", s.snapshotTags)
	mux.Handle("/", s.Handle("unknown", s.admit, func(w http.ResponseWriter, r *http.Request) {
		emulate.Reply(w, 404, map[string]string{"detail": "Not Found"})
	}))
	s.dataplane(mux)
	return mux
}

// find returns the sandbox with that name or id. The caller holds mu.
func (s *Server) find(name string) *box {
	for _, b := range slices.Clone(s.boxes) {
		if (b.id == name || b.name == name) && s.settle(b) {
			return b
		}
	}
	return nil
}

// settle lets time pass for b and reports whether it still exists. The caller
// holds mu.
func (s *Server) settle(b *box) bool {
	now := s.cfg.Now()
	if b.next != "" && !now.Before(b.at) {
		b.status, b.next, b.waking = b.next, "", false
		if b.status == "ready" {
			b.used = now
		}
		if b.status == "failed" {
			b.message = "the emulator was told so"
		}
	}
	if idle := b.seconds("idle_ttl_seconds", idleDefault); b.status == "ready" && idle > 0 && now.Sub(b.used) >= idle && !b.busy() {
		s.halted(b)
	}
	if after := b.seconds("delete_after_stop_seconds", deleteDefault); b.status == "stopped" && after > 0 && now.Sub(b.stopped) >= after {
		s.remove(b)
		return false
	}
	return true
}

func (b *box) seconds(field string, unset int) time.Duration {
	if n, ok := b.asked[field].(float64); ok {
		unset = int(n)
	}
	return time.Duration(unset) * time.Second
}

// halted stops b. The caller holds mu.
func (s *Server) halted(b *box) {
	b.status, b.next, b.stopped = "stopped", "", s.cfg.Now()
	go b.halt()
}

// remove forgets b. The caller holds mu.
func (s *Server) remove(b *box) {
	s.boxes = slices.DeleteFunc(s.boxes, func(x *box) bool { return x == b })
	go b.end()
}

// one finds the sandbox of a request. f runs with mu held.
func (s *Server) one(f func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		b := s.find(r.PathValue("name"))
		if b == nil {
			refuse(w, 404, "NotFound", "Sandbox '"+r.PathValue("name")+"' not found")
			return
		}
		f(w, r, b)
	}
}

// show is b as JSON fields. The caller holds mu.
func (s *Server) show(b *box) map[string]any {
	fields := map[string]any{
		"idle_ttl_seconds": idleDefault, "delete_after_stop_seconds": deleteDefault,
		"vcpus": 1, "cpu_millicores": 1000, "mem_bytes": 4 << 30, "fs_capacity_bytes": 16 << 30,
		"persistent": true, "preserve_memory_on_stop": false, "created_by": "me",
	}
	for k, v := range b.asked {
		fields[k] = v
	}
	fields["id"], fields["name"], fields["labels"] = b.id, b.name, b.labels
	fields["status"], fields["status_message"] = b.status, b.message
	fields["snapshot_id"] = b.snapshot
	fields["dataplane_url"] = s.Address() + "/dp/" + b.id
	if s.Behaviour().Dataplane != "" {
		fields["dataplane_url"] = s.Behaviour().Dataplane
	}
	fields["created_at"] = b.created.UTC().Format(time.RFC3339Nano)
	fields["updated_at"] = fields["created_at"]
	fields["stopped_at"] = nil
	if b.status == "stopped" {
		fields["stopped_at"] = b.stopped.UTC().Format(time.RFC3339Nano)
	}
	return fields
}

// provision puts b on the way to ready. The caller holds mu.
func (s *Server) provision(b *box) {
	b.status, b.next, b.at = "provisioning", "ready", s.cfg.Now().Add(s.cfg.StartDelay)
	if s.Behaviour().EndIn != "" {
		b.next = s.Behaviour().EndIn
	}
	if s.Behaviour().NeverReady {
		b.next = ""
	}
	s.settle(b)
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	asked := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		invalid(w, "body", "not a JSON object")
		return
	}
	for _, field := range []string{"idle_ttl_seconds", "delete_after_stop_seconds"} {
		if n, ok := asked[field].(float64); ok && (n < 0 || int(n)%60 != 0) {
			invalid(w, field, field+" must be 0 or a multiple of 60")
			return
		}
	}
	id, _ := asked["snapshot_id"].(string)
	name, _ := asked["snapshot"].(string)
	if other, _ := asked["snapshot_name"].(string); name == "" {
		name = other
	}
	if id != "" && name != "" {
		invalid(w, "snapshot", "snapshot_id and snapshot are mutually exclusive")
		return
	}
	m, err := machine.New("")
	if err != nil {
		refuse(w, 500, "InternalError", err.Error())
		return
	}
	wait, given := asked["wait_for_ready"].(bool)
	limit := 30 * time.Second
	if n, ok := asked["timeout"].(float64); ok {
		limit = time.Duration(n * float64(time.Second))
	}
	delete(asked, "wait_for_ready")
	delete(asked, "timeout")
	b, ok := s.place(w, asked, m, id+name)
	if !ok {
		m.Close()
		return
	}
	if (wait || !given) && !s.awaitReady(w, r, b, limit) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	emulate.Reply(w, 201, s.show(b))
}

// place makes the sandbox that was asked for, from that snapshot if it is named.
func (s *Server) place(w http.ResponseWriter, asked map[string]any, m *machine.Machine, from string) (*box, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &box{id: uuid(), asked: asked, labels: map[string]string{}, created: s.cfg.Now(), machine: m, commands: map[string]*command{}}
	if b.name, _ = asked["name"].(string); b.name == "" {
		b.name = "sandbox-" + b.id[:8]
	}
	if s.find(b.name) != nil {
		refuse(w, 409, "NameConflict", "Sandbox name '"+b.name+"' already in use")
		return nil, false
	}
	if from != "" {
		k := s.snapshotNamed(from)
		switch {
		case k == nil:
			refuse(w, 404, "NotFound", "Snapshot '"+from+"' not found")
			return nil, false
		case k.status != "ready":
			refuse(w, 422, "SandboxConfig", "Snapshot '"+from+"' is "+k.status)
			return nil, false
		}
		b.snapshot = k.id
		if k.tree != nil {
			if err := copyHome(k.tree, m); err != nil {
				refuse(w, 422, "SandboxConfig", err.Error())
				return nil, false
			}
		}
	}
	if labels, ok := asked["labels"].(map[string]any); ok {
		for k, v := range labels {
			b.labels[k], _ = v.(string)
		}
	}
	s.provision(b)
	s.boxes = append(s.boxes, b)
	return b, true
}

// awaitReady waits for b or answers that it does not come.
func (s *Server) awaitReady(w http.ResponseWriter, r *http.Request, b *box, limit time.Duration) bool {
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		exists := s.settle(b)
		status, message := b.status, b.message
		s.mu.Unlock()
		switch {
		case status == "ready":
			return true
		case status == "failed" || !exists:
			refuse(w, 422, "CrashLoop", "Sandbox failed: "+message)
			return false
		case time.Since(begin) > limit:
			refuse(w, 408, "Timeout", "Sandbox did not become ready, last status: "+status)
			return false
		case r.Context().Err() != nil:
			return false
		}
	}
}

// page answers with the part of items that the request asks for; each has an id.
// The caller holds mu.
func (s *Server) page(w http.ResponseWriter, r *http.Request, items []map[string]any, old string) {
	q := r.URL.Query()
	size, err := strconv.Atoi(q.Get("page_size"))
	if err != nil {
		size, err = strconv.Atoi(q.Get("limit"))
	}
	if err != nil || size < 1 || size > 500 {
		size = 50
	}
	if s.most > 0 {
		size = min(size, s.most)
	}
	offset, _ := strconv.Atoi(q.Get("offset"))
	if cursor := q.Get("cursor"); cursor != "" {
		offset = 1 + slices.IndexFunc(items, func(item map[string]any) bool { return item["id"] == cursor })
	}
	items = items[min(max(offset, 0), len(items)):]
	var next any
	if len(items) > size {
		items = items[:size]
		next = items[size-1]["id"]
	}
	emulate.Reply(w, 200, map[string]any{old: items, "offset": offset, "items": items, "next_cursor": next})
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	items := []map[string]any{}
	for _, b := range slices.Clone(s.boxes) {
		matches := s.settle(b) && strings.Contains(b.name, q.Get("name_contains"))
		matches = matches && (q.Get("status") == "" || q.Get("status") == b.status)
		for _, label := range q["label"] {
			k, v, valued := strings.Cut(label, "=")
			have, ok := b.labels[k]
			matches = matches && ok && (!valued || have == v)
		}
		if matches {
			items = append(items, s.show(b))
		}
	}
	s.page(w, r, items, "sandboxes")
}

func (s *Server) update(w http.ResponseWriter, r *http.Request, b *box) {
	change := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
		invalid(w, "body", "not a JSON object")
		return
	}
	if name, ok := change["name"].(string); ok {
		if other := s.find(name); other != nil && other != b {
			refuse(w, 409, "NameConflict", "Sandbox name '"+name+"' already in use")
			return
		}
		b.name = name
	}
	for k, v := range change {
		b.asked[k] = v
	}
	emulate.Reply(w, 200, s.show(b))
}

func (s *Server) destroy(w http.ResponseWriter, r *http.Request, b *box) {
	if s.Due(func(b *Behaviour) *int { return &b.BusyDeletes }) {
		refuse(w, 409, "Conflict", "Sandbox is changing its state")
		return
	}
	s.remove(b)
	emulate.Reply(w, 204, nil)
}

func (s *Server) start(w http.ResponseWriter, r *http.Request, b *box) {
	if b.status != "stopped" && b.status != "failed" {
		refuse(w, 400, "InvalidRequest", "Sandbox is "+b.status)
		return
	}
	s.provision(b)
	emulate.Reply(w, 202, s.show(b))
}

func (s *Server) stop(w http.ResponseWriter, r *http.Request, b *box) {
	if b.status != "ready" {
		refuse(w, 400, "InvalidRequest", "Sandbox is "+b.status)
		return
	}
	s.halted(b)
	emulate.Reply(w, 204, nil)
}

// mature lets time pass for k. The caller holds mu.
func (s *Server) mature(k *snapshot) {
	if k.status == "building" && !s.cfg.Now().Before(k.at) {
		k.status = "ready"
		if s.Behaviour().BuildFails {
			k.status, k.message = "failed", "the emulator was told so"
		}
	}
}

// snapshotNamed finds a snapshot by its id or its name: name:tag, or a name that
// means name:latest, else the newest ready one without a tag. The caller holds mu.
func (s *Server) snapshotNamed(ref string) *snapshot {
	name, tag, tagged := strings.Cut(ref, ":")
	var newest *snapshot
	for _, k := range s.snapshots {
		s.mature(k)
		switch {
		case k.id == ref:
			return k
		case k.name != name:
		case tagged && k.tag == tag, !tagged && k.tag == "latest":
			return k
		case !tagged && k.tag == "" && k.status == "ready":
			newest = k
		}
	}
	return newest
}

func showSnapshot(k *snapshot) map[string]any {
	fields := map[string]any{
		"id": k.id, "name": k.name, "status": k.status, "status_message": k.message, "fs_capacity_bytes": k.capacity,
		"docker_image": k.image, "tags": []string{}, "labels": map[string]string{},
		"created_at": k.created.UTC().Format(time.RFC3339Nano), "updated_at": k.created.UTC().Format(time.RFC3339Nano),
	}
	if k.tag != "" {
		fields["tags"] = []string{k.tag}
	}
	if k.source != "" {
		fields["source_sandbox_id"] = k.source
	}
	return fields
}

// A making asks for a snapshot.
type making struct {
	Name     string `json:"name"`
	Tag      string `json:"tag"`
	Image    string `json:"docker_image"`
	Capacity any    `json:"fs_capacity_bytes"`
}

// makeSnapshot begins a snapshot. The caller holds mu.
func (s *Server) makeSnapshot(body making) *snapshot {
	k := &snapshot{
		id: uuid(), name: body.Name, tag: body.Tag, image: body.Image, capacity: body.Capacity,
		status: "building", created: s.cfg.Now(), at: s.cfg.Now().Add(s.cfg.BuildDelay),
	}
	s.snapshots = append(s.snapshots, k)
	return k
}

func (s *Server) build(w http.ResponseWriter, r *http.Request) {
	var body making
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Name == "" || body.Image == "" || body.Capacity == nil {
		invalid(w, "name", "name, docker_image and fs_capacity_bytes are required")
		return
	}
	if strings.HasPrefix(body.Name, "system/") || body.Name != strings.ToLower(body.Name) || strings.Contains(body.Name, ":") || len(body.Name) > 255 {
		invalid(w, "name", "not a snapshot name: "+body.Name)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	emulate.Reply(w, 201, showSnapshot(s.makeSnapshot(body)))
}

// capture keeps a copy of the home directory.
func (s *Server) capture(w http.ResponseWriter, r *http.Request, b *box) {
	var body making
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Name == "" {
		invalid(w, "name", "name is required")
		return
	}
	if b.status != "ready" && b.status != "stopped" {
		refuse(w, 400, "NotReady", "Sandbox is "+b.status)
		return
	}
	m, err := machine.New("")
	if err == nil {
		err = copyHome(b.machine, m)
	}
	if err != nil {
		refuse(w, 500, "InternalError", err.Error())
		return
	}
	if body.Capacity == nil {
		body.Capacity = 16 << 30
	}
	k := s.makeSnapshot(body)
	k.source, k.tree = b.id, m
	emulate.Reply(w, 201, showSnapshot(k))
}

func copyHome(from, to *machine.Machine) error {
	run, err := to.Start(machine.Process{Args: []string{"cp", "-a", from.Dir() + "/.", to.Dir()}})
	if err != nil {
		return err
	}
	if exit, err := run.Wait(); exit != 0 || err != nil {
		return fmt.Errorf("cp ended with %d (%v)", exit, err)
	}
	return nil
}

func (s *Server) getSnapshot(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.snapshotNamed(r.PathValue("name"))
	if k == nil {
		refuse(w, 404, "NotFound", "Snapshot '"+r.PathValue("name")+"' not found")
		return
	}
	emulate.Reply(w, 200, showSnapshot(k))
}

func (s *Server) listSnapshots(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []map[string]any{}
	for _, k := range s.snapshots {
		s.mature(k)
		if status := r.URL.Query().Get("status"); strings.Contains(k.name, r.URL.Query().Get("name_contains")) && (status == "" || status == k.status) {
			items = append(items, showSnapshot(k))
		}
	}
	s.page(w, r, items, "snapshots")
}

func (s *Server) deleteSnapshot(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.snapshotNamed(r.PathValue("name"))
	if k == nil {
		refuse(w, 404, "NotFound", "Snapshot '"+r.PathValue("name")+"' not found")
		return
	}
	s.snapshots = slices.DeleteFunc(s.snapshots, func(x *snapshot) bool { return x == k })
	if k.tree != nil {
		k.tree.Close()
	}
	emulate.Reply(w, 204, nil)
}

func (s *Server) snapshotTags(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tags := []any{}
	for _, k := range s.snapshots {
		if k.name == r.PathValue("name") && k.tag != "" {
			tags = append(tags, map[string]string{"tag": k.tag, "snapshot_id": k.id})
		}
	}
	emulate.Reply(w, 200, map[string]any{"name": r.PathValue("name"), "tags": tags})
}

// halt ends the commands of b and forgets them.
func (b *box) halt() {
	b.mu.Lock()
	commands := b.commands
	b.commands = map[string]*command{}
	b.mu.Unlock()
	for _, c := range commands {
		c.lose()
	}
}

// busy reports whether somebody is connected to a command of b.
func (b *box) busy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.commands {
		if c.watched() {
			return true
		}
	}
	return false
}

// end removes the computer of b.
func (b *box) end() {
	b.halt()
	b.machine.Close()
}

package verceltest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/sdk/machine"
)

// A box is one sandbox: a named record. Its fields are guarded by Server.mu.
type box struct {
	name       string
	asked      map[string]any // what it was created with
	tags       map[string]string
	persistent bool
	timeout    int64 // of sessions, in milliseconds
	created    time.Time
	changed    time.Time
	session    *session // the current one
	snapshot   string   // what the next session starts from; empty: none
	disk       *machine.Machine
}

// A session is one running computer of a sandbox. Its fields are guarded by
// Server.mu, the commands by mu.
type session struct {
	id      string
	box     *box
	status  string
	next    string // the state it is on the way to; empty: none
	at      time.Time
	timeout int64 // milliseconds after its start
	source  string
	created time.Time
	started time.Time
	stopped time.Time
	changed time.Time

	mu       sync.Mutex
	commands []*command
}

// A snapshot is the home directory of a sandbox as it was. Guarded by Server.mu.
type snapshot struct {
	id, session, box string
	created, expires time.Time
	method           string
	deleted          bool
	disk             *machine.Machine
}

const (
	defaultTimeout = 300_000
	hobbyTimeout   = 2_700_000
	proTimeout     = 86_400_000
	day            = 86_400_000
)

func (s *Server) control(boxes, sessions, snapshots *http.ServeMux) {
	for _, version := range []string{"v2", "v3"} {
		s.handle(boxes, "create", "POST /"+version+"/sandboxes", s.create)
	}
	s.handle(boxes, "list", "GET /v2/sandboxes", s.list)
	s.handle(boxes, "get", "GET /v2/sandboxes/{name}", s.named(s.get))
	s.handle(boxes, "update", "PATCH /v2/sandboxes/{name}", s.named(s.update))
	s.handle(boxes, "delete", "DELETE /v2/sandboxes/{name}", s.named(s.delete))

	s.handle(sessions, "sessions", "GET /v2/sandboxes/sessions", s.listSessions)
	s.handle(sessions, "session", "GET /v2/sandboxes/sessions/{sid}", s.one(func(w http.ResponseWriter, r *http.Request, x *session) {
		reply(w, map[string]any{"session": s.showSession(x), "routes": []any{}})
	}))
	s.handle(sessions, "stop", "POST /v2/sandboxes/sessions/{sid}/stop", s.one(s.stop))
	s.handle(sessions, "extend", "POST /v2/sandboxes/sessions/{sid}/extend-timeout", s.one(s.extend))
	s.handle(sessions, "snapshot", "POST /v2/sandboxes/sessions/{sid}/snapshot", s.one(s.takeSnapshot))
	s.handle(sessions, "policy", "POST /v2/sandboxes/sessions/{sid}/network-policy", s.one(func(w http.ResponseWriter, r *http.Request, x *session) {
		reply(w, map[string]any{"session": s.showSession(x)})
	}))

	s.handle(snapshots, "snapshots", "GET /v2/sandboxes/snapshots", s.listSnapshots)
	s.handle(snapshots, "snapshot-get", "GET /v2/sandboxes/snapshots/{kid}", s.withSnapshot(func(w http.ResponseWriter, k *snapshot) {
		reply(w, map[string]any{"snapshot": k.show()})
	}))
	s.handle(snapshots, "snapshot-delete", "DELETE /v2/sandboxes/snapshots/{kid}", s.withSnapshot(func(w http.ResponseWriter, k *snapshot) {
		k.deleted = true
		reply(w, map[string]any{"snapshot": k.show()})
	}))
}

// live reports whether a session of that status has a computer.
func live(status string) bool {
	return status != "stopped" && status != "failed" && status != "aborted"
}

// find returns the sandbox with that name. The caller holds mu.
func (s *Server) find(name string) *box {
	for _, b := range s.boxes {
		if b.name == name {
			s.settle(b)
			return b
		}
	}
	return nil
}

// settle lets time pass for b. The caller holds mu.
func (s *Server) settle(b *box) {
	x, now := b.session, s.cfg.Now()
	if x.next != "" && !now.Before(x.at) {
		s.move(x, x.next)
	}
	if end := x.started.Add(time.Duration(x.timeout) * time.Millisecond); live(x.status) && !now.Before(end) {
		s.move(x, "stopped")
	}
}

// move puts x into a state. One that ends it ends its processes, and the disk
// unless the sandbox is persistent. The caller holds mu.
func (s *Server) move(x *session, status string) {
	now := s.cfg.Now()
	x.status, x.next, x.changed, x.box.changed = status, "", now, now
	switch {
	case status == "running":
		x.started = now
	case !live(status):
		x.stopped = now
		if x.box.persistent && x.box.snapshot == "" {
			x.box.snapshot = identity("snap_", 28, base62)
		}
		keep := x.box.persistent || x.box.snapshot != ""
		disk := x.box.disk
		go func() {
			x.halt()
			if !keep {
				disk.Close()
			}
		}()
	}
}

// named finds the sandbox of a request in its project. f runs with mu held.
func (s *Server) named(f func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		b := s.find(r.PathValue("name"))
		if b == nil || r.URL.Query().Get("projectId") != s.cfg.Project {
			refuse(w, 404, "not_found", "Named sandbox '"+r.PathValue("name")+"' not found for this project.")
			return
		}
		f(w, r, b)
	}
}

// session returns the session with that id. The caller holds mu.
func (s *Server) session(id string) *session {
	for _, x := range s.sessions {
		if x.id == id {
			if x.box.session == x {
				s.settle(x.box)
			}
			return x
		}
	}
	return nil
}

// one finds the session of a request. f runs with mu held.
func (s *Server) one(f func(http.ResponseWriter, *http.Request, *session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		x := s.session(r.PathValue("sid"))
		if x == nil {
			refuse(w, 404, "not_found", "Sandbox session not found.")
			return
		}
		f(w, r, x)
	}
}

func ms(t time.Time) int64 { return t.UnixMilli() }

// showSession is x as the service shows it. The caller holds mu.
func (s *Server) showSession(x *session) map[string]any {
	fields := map[string]any{
		"id": x.id, "memory": 4096, "vcpus": 2, "region": "iad1", "timeout": x.timeout, "status": x.status,
		"requestedAt": ms(x.created), "createdAt": ms(x.created), "updatedAt": ms(x.changed), "cwd": x.box.disk.Dir(),
	}
	if s.Behaviour().BareViews {
		return fields
	}
	maps.Copy(fields, map[string]any{
		"runtime": "node22", "architecture": "amd64", "startedAt": ms(x.started), "interactivePort": 26661,
		"sourceSandboxName": x.box.name, "projectId": s.cfg.Project,
	})
	if !live(x.status) {
		fields["requestedStopAt"], fields["stoppedAt"] = ms(x.stopped), ms(x.stopped)
		fields["duration"] = x.stopped.Sub(x.started).Milliseconds()
	}
	if x.source != "" {
		fields["sourceSnapshotId"] = x.source
	}
	return fields
}

// showBox is b as the service shows it; fully on every call but the creation. The
// caller holds mu.
func (s *Server) showBox(b *box, fully bool) map[string]any {
	fields := map[string]any{
		"name": b.name, "persistent": b.persistent, "createdAt": ms(b.created), "updatedAt": ms(b.changed),
		"currentSessionId": b.session.id, "status": b.session.status, "tags": b.tags,
	}
	if s.Behaviour().BareViews {
		return fields
	}
	maps.Copy(fields, map[string]any{
		"statusUpdatedAt": ms(b.session.changed), "region": "iad1", "failoverRegions": []any{}, "vcpus": 2, "memory": 4096,
		"runtime": "node22", "architecture": "amd64", "timeout": b.timeout, "cwd": b.disk.Dir(),
		"image": "vercel/sandbox/universal@sha256:" + strings.Repeat("0", 64),
	})
	if fully {
		maps.Copy(fields, map[string]any{
			"expiresAt":        ms(b.session.started) + b.session.timeout,
			"totalEgressBytes": 0, "totalIngressBytes": 0, "totalActiveCpuDurationMs": 0, "totalDurationMs": 0,
		})
	}
	if b.snapshot != "" {
		fields["currentSnapshotId"] = b.snapshot
	}
	return fields
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	asked := map[string]any{}
	if !read(w, r, &asked) {
		return
	}
	if s.Due(func(b *Behaviour) *int { return &b.ImageNotReady }) {
		refuse(w, 400, "image_not_ready", "The image is being prepared. Try again.")
		return
	}
	bad := func(message string) { refuse(w, 400, "bad_request", message) }
	switch timeout, given := asked["timeout"].(float64); {
	case asked["projectId"] != s.cfg.Project:
		refuse(w, 404, "not_found", "Project not found.")
		return
	case given && (timeout < 1000 || timeout > proTimeout || s.cfg.Hobby && timeout > hobbyTimeout):
		bad(fmt.Sprintf("`timeout` should be <= %d for your plan", s.most()))
		return
	case asked["image"] != nil && (asked["runtime"] != nil || asked["source"] != nil):
		bad("`image` cannot be combined with `runtime` or a snapshot")
		return
	}
	tags := map[string]string{}
	if given, ok := asked["tags"].(map[string]any); ok {
		for k, v := range given {
			tags[k], _ = v.(string)
		}
	}
	if len(tags) > 5 {
		bad("`tags` should NOT have more than 5 properties")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Behaviour().Quota {
		refuse(w, 403, "resource_limit_exceeded", "You have exceeded your Sandbox quota")
		return
	}
	if name, _ := asked["name"].(string); s.find(name) != nil {
		bad("A sandbox with the name '" + name + "' already exists for this project.")
		return
	}
	b, err := s.make(asked, tags)
	if err != nil {
		refuse(w, 400, "snapshot_not_found", err.Error())
		return
	}
	reply(w, map[string]any{"sandbox": s.showBox(b, false), "session": s.showSession(b.session), "routes": []any{}})
}

func (s *Server) most() int64 {
	if s.cfg.Hobby {
		return hobbyTimeout
	}
	return proTimeout
}

// make adds a sandbox and its first session. The caller holds mu.
func (s *Server) make(asked map[string]any, tags map[string]string) (*box, error) {
	now := s.cfg.Now()
	b := &box{asked: asked, tags: tags, persistent: true, timeout: defaultTimeout, created: now, changed: now}
	if b.name, _ = asked["name"].(string); b.name == "" {
		b.name = identity("sandbox-", 12, lower)
	}
	if p, ok := asked["persistent"].(bool); ok {
		b.persistent = p
	}
	if ms, ok := asked["timeout"].(float64); ok {
		b.timeout = int64(ms)
	}
	var from *snapshot
	source, _ := asked["source"].(map[string]any)
	if id, ok := source["snapshotId"].(string); ok {
		if from = s.kept(id); from == nil || from.deleted {
			return nil, fmt.Errorf("there is no snapshot %q", id)
		}
	}
	var err error
	if b.disk, err = machine.New(""); err != nil {
		return nil, err
	}
	if from != nil {
		if err := copyHome(from.disk, b.disk); err != nil {
			b.disk.Close()
			return nil, err
		}
	}
	s.boxes = append(s.boxes, b)
	s.begin(b)
	if from != nil {
		b.session.source = from.id
	}
	return b, nil
}

// begin starts a new session of b. The caller holds mu.
func (s *Server) begin(b *box) {
	now := s.cfg.Now()
	x := &session{id: identity("sbx_", 28, base62), box: b, timeout: b.timeout, source: b.snapshot, created: now, started: now}
	b.session = x
	s.sessions = append(s.sessions, x)
	next := cmp.Or(s.Behaviour().EndIn, "running")
	switch {
	case s.Behaviour().NeverReady:
		s.move(x, "pending")
	case s.cfg.StartDelay > 0 || next != "running":
		s.move(x, "pending")
		x.next, x.at = next, now.Add(s.cfg.StartDelay)
	default:
		s.move(x, next)
	}
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, b *box) {
	resumed := false
	if r.URL.Query().Get("resume") == "true" {
		switch x := b.session; {
		case x.status == "stopping":
			refuse(w, 422, "sandbox_stopping", "Sandbox is stopping.")
			return
		case x.status == "snapshotting":
			refuse(w, 422, "sandbox_snapshotting", "Sandbox is snapshotting.")
			return
		case live(x.status):
		case b.snapshot == "" || s.Behaviour().NoResume:
			refuse(w, 400, "snapshot_not_found", "Cannot resume sandbox: no snapshot available.")
			return
		default:
			s.begin(b)
			resumed = true
		}
	}
	fields := map[string]any{"sandbox": s.showBox(b, true), "session": s.showSession(b.session), "routes": []any{}}
	if resumed {
		fields["resumed"] = true
	}
	reply(w, fields)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	prefix, by := query.Get("namePrefix"), cmp.Or(query.Get("sortBy"), "createdAt")
	if prefix != "" && by != "name" {
		refuse(w, 400, "bad_request", "`namePrefix` requires `sortBy` to be `name`")
		return
	}
	if len(query["tags"]) > 1 {
		refuse(w, 400, "bad_request", "Filtering by multiple tags is not supported")
		return
	}
	key, value, filtered := strings.Cut(query.Get("tags"), ":")
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*box
	if query.Get("project") == s.cfg.Project {
		for _, b := range slices.Backward(s.boxes) {
			s.settle(b)
			if have, ok := b.tags[key]; strings.HasPrefix(b.name, prefix) && (!filtered || ok && have == value) {
				found = append(found, b)
			}
		}
	}
	if by == "name" {
		slices.SortFunc(found, func(a, b *box) int { return cmp.Compare(a.name, b.name) })
	}
	page(s, w, r, "sandboxes", found, func(b *box) string { return b.name }, func(b *box) any { return s.showBox(b, true) })
}

func (s *Server) update(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		Timeout    *int64            `json:"timeout"`
		Persistent *bool             `json:"persistent"`
		Tags       map[string]string `json:"tags"`
	}
	if !read(w, r, &body) {
		return
	}
	if body.Timeout != nil {
		b.timeout = *body.Timeout
	}
	if body.Persistent != nil {
		b.persistent = *body.Persistent
	}
	if body.Tags != nil {
		b.tags = body.Tags
	}
	reply(w, map[string]any{"sandbox": s.showBox(b, true)})
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request, b *box) {
	if s.Due(func(b *Behaviour) *int { return &b.BusyDeletes }) {
		refuse(w, 422, "sandbox_stopping", "Sandbox is stopping.")
		return
	}
	if live(b.session.status) {
		b.session.status = "stopped"
	}
	fields := s.showBox(b, true)
	if r.URL.Query().Get("deleteOrphanSnapshots") == "true" {
		for _, k := range s.snapshots {
			k.deleted = k.deleted || k.box == b.name
		}
	}
	s.remove(b)
	reply(w, map[string]any{"sandbox": fields})
}

// remove takes b away. The caller holds mu.
func (s *Server) remove(b *box) {
	s.boxes = slices.DeleteFunc(s.boxes, func(x *box) bool { return x == b })
	s.sessions = slices.DeleteFunc(s.sessions, func(x *session) bool { return x.box == b })
	go b.discard()
}

func (s *Server) listSessions(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*session
	for _, x := range slices.Backward(s.sessions) {
		if name == "" || x.box.name == name {
			found = append(found, x)
		}
	}
	page(s, w, r, "sessions", found, func(x *session) string { return x.id }, func(x *session) any { return s.showSession(x) })
}

// stop returns when the session has stopped, and does so again and again.
func (s *Server) stop(w http.ResponseWriter, r *http.Request, x *session) {
	fields := map[string]any{}
	if live(x.status) {
		s.move(x, "stopped")
		if x.box.persistent {
			k, err := s.keep(x, "automatic")
			if err != nil {
				refuse(w, 500, "internal_server_error", err.Error())
				return
			}
			fields["snapshot"] = k.show()
		}
	}
	fields["session"], fields["sandbox"] = s.showSession(x), s.showBox(x.box, true)
	reply(w, fields)
}

func (s *Server) extend(w http.ResponseWriter, r *http.Request, x *session) {
	var body struct {
		Duration int64 `json:"duration"`
	}
	if !read(w, r, &body) {
		return
	}
	switch {
	case !live(x.status):
		refuseStopped(w, x.status)
	case body.Duration < 1000:
		refuse(w, 400, "bad_request", "`duration` should be >= 1000")
	case x.timeout+body.Duration > s.most():
		refuse(w, 400, "bad_request", fmt.Sprintf("The sandbox timeout cannot exceed %d for your plan", s.most()))
	default:
		x.timeout += body.Duration
		reply(w, map[string]any{"session": s.showSession(x)})
	}
}

// refuseStopped answers for a session in which nothing can be done.
func refuseStopped(w http.ResponseWriter, status string) {
	switch status {
	case "stopping", "snapshotting":
		refuse(w, 422, "sandbox_"+status, "Sandbox is "+status+".")
	case "pending":
		refuse(w, 400, "bad_request", "Sandbox is not running yet.")
	default:
		refuse(w, 410, "sandbox_stopped", "Sandbox has stopped execution and is no longer available")
	}
}

// kept returns the snapshot with that id. The caller holds mu.
func (s *Server) kept(id string) *snapshot {
	for _, k := range s.snapshots {
		if k.id == id {
			return k
		}
	}
	return nil
}

func (k *snapshot) show() any {
	status := "created"
	if k.deleted {
		status = "deleted"
	}
	return map[string]any{
		"id": k.id, "sourceSessionId": k.session, "architecture": "amd64", "region": "iad1", "regions": []any{"iad1"},
		"status": status, "sizeBytes": 821000000, "expiresAt": ms(k.expires), "createdAt": ms(k.created),
		"updatedAt": ms(k.created), "lastUsedAt": ms(k.created), "creationMethod": k.method,
	}
}

// keep copies the home directory of x, from which the sandbox can be resumed. The
// caller holds mu.
func (s *Server) keep(x *session, method string) (*snapshot, error) {
	disk, err := machine.New("")
	if err == nil {
		err = copyHome(x.box.disk, disk)
	}
	if err != nil {
		return nil, err
	}
	now := s.cfg.Now()
	k := &snapshot{
		id: identity("snap_", 28, base62), session: x.id, box: x.box.name,
		created: now, expires: now.AddDate(0, 0, 30), method: method, disk: disk,
	}
	s.snapshots = append(s.snapshots, k)
	x.box.snapshot = k.id
	return k, nil
}

// takeSnapshot keeps a copy of the home directory and stops the session.
func (s *Server) takeSnapshot(w http.ResponseWriter, r *http.Request, x *session) {
	var body struct {
		Expiration *int64 `json:"expiration"`
	}
	if !read(w, r, &body) {
		return
	}
	if x.status != "running" {
		refuseStopped(w, x.status)
		return
	}
	if body.Expiration != nil && *body.Expiration != 0 && *body.Expiration < day {
		refuse(w, 400, "bad_request", "`expiration` should be 0 or at least 86400000")
		return
	}
	k, err := s.keep(x, "manual")
	if err != nil {
		refuse(w, 500, "internal_server_error", err.Error())
		return
	}
	if body.Expiration != nil {
		k.expires = k.created.Add(time.Duration(*body.Expiration) * time.Millisecond)
	}
	go x.halt()
	if s.cfg.StopDelay > 0 {
		s.move(x, "snapshotting")
		x.next, x.at = "stopped", s.cfg.Now().Add(s.cfg.StopDelay)
	} else {
		s.move(x, "stopped")
	}
	replyStatus(w, 201, map[string]any{"snapshot": k.show(), "session": s.showSession(x)})
}

func (s *Server) listSnapshots(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*snapshot
	for _, k := range slices.Backward(s.snapshots) {
		if !k.deleted && (name == "" || k.box == name) && r.URL.Query().Get("project") == s.cfg.Project {
			found = append(found, k)
		}
	}
	page(s, w, r, "snapshots", found, func(k *snapshot) string { return k.id }, (*snapshot).show)
}

// withSnapshot finds the snapshot of a request. f runs with mu held.
func (s *Server) withSnapshot(f func(http.ResponseWriter, *snapshot)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		k := s.kept(r.PathValue("kid"))
		if k == nil {
			refuse(w, 404, "not_found", "Snapshot not found.")
			return
		}
		f(w, k)
	}
}

// halt ends the processes of x.
func (x *session) halt() {
	x.mu.Lock()
	running := slices.Clone(x.commands)
	x.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range running {
		wg.Go(func() { c.run.Kill(0) })
	}
	wg.Wait()
}

// discard removes the computer of b.
func (b *box) discard() {
	b.session.halt()
	b.disk.Close()
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

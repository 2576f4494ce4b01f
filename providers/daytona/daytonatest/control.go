package daytonatest

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

// A box is one sandbox. Its fields are guarded by Server.mu, the sessions by mu.
type box struct {
	id, name string
	asked    map[string]any // what it was created with
	labels   map[string]string
	state    string
	next     string // the state it is on the way to; empty: none
	at       time.Time
	created  time.Time
	machine  *machine.Machine

	mu       sync.Mutex
	sessions map[string]*session
	commands int
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	s.handle(mux, "create", "POST /api/sandbox", s.create)
	s.handle(mux, "list", "GET /api/sandbox", s.list)
	s.handle(mux, "get", "GET /api/sandbox/{id}", s.one(func(w http.ResponseWriter, r *http.Request, b *box) { emulate.Reply(w, 200, s.show(b)) }))
	s.handle(mux, "delete", "DELETE /api/sandbox/{id}", s.one(s.destroy))
	s.handle(mux, "start", "POST /api/sandbox/{id}/start", s.one(s.start))
	s.handle(mux, "stop", "POST /api/sandbox/{id}/stop", s.one(s.stop))
	s.handle(mux, "snapshot", "POST /api/sandbox/{id}/snapshot", s.one(s.snapshot))
	s.handle(mux, "snapshots", "GET /api/snapshots", s.snapshots)
	s.handle(mux, "snapshot-delete", "DELETE /api/snapshots/{kid}", s.deleteSnapshot)
	s.handle(mux, "labels", "PUT /api/sandbox/{id}/labels", s.one(s.setLabels))
	s.handle(mux, "last-activity", "POST /api/sandbox/{id}/last-activity", s.one(func(w http.ResponseWriter, r *http.Request, b *box) { emulate.Reply(w, 201, nil) }))
	s.handle(mux, "toolbox-proxy-url", "GET /api/sandbox/{id}/toolbox-proxy-url", s.one(func(w http.ResponseWriter, r *http.Request, b *box) {
		emulate.Reply(w, 200, map[string]string{"url": s.toolboxURL()})
	}))
	for _, kind := range []string{"autostop", "autoarchive", "autodelete", "autopause", "ttl"} {
		s.handle(mux, kind, "POST /api/sandbox/{id}/"+kind+"/{minutes}", s.one(func(w http.ResponseWriter, r *http.Request, b *box) {
			field := map[string]string{"autostop": "autoStopInterval", "autoarchive": "autoArchiveInterval", "autodelete": "autoDeleteInterval", "autopause": "autoPauseInterval", "ttl": "ttlMinutes"}[kind]
			n, err := strconv.Atoi(r.PathValue("minutes"))
			if err != nil {
				refuse(w, r, 400, "BAD_REQUEST", "interval must be a number")
				return
			}
			b.asked[field] = float64(n)
			emulate.Reply(w, 200, s.show(b))
		}))
	}
	s.handle(mux, "config", "GET /api/config", func(w http.ResponseWriter, r *http.Request) {
		emulate.Reply(w, 200, map[string]any{"proxyToolboxUrl": s.toolboxURL(), "defaultSnapshot": "default"})
	})
	s.handle(mux, "unknown", "/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, 404, "NOT_FOUND", "Cannot "+r.Method+" "+r.URL.Path)
	})
	s.toolbox(mux)
	return mux
}

func (s *Server) toolboxURL() string { return s.Address() + "/toolbox" }

// find returns the sandbox with that id or name. The caller holds mu.
func (s *Server) find(id string) *box {
	for _, b := range s.boxes {
		if b.id == id || b.name == id {
			if s.settle(b); b.state != "destroyed" {
				return b
			}
		}
	}
	return nil
}

// settle lets time pass for b. The caller holds mu.
func (s *Server) settle(b *box) {
	now := s.cfg.Now()
	if b.next != "" && !now.Before(b.at) {
		b.state, b.next = b.next, ""
	}
	if ttl, ok := b.asked["ttlMinutes"].(float64); ok && ttl > 0 && b.state != "destroyed" && now.Sub(b.created) >= time.Duration(ttl)*time.Minute {
		b.state, b.next = "destroyed", ""
		go b.end()
	}
}

// move puts b into state on the way to next, which it reaches after delay.
func (s *Server) move(b *box, state, next string, delay time.Duration) {
	b.state, b.next, b.at = state, next, s.cfg.Now().Add(delay)
}

// one finds the sandbox of a request. f runs with mu held.
func (s *Server) one(f func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		b := s.find(r.PathValue("id"))
		if b == nil {
			refuse(w, r, 404, "NOT_FOUND", "Sandbox with ID or name "+r.PathValue("id")+" not found")
			return
		}
		f(w, r, b)
	}
}

// show is b as JSON fields. The caller holds mu.
func (s *Server) show(b *box) map[string]any {
	fields := map[string]any{
		"env": map[string]string{}, "public": false, "user": "daytona", "networkBlockAll": false,
		"cpu": 1, "gpu": 0, "memory": 1, "disk": 3, "target": "us",
		"autoStopInterval": 15, "autoArchiveInterval": 10080, "autoDeleteInterval": -1,
	}
	for k, v := range b.asked {
		fields[k] = v
	}
	fields["id"], fields["name"], fields["labels"], fields["state"] = b.id, b.name, b.labels, b.state
	fields["organizationId"] = "org-test"
	fields["toolboxProxyUrl"] = s.toolboxURL()
	fields["createdAt"] = b.created.UTC().Format(time.RFC3339)
	fields["updatedAt"] = fields["createdAt"]
	if ttl, ok := b.asked["ttlMinutes"].(float64); ok && ttl > 0 {
		fields["autoDestroyAt"] = b.created.Add(time.Duration(ttl) * time.Minute).UTC().Format(time.RFC3339)
	}
	if b.state == "error" || b.state == "build_failed" {
		fields["errorReason"] = "the emulator was told so"
	}
	return fields
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	asked := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		refuse(w, r, 400, "INVALID_REQUEST_BODY", "invalid request body")
		return
	}
	if asked["snapshot"] != nil && asked["buildInfo"] != nil {
		refuse(w, r, 400, "BAD_REQUEST", "Cannot specify a snapshot when using a build info entry")
		return
	}
	m, err := machine.New("")
	if err != nil {
		refuse(w, r, 500, "INTERNAL_SERVER_ERROR", err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name, _ := asked["name"].(string)
	if name != "" && s.find(name) != nil {
		m.Close()
		refuse(w, r, 409, "CONFLICT", "Sandbox with name "+name+" already exists")
		return
	}
	if snapshot, _ := asked["snapshot"].(string); snapshot != "" && snapshot != "default" {
		if s.kept[snapshot] == nil {
			m.Close()
			refuse(w, r, 404, "NOT_FOUND", "Snapshot "+snapshot+" not found")
			return
		}
		copyHome(s.kept[snapshot], m)
	}
	b := &box{
		id: s.number("box-"), name: name, asked: asked, labels: map[string]string{},
		created: s.cfg.Now(), machine: m, sessions: map[string]*session{},
	}
	if b.name == "" {
		b.name = b.id
	}
	if labels, ok := asked["labels"].(map[string]any); ok {
		for k, v := range labels {
			b.labels[k], _ = v.(string)
		}
	}
	next := "started"
	if s.Behaviour().EndIn != "" {
		next = s.Behaviour().EndIn
	}
	s.move(b, "creating", next, s.cfg.StartDelay)
	if s.Behaviour().NeverReady {
		b.next = ""
	}
	s.boxes = append(s.boxes, b)
	emulate.Reply(w, 200, s.show(b))
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	want := map[string]string{}
	if text := r.URL.Query().Get("labels"); text != "" {
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			refuse(w, r, 400, "BAD_REQUEST", "labels must be a JSON object")
			return
		}
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > 200 {
		limit = 100
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []map[string]any{}
	var next any
	past := r.URL.Query().Get("cursor") == ""
	for _, b := range s.boxes {
		if s.settle(b); !past {
			past = b.id == r.URL.Query().Get("cursor")
			continue
		}
		matches := b.state != "destroyed"
		for k, v := range want {
			matches = matches && b.labels[k] == v
		}
		if !matches {
			continue
		}
		if len(items) == limit {
			next = items[limit-1]["id"]
			break
		}
		fields := s.show(b)
		delete(fields, "env")
		items = append(items, fields)
	}
	emulate.Reply(w, 200, map[string]any{"items": items, "nextCursor": next, "total": len(items)})
}

func busy(w http.ResponseWriter, r *http.Request) {
	refuse(w, r, 409, "CONFLICT", "Sandbox state change in progress")
}

func (s *Server) destroy(w http.ResponseWriter, r *http.Request, b *box) {
	if s.Due(func(b *Behaviour) *int { return &b.BusyDeletes }) {
		busy(w, r)
		return
	}
	if b.next != "" && b.state != "creating" || b.state == "destroying" {
		busy(w, r)
		return
	}
	s.move(b, "destroying", "destroyed", s.cfg.StopDelay)
	if s.Behaviour().StuckDestroy {
		b.next = ""
	}
	go b.end()
	emulate.Reply(w, 200, s.show(b))
}

func (s *Server) start(w http.ResponseWriter, r *http.Request, b *box) {
	switch {
	case b.next != "":
		busy(w, r)
		return
	case b.state == "started":
	case slices.Contains([]string{"stopped", "archived", "paused"}, b.state):
		s.move(b, "starting", "started", s.cfg.StartDelay)
	default:
		refuse(w, r, 400, "BAD_REQUEST", "Sandbox is not in valid state")
		return
	}
	emulate.Reply(w, 200, s.show(b))
}

func (s *Server) stop(w http.ResponseWriter, r *http.Request, b *box) {
	switch {
	case b.next != "":
		busy(w, r)
		return
	case b.state == "started":
		s.move(b, "stopping", "stopped", s.cfg.StopDelay)
		go b.halt()
	case b.state != "stopped":
		refuse(w, r, 400, "BAD_REQUEST", "Sandbox is not in valid state")
		return
	}
	emulate.Reply(w, 200, s.show(b))
}

// snapshot keeps a copy of the home directory.
func (s *Server) snapshot(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		Name string `json:"name"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Name == "" {
		refuse(w, r, 400, "BAD_REQUEST", "name should not be empty")
		return
	}
	switch {
	case s.kept[body.Name] != nil:
		refuse(w, r, 409, "CONFLICT", "Snapshot with name "+body.Name+" already exists")
		return
	case b.next != "":
		busy(w, r)
		return
	}
	m, err := machine.New("")
	if err == nil {
		err = copyHome(b.machine, m)
	}
	if err != nil {
		refuse(w, r, 500, "INTERNAL_SERVER_ERROR", err.Error())
		return
	}
	s.kept[body.Name] = m
	s.move(b, "snapshotting", b.state, s.cfg.StopDelay)
	emulate.Reply(w, 200, s.show(b))
}

func (s *Server) snapshots(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	for name := range s.kept {
		if strings.Contains(name, r.URL.Query().Get("name")) {
			items = append(items, map[string]any{"id": "id-" + name, "name": name, "state": "active"})
		}
	}
	emulate.Reply(w, 200, map[string]any{"items": items, "total": len(items), "page": 1, "totalPages": 1})
}

func (s *Server) deleteSnapshot(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.TrimPrefix(r.PathValue("kid"), "id-")
	m := s.kept[name]
	if m == nil {
		refuse(w, r, 404, "NOT_FOUND", "Snapshot with ID "+r.PathValue("kid")+" not found")
		return
	}
	delete(s.kept, name)
	m.Close()
	w.WriteHeader(200)
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

func (s *Server) setLabels(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		Labels map[string]string `json:"labels"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Labels == nil {
		refuse(w, r, 400, "BAD_REQUEST", "labels must be an object")
		return
	}
	b.labels = body.Labels
	emulate.Reply(w, 200, body)
}

// halt ends the sessions of b and their processes.
func (b *box) halt() {
	b.mu.Lock()
	sessions := b.sessions
	b.sessions = map[string]*session{}
	b.mu.Unlock()
	for _, s := range sessions {
		s.shell.Kill(0)
	}
}

// end removes the computer of b.
func (b *box) end() {
	b.halt()
	b.machine.Close()
}

func split(r *http.Request) bool {
	if r.Header.Get("X-Daytona-Split-Output") == "true" {
		return true
	}
	parts := strings.SplitN(r.Header.Get("X-Daytona-SDK-Version"), ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, _ := strconv.Atoi(parts[0])
	minor, _ := strconv.Atoi(parts[1])
	return major > 0 || minor >= 167
}

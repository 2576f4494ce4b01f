package runlooptest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/sdk/machine"
)

// A box is one devbox. Its fields are guarded by Server.mu, the executions by mu.
type box struct {
	id       string
	asked    map[string]any // what it was created with
	metadata map[string]string
	status   string
	next     string // the state it is on the way to; empty: none
	at       time.Time
	created  time.Time
	active   time.Time
	ended    time.Time
	reason   string // of its shutdown
	history  []any  // its state transitions
	copying  time.Time
	machine  *machine.Machine

	mu         sync.Mutex
	executions []*execution
	shells     map[string]*sync.Mutex
}

func (s *Server) control(mux *http.ServeMux) {
	s.handle(mux, "create", "POST /v1/devboxes", func(w http.ResponseWriter, r *http.Request) { s.create(w, r, 0) })
	s.handle(mux, "create-await", "POST /v1/devboxes/create_and_await_running", func(w http.ResponseWriter, r *http.Request) { s.create(w, r, s.cfg.Hold) })
	s.handle(mux, "list", "GET /v1/devboxes", s.list)
	s.handle(mux, "get", "GET /v1/devboxes/{id}", s.one(func(w http.ResponseWriter, r *http.Request, b *box) { reply(w, s.show(b)) }))
	s.handle(mux, "update", "POST /v1/devboxes/{id}", s.one(s.update))
	s.handle(mux, "wait", "POST /v1/devboxes/{id}/wait_for_status", s.wait)
	s.handle(mux, "keep-alive", "POST /v1/devboxes/{id}/keep_alive", s.one(func(w http.ResponseWriter, r *http.Request, b *box) {
		b.active = s.cfg.Now()
		reply(w, map[string]any{})
	}))
	s.handle(mux, "suspend", "POST /v1/devboxes/{id}/suspend", s.one(s.suspend))
	s.handle(mux, "resume", "POST /v1/devboxes/{id}/resume", s.one(s.resume))
	s.handle(mux, "shutdown", "POST /v1/devboxes/{id}/shutdown", s.one(s.shutdown))
	s.handle(mux, "logs", "GET /v1/devboxes/{id}/logs", s.one(func(w http.ResponseWriter, r *http.Request, b *box) {
		reply(w, map[string]any{"logs": []any{map[string]any{
			"level": "info", "source": "setup_commands", "timestamp_ms": b.created.UnixMilli(), "message": "devbox is " + b.status,
		}}})
	}))
}

// find returns the devbox with that id. The caller holds mu.
func (s *Server) find(id string) *box {
	for _, b := range s.boxes {
		if b.id == id {
			s.settle(b)
			return b
		}
	}
	return nil
}

// settle lets time pass for b. The caller holds mu.
func (s *Server) settle(b *box) {
	now := s.cfg.Now()
	if b.next != "" && !now.Before(b.at) {
		s.move(b, b.next, "", 0)
	}
	if b.status == "shutdown" || b.status == "failure" {
		return
	}
	parameters, _ := b.asked["launch_parameters"].(map[string]any)
	lifecycle, _ := parameters["lifecycle"].(map[string]any)
	idle, _ := lifecycle["after_idle"].(map[string]any)
	if idle == nil {
		idle, _ = parameters["after_idle"].(map[string]any)
	}
	if idle != nil {
		seconds, _ := idle["idle_time_seconds"].(float64)
		switch {
		case b.status != "running" || now.Sub(b.active) < time.Duration(seconds)*time.Second:
		case idle["on_idle"] == "suspend":
			s.move(b, "suspending", "suspended", s.cfg.StopDelay)
			go b.halt()
		default:
			s.stop(b, "idle")
		}
		return
	}
	life := 3600.0
	if n, ok := parameters["keep_alive_time_seconds"].(float64); ok {
		life = n
	}
	if now.Sub(b.created) >= time.Duration(life)*time.Second {
		s.stop(b, "keep_alive_timeout")
	}
}

// stop shuts b down. The caller holds mu.
func (s *Server) stop(b *box, reason string) {
	b.reason, b.ended = reason, s.cfg.Now()
	s.move(b, "shutdown", "", 0)
	go b.end()
}

// move puts b into a state on the way to next, which it reaches after delay. The
// caller holds mu.
func (s *Server) move(b *box, status, next string, delay time.Duration) {
	now := s.cfg.Now()
	b.status, b.next, b.at = status, next, now.Add(delay)
	b.history = append(b.history, map[string]any{"status": status, "transition_time_ms": now.UnixMilli()})
	if status == "running" {
		b.active = now
	}
}

// one finds the devbox of a request. f runs with mu held.
func (s *Server) one(f func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		b := s.find(r.PathValue("id"))
		if b == nil {
			refuse(w, 404, "Devbox with id "+r.PathValue("id")+" not found")
			return
		}
		f(w, r, b)
	}
}

// show is b as the service shows it. The caller holds mu.
func (s *Server) show(b *box) map[string]any {
	if s.Behaviour().TwoFields {
		return map[string]any{"id": b.id, "status": b.status}
	}
	return s.full(b)
}

func (s *Server) full(b *box) map[string]any {
	fields := map[string]any{
		"id": b.id, "status": b.status, "capabilities": []any{}, "create_time_ms": b.created.UnixMilli(), "end_time_ms": nil,
		"launch_parameters": map[string]any{}, "metadata": b.metadata, "state_transitions": b.history,
	}
	for _, key := range []string{"name", "launch_parameters", "blueprint_id", "snapshot_id"} {
		if v := b.asked[key]; v != nil {
			fields[key] = v
		}
	}
	if b.status == "failure" {
		fields["failure_reason"] = "execution_failed"
	}
	if b.status == "shutdown" {
		fields["end_time_ms"] = b.ended.UnixMilli()
		fields["shutdown_reason"] = b.reason
	}
	return fields
}

func (s *Server) create(w http.ResponseWriter, r *http.Request, hold time.Duration) {
	asked := map[string]any{}
	if !read(w, r, &asked) {
		return
	}
	sources := 0
	for _, key := range []string{"blueprint_id", "blueprint_name", "snapshot_id"} {
		if asked[key] != nil {
			sources++
		}
	}
	if sources > 1 {
		refuse(w, 400, "only one of blueprint_id, blueprint_name and snapshot_id may be given")
		return
	}
	if parameters, ok := asked["launch_parameters"].(map[string]any); ok {
		if n, ok := parameters["keep_alive_time_seconds"].(float64); ok && (n < 1 || n > 172800) {
			refuse(w, 400, "keep_alive_time_seconds must be between 1 and 172800")
			return
		}
	}
	s.mu.Lock()
	key := r.Header.Get("X-Request-Id")
	b := s.find(s.keys["create "+key])
	if b == nil || key == "" || s.Behaviour().ForgetKeys {
		var status int
		var message string
		if b, status, message = s.make(asked); b == nil {
			s.mu.Unlock()
			refuse(w, status, message)
			return
		}
		s.keys["create "+key] = b.id
	}
	id := b.id
	s.mu.Unlock()
	if hold > 0 {
		s.until(r, id, []string{"running", "failure", "shutdown"}, hold)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(b)
	reply(w, s.show(b))
}

// make makes a devbox. The caller holds mu.
func (s *Server) make(asked map[string]any) (b *box, status int, message string) {
	text := func(key string) string { v, _ := asked[key].(string); return v }
	var from *machine.Machine
	if id := text("snapshot_id"); id != "" {
		k := s.kept(id)
		if k == nil || k.deleted {
			return nil, 404, "Snapshot " + id + " not found"
		}
		from = k.machine
	}
	if id, name := text("blueprint_id"), text("blueprint_name"); id != "" || name != "" {
		var found *blueprint
		for _, p := range s.blueprints {
			if (p.id == id || id == "" && p.name == name) && s.progress(p) == "build_complete" {
				found = p
			}
		}
		if found == nil {
			return nil, 400, "no complete build of blueprint " + id + name
		}
	}
	m, err := machine.New("")
	if err != nil {
		return nil, 500, err.Error()
	}
	if from != nil {
		if err := copyHome(from, m); err != nil {
			m.Close()
			return nil, 500, err.Error()
		}
	}
	b = &box{
		id: s.number("dbx_"), asked: asked, metadata: map[string]string{}, created: s.cfg.Now(),
		machine: m, shells: map[string]*sync.Mutex{},
	}
	if metadata, ok := asked["metadata"].(map[string]any); ok {
		for k, v := range metadata {
			b.metadata[k], _ = v.(string)
		}
	}
	next := "running"
	if s.Behaviour().EndIn != "" {
		next = s.Behaviour().EndIn
	}
	s.move(b, "provisioning", next, s.cfg.StartDelay)
	if s.Behaviour().NeverReady {
		b.next = ""
	}
	s.boxes = append(s.boxes, b)
	return b, 0, ""
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*box
	for _, b := range slices.Backward(s.boxes) {
		s.settle(b)
		if status := r.URL.Query().Get("status"); status == "" || status == b.status {
			found = append(found, b)
		}
	}
	page(w, r, "devboxes", found, func(b *box) string { return b.id }, func(b *box) any { return s.full(b) })
}

func (s *Server) update(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		Name     *string           `json:"name"`
		Metadata map[string]string `json:"metadata"`
	}
	if !read(w, r, &body) {
		return
	}
	if body.Name != nil {
		b.asked["name"] = *body.Name
	}
	if body.Metadata != nil {
		b.metadata = maps.Clone(body.Metadata)
	}
	reply(w, s.show(b))
}

// wait holds the request until the devbox has one of the states.
func (s *Server) wait(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Statuses []string `json:"statuses"`
		Timeout  float64  `json:"timeout_seconds"`
	}
	if !read(w, r, &body) {
		return
	}
	if len(body.Statuses) == 0 {
		refuse(w, 400, "statuses must not be empty")
		return
	}
	hold := s.cfg.Hold
	if body.Timeout > 0 {
		hold = min(hold, time.Duration(body.Timeout*float64(time.Second)))
	}
	fields, known := s.until(r, r.PathValue("id"), body.Statuses, hold)
	switch {
	case !known:
		refuse(w, 404, "Devbox with id "+r.PathValue("id")+" not found")
	case fields == nil:
		refuse(w, 408, "the devbox has not reached the status")
	default:
		reply(w, fields)
	}
}

// until waits until the devbox id has one of the states, whose fields it then
// returns, or the time is up. It reports whether there is such a devbox.
func (s *Server) until(r *http.Request, id string, states []string, hold time.Duration) (fields map[string]any, known bool) {
	limit := time.NewTimer(hold)
	defer limit.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		s.mu.Lock()
		b := s.find(id)
		if b != nil && slices.Contains(states, b.status) {
			fields = s.show(b)
		}
		s.mu.Unlock()
		if b == nil || fields != nil {
			return fields, b != nil
		}
		select {
		case <-look.C:
		case <-limit.C:
			return nil, true
		case <-r.Context().Done():
			return nil, true
		case <-s.Done():
			return nil, true
		}
	}
}

func (s *Server) suspend(w http.ResponseWriter, r *http.Request, b *box) {
	if b.status != "running" {
		refuse(w, 400, "Devbox is "+b.status)
		return
	}
	s.move(b, "suspending", "suspended", s.cfg.StopDelay)
	go b.halt()
	reply(w, s.show(b))
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request, b *box) {
	switch b.status {
	case "suspended":
		s.move(b, "resuming", "running", s.cfg.StartDelay)
	case "running", "resuming":
	default:
		refuse(w, 400, "Devbox is "+b.status)
		return
	}
	reply(w, s.show(b))
}

func (s *Server) shutdown(w http.ResponseWriter, r *http.Request, b *box) {
	busy := s.Due(func(b *Behaviour) *int { return &b.BusyShutdowns })
	force, _ := strconv.ParseBool(r.URL.Query().Get("force"))
	if (busy || s.cfg.Now().Before(b.copying)) && !force {
		refuse(w, 409, "Devbox has a snapshot in progress")
		return
	}
	if b.status != "shutdown" {
		s.stop(b, "api_shutdown")
	}
	reply(w, s.show(b))
}

// halt ends the processes of b.
func (b *box) halt() {
	b.mu.Lock()
	running := slices.Clone(b.executions)
	b.mu.Unlock()
	var wg sync.WaitGroup
	for _, x := range running {
		wg.Go(func() { x.run.Kill(0) })
	}
	wg.Wait()
}

// end removes the computer of b.
func (b *box) end() {
	b.halt()
	b.machine.Close()
}

// notRunning answers for a devbox on which nothing can be done.
func notRunning(w http.ResponseWriter, b *box, status string) {
	refuse(w, 400, "Devbox "+b.id+" is not running, it is "+strings.ReplaceAll(status, "_", " "))
}

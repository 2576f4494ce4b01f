package e2btest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/machine"
)

// A box is one sandbox. Its fields are guarded by Server.mu, the processes by mu.
type box struct {
	id, template, token, version string
	metadata                     map[string]string
	env                          map[string]string
	paused, autoPause            bool
	started, ends                time.Time
	machine                      *machine.Machine

	mu        sync.Mutex
	processes []*process
	cut       chan struct{} // closed to break all streams
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	s.handle(mux, "create", "POST /v2/sandboxes", s.v2(s.create(true)))
	s.handle(mux, "create", "POST /sandboxes", s.create(false))
	s.handle(mux, "list", "GET /v2/sandboxes", s.list)
	s.handle(mux, "get", "GET /sandboxes/{id}", s.one(func(w http.ResponseWriter, r *http.Request, b *box) { emulate.Reply(w, 200, s.detail(b)) }))
	s.handle(mux, "delete", "DELETE /sandboxes/{id}", s.one(s.destroy))
	s.handle(mux, "connect", "POST /v2/sandboxes/{id}/connect", s.v2(s.one(s.connect)))
	s.handle(mux, "connect", "POST /sandboxes/{id}/connect", s.one(s.connect))
	s.handle(mux, "timeout", "POST /sandboxes/{id}/timeout", s.one(s.timeout))
	s.handle(mux, "refreshes", "POST /sandboxes/{id}/refreshes", s.one(s.refresh))
	s.handle(mux, "pause", "POST /sandboxes/{id}/pause", s.one(s.pause))
	s.handle(mux, "snapshot", "POST /sandboxes/{id}/snapshots", s.one(s.snapshot))
	s.handle(mux, "snapshots", "GET /snapshots", s.snapshots)
	s.handle(mux, "snapshot-delete", "DELETE /templates/{id}", s.deleteSnapshot)
	s.handle(mux, "unknown", "/", func(w http.ResponseWriter, r *http.Request) { refuse(w, 404, "no such route: "+r.URL.Path) })
	s.daemon(mux)
	return mux
}

// v2 is f on servers that know the second version of a call.
func (s *Server) v2(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.Behaviour().NoV2 {
			refuse(w, 405, "method not allowed")
			return
		}
		f(w, r)
	}
}

// find returns the sandbox with that id. The caller holds mu.
func (s *Server) find(id string) *box {
	s.settle()
	for _, b := range s.boxes {
		if b.id == id {
			return b
		}
	}
	return nil
}

// settle lets time pass: a sandbox whose time is up ends, or is paused where that
// was asked for. The caller holds mu.
func (s *Server) settle() {
	now := s.cfg.Now()
	s.boxes = slices.DeleteFunc(s.boxes, func(b *box) bool {
		if b.paused || now.Before(b.ends) {
			return false
		}
		if b.autoPause {
			b.paused = true
			return false
		}
		go b.end()
		return true
	})
}

// one finds the sandbox of a request. f runs with mu held.
func (s *Server) one(f func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		b := s.find(r.PathValue("id"))
		if b == nil {
			refuse(w, 404, fmt.Sprintf("sandbox %q doesn't exist", r.PathValue("id")))
			return
		}
		f(w, r, b)
	}
}

// show is what creating and connecting answer. The caller holds mu.
func (s *Server) show(b *box) map[string]any {
	fields := map[string]any{
		"sandboxID": b.id, "templateID": b.template, "clientID": "client", "envdVersion": b.version,
		"envdAccessToken": b.token, "trafficAccessToken": nil, "domain": nil,
	}
	if s.Behaviour().NoToken {
		delete(fields, "envdAccessToken")
	}
	return fields
}

// detail adds what looking at one sandbox tells. The caller holds mu.
func (s *Server) detail(b *box) map[string]any {
	fields := s.show(b)
	fields["startedAt"] = b.started.UTC().Format(time.RFC3339Nano)
	fields["endAt"] = b.ends.UTC().Format(time.RFC3339Nano)
	fields["state"] = "running"
	if b.paused {
		fields["state"] = "paused"
	}
	fields["metadata"] = b.metadata
	fields["cpuCount"], fields["memoryMB"], fields["diskSizeMB"] = 2, 512, 1024
	return fields
}

// tooLong refuses a lifetime that the account may not have. The caller holds mu.
func (s *Server) tooLong(w http.ResponseWriter, seconds int64) bool {
	most := cmp.Or(s.Behaviour().MostHours, 24)
	if seconds <= int64(most)*3600 {
		return false
	}
	refuse(w, 400, fmt.Sprintf("Timeout cannot be greater than %d hours", most))
	return true
}

func (s *Server) create(secure bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Template  string            `json:"templateID"`
			Timeout   *int64            `json:"timeout"`
			Metadata  map[string]string `json:"metadata"`
			Env       map[string]string `json:"envVars"`
			Secure    bool              `json:"secure"`
			AutoPause bool              `json:"autoPause"`
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Template == "" {
			refuse(w, 400, "templateID is required")
			return
		}
		m, err := machine.New("")
		if err != nil {
			refuse(w, 500, err.Error())
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		timeout := int64(15)
		if asked.Timeout != nil {
			timeout = *asked.Timeout
		}
		s.settle()
		status, message := 0, ""
		i := slices.IndexFunc(s.kept, func(k *kept) bool { return k.id == asked.Template || k.name == asked.Template })
		switch {
		case s.Behaviour().Most > 0 && len(s.boxes) >= s.Behaviour().Most:
			status, message = 429, fmt.Sprintf("you have reached the maximum number of concurrent E2B sandboxes (%d)", s.Behaviour().Most)
		case i >= 0:
			err = copyHome(s.kept[i].machine, m)
		case asked.Template != "base":
			status, message = 404, fmt.Sprintf("template '%s' not found", asked.Template)
		}
		if err != nil {
			status, message = 500, err.Error()
		}
		if status != 0 {
			m.Close()
			refuse(w, status, message)
			return
		}
		if s.tooLong(w, timeout) {
			m.Close()
			return
		}
		now := s.cfg.Now()
		b := &box{
			id: s.number("ibox"), template: asked.Template, version: cmp.Or(s.Behaviour().Version, "0.6.13"),
			metadata: asked.Metadata, env: asked.Env, autoPause: asked.AutoPause,
			started: now, ends: now.Add(time.Duration(timeout) * time.Second), machine: m, cut: make(chan struct{}),
		}
		if b.metadata == nil {
			b.metadata = map[string]string{}
		}
		if secure || asked.Secure {
			b.token = "access-token-of-" + b.id
		}
		s.boxes = append(s.boxes, b)
		emulate.Reply(w, 201, s.show(b))
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	want, err := url.ParseQuery(query.Get("metadata"))
	if err != nil {
		refuse(w, 400, "metadata must be a query")
		return
	}
	states := strings.FieldsFunc(query.Get("state"), func(r rune) bool { return r == ',' })
	limit := 100
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 100 {
			refuse(w, 400, "limit must be between 1 and 100")
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	items := []map[string]any{}
	past := query.Get("nextToken") == ""
	for _, b := range s.boxes {
		if !past {
			past = b.id == query.Get("nextToken")
			continue
		}
		fields := s.detail(b)
		matches := len(states) == 0 || slices.Contains(states, fields["state"].(string))
		for k := range want {
			matches = matches && b.metadata[k] == want.Get(k)
		}
		if !matches {
			continue
		}
		if len(items) == limit {
			w.Header().Set("X-Next-Token", items[limit-1]["sandboxID"].(string))
			break
		}
		for _, k := range []string{"envdAccessToken", "trafficAccessToken", "domain"} {
			delete(fields, k)
		}
		items = append(items, fields)
	}
	emulate.Reply(w, 200, items)
}

func (s *Server) destroy(w http.ResponseWriter, r *http.Request, b *box) {
	if s.Due(func(b *Behaviour) *int { return &b.BusyDeletes }) {
		refuse(w, 409, "sandbox is changing its state")
		return
	}
	s.boxes = slices.DeleteFunc(s.boxes, func(x *box) bool { return x == b })
	go b.end()
	emulate.Reply(w, 204, nil)
}

// connect resumes a paused sandbox; the end of one that runs only moves away.
func (s *Server) connect(w http.ResponseWriter, r *http.Request, b *box) {
	var asked struct {
		Timeout *int64 `json:"timeout"`
	}
	json.NewDecoder(r.Body).Decode(&asked)
	timeout := int64(300)
	if asked.Timeout != nil {
		timeout = *asked.Timeout
	}
	if s.tooLong(w, timeout) {
		return
	}
	status := 200
	if b.paused {
		b.paused, b.ends = false, time.Time{}
		status = 201
	}
	if ends := s.cfg.Now().Add(time.Duration(timeout) * time.Second); ends.After(b.ends) {
		b.ends = ends
	}
	emulate.Reply(w, status, s.show(b))
}

func (s *Server) timeout(w http.ResponseWriter, r *http.Request, b *box) {
	var asked struct {
		Timeout int64 `json:"timeout"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Timeout < 0 {
		refuse(w, 400, "timeout must be a number of seconds")
		return
	}
	if s.tooLong(w, asked.Timeout) {
		return
	}
	b.ends = s.cfg.Now().Add(time.Duration(asked.Timeout) * time.Second)
	emulate.Reply(w, 204, nil)
}

func (s *Server) refresh(w http.ResponseWriter, r *http.Request, b *box) {
	var asked struct {
		Duration int64 `json:"duration"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Duration > 3600 {
		refuse(w, 400, "duration must be at most 3600")
		return
	}
	if ends := s.cfg.Now().Add(time.Duration(max(asked.Duration, 15)) * time.Second); ends.After(b.ends) {
		b.ends = ends
	}
	emulate.Reply(w, 204, nil)
}

func (s *Server) pause(w http.ResponseWriter, r *http.Request, b *box) {
	if b.paused {
		refuse(w, 409, "sandbox is already paused")
		return
	}
	b.paused = true
	emulate.Reply(w, 204, nil)
}

// snapshot keeps a copy of the home directory.
func (s *Server) snapshot(w http.ResponseWriter, r *http.Request, b *box) {
	var asked struct {
		Name string `json:"name"`
	}
	json.NewDecoder(r.Body).Decode(&asked)
	m, err := machine.New("")
	if err == nil {
		err = copyHome(b.machine, m)
	}
	if err != nil {
		refuse(w, 500, err.Error())
		return
	}
	k := &kept{id: s.number("snapshot"), name: asked.Name, of: b.id, machine: m}
	s.kept = append(s.kept, k)
	emulate.Reply(w, 201, k.show())
}

func (k *kept) show() map[string]any {
	names := []string{}
	if k.name != "" {
		names = append(names, "team/"+k.name+":default")
	}
	return map[string]any{"snapshotID": k.id, "names": names}
}

func (s *Server) snapshots(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	for _, k := range s.kept {
		if of := r.URL.Query().Get("sandboxID"); of == "" || of == k.of {
			items = append(items, k.show())
		}
	}
	emulate.Reply(w, 200, items)
}

func (s *Server) deleteSnapshot(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.kept, func(k *kept) bool { return k.id == r.PathValue("id") })
	if i < 0 {
		refuse(w, 404, "template not found")
		return
	}
	s.kept[i].machine.Close()
	s.kept = slices.Delete(s.kept, i, i+1)
	emulate.Reply(w, 204, nil)
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

// end removes the computer of b.
func (b *box) end() { b.machine.Close() }

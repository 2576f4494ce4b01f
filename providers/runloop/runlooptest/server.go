// Package runlooptest is Runloop in one process: its API over HTTP/1.1 and
// cleartext HTTP/2, with a private directory and real processes for every devbox.
// Devboxes report their true directories, so commands and file calls agree.
package runlooptest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

// A Config sets up a Server. The zero value is useful.
type Config struct {
	Key        string           // the API key that is accepted; empty is "test-key"
	StartDelay time.Duration    // how long a devbox is provisioning or resuming, and a blueprint building
	StopDelay  time.Duration    // how long a devbox is suspending, and a snapshot in progress
	Hold       time.Duration    // the longest a wait call is held; 0 is 25 s
	Now        func() time.Time // the clock of lifetimes; nil is time.Now
}

// A Server is the emulated service. It is safe for concurrent use. Its
// operations, as faults name them, are create, create-await, list, get, update,
// wait, keep-alive, suspend, resume, shutdown, logs, execute, execute-async,
// execution, execution-wait, stdout, stderr, kill, upload, download, write, read,
// snapshot, snapshots, snapshot-status, snapshot-delete, blueprint-create,
// blueprint, blueprints, blueprint-logs and blueprint-delete.
type Server struct {
	emulate.Front
	emulate.Mood[Behaviour]
	cfg Config

	mu         sync.Mutex
	boxes      []*box
	snapshots  []*snapshot
	blueprints []*blueprint
	keys       map[string]string // x-request-id → what it has made
	last       int
}

// A Behaviour is what is wrong with the whole service. The zero value is health.
type Behaviour struct {
	EndIn         string // devboxes end in this state instead of running: "failure", "shutdown", "suspended"
	NeverReady    bool   // devboxes stay in provisioning
	BusyShutdowns int    // so many shutdowns are refused as if a snapshot were taken
	ExpiredKey    bool   // the key is refused
	NoExitStatus  bool   // executions have no exit status
	StartOffsets  bool   // the offset of a piece of output is where it starts, not where it ends
	LaggingStream bool   // the last piece of output is never sent
	IdleStreams   int    // so many streams of output end with the error 408 after their first piece
	ForgetKeys    bool   // x-request-id and command_id guard nothing
	TwoFields     bool   // views of devboxes have an id and a status alone
	BuildFails    bool   // blueprints end as failed
}

// A Fault is what happens to some requests of one operation.
type Fault = emulate.Fault

// Start starts a server on a loopback port. Close ends it.
func Start(cfg Config) (*Server, error) {
	cfg.Key = cmp.Or(cfg.Key, "test-key")
	cfg.Hold = cmp.Or(cfg.Hold, 25*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{cfg: cfg, keys: map[string]string{}}
	server := &http.Server{Handler: s.routes(), Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	return s, s.Serve(server)
}

// New starts a server that ends with the test. At most one Config may be given.
func New(tb testing.TB, cfg ...Config) *Server {
	tb.Helper()
	return emulate.New(tb, Start, cfg...)
}

// Close ends every devbox and the server.
func (s *Server) Close() {
	if !s.Shut() {
		return
	}
	s.mu.Lock()
	boxes, kept := slices.Clone(s.boxes), slices.Clone(s.snapshots)
	s.mu.Unlock()
	emulate.EndAll(boxes, (*box).end)
	for _, k := range kept {
		k.machine.Close()
	}
}

// URL returns the address of the API, for the setting base_url.
func (s *Server) URL() string { return s.Address() }

// Key returns the API key that is accepted.
func (s *Server) Key() string { return s.cfg.Key }

// Settings returns what a Spec needs to reach the server.
func (s *Server) Settings() map[string]string {
	return map[string]string{"api_key": s.Key(), "base_url": s.URL()}
}

// Boxes returns the ids of the devboxes that are not shut down.
func (s *Server) Boxes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, b := range s.boxes {
		if s.settle(b); b.status != "shutdown" {
			ids = append(ids, b.id)
		}
	}
	return ids
}

// Running returns how many devboxes have a computer that costs money.
func (s *Server) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, b := range s.boxes {
		if s.settle(b); !slices.Contains([]string{"shutdown", "suspended"}, b.status) {
			n++
		}
	}
	return n
}

// Sandbox tells what a devbox was created with and its state, as JSON fields.
func (s *Server) Sandbox(id string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.find(id); b != nil {
		return s.full(b)
	}
	return nil
}

// SetState puts a devbox into a state, ending its processes if it does not run.
func (s *Server) SetState(id, status string) {
	s.mu.Lock()
	b := s.find(id)
	if b != nil {
		s.move(b, status, "", 0)
	}
	s.mu.Unlock()
	if b != nil && status != "running" {
		b.halt()
	}
}

// Suspend begins to suspend a devbox.
func (s *Server) Suspend(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.find(id); b != nil {
		s.move(b, "suspending", "suspended", s.cfg.StopDelay)
		go b.halt()
	}
}

// Add makes a devbox with that metadata.
func (s *Server) Add(metadata map[string]string) {
	fields := map[string]any{}
	for k, v := range metadata {
		fields[k] = v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.make(map[string]any{"metadata": fields})
}

// Vanish removes a devbox as if it had never been.
func (s *Server) Vanish(id string) {
	s.mu.Lock()
	b := s.find(id)
	s.boxes = slices.DeleteFunc(s.boxes, func(x *box) bool { return x == b })
	s.mu.Unlock()
	if b != nil {
		b.end()
	}
}

// LoseExecutions forgets all executions of a devbox, whose processes end.
func (s *Server) LoseExecutions(id string) {
	s.mu.Lock()
	b := s.find(id)
	s.mu.Unlock()
	if b != nil {
		b.halt()
		b.mu.Lock()
		b.executions = nil
		b.mu.Unlock()
	}
}

// admit checks the key.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	if s.Behaviour().ExpiredKey || r.Header.Get("Authorization") != "Bearer "+s.cfg.Key {
		refuse(w, http.StatusUnauthorized, "Invalid API key")
		return false
	}
	return true
}

func (s *Server) handle(mux *http.ServeMux, op, pattern string, f http.HandlerFunc) {
	mux.HandleFunc(pattern, s.Handle(op, s.admit, f))
}

// routes has a mux of its own for disk_snapshots, which would be the id of a
// devbox to the other.
func (s *Server) routes() http.Handler {
	mux, disks := http.NewServeMux(), http.NewServeMux()
	s.control(mux)
	s.processes(mux)
	s.files(mux)
	s.disks(mux, disks)
	s.handle(mux, "unknown", "/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, 404, "no such endpoint: "+r.Method+" "+r.URL.Path)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/devboxes/disk_snapshots") {
			disks.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"message": message, "code": status})
}

// read decodes the body of r, which may be empty, and answers if it cannot.
func read(w http.ResponseWriter, r *http.Request, v any) bool {
	if r.ContentLength == 0 {
		return true
	}
	if err := json.NewDecoder(r.Body).Decode(v); err != nil && err.Error() != "EOF" {
		refuse(w, 400, "invalid request body")
		return false
	}
	return true
}

// number makes the next identity. The caller holds mu.
func (s *Server) number(prefix string) string {
	s.last++
	return prefix + strconv.Itoa(1000+s.last)
}

// page answers with the part of items that r asks for. Items are in order and
// show gives their fields.
func page[T any](w http.ResponseWriter, r *http.Request, key string, items []T, id func(T) string, show func(T) any) {
	query := r.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || limit < 1 || limit > 5000 {
		limit = 20
	}
	total := len(items)
	if after := query.Get("starting_after"); after != "" {
		at := slices.IndexFunc(items, func(x T) bool { return id(x) == after })
		items = items[at+1:]
	}
	answer := map[string]any{"has_more": len(items) > limit}
	if query.Get("include_total_count") != "false" {
		answer["total_count"] = total
	}
	list := []any{}
	for _, x := range items[:min(limit, len(items))] {
		list = append(list, show(x))
	}
	answer[key] = list
	reply(w, answer)
}

// Package practice is Acme: a sandbox service that does not exist, for tutorials
// and for trying a provider out. It is one HTTP API over real processes, each
// box with a private directory. It is no security boundary.
//
// Every request carries "Authorization: Bearer KEY". Errors are
// {"error": {"code", "message"}} with a fitting status.
//
//	POST   /v1/boxes                             {name, env, labels, lifetime_s, snapshot} → box
//	GET    /v1/boxes?label=key=value             {boxes: [box]}
//	GET    /v1/boxes/{id}                        box: {id, name, dir, state, labels, created_at, expires_at}
//	DELETE /v1/boxes/{id}                        ends it; 404 when it is gone
//	POST   /v1/boxes/{id}/snapshots              {name}
//	PUT    /v1/boxes/{id}/commands/{command}     {args, dir, env, stdin}: starts it, once
//	PUT    /v1/boxes/{id}/commands/{command}/stdin   its input, as it is
//	GET    /v1/boxes/{id}/commands/{command}/output  a line of JSON for each piece, as it comes:
//	                                             {"stream": "stdout", "data": base64} …, then {"exit": 0}
//	DELETE /v1/boxes/{id}/commands/{command}     ends it and all it started
//	GET    /v1/boxes/{id}/files?path=/a/b        the bytes
//	PUT    /v1/boxes/{id}/files?path=/a/b&mode=0644  whole or not at all
package practice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/sdk/machine"
)

// A Config sets up a Server. The zero value is useful.
type Config struct {
	Key        string        // the API key that is accepted; empty is "practice-key"
	Address    string        // to listen on; empty is a free port of 127.0.0.1
	StartDelay time.Duration // how long a new box is starting
}

// A Server is the service. It is safe for concurrent use.
type Server struct {
	cfg      Config
	listener net.Listener
	http     *http.Server

	mu        sync.Mutex
	boxes     map[string]*box
	snapshots map[string]string // name → directory
	requests  int
	last      int
}

// A box is one machine.
type box struct {
	id, name string
	env      map[string]string
	labels   map[string]string
	created  time.Time
	expires  time.Time
	ready    time.Time
	machine  *machine.Machine

	mu       sync.Mutex
	commands map[string]*command
}

// Start starts the service on a port of this computer. Close ends it.
func Start(cfg Config) (*Server, error) {
	cfg.Key = cmp.Or(cfg.Key, "practice-key")
	listener, err := net.Listen("tcp", cmp.Or(cfg.Address, "127.0.0.1:0"))
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, listener: listener, boxes: map[string]*box{}, snapshots: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/boxes", s.create)
	mux.HandleFunc("GET /v1/boxes", s.list)
	for pattern, f := range map[string]func(http.ResponseWriter, *http.Request, *box){
		"GET /v1/boxes/{id}":                           s.show,
		"DELETE /v1/boxes/{id}":                        s.remove,
		"POST /v1/boxes/{id}/snapshots":                s.snapshot,
		"PUT /v1/boxes/{id}/commands/{command}":        s.start,
		"PUT /v1/boxes/{id}/commands/{command}/stdin":  s.stdin,
		"GET /v1/boxes/{id}/commands/{command}/output": s.output,
		"DELETE /v1/boxes/{id}/commands/{command}":     s.kill,
		"GET /v1/boxes/{id}/files":                     s.readFile,
		"PUT /v1/boxes/{id}/files":                     s.writeFile,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			b := s.boxes[r.PathValue("id")]
			s.mu.Unlock()
			if b == nil || time.Now().After(b.expires) {
				refuse(w, http.StatusNotFound, "no_such_box", "there is no box "+r.PathValue("id"))
				return
			}
			f(w, r, b)
		})
	}
	s.http = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests++
		s.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+cfg.Key {
			refuse(w, http.StatusUnauthorized, "bad_key", "the API key is not valid")
			return
		}
		mux.ServeHTTP(w, r)
	})}
	go s.http.Serve(listener)
	return s, nil
}

// Close ends every box and the service.
func (s *Server) Close() {
	s.http.Close()
	s.mu.Lock()
	boxes := slices.Collect(maps.Values(s.boxes))
	clear(s.boxes)
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, b := range boxes {
		wg.Go(func() { b.machine.Close() })
	}
	wg.Wait()
	for _, dir := range s.snapshots {
		os.RemoveAll(dir)
	}
}

// URL is the address of the service.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Key is the API key that is accepted.
func (s *Server) Key() string { return s.cfg.Key }

// Settings is what the acme providers need to reach the service.
func (s *Server) Settings() map[string]string {
	return map[string]string{"api_key": s.Key(), "api_url": s.URL()}
}

// Boxes returns the ids of the boxes there are.
func (s *Server) Boxes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.boxes))
}

// Requests returns how many requests have come.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	reply(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

func (b *box) tell() map[string]any {
	state := "running"
	if time.Now().Before(b.ready) {
		state = "starting"
	}
	return map[string]any{
		"id": b.id, "name": b.name, "dir": b.machine.Dir(), "state": state, "labels": b.labels,
		"created_at": b.created.UTC().Format(time.RFC3339), "expires_at": b.expires.UTC().Format(time.RFC3339),
	}
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var want struct {
		Name     string            `json:"name"`
		Env      map[string]string `json:"env"`
		Labels   map[string]string `json:"labels"`
		Lifetime int               `json:"lifetime_s"`
		Snapshot string            `json:"snapshot"`
	}
	if err := json.NewDecoder(r.Body).Decode(&want); err != nil {
		refuse(w, http.StatusBadRequest, "bad_request", "the body is not JSON")
		return
	}
	s.mu.Lock()
	from, known := s.snapshots[want.Snapshot]
	s.mu.Unlock()
	if want.Snapshot != "" && !known {
		refuse(w, http.StatusNotFound, "no_such_snapshot", "there is no snapshot "+want.Snapshot)
		return
	}
	m, err := machine.New("")
	if err == nil && from != "" {
		err = run(m, "cp", "-a", from+"/.", m.Dir())
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	now := time.Now()
	if want.Lifetime <= 0 {
		want.Lifetime = 4 * 3600
	}
	b := &box{
		env: want.Env, labels: want.Labels, machine: m, commands: map[string]*command{},
		created: now, expires: now.Add(time.Duration(want.Lifetime) * time.Second), ready: now.Add(s.cfg.StartDelay),
	}
	s.mu.Lock()
	s.last++
	b.id = "bx-" + strconv.Itoa(1000+s.last)
	b.name = cmp.Or(want.Name, b.id)
	s.boxes[b.id] = b
	s.mu.Unlock()
	reply(w, http.StatusCreated, b.tell())
}

// run runs a program of ours in m.
func run(m *machine.Machine, args ...string) error {
	p, err := m.Start(machine.Process{Args: args})
	if err != nil {
		return err
	}
	if exit, err := p.Wait(); err != nil || exit != 0 {
		return fmt.Errorf("%s ended with %d: %w", args[0], exit, err)
	}
	return nil
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	found := []map[string]any{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.boxes)) {
		b, all := s.boxes[id], true
		for _, l := range r.URL.Query()["label"] {
			key, value, _ := strings.Cut(l, "=")
			all = all && b.labels[key] == value
		}
		if all && time.Now().Before(b.expires) {
			found = append(found, b.tell())
		}
	}
	reply(w, http.StatusOK, map[string]any{"boxes": found})
}

func (s *Server) show(w http.ResponseWriter, _ *http.Request, b *box) {
	reply(w, http.StatusOK, b.tell())
}

func (s *Server) remove(w http.ResponseWriter, _ *http.Request, b *box) {
	s.mu.Lock()
	delete(s.boxes, b.id)
	s.mu.Unlock()
	b.machine.Close()
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) snapshot(w http.ResponseWriter, r *http.Request, b *box) {
	var want struct {
		Name string `json:"name"`
	}
	if err := json.NewDecoder(r.Body).Decode(&want); err != nil || want.Name == "" {
		refuse(w, http.StatusBadRequest, "bad_request", "a snapshot needs a name")
		return
	}
	dir, err := os.MkdirTemp("", "practice-snapshot-")
	if err == nil {
		err = b.machine.Own(dir)
	}
	if err == nil {
		err = run(b.machine, "cp", "-a", b.machine.Dir()+"/.", dir)
	}
	if err != nil {
		os.RemoveAll(dir)
		refuse(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	s.mu.Lock()
	old := s.snapshots[want.Name]
	s.snapshots[want.Name] = dir
	s.mu.Unlock()
	os.RemoveAll(old)
	reply(w, http.StatusCreated, map[string]string{"name": want.Name})
}

// path is the file a request names.
func (b *box) path(w http.ResponseWriter, r *http.Request) (string, bool) {
	name := r.URL.Query().Get("path")
	if !filepath.IsAbs(name) || strings.Contains(name, "\x00") {
		refuse(w, http.StatusBadRequest, "bad_path", "the path is not absolute")
		return "", false
	}
	return name, true
}

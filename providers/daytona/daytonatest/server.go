// Package daytonatest is Daytona in one process: both planes of its API over
// HTTP, with a private directory and real processes for every sandbox. Sandboxes
// report their true directories, so commands and file calls agree.
package daytonatest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/machine"
)

// A Config sets up a Server. The zero value is useful.
type Config struct {
	Key        string           // the API key that is accepted; empty is "test-key"
	StartDelay time.Duration    // how long a sandbox is creating or starting
	StopDelay  time.Duration    // how long a sandbox is stopping or destroying
	Now        func() time.Time // the clock of lifetimes; nil is time.Now
}

// A Server is the emulated service. It is safe for concurrent use.
type Server struct {
	emulate.Front
	emulate.Mood[Behaviour]
	cfg Config

	mu    sync.Mutex
	boxes []*box
	kept  map[string]*machine.Machine // snapshots by name
	last  int
}

// A Behaviour is what is wrong with the whole service. The zero value is health.
type Behaviour struct {
	EndIn         string // sandboxes end in this state instead of started: "build_failed", "error", "stopped"
	NeverReady    bool   // sandboxes stay in creating
	StuckDestroy  bool   // deleted sandboxes stay in destroying; deleting again is 409
	BusyDeletes   int    // so many deletions are refused with "State change in progress"
	IgnoreRange   bool   // downloads answer 200 with the whole file
	ExpiredKey    bool   // the key is refused
	NoExitStatus  bool   // execute leaves out the exit code
	EmptyFileErrs bool   // file errors have no body, as with older daemons
}

// A Fault is what happens to some requests of one operation. The operations are
// create, get, list, delete, start, stop, execute, work-dir, session-create,
// session-exec, session-get, session-delete, command, logs, upload, download and
// others named like their route.
type Fault = emulate.Fault

// A Request is one line of the request log.
type Request = emulate.Request

// Start starts a server on a loopback port. Close ends it.
func Start(cfg Config) (*Server, error) {
	cfg.Key = cmp.Or(cfg.Key, "test-key")
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{cfg: cfg, kept: map[string]*machine.Machine{}}
	return s, s.Serve(&http.Server{Handler: s.routes()})
}

// New starts a server that ends with the test. At most one Config may be given.
func New(tb testing.TB, cfg ...Config) *Server {
	tb.Helper()
	return emulate.New(tb, Start, cfg...)
}

// Close ends every sandbox and the server.
func (s *Server) Close() {
	if !s.Shut() {
		return
	}
	s.mu.Lock()
	boxes := slices.Clone(s.boxes)
	s.mu.Unlock()
	emulate.EndAll(boxes, (*box).end)
	for _, m := range s.kept {
		m.Close()
	}
}

// URL returns the address of the control plane, for the setting api_url.
func (s *Server) URL() string { return s.Address() + "/api" }

// Key returns the API key that is accepted.
func (s *Server) Key() string { return s.cfg.Key }

// Settings returns what a Spec needs to reach the server.
func (s *Server) Settings() map[string]string {
	return map[string]string{"api_key": s.Key(), "api_url": s.URL()}
}

// Boxes returns the ids of the sandboxes that are not destroyed or being so.
func (s *Server) Boxes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, b := range s.boxes {
		if s.settle(b); b.state != "destroyed" && b.state != "destroying" {
			ids = append(ids, b.id)
		}
	}
	return ids
}

// Running returns how many sandboxes have a computer that costs money.
func (s *Server) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, b := range s.boxes {
		if s.settle(b); !slices.Contains([]string{"destroyed", "destroying", "stopped", "archived"}, b.state) {
			n++
		}
	}
	return n
}

// Sandbox tells what a sandbox was created with and its state, as JSON fields.
func (s *Server) Sandbox(id string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.find(id); b != nil {
		return s.show(b)
	}
	return nil
}

// SetState puts a sandbox into a state, ending its processes if it does not run.
func (s *Server) SetState(id, state string) {
	s.mu.Lock()
	b := s.find(id)
	if b != nil {
		b.state, b.next = state, ""
	}
	s.mu.Unlock()
	if b != nil && state != "started" {
		b.halt()
	}
}

// Vanish removes a sandbox as if it had never been.
func (s *Server) Vanish(id string) {
	s.mu.Lock()
	b := s.find(id)
	s.boxes = slices.DeleteFunc(s.boxes, func(x *box) bool { return x == b })
	s.mu.Unlock()
	if b != nil {
		b.end()
	}
}

// LoseSessions forgets all sessions of a sandbox, whose processes end.
func (s *Server) LoseSessions(id string) {
	s.mu.Lock()
	b := s.find(id)
	s.mu.Unlock()
	if b != nil {
		b.halt()
	}
}

// handle registers an operation: it is logged, its key is checked and faults
// are applied.
func (s *Server) handle(mux *http.ServeMux, op, pattern string, f http.HandlerFunc) {
	mux.HandleFunc(pattern, s.Handle(op, s.admit, f))
}

func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	if s.Behaviour().ExpiredKey || r.Header.Get("Authorization") != "Bearer "+s.cfg.Key && r.URL.Query().Get("DAYTONA_SANDBOX_AUTH_KEY") != s.cfg.Key {
		refuse(w, r, http.StatusUnauthorized, "UNAUTHORIZED", "Invalid credentials")
		return false
	}
	return true
}

func refuse(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	emulate.Reply(w, status, map[string]any{
		"statusCode": status,
		"message":    message,
		"error":      http.StatusText(status),
		"code":       code,
		"path":       r.URL.Path,
		"method":     r.Method,
		"timestamp":  time.Now().UTC().Format(time.RFC3339),
	})
}

// number makes the next identity.
func (s *Server) number(prefix string) string {
	s.last++
	return prefix + strconv.Itoa(1000+s.last)
}

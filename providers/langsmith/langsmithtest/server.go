// Package langsmithtest is LangSmith's sandboxes in one process: the control
// plane under both of its prefixes and the dataplane of every sandbox over HTTP
// and WebSocket, with a private directory and real processes for each. Sandboxes
// report their true directories, so commands and file calls agree.
package langsmithtest

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

// A Config sets up a Server. The zero value is useful.
type Config struct {
	Key        string           // the API key that is accepted; empty is "test-key"
	StartDelay time.Duration    // how long a sandbox is provisioning or waking
	BuildDelay time.Duration    // how long a snapshot is building
	Ring       int              // how many bytes of a stream are kept to be resumed; 0 is 1 MiB
	Now        func() time.Time // the clock of states and lifetimes; nil is time.Now
}

// A Server is the emulated service. It is safe for concurrent use.
//
// The operations of its faults are create, get, status, list, update, delete,
// start, stop, capture, build, snapshot, snapshots, snapshot-tags and
// snapshot-delete; of the dataplane execute, upload, download, glob, grep and ws, the
// upgrade to a WebSocket. The frames ws-execute, ws-reconnect and ws-kill are
// operations too: a fault's Status from 1000 on closes the WebSocket with that
// code, a Body is sent as the answer, and anything else breaks the connection.
type Server struct {
	emulate.Front
	emulate.Mood[Behaviour]
	cfg Config

	mu        sync.Mutex
	boxes     []*box
	snapshots []*snapshot
	most      int // how many items a page has at most; 0 is the service's own limit
}

// The common parts of emulators.
type (
	Request = emulate.Request
	Fault   = emulate.Fault
)

// A Behaviour is what is wrong with the whole service. The zero value is health.
type Behaviour struct {
	EndIn        string // sandboxes end in this state instead of ready: "failed", "stopped", "deleting"
	NeverReady   bool   // sandboxes stay in provisioning
	BuildFails   bool   // snapshots end in failed
	BusyDeletes  int    // so many deletions are refused
	IgnoreRange  bool   // downloads answer 200 with the whole file
	ExpiredKey   bool   // the key is refused
	NoExitStatus bool   // the end of a command comes without its status
	Dataplane    string // sandboxes name this as the address of their dataplane
}

// Start starts a server on a loopback port. Close ends it.
func Start(cfg Config) (*Server, error) {
	cfg.Key = cmp.Or(cfg.Key, "test-key")
	cfg.Ring = cmp.Or(cfg.Ring, 1<<20)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{cfg: cfg}
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
	boxes, snapshots := slices.Clone(s.boxes), slices.Clone(s.snapshots)
	s.mu.Unlock()
	emulate.EndAll(boxes, (*box).end)
	for _, k := range snapshots {
		if k.tree != nil {
			k.tree.Close()
		}
	}
}

// URL returns the address of the service, for the setting endpoint.
func (s *Server) URL() string { return s.Address() }

// Key returns the API key that is accepted.
func (s *Server) Key() string { return s.cfg.Key }

// Settings returns what a Spec needs to reach the server.
func (s *Server) Settings() map[string]string {
	return map[string]string{"api_key": s.Key(), "endpoint": s.URL()}
}

// Boxes returns the names of the sandboxes that are not deleted or being so.
func (s *Server) Boxes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, b := range slices.Clone(s.boxes) {
		if s.settle(b) && b.status != "deleting" {
			names = append(names, b.name)
		}
	}
	return names
}

// Running returns how many sandboxes have a computer that costs money.
func (s *Server) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, b := range slices.Clone(s.boxes) {
		if s.settle(b) && (b.status == "ready" || b.status == "provisioning") {
			n++
		}
	}
	return n
}

// Sandbox tells what a sandbox was created with and its state, as JSON fields.
func (s *Server) Sandbox(name string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.find(name); b != nil {
		return s.show(b)
	}
	return nil
}

// Snapshots returns the names and states of the snapshots, as "name state".
func (s *Server) Snapshots() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, k := range s.snapshots {
		s.mature(k)
		list = append(list, k.name+" "+k.status)
	}
	return list
}

// Shrink makes lists come in pages of at most n items.
func (s *Server) Shrink(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = n
}

// SetState puts a sandbox into a state, ending its processes if it does not run.
func (s *Server) SetState(name, status string) {
	s.mu.Lock()
	b := s.find(name)
	if b != nil {
		b.status, b.next = status, ""
		if status == "stopped" {
			b.stopped = s.cfg.Now()
		}
	}
	s.mu.Unlock()
	if b != nil && status != "ready" {
		b.halt()
	}
}

// Vanish removes a sandbox as if it had never been.
func (s *Server) Vanish(name string) {
	s.mu.Lock()
	b := s.find(name)
	s.boxes = slices.DeleteFunc(s.boxes, func(x *box) bool { return x == b })
	s.mu.Unlock()
	if b != nil {
		b.end()
	}
}

// LoseCommands forgets all commands of a sandbox, whose processes end.
func (s *Server) LoseCommands(name string) {
	s.mu.Lock()
	b := s.find(name)
	s.mu.Unlock()
	if b != nil {
		b.halt()
	}
}

// admit answers what has no right.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	if s.Behaviour().ExpiredKey || r.Header.Get("X-Api-Key") != s.cfg.Key {
		refuse(w, http.StatusUnauthorized, "Unauthorized", "Invalid API key")
		return false
	}
	return true
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	emulate.Reply(w, status, map[string]any{"detail": map[string]any{"error": kind, "message": message, "error_id": "e-" + uuid()[:8]}})
}

// invalid refuses a value as the validation of requests does.
func invalid(w http.ResponseWriter, field, message string) {
	emulate.Reply(w, http.StatusUnprocessableEntity, map[string]any{
		"detail": []any{map[string]any{"loc": []string{"body", field}, "msg": "Value error, " + message, "type": "value_error"}},
	})
}

func uuid() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

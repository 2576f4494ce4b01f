// Package e2btest is E2B in one process: its API and the daemon of every sandbox
// over HTTP, told apart by their paths, with a private directory and real
// processes for each sandbox. Sandboxes report their true directories, so commands
// and file calls agree.
package e2btest

import (
	"cmp"
	"net"
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
	Key string           // the API key that is accepted; empty is "e2b_" and 40 hexadecimal digits
	Now func() time.Time // the clock of lifetimes; nil is time.Now

	Listener net.Listener // where it is reached; nil is a loopback port
}

// A Server is the emulated service. It is safe for concurrent use.
type Server struct {
	emulate.Front
	emulate.Mood[Behaviour]
	cfg Config

	mu    sync.Mutex
	boxes []*box
	kept  []*kept
	last  int
}

// A Behaviour is what is wrong with the whole service, or how it differs. The zero
// value is health.
type Behaviour struct {
	Version     string // of the daemon in new sandboxes; empty is "0.6.13"
	NoV2        bool   // the calls below /v2 answer 405, as with older servers
	NoToken     bool   // answers have no access token
	MostHours   int    // how long a sandbox may be asked to live; 0 is 24
	IgnoreRange bool   // downloads answer 200 with the whole file
	ExpiredKey  bool   // the key is refused
	Most        int    // how many sandboxes there may be; 0 is any number
	BusyDeletes int    // so many deletions are refused with 409
}

// A Fault is what happens to some requests of one operation. The operations are
// create, get, list, delete, connect, timeout, refreshes, pause, snapshot,
// snapshots, snapshot-delete, health, upload, download, and those of the daemon by their method:
// Start, Connect, List, SendSignal, SendInput, CloseStdin, Stat, MakeDir, Move,
// ListDir, Remove.
type Fault = emulate.Fault

// A Request is one line of the request log.
type Request = emulate.Request

// Start starts a server. Close ends it.
func Start(cfg Config) (*Server, error) {
	cfg.Key = cmp.Or(cfg.Key, "e2b_0123456789abcdef0123456789abcdef01234567")
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{cfg: cfg}
	server := &http.Server{Handler: s.routes()}
	if cfg.Listener == nil {
		return s, s.Serve(server)
	}
	s.ServeAt(cfg.Listener, server)
	return s, nil
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
	for _, k := range s.kept {
		k.machine.Close()
	}
}

// URL returns the address of the API and of all sandboxes.
func (s *Server) URL() string { return s.Address() }

// Key returns the API key that is accepted.
func (s *Server) Key() string { return s.cfg.Key }

// Settings returns what a Spec needs to reach the server.
func (s *Server) Settings() map[string]string {
	return map[string]string{"api_key": s.Key(), "api_url": s.URL(), "sandbox_url": s.URL()}
}

// Boxes returns the ids of the sandboxes, running and paused.
func (s *Server) Boxes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	var ids []string
	for _, b := range s.boxes {
		ids = append(ids, b.id)
	}
	return ids
}

// Sandbox tells how a sandbox stands, as JSON fields.
func (s *Server) Sandbox(id string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.find(id); b != nil {
		return s.detail(b)
	}
	return nil
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

// NewToken gives a sandbox another access token; the old one is refused.
func (s *Server) NewToken(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.find(id); b != nil {
		b.token = s.number("another-token-")
	}
}

// Cut breaks the streams of all processes of a sandbox, which run on.
func (s *Server) Cut(id string) {
	s.mu.Lock()
	b := s.find(id)
	s.mu.Unlock()
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		close(b.cut)
		b.cut = make(chan struct{})
	}
}

// handle registers an operation of the API: it is logged, its key is checked and
// faults are applied.
func (s *Server) handle(mux *http.ServeMux, op, pattern string, f http.HandlerFunc) {
	mux.HandleFunc(pattern, s.Handle(op, s.admit, f))
}

func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	if s.Behaviour().ExpiredKey || r.Header.Get("X-API-KEY") != s.cfg.Key {
		refuse(w, http.StatusUnauthorized, "Invalid API key")
		return false
	}
	return true
}

// refuse repeats the status in the body: the vendor's client decides by that.
func refuse(w http.ResponseWriter, status int, message string) {
	emulate.Reply(w, status, map[string]any{"code": status, "message": message})
}

// number makes the next identity. The caller holds mu.
func (s *Server) number(prefix string) string {
	s.last++
	return prefix + strconv.Itoa(1000+s.last)
}

// Snapshots are the names of those that are kept.
func (s *Server) Snapshots() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, k := range s.kept {
		names = append(names, k.name)
	}
	return names
}

// A kept is a snapshot.
type kept struct {
	id      string
	name    string
	of      string // the sandbox it was taken of
	machine *machine.Machine
}

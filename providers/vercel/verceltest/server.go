// Package verceltest is Vercel Sandbox in one process: its API over HTTP, with a
// private directory and real processes for every sandbox. Sessions report their
// true directories, so commands and file calls agree.
package verceltest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
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
	Key        string           // the access token that is accepted; empty is "test-token"
	Team       string           // empty is "team_test"
	Project    string           // empty is "prj_test"
	Hobby      bool             // sessions live 45 minutes at most, not a day
	StartDelay time.Duration    // how long a session is pending
	StopDelay  time.Duration    // how long one is stopping or snapshotting
	EdgeCut    time.Duration    // streams and long calls are cut after this; 0 is never
	Page       int              // how many items a page has if nothing is asked for; 0 is 20
	Now        func() time.Time // the clock of lifetimes; nil is time.Now
}

// A Server is the emulated service. It is safe for concurrent use. Its
// operations, as faults name them, are create, get, list, update, delete,
// session, sessions, stop, extend, snapshot, policy, snapshots, snapshot-get,
// snapshot-delete, run (a waited command), start (a detached one), command,
// commands, logs, kill, write, read and mkdir.
type Server struct {
	emulate.Front
	emulate.Mood[Behaviour]
	cfg Config

	mu        sync.Mutex
	boxes     []*box
	sessions  []*session
	snapshots []*snapshot
	tokens    []string // OIDC tokens that were issued
}

// A Behaviour is what is wrong with the whole service. The zero value is health.
type Behaviour struct {
	EndIn         string // new sessions end in this state instead of running: "failed", "aborted", "stopped"
	NeverReady    bool   // new sessions stay pending
	ExpiredKey    bool   // every token is refused with 401
	Forbidden     bool   // every token is refused with 403
	BusyDeletes   int    // so many deletes are refused as if the session were stopping
	ImageNotReady int    // so many creations are refused as if the image were being prepared
	Quota         bool   // creations are refused for the account's quota
	EmptyStarts   int    // so many commands run, but are answered with nothing
	NoExitCode    bool   // commands end without an exit code
	MissingLogs   bool   // the logs of ended commands are 404
	StreamErrors  int    // so many streams end with an error in the stream after their first line
	StrangeLines  bool   // streams have lines of an unknown kind
	Charset       bool   // streams have a charset in their content type
	ShortStreams  bool   // waited commands end their stream without the last record
	NoResume      bool   // nothing can be resumed
	BareViews     bool   // answers have the required fields alone
}

// A Fault is what happens to some requests of one operation.
type Fault = emulate.Fault

// Start starts a server on a loopback port. Close ends it.
func Start(cfg Config) (*Server, error) {
	cfg.Key = cmp.Or(cfg.Key, "test-token")
	cfg.Team = cmp.Or(cfg.Team, "team_test")
	cfg.Project = cmp.Or(cfg.Project, "prj_test")
	cfg.Page = cmp.Or(cfg.Page, 20)
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
	boxes, kept := slices.Clone(s.boxes), slices.Clone(s.snapshots)
	s.mu.Unlock()
	emulate.EndAll(boxes, (*box).discard)
	for _, k := range kept {
		k.disk.Close()
	}
}

// URL returns the address of the API, for the setting base_url.
func (s *Server) URL() string { return s.Address() + "/api" }

// Key returns the access token that is accepted.
func (s *Server) Key() string { return s.cfg.Key }

// Settings returns what a Spec needs to reach the server by an access token.
func (s *Server) Settings() map[string]string {
	return map[string]string{"token": s.cfg.Key, "team_id": s.cfg.Team, "project_id": s.cfg.Project, "base_url": s.URL()}
}

// OIDC issues a token that says it expires at that time, and is accepted.
func (s *Server) OIDC(expires time.Time) string {
	claims, _ := json.Marshal(map[string]any{
		"iss": "https://oidc.vercel.com/acme", "aud": "https://vercel.com/acme", "owner": "acme", "project": "demo",
		"environment": "development", "owner_id": s.cfg.Team, "project_id": s.cfg.Project,
		"iat": expires.Add(-12 * time.Hour).Unix(), "exp": expires.Unix(),
	})
	part := base64.RawURLEncoding.EncodeToString
	token := part([]byte(`{"alg":"none"}`)) + "." + part(claims) + "." + part([]byte("signature"))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = append(s.tokens, token)
	return token
}

// Boxes returns the names of the sandboxes that run or can be resumed.
func (s *Server) Boxes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, b := range s.boxes {
		if s.settle(b); live(b.session.status) || b.persistent || b.snapshot != "" {
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
	for _, b := range s.boxes {
		if s.settle(b); live(b.session.status) {
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
		fields := s.showBox(b, true)
		fields["asked"], fields["session"] = b.asked, s.showSession(b.session)
		return fields
	}
	return nil
}

// SetState puts the session of a sandbox into a state, ending its processes if it
// does not run.
func (s *Server) SetState(name, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.find(name); b != nil {
		s.move(b.session, status)
	}
}

// Stop stops the session of a sandbox as its timeout would.
func (s *Server) Stop(name string) { s.SetState(name, "stopped") }

// Add makes a sandbox with that name and tags that somebody else has opened.
func (s *Server) Add(name string, persistent bool, tags map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.make(map[string]any{"name": name, "persistent": persistent, "timeout": 2700000.0}, tags)
}

// Vanish removes a sandbox as if it had never been.
func (s *Server) Vanish(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.find(name); b != nil {
		s.remove(b)
	}
}

// LoseCommands forgets all commands of a sandbox, whose processes end.
func (s *Server) LoseCommands(name string) {
	s.mu.Lock()
	b := s.find(name)
	s.mu.Unlock()
	if b != nil {
		b.session.halt()
		b.session.mu.Lock()
		b.session.commands = nil
		b.session.mu.Unlock()
	}
}

// admit checks the token and the team.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("X-Vercel-Id", "iad1::"+identity("", 12, lower))
	limit := "1000"
	if r.Method == "DELETE" || r.Method == "POST" && strings.HasSuffix(r.URL.Path, "/sandboxes") {
		limit = "20"
	}
	w.Header().Set("X-Ratelimit-Limit", limit)
	w.Header().Set("X-Ratelimit-Remaining", limit)
	w.Header().Set("X-Ratelimit-Reset", strconv.FormatInt(s.cfg.Now().Add(time.Minute).Unix(), 10))
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	known := token == s.cfg.Key || slices.Contains(s.tokens, token)
	behave := s.Behaviour()
	s.mu.Unlock()
	switch {
	case behave.Forbidden:
		refuse(w, 403, "forbidden", "Not authorized")
	case behave.ExpiredKey || !known:
		refuse(w, 401, "unauthorized", "Not authorized: the token is invalid or has expired")
	case r.URL.Query().Get("teamId") != s.cfg.Team:
		refuse(w, 403, "forbidden", "Not authorized: Trying to access resource under scope \""+r.URL.Query().Get("teamId")+"\"")
	default:
		return true
	}
	return false
}

func (s *Server) handle(mux *http.ServeMux, op, pattern string, f http.HandlerFunc) {
	mux.HandleFunc(pattern, s.Handle(op, s.admit, f))
}

// routes has a mux of its own for sessions and snapshots, which would be the
// names of sandboxes to the other. The prefix /api may be left out.
func (s *Server) routes() http.Handler {
	boxes, sessions, snapshots := http.NewServeMux(), http.NewServeMux(), http.NewServeMux()
	s.control(boxes, sessions, snapshots)
	s.processes(sessions)
	s.files(sessions)
	for _, mux := range []*http.ServeMux{boxes, sessions, snapshots} {
		s.handle(mux, "unknown", "/", func(w http.ResponseWriter, r *http.Request) {
			refuse(w, 404, "not_found", "no such endpoint: "+r.Method+" "+r.URL.Path)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/api")
		r.URL.RawPath = strings.TrimPrefix(r.URL.RawPath, "/api")
		switch parts := strings.Split(r.URL.Path, "/"); {
		case len(parts) > 3 && parts[3] == "sessions":
			sessions.ServeHTTP(w, r)
		case len(parts) > 3 && parts[3] == "snapshots":
			snapshots.ServeHTTP(w, r)
		default:
			boxes.ServeHTTP(w, r)
		}
	})
}

func reply(w http.ResponseWriter, v any) { replyStatus(w, 200, v) }

func replyStatus(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	replyStatus(w, status, map[string]any{"error": map[string]any{"code": code, "message": message}})
}

// read decodes the body of r, which may be empty, and answers if it cannot.
func read(w http.ResponseWriter, r *http.Request, v any) bool {
	if r.ContentLength == 0 {
		return true
	}
	if err := json.NewDecoder(r.Body).Decode(v); err != nil && err.Error() != "EOF" {
		refuse(w, 400, "bad_request", "Invalid JSON")
		return false
	}
	return true
}

const (
	lower  = "0123456789abcdefghijklmnopqrstuvwxyz"
	hexa   = "0123456789abcdef"
	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// identity makes an id of n digits.
func identity(prefix string, n int, digits string) string {
	b := []byte(prefix)
	for range n {
		b = append(b, digits[rand.N(len(digits))])
	}
	return string(b)
}

// page answers with the part of items that r asks for. Items are in order and
// show gives their fields.
func page[T any](s *Server, w http.ResponseWriter, r *http.Request, key string, items []T, id func(T) string, show func(T) any) {
	query := r.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || limit < 1 {
		limit = s.cfg.Page
	}
	if limit > 100 {
		refuse(w, 400, "bad_request", "limit must be at most 100")
		return
	}
	if after := query.Get("cursor"); after != "" {
		items = items[slices.IndexFunc(items, func(x T) bool { return id(x) == after })+1:]
	}
	var next any
	if len(items) > limit {
		items = items[:limit]
		next = id(items[limit-1])
	}
	list := []any{}
	for _, x := range items {
		list = append(list, show(x))
	}
	reply(w, map[string]any{key: list, "pagination": map[string]any{"count": len(list), "next": next}})
}

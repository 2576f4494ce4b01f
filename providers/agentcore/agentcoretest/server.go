// Package agentcoretest is the AWS Bedrock AgentCore Code Interpreter in one
// process: its API over HTTP with event streams and checked signatures, and a
// private directory and real processes for every session. As at AWS, commands
// run on a terminal that mangles their output, and file calls know no path but
// those below the session's own directory.
package agentcoretest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

// Identifier is the interpreter that every account has.
const Identifier = "aws.codeinterpreter.v1"

// A Config sets up a Server. The zero value is useful.
type Config struct {
	Key         string           // the access key id that is accepted; empty is "AKIATESTTESTTEST"
	Secret      string           // its secret; empty is "test-secret-key"
	Region      string           // empty is "us-east-1"
	Identifiers []string         // custom interpreters, beside Identifier
	Page        int              // the most sessions of one page of a list; 0 is what is asked for
	Clean       bool             // commands run without a terminal: streams apart, nothing mangled
	Delay       time.Duration    // before the headers of a tool's answer; 0 is 6 ms, negative none
	Now         func() time.Time // the clock of lifetimes; nil is time.Now
}

// A Server is the emulated service. It is safe for concurrent use.
type Server struct {
	emulate.Front
	emulate.Mood[Behaviour]
	cfg Config

	mu    sync.Mutex
	boxes []*box
	last  int
}

// A Behaviour is what is wrong with the whole service. The zero value is health.
type Behaviour struct {
	NeverReady  bool              // every tool answers 500
	EndIn       string            // sessions are at once in this state: "TERMINATED"
	BusyDeletes int               // so many stops are refused as conflicts
	ExpiredKey  bool              // the key has expired
	Denied      bool              // the key may do nothing
	Twist       map[string]string // what is odd about the answers of a tool; see the twists
}

// What may be odd about the answer of a tool.
const (
	TwistEmpty     = "empty"      // a stream without events
	TwistTruncated = "truncated"  // the stream ends within the event
	TwistThrottled = "throttling" // an exception after a partial result
	TwistUnknown   = "unknown"    // an unknown event comes first
	TwistSeveral   = "several"    // a result in two events
	TwistNoExit    = "no exit"    // there is no exit code and no output
	TwistCorrupt   = "corrupt"    // the checksum is wrong
)

// A Fault is what happens to some requests of one operation. The operations are
// start, get, list and stop, and the tools by their names: executeCommand,
// startCommandExecution, getTask, stopTask, readFiles, writeFiles, listFiles,
// removeFiles.
type Fault = emulate.Fault

// Start starts a server on a loopback port. Close ends it.
func Start(cfg Config) (*Server, error) {
	cfg.Key = cmp.Or(cfg.Key, "AKIATESTTESTTEST")
	cfg.Secret = cmp.Or(cfg.Secret, "test-secret-key")
	cfg.Region = cmp.Or(cfg.Region, "us-east-1")
	cfg.Delay = max(cmp.Or(cfg.Delay, 6*time.Millisecond), 0)
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

// Close ends every session and the server.
func (s *Server) Close() {
	if !s.Shut() {
		return
	}
	s.mu.Lock()
	boxes := slices.Clone(s.boxes)
	s.mu.Unlock()
	emulate.EndAll(boxes, (*box).end)
}

// URL returns the address of the service, for the setting endpoint.
func (s *Server) URL() string { return s.Address() }

// Settings returns what a Spec needs to reach the server.
func (s *Server) Settings() map[string]string {
	return map[string]string{
		"access_key_id": s.cfg.Key, "secret_access_key": s.cfg.Secret, "region": s.cfg.Region, "endpoint": s.URL(),
	}
}

// Boxes returns the sessions that run, each as "interpreter/session".
func (s *Server) Boxes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, b := range s.boxes {
		if s.settle(b); b.status == ready {
			ids = append(ids, b.interpreter+"/"+b.id)
		}
	}
	return ids
}

// Running returns how many sessions run.
func (s *Server) Running() int { return len(s.Boxes()) }

// Sandbox tells what a session was started with and its status, as JSON fields.
// The id may be that of Boxes.
func (s *Server) Sandbox(id string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.find(id[strings.LastIndex(id, "/")+1:]); b != nil {
		return b.show()
	}
	return nil
}

// Stop ends a session, which stays known as terminated.
func (s *Server) Stop(id string) {
	s.mu.Lock()
	b := s.find(id[strings.LastIndex(id, "/")+1:])
	if b != nil {
		b.status = terminated
	}
	s.mu.Unlock()
	if b != nil {
		b.end()
	}
}

// Vanish removes a session as if it had never been.
func (s *Server) Vanish(id string) {
	s.mu.Lock()
	b := s.find(id[strings.LastIndex(id, "/")+1:])
	s.boxes = slices.DeleteFunc(s.boxes, func(x *box) bool { return x == b })
	s.mu.Unlock()
	if b != nil {
		b.end()
	}
}

// LoseTasks ends all processes of a session's tasks.
func (s *Server) LoseTasks(id string) {
	s.mu.Lock()
	b := s.find(id[strings.LastIndex(id, "/")+1:])
	s.mu.Unlock()
	if b == nil {
		return
	}
	b.mu.Lock()
	tasks := slices.Clone(b.tasks)
	b.mu.Unlock()
	for _, t := range tasks {
		t.run.Kill(0)
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	const at = "/code-interpreters/{interpreter}/"
	s.handle(mux, "start", "PUT "+at+"sessions/start", s.start)
	s.handle(mux, "get", "GET "+at+"sessions/get", s.get)
	s.handle(mux, "list", "POST "+at+"sessions/list", s.list)
	s.handle(mux, "stop", "PUT "+at+"sessions/stop", s.stop)
	mux.HandleFunc("POST "+at+"tools/invoke", func(w http.ResponseWriter, r *http.Request) {
		body := take(r)
		var call struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		json.Unmarshal(body, &call)
		tools := map[string]tool{
			"executeCommand": executeCommand, "startCommandExecution": startCommand, "getTask": getTask, "stopTask": stopTask,
			"readFiles": readFiles, "writeFiles": writeFiles, "listFiles": listFiles, "removeFiles": removeFiles,
		}
		s.serve(call.Name, body, func(w http.ResponseWriter, r *http.Request) {
			f := tools[call.Name]
			if f == nil {
				refuse(w, 400, "ValidationException", "1 validation error detected: Value at 'name' failed to satisfy constraint: Member must satisfy enum value set")
				return
			}
			s.invoke(w, r, call.Name, call.Arguments, f)
		})(w, r)
	})
	s.handle(mux, "unknown", "/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, 404, "UnknownOperationException", "")
	})
	return mux
}

// take reads the body of r whole.
func take(r *http.Request) []byte {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 101<<20))
	return body
}

// handle registers an operation: it is logged, its signature is checked and
// faults are applied.
func (s *Server) handle(mux *http.ServeMux, op, pattern string, f http.HandlerFunc) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(op, take(r), f)(w, r) })
}

// bodyKey is where a request's context has its body.
type bodyKey struct{}

func bodyOf(r *http.Request) []byte { return r.Context().Value(bodyKey{}).([]byte) }

// serve is f as the operation op with that body, of which the log keeps the
// beginning.
func (s *Server) serve(op string, body []byte, f http.HandlerFunc) http.HandlerFunc {
	logged := s.Handle(op, s.admit, f)
	return func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, body))
		r.Body = io.NopCloser(bytes.NewReader(body[:min(len(body), 256<<10)]))
		logged(w, r)
	}
}

// admit checks who sent r.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	switch behave := s.Behaviour(); {
	case behave.ExpiredKey:
		refuse(w, 403, "ExpiredTokenException", "The security token included in the request is expired")
	case behave.Denied:
		refuse(w, 403, "AccessDeniedException", "User: arn:aws:iam::123456789012:user/acme is not authorized to perform: bedrock-agentcore:InvokeCodeInterpreter")
	case len(bodyOf(r)) > 100<<20:
		refuse(w, 413, "RequestEntityTooLargeException", "Request body is too large")
	default:
		return s.signed(w, r)
	}
	return false
}

// signed checks the signature of r, version 4.
func (s *Server) signed(w http.ResponseWriter, r *http.Request) bool {
	fields := map[string]string{}
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	for part := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[key] = value
	}
	scope := strings.Split(fields["Credential"], "/")
	switch {
	case scheme != "AWS4-HMAC-SHA256" || len(scope) != 5:
		refuse(w, 403, "MissingAuthenticationTokenException", "Missing Authentication Token")
		return false
	case scope[0] != s.cfg.Key:
		refuse(w, 403, "UnrecognizedClientException", "The security token included in the request is invalid.")
		return false
	case scope[2] != s.cfg.Region || scope[3] != "bedrock-agentcore":
		refuse(w, 403, "InvalidSignatureException", "Credential should be scoped to correct service: 'bedrock-agentcore'.")
		return false
	}
	var canonical strings.Builder
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	canonical.WriteString(r.Method + "\n" + escape(r.URL.EscapedPath()) + "\n" + query + "\n")
	for name := range strings.SplitSeq(fields["SignedHeaders"], ";") {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = r.Header.Get("Content-Length")
			if value == "" {
				value = itoa(r.ContentLength)
			}
		}
		canonical.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	sum := sha256.Sum256(bodyOf(r))
	canonical.WriteString("\n" + fields["SignedHeaders"] + "\n" + hex.EncodeToString(sum[:]))
	sum = sha256.Sum256([]byte(canonical.String()))
	key := []byte("AWS4" + s.cfg.Secret)
	for _, part := range scope[1:] {
		key = hmacOf(key, part)
	}
	text := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + strings.Join(scope[1:], "/") + "\n" + hex.EncodeToString(sum[:])
	if hex.EncodeToString(hmacOf(key, text)) != fields["Signature"] {
		refuse(w, 403, "InvalidSignatureException", "The request signature we calculated does not match the signature you provided. The Canonical String for this request should have been '"+canonical.String()+"'")
		return false
	}
	return true
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("X-Amzn-Errortype", kind+":http://internal.amazon.com/coral/com.amazon.coral.service/")
	emulate.Reply(w, status, map[string]any{"message": message})
}

// Package modeltest is a model server that follows a script, over the wires that
// OpenAI and Anthropic speak.
package modeltest

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Step is one answer of the script. The zero Step is an empty answer.
type Step struct {
	Reasoning string
	Text      string
	Calls     []Call
	Usage     Usage // zero: 100 in, 20 out

	Finish        string        // in OpenAI's words; "" is "stop", or "tool_calls" with calls
	NoFinish      bool          // the stream ends cleanly, without its last mark
	TruncatedCall bool          // half of the last call's input is missing; Finish "" is "length"
	CutAfter      int           // the connection drops after that many bytes; 0 for never
	Delay         time.Duration // before each piece
	Hang          bool          // nothing more comes after the first piece, until the client goes

	Status      int         // an error answer instead, with Body
	RetryAfter  string      // header of it
	Body        string      // "" is the wire's usual error
	ContentType string      // "" is JSON
	Header      http.Header // more headers
}

// A Call is one use of a tool. An empty ID is made up.
type Call struct{ ID, Name, Input string }

// Usage counts tokens.
type Usage struct{ Input, Output, CacheRead, CacheWrite int }

// A Request is what a client sent.
type Request struct {
	Path   string
	Header http.Header
	Body   string
}

// JSON returns the body as an object, or nil.
func (r Request) JSON() map[string]any {
	var object map[string]any
	_ = json.Unmarshal([]byte(r.Body), &object)
	return object
}

// A Server follows a script. It is safe for concurrent use.
type Server struct {
	URL string

	http     *httptest.Server
	tb       testing.TB // may be nil
	mu       sync.Mutex
	steps    []Step
	last     *Step // given when steps are used up; may be nil
	requests []Request
}

// New starts a Server that ends with the test. Asking it for more than its
// script has fails the test.
func New(tb testing.TB) *Server {
	s := Start()
	s.tb = tb
	tb.Cleanup(s.Close)
	return s
}

// Start starts a Server for use outside a test; Close ends it.
func Start() *Server {
	s := &Server{}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL
	return s
}

// Close ends the server, breaking what is still streaming.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// OpenAI is the base URL of the chat completions wire.
func (s *Server) OpenAI() string { return s.URL + "/v1" }

// Anthropic is the base URL of the messages wire.
func (s *Server) Anthropic() string { return s.URL }

// Script appends steps.
func (s *Server) Script(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, steps...)
}

// Forever sets the step that answers whatever comes after the script.
func (s *Server) Forever(step Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = &step
}

// Requests returns the model requests received so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) next(r Request) (Step, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if len(s.steps) > 0 {
		step := s.steps[0]
		s.steps = s.steps[1:]
		return step, true
	}
	if s.last != nil {
		return *s.last, true
	}
	return Step{}, false
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var wire func(*stream, Step)
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		wire = openAI
	case strings.HasSuffix(r.URL.Path, "/messages"):
		wire = anthropic
	case r.URL.Path == "/api/tags":
		_, _ = io.WriteString(w, `{"models":[{"name":"scripted:latest"}]}`)
		return
	default:
		http.NotFound(w, r)
		return
	}
	step, ok := s.next(Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: string(body)})
	if !ok {
		if s.tb != nil {
			s.tb.Errorf("the model was asked once more than its script has steps")
		}
		step = Step{Status: http.StatusBadRequest, Body: `{"error":{"message":"the script has no more steps","type":"invalid_request_error"}}`}
	}
	maps.Copy(w.Header(), step.Header)
	if step.Status != 0 {
		if step.RetryAfter != "" {
			w.Header().Set("Retry-After", step.RetryAfter)
		}
		kind := step.ContentType
		if kind == "" {
			kind = "application/json"
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(step.Status)
		text := step.Body
		if text == "" {
			text = `{"type":"error","error":{"type":"scripted_error","message":"the script says so"}}`
		}
		_, _ = io.WriteString(w, text)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := &stream{w: w, done: r.Context().Done(), step: step}
	out.flush()
	wire(out, step)
}

// A stream writes server-sent events as far as its step allows.
type stream struct {
	w     http.ResponseWriter
	done  <-chan struct{}
	step  Step
	sent  int
	piece int
}

func (s *stream) flush() {
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

// send writes one event. Hanging up half-way through is a panic that net/http
// knows.
func (s *stream) send(event string, data any) {
	text := ""
	if event != "" {
		text = "event: " + event + "\n"
	}
	switch v := data.(type) {
	case string:
		text += "data: " + v + "\n\n"
	default:
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		text += "data: " + string(b) + "\n\n"
	}
	if cut := s.step.CutAfter; cut > 0 && s.sent+len(text) > cut {
		_, _ = io.WriteString(s.w, text[:cut-s.sent])
		s.flush()
		panic(http.ErrAbortHandler)
	}
	n, _ := io.WriteString(s.w, text)
	s.sent += n
	s.flush()
}

// pause waits as the step says between two pieces.
func (s *stream) pause() {
	s.piece++
	if s.step.Hang && s.piece > 1 {
		<-s.done
		panic(http.ErrAbortHandler)
	}
	if s.step.Delay > 0 {
		select {
		case <-s.done:
			panic(http.ErrAbortHandler)
		case <-time.After(s.step.Delay):
		}
	}
}

// pieces cuts text as a model's tokens would, after every fourth rune.
func pieces(text string) []string {
	var all []string
	runes := []rune(text)
	for len(runes) > 0 {
		n := min(4, len(runes))
		all = append(all, string(runes[:n]))
		runes = runes[n:]
	}
	return all
}

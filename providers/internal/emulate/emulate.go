// Package emulate is what the emulated services have in common: a log of their
// requests, faults that meet some of them, and the matrix that holds a provider
// to its promises under every fault. It is for tests only.
package emulate

import (
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Request is one line of the request log.
type Request struct {
	Op     string // the operation as Fault.Op names it
	Method string
	Path   string // with query
	Header http.Header
	Body   string // of JSON requests
	Status int    // 0 while it runs
}

// A Fault is what happens to some requests of one operation. The emulator's
// documentation names the operations.
type Fault struct {
	Op    string
	Times int // how many requests it meets; 0 is one, negative all
	Skip  int // how many pass before

	Status int // answer this without doing anything
	Body   string
	Header map[string]string

	Hang bool  // never answer; nothing is done
	Late bool  // do it, but cut the connection instead of answering
	Hold bool  // do it, but answer only when the client has gone
	Cut  int64 // cut the connection after so many bytes of the body
}

// A Log holds the requests a service has had and the faults that await more. The
// zero value is empty. It is safe for concurrent use.
type Log struct {
	mu       sync.Mutex
	requests []Request
	faults   []*Fault
	done     chan struct{}
	shut     bool
	net      network
}

// Inject makes the next requests of f.Op fail.
func (l *Log) Inject(f Fault) {
	if f.Times == 0 {
		f.Times = 1
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, &f)
}

// Heal takes back all faults.
func (l *Log) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = nil
}

// Requests returns the log of requests of the named operation; empty is all.
func (l *Log) Requests(op string) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []Request
	for _, r := range l.requests {
		if op == "" || r.Op == op {
			found = append(found, r)
		}
	}
	return found
}

// Begin enters r in the log. It returns the fault that meets r, if any, and the
// function that notes the status of the answer.
func (l *Log) Begin(r Request) (fault *Fault, end func(status int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := len(l.requests)
	l.requests = append(l.requests, r)
	return l.take(r.Op), func(status int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.requests[at].Status = status
	}
}

// take returns the fault that meets a request of op. The caller holds mu.
func (l *Log) take(op string) *Fault {
	for _, f := range l.faults {
		switch {
		case f.Op != op || f.Times == 0:
		case f.Skip > 0:
			f.Skip--
		default:
			f.Times--
			return f
		}
	}
	return nil
}

// Done is closed by Shut. What hangs waits for it.
func (l *Log) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ending()
}

func (l *Log) ending() chan struct{} {
	if l.done == nil {
		l.done = make(chan struct{})
	}
	return l.done
}

// Shut lets go of every request that hangs. It reports whether this is the first call.
func (l *Log) Shut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return false
	}
	l.shut = true
	close(l.ending())
	return true
}

// Handle is f as the operation op: logged, admitted and met by faults. Admit,
// which may be nil, answers what has no right and reports whether to go on.
func (l *Log) Handle(op string, admit func(http.ResponseWriter, *http.Request) bool, f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		entry := Request{Op: op, Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone()}
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
			body, _ := io.ReadAll(r.Body)
			entry.Body = string(body)
			r.Body = io.NopCloser(strings.NewReader(entry.Body))
		}
		fault, end := l.Begin(entry)
		out := &response{ResponseWriter: w, cut: -1}
		defer func() { end(out.status) }()
		if admit != nil && !admit(out, r) {
			return
		}
		switch {
		case fault == nil:
		case fault.Status != 0:
			for k, v := range fault.Header {
				out.Header().Set(k, v)
			}
			out.WriteHeader(fault.Status)
			io.WriteString(out, fault.Body)
			return
		case fault.Hang:
			l.hang(r)
			return
		case fault.Late, fault.Hold:
			out.ResponseWriter = silent{}
			f(out, r)
			if fault.Hold {
				l.hang(r)
			}
			panic(http.ErrAbortHandler)
		default:
			out.cut = fault.Cut
		}
		f(out, r)
	}
}

// hang waits until the client or the service has gone. The body is read so that
// the former is noticed.
func (l *Log) hang(r *http.Request) {
	io.Copy(io.Discard, r.Body)
	select {
	case <-r.Context().Done():
	case <-l.Done():
	}
	panic(http.ErrAbortHandler)
}

// A response notes the status and can break off.
type response struct {
	http.ResponseWriter
	status int
	cut    int64 // bytes still allowed; negative is any number
}

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.cut < 0 {
		return w.ResponseWriter.Write(p)
	}
	k := min(int64(len(p)), w.cut)
	n, err := w.ResponseWriter.Write(p[:k])
	w.cut -= int64(n)
	if w.cut == 0 && err == nil {
		http.NewResponseController(w.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// Flush sends what has been written.
func (w *response) Flush() { http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap lets a WebSocket take over the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// silent is a response nobody hears.
type silent struct{}

func (silent) Header() http.Header         { return http.Header{} }
func (silent) Write(p []byte) (int, error) { return len(p), nil }
func (silent) WriteHeader(int)             {}

// A Service is an emulated vendor, as the matrix and the benchmarks use it.
type Service interface {
	Settings() map[string]string // what a Spec needs to reach it
	Inject(Fault)
	Heal()
	Requests(op string) []Request
	Boxes() []string // the machines that are not ended
}

// A Subject is a provider and its emulated vendor.
type Subject struct {
	Provider sandbox.Provider
	Start    func() (s Service, stop func(), err error)
	Skip     map[string]string // "operation/request/fault", each may be "*" → why it is left out
}

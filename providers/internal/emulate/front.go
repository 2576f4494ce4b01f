package emulate

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
)

// A Front is where an emulated service is reached by HTTP, on a loopback port, and
// its Log. The zero value is useful.
type Front struct {
	Log
	listener net.Listener
	http     *http.Server
}

// Serve begins to answer.
func (f *Front) Serve(server *http.Server) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		f.ServeAt(listener, server)
	}
	return err
}

// ServeAt is Serve at a place that others have chosen.
func (f *Front) ServeAt(listener net.Listener, server *http.Server) {
	f.listener, f.http = listener, server
	go server.Serve(f.Wire(listener))
}

// Address is the service's, as "http://127.0.0.1:1234".
func (f *Front) Address() string { return "http://" + f.listener.Addr().String() }

// Shut lets go of every request that hangs and takes no more. It reports whether this
// is the first call.
func (f *Front) Shut() bool {
	if !f.Log.Shut() {
		return false
	}
	f.http.Close()
	return true
}

// EndAll ends all machines at once and waits for it.
func EndAll[M any](machines []M, end func(M)) {
	var wg sync.WaitGroup
	for _, m := range machines {
		wg.Go(func() { end(m) })
	}
	wg.Wait()
}

// New starts a service that ends with the test. At most one config may be given.
func New[C any, S interface{ Close() }](tb testing.TB, start func(C) (S, error), cfg ...C) S {
	tb.Helper()
	var none C
	s, err := start(append(cfg, none)[0])
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// Main runs a service that was started for a client that is no Go test: it prints
// what tell says of it as one line of JSON and serves until the standard input ends.
func Main[S interface{ Close() }](s S, err error, tell func(S) map[string]string) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
	defer s.Close()
	json.NewEncoder(os.Stdout).Encode(tell(s))
	io.Copy(io.Discard, os.Stdin)
}

// URLAndKey is what most services tell.
func URLAndKey[S interface {
	URL() string
	Key() string
}](s S) map[string]string {
	return map[string]string{"url": s.URL(), "key": s.Key()}
}

// A Mood is what is wrong with a whole service, as its behaviour B tells: the zero
// value is health. It is safe for concurrent use.
type Mood[B any] struct {
	mu     sync.Mutex
	behave B
}

// Behave sets what is wrong with the whole service.
func (m *Mood[B]) Behave(b B) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.behave = b
}

// Behaviour tells what is wrong with the whole service.
func (m *Mood[B]) Behaviour() B {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.behave
}

// Due reports whether the fault n, of which there are so many left, is due, and counts
// it.
func (m *Mood[B]) Due(n func(*B) *int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := n(&m.behave)
	if *left == 0 {
		return false
	}
	*left--
	return true
}

// Reply answers with v as JSON, or without a body if v is nil.
func Reply(w http.ResponseWriter, status int, v any) {
	if v == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

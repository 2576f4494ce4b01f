package cmd

import (
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// A trap is a server that nobody may call.
type trap struct {
	mu   sync.Mutex
	hits []string
}

// setTrap starts a trap, whose address is then in $TRAP; "trap clean" checks that
// nobody called.
func setTrap(ts *testscript.TestScript, _ bool, args []string) {
	s := on(ts)
	if len(args) == 1 && args[0] == "clean" {
		s.trap.mu.Lock()
		defer s.trap.mu.Unlock()
		if len(s.trap.hits) > 0 {
			ts.Fatalf("the trap was called: %q", s.trap.hits)
		}
		return
	}
	t := &trap{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.hits = append(t.hits, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusTeapot)
	}))
	ts.Defer(srv.Close)
	s.trap = t
	ts.Setenv("TRAP", srv.URL)
}

package cmd

import (
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// startSearch starts a search service that always finds what is in a file.
func startSearch(ts *testscript.TestScript, _ bool, args []string) {
	answer := ts.ReadFile(args[0])
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/search" || r.URL.Query().Get("format") != "json" {
			http.NotFound(w, r)
			return
		}
		w.Write([]byte(answer))
	}))
	ts.Defer(srv.Close)
	ts.Setenv("SEARCH", srv.URL)
	ts.Setenv("SEARCHHOST", strings.TrimPrefix(srv.URL, "http://"))
}

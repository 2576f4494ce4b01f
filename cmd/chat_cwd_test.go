//go:build unix

package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

// A command that is to run in another directory than commands do is asked for with that
// directory.
func TestWhereACommandRunsIsAskedFor(t *testing.T) {
	srv := modeltest.New(t)
	p := terminal(t)
	other := filepath.Join(t.TempDir(), "letters")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	srv.Script(modeltest.Step{Calls: []modeltest.Call{{ID: "a", Name: "execute", Input: `{"command":"rm -rf build","cwd":"` + other + `"}`}}}, modeltest.Step{Text: "Well."})
	p.start(200, 30, srv, nil)
	p.await(`mode manual`)
	p.say("Tidy up")
	p.await(`(?s)May this run\?.*execute: in ` + other + `:\n +rm -rf build`)
	p.keys("y")
	p.await(`Well\.`)
}

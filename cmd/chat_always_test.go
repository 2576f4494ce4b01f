//go:build unix

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

// What is always allowed is allowed in the next session in the project, and nowhere
// else.
func TestAlwaysIsForThisProject(t *testing.T) {
	srv := modeltest.New(t)
	srv.Script(execute("a", "mkdir -p made"), modeltest.Step{Text: "The first is there."})
	p := inTerminal(t, 100, 30, srv, nil)
	p.await(`THIS COMPUTER .* mode manual`)
	p.say("Make it")
	p.await(`a always, in this project: mkdir -p made`)
	p.keys("a")
	p.await(`The first is there\.`)
	data, err := os.ReadFile(filepath.Join(p.home, "config.toml"))
	if err != nil || !strings.Contains(string(data), "in "+real(p.dir)+": mkdir -p made") {
		t.Fatalf("config.toml: %q, %v", data, err)
	}

	srv.Script(execute("b", "mkdir -p made"), modeltest.Step{Text: "The second was not asked for."})
	q := p.again(srv, nil)
	q.await(`mode manual`)
	q.say("Make it again")
	q.await(`The second was not asked for\.`)

	srv.Script(execute("c", "mkdir -p made"), modeltest.Step{Text: "The third."})
	other := &pane{t: t, socket: filepath.Join(t.TempDir(), "s"), dir: t.TempDir(), home: p.home}
	other.run(p.bin, 100, 30, srv, nil)
	other.await(`mode manual`)
	other.say("Make it elsewhere")
	other.await(`May this run\?`)
}

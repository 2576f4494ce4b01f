//go:build unix

package cmd

import (
	"os"
	"os/exec"
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

// What the window asks git for by itself runs nothing that a repository names.
func TestTheWindowRunsNothingOfTheRepository(t *testing.T) {
	srv := modeltest.New(t)
	p := terminal(t)
	p.repository()
	ran := filepath.Join(t.TempDir(), "ran")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	p.write(".gitattributes", "* filter=own diff=own\n")
	p.write("README", "another\n")
	git("config", "filter.own.clean", "touch "+ran+"; cat")
	git("config", "diff.own.textconv", "touch "+ran+"; cat")
	git("config", "core.fsmonitor", "touch "+ran+"; false")
	p.start(100, 30, srv, nil)
	p.await(`mode manual`)
	p.say("/diff")
	p.await(`names programs that git would run`)
	p.keys("@")
	p.await(`README`)
	if _, err := os.Stat(ran); err == nil {
		t.Errorf("a program of the repository ran:\n%s", p.screen())
	}
}

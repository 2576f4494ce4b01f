//go:build linux && (amd64 || arm64)

package cmd

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/talkops-ai/talkops/providers/e2b/e2btest"
	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
)

// TestModules tells the stories of testdata/modules with the module for E2B, which
// is in e2b.wasm, and the emulated service at $E2B with its key. They have the
// commands of TestProviders; boxes counts E2B's sandboxes and
// snapshots its snapshots.
func TestModules(t *testing.T) {
	if wasmtest.Raced {
		t.Skip("a program with the race detector takes minutes to prepare a module of this size")
	}
	module, err := os.ReadFile(wasmtest.Build(t, "github.com/talkops-ai/talkops/wasm-providers/e2b"))
	if err != nil {
		t.Fatal(err)
	}
	p := practiced(func(e *testscript.Env) error {
		s, err := e2btest.Start(e2btest.Config{})
		if err != nil {
			return err
		}
		e.Defer(s.Close)
		e.Values["e2b"] = s
		e.Setenv("E2B", s.URL())
		e.Setenv("E2BKEY", s.Key())
		return os.WriteFile(filepath.Join(e.WorkDir, "e2b.wasm"), module, 0o644)
	})
	p.Cmds["boxes"] = func(ts *testscript.TestScript, _ bool, args []string) {
		if got := ts.Value("e2b").(*e2btest.Server).Boxes(); strconv.Itoa(len(got)) != args[0] {
			ts.Fatalf("there are %v, want %s", got, args[0])
		}
	}
	p.Cmds["snapshots"] = func(ts *testscript.TestScript, _ bool, args []string) {
		if got := ts.Value("e2b").(*e2btest.Server).Snapshots(); strconv.Itoa(len(got)) != args[0] {
			ts.Fatalf("there are the snapshots %v, want %s", got, args[0])
		}
	}
	p.Cmds["rm-all"] = func(ts *testscript.TestScript, _ bool, _ []string) {
		for _, id := range ts.Value("e2b").(*e2btest.Server).Boxes() {
			ts.Check(ts.Exec("talkops", "sandbox", "rm", id))
		}
	}
	p.Dir = filepath.Join("..", "testdata", "modules")
	testscript.Run(t, p)
}

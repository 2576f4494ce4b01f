// Package wasmtest builds modules from source for tests.
package wasmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/talkops-ai/talkops/hostfuncs"
	"github.com/talkops-ai/talkops/runtime/wasm"
	"github.com/talkops-ai/talkops/runtime/wasm/helper"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A test of a module starts itself again as the process of the module. This
// happens before anything else of the test does.
var _ = asHelper()

func asHelper() bool {
	if helper.Is(os.Args) {
		os.Exit(helper.Main())
	}
	return false
}

// Build compiles a Go package of this module to WebAssembly and returns the file.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), filepath.Base(pkg)+".wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", file, pkg)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return file
}

// Cache is a directory for native code that all runs of tests share, apart from
// the user's own.
func Cache(t testing.TB) string {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "talkops-test-wasm")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Load loads a module that may reach these hosts. It is closed with the test.
func Load(t testing.TB, name, file string, hosts ...string) sandbox.Provider {
	t.Helper()
	list, err := hostfuncs.ParseHosts(hosts)
	if err != nil {
		t.Fatal(err)
	}
	p, err := wasm.Load(t.Context(), wasm.Config{
		Name: name, File: file, Grant: hostfuncs.Grant{Hosts: list}, Cache: Cache(t),
		Log: func(r hostfuncs.Record) {
			if testing.Verbose() && os.Getenv("WASM_LOG") != "" {
				t.Log(r)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

//go:build linux && (amd64 || arm64)

package wasm_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/wasm"
	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
	"github.com/talkops-ai/talkops/sdk/abi"
)

// Each bad module gets one line that says what it is and what to do.
func TestBadModulesAreTold(t *testing.T) {
	component := []byte("\x00asm\x0d\x00\x01\x00")
	good := wasmtest.Source{}.Assemble()
	for name, row := range map[string]struct {
		data []byte
		want string
	}{
		"empty":                     {nil, "an empty file"},
		"a zip":                     {[]byte("PK\x03\x04rest"), "a zip archive"},
		"a program":                 {[]byte("\x7fELF......"), "Build it for WebAssembly"},
		"a page":                    {[]byte("<!DOCTYPE html><p>"), "The download may have failed"},
		"text":                      {[]byte("(module)"), "wat2wasm"},
		"Python":                    {[]byte("import os\n"), "a script"},
		"a component":               {component, "is a WebAssembly component"},
		"cut":                       {good[:len(good)/2], "is damaged"},
		"another ABI":               {wasmtest.Source{Marker: "talkops_provider_abi_2"}.Assemble(), "speaks provider ABI 2; this talkops speaks 1. Update talkops."},
		"no marker":                 {wasmtest.Source{Marker: "other"}.Assemble(), "is not a talkops provider"},
		"a program of WASI":         {wasmtest.Source{Marker: "_start"}.Assemble(), "is a program. Build a library"},
		"a missing export":          {wasmtest.Source{Without: abi.Destroy}.Assemble(), "lacks the function sandbox_destroy"},
		"an unknown import":         {wasmtest.Source{Imports: [][2]string{{"env", "abort"}}}.Assemble(), "build with --use abort="},
		"an unknown host function":  {wasmtest.Source{Imports: [][2]string{{abi.Namespace, "teleport"}}}.Assemble(), `needs the host function "teleport"`},
		"another type":              {wasmtest.Source{Imports: [][2]string{{abi.Namespace, "now"}}}.Assemble(), "with another type"},
		"much memory":               {wasmtest.Source{Pages: 2000}.Assemble(), "needs at least 125 MiB of memory; its limit is 64"},
		"silent describe":           {wasmtest.Source{Code: map[string][]byte{abi.Describe: wasmtest.Silent()}}.Assemble(), "answered describe with: no answer"},
		"trap in describe":          {wasmtest.Source{Code: map[string][]byte{abi.Describe: wasmtest.Trap()}}.Assemble(), "answered describe with: unreachable"},
		"trap at start":             {wasmtest.Source{Code: map[string][]byte{"start": append([]byte{0}, wasmtest.Silent()...)}}.Assemble(), "answered describe with"},
		"endless start":             {wasmtest.Source{Code: map[string][]byte{"start": wasmtest.Spin()}}.Assemble(), "nothing within"},
		"late describe":             {wasmtest.Source{Code: map[string][]byte{abi.Describe: wasmtest.Spin()}}.Assemble(), "nothing within"},
		"a need that is not met":    {wasmtest.Source{Describe: `{"ok":{"name":"x","features":{},"needs":["time.travel"]}}`}.Assemble(), `needs "time.travel"`},
		"a promise without exports": {wasmtest.Source{Describe: `{"ok":{"name":"x","features":{},"can":["sandbox_snapshot"]}}`}.Assemble(), "does not export it"},
		"a folder of two lines":     {wasmtest.Source{Describe: `{"ok":{"name":"x","features":{},"dir":"/a\n/b"}}`}.Assemble(), "holds a control character"},
		"I/O in describe":           {wasmtest.Source{Code: map[string][]byte{abi.Describe: wasmtest.Sleep()}}.Assemble(), "nothing within"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "m.wasm")
			if err := os.WriteFile(file, row.data, 0o644); err != nil {
				t.Fatal(err)
			}
			p, err := wasm.Load(t.Context(), wasm.Config{Name: "m", File: file, Cache: wasmtest.Cache(t)})
			if err == nil {
				p.Close()
			}
			if _, ok := errors.AsType[*wasm.BadModule](err); !ok || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestAModuleThatChangedIsRefusedBeforeItIsLookedAt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.wasm")
	if err := os.WriteFile(file, []byte("not what it was"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := wasm.Load(t.Context(), wasm.Config{Name: "m", File: file, SHA256: strings.Repeat("0", 64), Cache: wasmtest.Cache(t)})
	if _, ok := errors.AsType[*wasm.ChangedError](err); !ok {
		t.Errorf("got %v", err)
	}
}

// Native code that was cut or changed is made again.
func TestABrokenCacheHeals(t *testing.T) {
	file, cache := wasmtest.Source{}.Write(t), t.TempDir()
	load := func() {
		t.Helper()
		p, err := wasm.Load(t.Context(), wasm.Config{Name: "m", File: file, Cache: cache})
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
	}
	load()
	broken := 0
	filepath.WalkDir(cache, func(name string, d os.DirEntry, _ error) error {
		if d.Type().IsRegular() {
			broken++
			return os.WriteFile(name, []byte("garbage"), 0o600)
		}
		return nil
	})
	if broken == 0 {
		t.Fatal("nothing was kept")
	}
	load()
}

func FuzzInspect(f *testing.F) {
	f.Add(wasmtest.Source{}.Assemble())
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := wasm.Inspect("m.wasm", bytes.Clone(data))
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than a line: %q", err)
		}
		if err == nil && m.ABI != abi.Major {
			t.Errorf("ABI %d", m.ABI)
		}
	})
}

// TestPrune removes the native code that nobody used for long, and nothing else.
func TestPrune(t *testing.T) {
	cache := t.TempDir()
	old, fresh, other := strings.Repeat("a", 64), strings.Repeat("b", 64), "notes"
	for _, name := range []string{old, fresh, other} {
		if err := os.Mkdir(filepath.Join(cache, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-48 * time.Hour)
	for _, name := range []string{old, other} {
		if err := os.Chtimes(filepath.Join(cache, name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	if err := wasm.Prune(cache, 24*time.Hour, 1<<20); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, _ := os.ReadDir(cache)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{fresh, other}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
}

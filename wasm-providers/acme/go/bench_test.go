//go:build linux && (amd64 || arm64)

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/wasm"
	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
	"github.com/talkops-ai/talkops/sdk/practice"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func BenchmarkColdCompile(b *testing.B) {
	file := wasmtest.Build(b, ".")
	for b.Loop() {
		load(b, file, b.TempDir())
	}
}

func BenchmarkWarmLoad(b *testing.B) {
	file, cache := wasmtest.Build(b, "."), b.TempDir()
	load(b, file, cache)
	for b.Loop() {
		load(b, file, cache)
	}
}

func load(b *testing.B, file, cache string) {
	p, err := wasm.Load(b.Context(), wasm.Config{Name: "acme", File: file, Cache: cache})
	if err != nil {
		b.Fatal(err)
	}
	p.Close()
}

// A kill of a command that is not there is one request and its answer.
func BenchmarkOperation(b *testing.B) {
	_, sb := open(b)
	for b.Loop() {
		sandbox.Kill(b.Context(), sb, "none")
	}
}

func BenchmarkExec(b *testing.B) {
	_, sb := open(b)
	for b.Loop() {
		if exit, err := sb.Exec(b.Context(), sandbox.Cmd{Args: []string{"true"}}); err != nil || exit != 0 {
			b.Fatal(exit, err)
		}
	}
}

// Bytes by handle never enter the module.
func BenchmarkBytes(b *testing.B) {
	_, sb := open(b)
	name, content := sb.Info().Dir+"/f", strings.Repeat("0123456789abcdef", 1<<20)
	b.SetBytes(2 * int64(len(content)))
	for b.Loop() {
		if err := sb.WriteFile(b.Context(), name, strings.NewReader(content), 0o644); err != nil {
			b.Fatal(err)
		}
		if err := sb.ReadFile(b.Context(), name, io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

func open(b *testing.B) (*practice.Server, sandbox.Sandbox) {
	s, err := practice.Start(practice.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	p := wasmtest.Load(b, "acme", wasmtest.Build(b, "."), s.URL())
	sb, err := p.Open(b.Context(), sandbox.Spec{Settings: s.Settings()})
	if err != nil {
		b.Fatal(err)
	}
	return s, sb
}

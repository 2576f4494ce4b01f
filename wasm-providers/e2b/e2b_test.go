//go:build linux && (amd64 || arm64)

package main

import (
	"net/url"
	"testing"

	"github.com/talkops-ai/talkops/providers/e2b"
	"github.com/talkops-ai/talkops/providers/e2b/e2btest"
	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
	"github.com/talkops-ai/talkops/sdk/conform"
	"github.com/talkops-ai/talkops/sdk/sandbox"
	"github.com/talkops-ai/talkops/sdk/sandboxtest"
)

func TestContractThroughTheWall(t *testing.T) {
	if testing.Short() || wasmtest.Raced {
		t.Skip("the whole contract, through the wall, takes a minute")
	}
	s := e2btest.New(t)
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	p := wasmtest.Load(t, "e2b", wasmtest.Build(t, "."), "http://"+u.Host)
	sandboxtest.Run(t, conform.Target{Provider: p, Spec: sandbox.Spec{Settings: s.Settings()}})
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

func BenchmarkModule(b *testing.B) {
	s := e2btest.New(b)
	u, err := url.Parse(s.URL())
	if err != nil {
		b.Fatal(err)
	}
	wasmtest.Bench(b, wasmtest.Load(b, "e2b", wasmtest.Build(b, "."), "http://"+u.Host), e2b.Provider{}, s.Settings())
}

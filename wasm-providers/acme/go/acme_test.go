//go:build linux && (amd64 || arm64)

package main

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
	"github.com/talkops-ai/talkops/sdk/conform"
	"github.com/talkops-ai/talkops/sdk/practice"
	"github.com/talkops-ai/talkops/sdk/sandbox"
	"github.com/talkops-ai/talkops/sdk/sandboxtest"
)

func TestContract(t *testing.T) {
	s, err := practice.Start(practice.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := wasmtest.Load(t, "acme", wasmtest.Build(t, "."), s.URL())
	sandboxtest.Run(t, conform.Target{Provider: p, Spec: sandbox.Spec{Settings: s.Settings()}})
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

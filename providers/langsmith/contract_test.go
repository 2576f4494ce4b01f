//go:build unix

package langsmith_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/langsmith"
	"github.com/talkops-ai/talkops/providers/langsmith/langsmithtest"
	"github.com/talkops-ai/talkops/sdk/conform"
	"github.com/talkops-ai/talkops/sdk/sandbox"
	"github.com/talkops-ai/talkops/sdk/sandboxtest"
)

func TestContract(t *testing.T) {
	s := langsmithtest.New(t)
	sandboxtest.Run(t, conform.Target{Provider: langsmith.Provider{}, Spec: sandbox.Spec{Settings: s.Settings()}})
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

//go:build unix

package e2b_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/e2b"
	"github.com/talkops-ai/talkops/providers/e2b/e2btest"
	"github.com/talkops-ai/talkops/sdk/conform"
	"github.com/talkops-ai/talkops/sdk/sandbox"
	"github.com/talkops-ai/talkops/sdk/sandboxtest"
)

func TestContract(t *testing.T) {
	s := e2btest.New(t)
	sandboxtest.Run(t, conform.Target{Provider: e2b.Provider{}, Spec: sandbox.Spec{Settings: s.Settings()}})
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

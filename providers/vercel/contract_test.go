//go:build unix

package vercel_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/vercel"
	"github.com/talkops-ai/talkops/providers/vercel/verceltest"
	"github.com/talkops-ai/talkops/sdk/conform"
	"github.com/talkops-ai/talkops/sdk/sandbox"
	"github.com/talkops-ai/talkops/sdk/sandboxtest"
)

func TestContract(t *testing.T) {
	s := verceltest.New(t)
	sandboxtest.Run(t, conform.Target{Provider: vercel.Provider{}, Spec: sandbox.Spec{Settings: s.Settings()}})
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

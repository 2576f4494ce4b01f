//go:build unix

package modal_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/modal"
	"github.com/talkops-ai/talkops/providers/modal/modaltest"
	"github.com/talkops-ai/talkops/sdk/conform"
	"github.com/talkops-ai/talkops/sdk/sandbox"
	"github.com/talkops-ai/talkops/sdk/sandboxtest"
)

func TestContract(t *testing.T) {
	s := modaltest.New(t)
	sandboxtest.Run(t, conform.Target{Provider: modal.Provider{}, Spec: sandbox.Spec{Settings: s.Settings()}})
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

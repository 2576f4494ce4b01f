//go:build unix

package runloop_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/runloop"
	"github.com/talkops-ai/talkops/providers/runloop/runlooptest"
	"github.com/talkops-ai/talkops/sdk/conform"
	"github.com/talkops-ai/talkops/sdk/sandbox"
	"github.com/talkops-ai/talkops/sdk/sandboxtest"
)

func TestContract(t *testing.T) {
	s := runlooptest.New(t)
	sandboxtest.Run(t, conform.Target{Provider: runloop.Provider{}, Spec: sandbox.Spec{Settings: s.Settings()}})
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

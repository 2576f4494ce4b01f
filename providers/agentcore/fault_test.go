//go:build unix

package agentcore_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/agentcore"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func TestFaults(t *testing.T) {
	emulate.Matrix(t, emulate.Subject{Provider: agentcore.Provider{}, Start: start})
}

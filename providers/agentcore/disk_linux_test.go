package agentcore_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/agentcore"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func TestFullDisk(t *testing.T) {
	emulate.FullDisk(t, emulate.Subject{Provider: agentcore.Provider{}, Start: start})
}

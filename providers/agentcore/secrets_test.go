//go:build unix

package agentcore_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/agentcore"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func TestNoSecretIsShown(t *testing.T) {
	emulate.Secrets(t, emulate.Subject{Provider: agentcore.Provider{}, Start: start})
}

//go:build unix

package runloop_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/runloop"
)

func TestNoSecretIsShown(t *testing.T) {
	emulate.Secrets(t, emulate.Subject{Provider: runloop.Provider{}, Start: start})
}

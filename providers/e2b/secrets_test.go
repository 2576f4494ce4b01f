//go:build unix

package e2b_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/e2b"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func TestNoSecretIsShown(t *testing.T) {
	emulate.Secrets(t, emulate.Subject{Provider: e2b.Provider{}, Start: start})
}

//go:build unix

package vercel_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/vercel"
)

func TestNoSecretIsShown(t *testing.T) {
	emulate.Secrets(t, emulate.Subject{Provider: vercel.Provider{}, Start: start})
}

//go:build unix

package daytona_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/daytona"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func TestNoSecretIsShown(t *testing.T) {
	emulate.Secrets(t, emulate.Subject{Provider: daytona.Provider{}, Start: start})
}

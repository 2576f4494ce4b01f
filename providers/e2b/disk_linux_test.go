package e2b_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/e2b"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func TestFullDisk(t *testing.T) {
	emulate.FullDisk(t, emulate.Subject{Provider: e2b.Provider{}, Start: start})
}

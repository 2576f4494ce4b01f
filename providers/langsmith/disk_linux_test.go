package langsmith_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/langsmith"
)

func TestFullDisk(t *testing.T) {
	emulate.FullDisk(t, emulate.Subject{Provider: langsmith.Provider{}, Start: start})
}

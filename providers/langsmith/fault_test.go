//go:build unix

package langsmith_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/langsmith"
)

func TestFaults(t *testing.T) {
	emulate.Matrix(t, emulate.Subject{Provider: langsmith.Provider{}, Start: start, Skip: map[string]string{
		"*/ws-execute/401 always": "a frame is answered by frames; the upgrade before it checks the key",
	}})
}

func TestSnapshotsAreRemoved(t *testing.T) {
	emulate.Snapshots(t, emulate.Subject{Provider: langsmith.Provider{}, Start: start}, "snapshot-delete")
}

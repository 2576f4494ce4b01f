//go:build unix

package e2b_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/e2b"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func TestFaults(t *testing.T) {
	emulate.Matrix(t, emulate.Subject{Provider: e2b.Provider{}, Start: start})
}

func TestSnapshotsAreRemoved(t *testing.T) {
	emulate.Snapshots(t, emulate.Subject{Provider: e2b.Provider{}, Start: start}, "snapshot-delete")
}

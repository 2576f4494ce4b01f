//go:build unix

package runloop_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/runloop"
)

func TestFaults(t *testing.T) {
	emulate.Matrix(t, emulate.Subject{Provider: runloop.Provider{}, Start: start})
}

func TestSnapshotsAreRemoved(t *testing.T) {
	emulate.Snapshots(t, emulate.Subject{Provider: runloop.Provider{}, Start: start}, "snapshot-delete")
}

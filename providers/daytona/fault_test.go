//go:build unix

package daytona_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/daytona"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func TestFaults(t *testing.T) {
	emulate.Matrix(t, emulate.Subject{Provider: daytona.Provider{}, Start: start})
}

func TestSnapshotsAreRemoved(t *testing.T) {
	emulate.Snapshots(t, emulate.Subject{Provider: daytona.Provider{}, Start: start}, "snapshot-delete")
}

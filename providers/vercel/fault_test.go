//go:build unix

package vercel_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/vercel"
)

func TestFaults(t *testing.T) {
	emulate.Matrix(t, emulate.Subject{Provider: vercel.Provider{}, Start: start})
}

func TestSnapshotsAreRemoved(t *testing.T) {
	emulate.Snapshots(t, emulate.Subject{Provider: vercel.Provider{}, Start: start}, "snapshot-delete")
}

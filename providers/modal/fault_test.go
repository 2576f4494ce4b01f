//go:build unix

package modal_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/modal"
	"github.com/talkops-ai/talkops/providers/modal/modaltest"
)

func TestFaults(t *testing.T) {
	emulate.Matrix(t, emulate.Subject{Provider: modal.Provider{}, Start: start})
}

func start() (emulate.Service, func(), error) {
	s, err := modaltest.Start(modaltest.Config{})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

func TestSnapshotsAreRemoved(t *testing.T) {
	emulate.Snapshots(t, emulate.Subject{Provider: modal.Provider{}, Start: start}, "ImageDelete")
}

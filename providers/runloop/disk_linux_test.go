package runloop_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/runloop"
)

func TestFullDisk(t *testing.T) {
	emulate.FullDisk(t, emulate.Subject{Provider: runloop.Provider{}, Start: start})
}

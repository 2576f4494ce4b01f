package vercel_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/vercel"
)

func TestFullDisk(t *testing.T) {
	emulate.FullDisk(t, emulate.Subject{Provider: vercel.Provider{}, Start: start})
}

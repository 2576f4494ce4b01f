package local_test

import (
	"os"
	"testing"

	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/sdk/conform"
	"github.com/talkops-ai/talkops/sdk/sandbox"
	"github.com/talkops-ai/talkops/sdk/sandboxtest"
)

func TestContract(t *testing.T) {
	spec := sandbox.Spec{Dir: t.TempDir(), Env: map[string]string{"PATH": os.Getenv("PATH"), "HOME": t.TempDir()}}
	sandboxtest.Run(t, conform.Target{Provider: local.Provider{}, Spec: spec})
}

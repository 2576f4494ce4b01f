//go:build unix

package langsmith_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/langsmith"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestCalls(t *testing.T) {
	emulate.Calls{
		Subject: emulate.Subject{Provider: langsmith.Provider{}, Start: start},
		Starts:  "ws-execute", Most: sandbox.MaxArg, Reads: "download", Left: "ls -A tmp/.talkops-*", Own: 4,
	}.Run(t)
}

func TestLifeRulesCatchTheirMutants(t *testing.T) {
	emulate.Mutants(t, emulate.Subject{Provider: langsmith.Provider{}, Start: start}, "api_key", nil)
}

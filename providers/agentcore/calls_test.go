//go:build unix

package agentcore_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/agentcore"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func TestCalls(t *testing.T) {
	emulate.Calls{
		Subject: emulate.Subject{Provider: agentcore.Provider{}, Start: start},
		Starts:  "startCommandExecution", Left: "ls -A .talkops-*", Own: 6,
	}.Run(t)
}

func TestLifeRulesCatchTheirMutants(t *testing.T) {
	emulate.Mutants(t, emulate.Subject{Provider: agentcore.Provider{}, Start: start}, "secret_access_key", map[string]string{
		"C207": "files are read by commands, and those of the emulator's sessions see each other's directories",
	})
}

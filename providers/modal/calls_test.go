//go:build unix

package modal_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/modal"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestCalls(t *testing.T) {
	emulate.Calls{
		Subject: emulate.Subject{Provider: modal.Provider{}, Start: start},
		Starts:  "TaskExecStart", Most: sandbox.MaxArg, Reads: "TaskExecStdioRead", Left: "ls -A tmp/.talkops-*", Own: 3,
	}.Run(t)
}

func TestLifeRulesCatchTheirMutants(t *testing.T) {
	emulate.Mutants(t, emulate.Subject{Provider: modal.Provider{}, Start: start}, "token_secret", map[string]string{
		"C207": "files are named absolutely, and the emulator's machines see each other's directories",
	})
}

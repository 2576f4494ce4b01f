//go:build unix

package vercel_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/vercel"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestCalls(t *testing.T) {
	emulate.Calls{
		Subject: emulate.Subject{Provider: vercel.Provider{}, Start: start},
		Starts:  "start", Most: sandbox.MaxArg, Reads: "read", Stream: "logs", Left: "ls -A tmp/.talkops-*", Own: 4,
	}.Run(t)
}

func TestLifeRulesCatchTheirMutants(t *testing.T) {
	emulate.Mutants(t, emulate.Subject{Provider: vercel.Provider{}, Start: start}, "token", nil)
}

//go:build unix

package daytona_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/daytona"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestCalls(t *testing.T) {
	emulate.Calls{
		Subject: emulate.Subject{Provider: daytona.Provider{}, Start: start},
		Starts:  "session-exec", Most: sandbox.MaxArg, Reads: "download", Left: "ls -A tmp/.talkops-*", Own: 3,
	}.Run(t)
}

func TestLifeRulesCatchTheirMutants(t *testing.T) {
	emulate.Mutants(t, emulate.Subject{Provider: daytona.Provider{}, Start: start}, "api_key", nil)
}

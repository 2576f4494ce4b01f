//go:build unix

package runloop_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/runloop"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestCalls(t *testing.T) {
	emulate.Calls{
		Subject: emulate.Subject{Provider: runloop.Provider{}, Start: start},
		Starts:  "execute-async", Most: sandbox.MaxArg, Reads: "download", Stream: "stdout", Left: "ls -A tmp/.talkops-*", Own: 4,
	}.Run(t)
}

func TestLifeRulesCatchTheirMutants(t *testing.T) {
	emulate.Mutants(t, emulate.Subject{Provider: runloop.Provider{}, Start: start}, "api_key", nil)
}

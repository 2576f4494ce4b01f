//go:build unix

package e2b_test

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/e2b"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestCalls(t *testing.T) {
	emulate.Calls{
		Subject: emulate.Subject{Provider: e2b.Provider{}, Start: start},
		Starts:  "Start", Most: sandbox.MaxArg, Reads: "download",
	}.Run(t)
}

func TestLifeRulesCatchTheirMutants(t *testing.T) {
	emulate.Mutants(t, emulate.Subject{Provider: e2b.Provider{}, Start: start}, "api_key", nil)
}

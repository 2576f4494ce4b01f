// Package sandboxtest runs the sandbox contract under go test.
package sandboxtest

import (
	"testing"

	"github.com/talkops-ai/talkops/sdk/conform"
)

// Run checks every rule of the contract against t's provider, one subtest each.
// Rules in target.Skip are skipped with their reason.
//
//	func TestContract(t *testing.T) {
//		srv := acmetest.New(t)
//		sandboxtest.Run(t, conform.Target{Provider: acme.Provider{}, Spec: srv.Spec()})
//	}
func Run(t *testing.T, target conform.Target) {
	t.Helper()
	err := conform.Run(t.Context(), target, func(r conform.Result) {
		t.Run(r.Rule.ID+" "+r.Rule.Say, func(t *testing.T) {
			switch r.Verdict {
			case conform.Fail:
				t.Error(r.Detail)
			case conform.Skip:
				t.Skip(r.Detail)
			}
		})
	})
	if err != nil {
		t.Error(err)
	}
}

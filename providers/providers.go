// Package providers is the table of built-in sandbox providers.
package providers

import (
	"github.com/talkops-ai/talkops/providers/agentcore"
	"github.com/talkops-ai/talkops/providers/daytona"
	"github.com/talkops-ai/talkops/providers/langsmith"
	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/providers/modal"
	"github.com/talkops-ai/talkops/providers/runloop"
	"github.com/talkops-ai/talkops/providers/vercel"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Builtin returns the built-in providers, in the order they are shown.
func Builtin() []sandbox.Provider {
	return []sandbox.Provider{
		local.Provider{}, modal.Provider{}, daytona.Provider{}, runloop.Provider{}, langsmith.Provider{},
		agentcore.Provider{}, vercel.Provider{},
	}
}

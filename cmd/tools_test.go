package cmd

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/daytona"
	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/runtime/tool/tooltest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// The tools' rules hold in a remote sandbox as they do on this computer.
func TestToolsOnDaytona(t *testing.T) {
	srv := daytonatest.New(t)
	sb, err := daytona.Provider{}.Open(t.Context(), sandbox.Spec{Settings: srv.Settings()})
	if err != nil {
		t.Fatal(err)
	}
	tooltest.Run(t, func(*testing.T) sandbox.Sandbox { return sb })
}

package daytona

import (
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Only a service on this computer may have the key sent to an address on this
// computer.
func TestToolboxIsTrusted(t *testing.T) {
	for _, row := range []struct {
		api, toolbox string
		trusted      bool
	}{
		{"https://app.daytona.io/api", "https://proxy.daytona.work/toolbox", true},
		{"https://app.daytona.io/api", "http://proxy.daytona.work/toolbox", false},
		{"https://app.daytona.io/api", "http://127.0.0.1:80/toolbox", false},
		{"https://app.daytona.io/api", "https://user@proxy.daytona.work/toolbox", false},
		{"http://127.0.0.1:80/api", "http://127.0.0.1:81/toolbox", true},
		{"http://127.0.0.1:80/api", "http://example.com/toolbox", false},
	} {
		a := &api{Client: rest.Client{Base: row.api}}
		_, err := a.toolbox(t.Context(), machine{ID: "x", ToolboxProxyURL: row.toolbox})
		if (err == nil) != row.trusted || err != nil && sandbox.CodeOf(err) != sandbox.CodeInternal {
			t.Errorf("%s names %s: %v", row.api, row.toolbox, err)
		}
	}
}

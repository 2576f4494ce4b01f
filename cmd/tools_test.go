package cmd

import (
	"flag"
	"maps"
	"slices"
	"testing"

	"github.com/talkops-ai/talkops/runtime/tool/tooltest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

var full = flag.Bool("full", false, "the tools' rules and the stories of sandboxes on every cloud")

// The tools' rules hold in a remote sandbox as they do on this computer.
func TestTools(t *testing.T) {
	slow(t)
	for _, name := range slices.Sorted(maps.Keys(clouds)) {
		if !*full && name != "daytona" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, err := clouds[name](0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(srv.Close)
			sb, err := builtin().Find(name).Open(t.Context(), sandbox.Spec{Settings: srv.Settings()})
			if err != nil {
				t.Fatal(err)
			}
			tooltest.Run(t, func(*testing.T) sandbox.Sandbox { return sb })
		})
	}
}

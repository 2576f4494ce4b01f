//go:build unix

package modal

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/modal/modaltest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// An image may have no setsid. Commands and their children end all the same.
func TestCommandEndsWithoutSetsid(t *testing.T) {
	s := modaltest.New(t)
	sb, err := Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings()})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	sb.(*box).setsid = false
	for _, script := range []string{"sleep 300 & echo $!; wait", "trap '' TERM; sleep 300 & echo $!; wait; sleep 300"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		var out bytes.Buffer
		begin := time.Now()
		exit, err := sb.Exec(ctx, sandbox.Cmd{Args: []string{"sh", "-c", script}, Stdout: &out})
		cancel()
		if exit != 124 || sandbox.CodeOf(err) != sandbox.CodeTimeout || time.Since(begin) > 30*time.Second {
			t.Errorf("got %d, %v after %v", exit, err, time.Since(begin))
		}
		emulate.Ended(t, out.String())
	}
}

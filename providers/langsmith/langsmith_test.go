//go:build unix

package langsmith_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/langsmith"
	"github.com/talkops-ai/talkops/providers/langsmith/langsmithtest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func open(t *testing.T, s *langsmithtest.Server, change ...func(*sandbox.Spec)) sandbox.Sandbox {
	t.Helper()
	return emulate.Open(t, langsmith.Provider{}, s, change...)
}

func TestMuchOutputIsWhole(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		t.Run(fmt.Sprintf("range ignored %v", ignore), func(t *testing.T) {
			s := langsmithtest.New(t)
			s.Behave(langsmithtest.Behaviour{IgnoreRange: ignore})
			sb := open(t, s)
			s.Inject(langsmithtest.Fault{Op: "download", Cut: 1000})
			s.Inject(langsmithtest.Fault{Op: "download", Skip: 2, Cut: 1})
			var out emulate.Counter
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("head -c 20000000 /dev/zero; sleep 0.2; echo; exit 4"), Stdout: &out})
			if exit != 4 || err != nil || out != 20000001 {
				t.Errorf("got %d, %v, %d bytes", exit, err, out)
			}
		})
	}
}

func TestKillFrameEndsWhatNoScriptCan(t *testing.T) {
	for _, cancelled := range []bool{true, false} {
		t.Run(fmt.Sprintf("cancelled %v", cancelled), func(t *testing.T) {
			t.Parallel()
			s := langsmithtest.New(t)
			sb := open(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := emulate.NewNotice()
			go func() {
				<-out.First
				s.Inject(langsmithtest.Fault{Op: "execute", Status: 500, Times: -1})
				if cancelled {
					cancel()
				} else if err := sandbox.Kill(ctx, sb, "the-one"); err != nil {
					t.Errorf("kill: %v", err)
				}
			}()
			exit, err := sb.Exec(ctx, sandbox.Cmd{ID: "the-one", Args: emulate.Sh("trap '' TERM; sleep 300 & echo $!; wait"), Stdout: out})
			if want := map[bool]int{true: 130, false: 137}[cancelled]; exit != want || (err != nil) != cancelled {
				t.Errorf("got %d, %v; want %d", exit, err, want)
			}
			if n := len(s.Requests("ws-kill")); n != 1 {
				t.Errorf("%d kill frames", n)
			}
			emulate.Ended(t, out.String())
		})
	}
}

//go:build unix

package e2b_test

import (
	"fmt"
	"testing"

	"github.com/talkops-ai/talkops/providers/e2b"
	"github.com/talkops-ai/talkops/providers/e2b/e2btest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func open(t *testing.T, s *e2btest.Server, change ...func(*sandbox.Spec)) sandbox.Sandbox {
	t.Helper()
	return emulate.Open(t, e2b.Provider{}, s, change...)
}

func TestMuchOutputIsWhole(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		t.Run(fmt.Sprintf("range ignored %v", ignore), func(t *testing.T) {
			s := e2btest.New(t)
			s.Behave(e2btest.Behaviour{IgnoreRange: ignore})
			sb := open(t, s)
			s.Inject(e2btest.Fault{Op: "download", Cut: 1000})
			s.Inject(e2btest.Fault{Op: "download", Skip: 2, Cut: 1})
			var out emulate.Counter
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("head -c 20000000 /dev/zero; sleep 0.2; echo; exit 4"), Stdout: &out})
			if exit != 4 || err != nil || out != 20000001 {
				t.Errorf("got %d, %v, %d bytes", exit, err, out)
			}
		})
	}
}

//go:build unix

package daytona_test

import (
	"fmt"
	"testing"

	"github.com/talkops-ai/talkops/providers/daytona"
	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func open(t *testing.T, s *daytonatest.Server, change ...func(*sandbox.Spec)) sandbox.Sandbox {
	t.Helper()
	return emulate.Open(t, daytona.Provider{}, s, change...)
}

func TestMuchOutputIsWhole(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		t.Run(fmt.Sprintf("range ignored %v", ignore), func(t *testing.T) {
			s := daytonatest.New(t)
			s.Behave(daytonatest.Behaviour{IgnoreRange: ignore})
			sb := open(t, s)
			s.Inject(daytonatest.Fault{Op: "download", Cut: 1000})
			s.Inject(daytonatest.Fault{Op: "download", Skip: 2, Cut: 1})
			var out emulate.Counter
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("head -c 20000000 /dev/zero; sleep 0.2; echo; exit 4"), Stdout: &out})
			if exit != 4 || err != nil || out != 20000001 {
				t.Errorf("got %d, %v, %d bytes", exit, err, out)
			}
		})
	}
}

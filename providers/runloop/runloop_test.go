//go:build unix

package runloop_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/runloop"
	"github.com/talkops-ai/talkops/providers/runloop/runlooptest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func open(t *testing.T, s *runlooptest.Server, change ...func(*sandbox.Spec)) sandbox.Sandbox {
	t.Helper()
	return emulate.Open(t, runloop.Provider{}, s, change...)
}

func TestMuchOutputIsWhole(t *testing.T) {
	for _, row := range []struct {
		name   string
		behave runlooptest.Behaviour
		faults []runlooptest.Fault
	}{
		{"", runlooptest.Behaviour{}, nil},
		{"offsets of the begin", runlooptest.Behaviour{StartOffsets: true}, nil},
		{"streams cut", runlooptest.Behaviour{}, []runlooptest.Fault{{Op: "stdout", Cut: 100000}, {Op: "stdout", Cut: 90}, {Op: "stdout", Status: 502}}},
		{"streams cut, offsets of the begin", runlooptest.Behaviour{StartOffsets: true}, []runlooptest.Fault{{Op: "stdout", Cut: 100000}, {Op: "stdout", Cut: 200000}}},
		{"idle streams", runlooptest.Behaviour{IdleStreams: 3}, nil},
		{"the end of the streams never comes", runlooptest.Behaviour{LaggingStream: true}, nil},
		{"no stream works", runlooptest.Behaviour{}, []runlooptest.Fault{{Op: "stdout", Status: 404, Times: -1}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := runlooptest.New(t)
			sb := open(t, s)
			s.Behave(row.behave)
			for _, f := range row.faults {
				s.Inject(f)
			}
			var out bytes.Buffer
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{
				Args:   emulate.Sh("echo x >>count; head -c 3000000 /dev/zero; sleep 0.2; printf '\\377\\n'; exit 4"),
				Stdout: &out,
			})
			if row.name == "no stream works" {
				// The status of a command that still runs cannot be known.
				emulate.WantCode(t, err, sandbox.CodeGone)
				return
			}
			if want := strings.Repeat("\x00", 3000000) + "\xff\n"; exit != 4 || err != nil || out.String() != want {
				t.Errorf("got %d, %v, %d bytes", exit, err, out.Len())
			}
			if n, _, _ := emulate.Run(t, sb, "wc -l <count"); strings.TrimSpace(n) != "1" {
				t.Errorf("the command ran %s times", n)
			}
		})
	}
}

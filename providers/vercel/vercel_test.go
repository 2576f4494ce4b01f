//go:build unix

package vercel_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/vercel"
	"github.com/talkops-ai/talkops/providers/vercel/verceltest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func open(t *testing.T, s *verceltest.Server, change ...func(*sandbox.Spec)) sandbox.Sandbox {
	t.Helper()
	return emulate.Open(t, vercel.Provider{}, s, change...)
}

func TestMuchOutputIsWhole(t *testing.T) {
	for _, row := range []struct {
		name   string
		behave verceltest.Behaviour
		faults []verceltest.Fault
	}{
		{"", verceltest.Behaviour{}, nil},
		{"streams cut", verceltest.Behaviour{}, []verceltest.Fault{{Op: "logs", Cut: 100000}, {Op: "logs", Cut: 90}, {Op: "logs", Status: 502}}},
		{"errors in the stream", verceltest.Behaviour{StreamErrors: 3}, nil},
		{"strange lines", verceltest.Behaviour{StrangeLines: true}, nil},
		{"a charset", verceltest.Behaviour{Charset: true}, nil},
		{"no exit code", verceltest.Behaviour{NoExitCode: true}, nil},
		{"the answer to the start is empty", verceltest.Behaviour{EmptyStarts: 1}, nil},
		{"no stream works", verceltest.Behaviour{}, []verceltest.Fault{{Op: "logs", Status: 404, Times: -1}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := verceltest.New(t)
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
			if want := strings.Repeat("\x00", 3000000) + "\xff\n"; exit != 4 || err != nil || out.String() != want {
				t.Errorf("got %d, %v, %d bytes", exit, err, out.Len())
			}
			if n, _, _ := emulate.Run(t, sb, "wc -l <count"); strings.TrimSpace(n) != "1" {
				t.Errorf("the command ran %s times", n)
			}
		})
	}
}

//go:build unix

package modal_test

import (
	"io"
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/modal"
	"github.com/talkops-ai/talkops/providers/modal/modaltest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func open(t *testing.T, s *modaltest.Server, change ...func(*sandbox.Spec)) sandbox.Sandbox {
	t.Helper()
	return emulate.Open(t, modal.Provider{}, s, change...)
}

func TestMuchOutputIsWhole(t *testing.T) {
	s := modaltest.New(t)
	sb := open(t, s)
	s.Inject(modaltest.Fault{Op: "TaskExecStdioRead", Cut: 1000, Times: 2})
	s.Inject(modaltest.Fault{Op: "TaskExecStdioRead", Skip: 1, Cut: 1})
	s.Inject(modaltest.Fault{Op: "TaskExecStdioRead", Status: 503, Skip: 1})
	s.Inject(modaltest.Fault{Op: "TaskExecStdioRead", Cut: 5000000})
	var out emulate.Counter
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("head -c 50000000 /dev/zero; sleep 0.2; echo; exit 4"), Stdout: &out, Stderr: io.Discard})
	if exit != 4 || err != nil || out != 50000001 {
		t.Errorf("got %d, %v, %d bytes", exit, err, out)
	}
}

package cmd

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestAFullDiskIsSaidWithWhatToDo(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "/home/me/.talkops/saved/1/content/x", Err: syscall.ENOSPC}
	there := &sandbox.Error{Code: sandbox.CodeNoSpace, Msg: "the list of files did not come whole"}
	if _, lines := explain(&session.UnsavedError{ID: "box-1", Err: there}); !strings.Contains(strings.Join(lines, "\n"), "A disk of the sandbox is full.") {
		t.Errorf("in the sandbox: %q", lines)
	}
	for _, row := range []struct {
		err    error
		status int
	}{
		{&session.UnsavedError{ID: "box-1", Err: &workspace.FullError{Dir: "/home/me/.talkops/saved/1", Err: full}}, exitExport},
		{&exportError{"the patch was not written", full}, exitExport},
		{fmt.Errorf("save: %w", full), exitError},
	} {
		status, lines := explain(row.err)
		if text := strings.Join(lines, "\n"); status != row.status || !strings.Contains(text, "disk of this computer is full") || !strings.Contains(text, "talkops sandbox rescue") {
			t.Errorf("%v: status %d, %q", row.err, status, text)
		}
	}
}

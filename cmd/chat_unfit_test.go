//go:build unix

package cmd

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

// TestAnEditThatDoesNotFitIsNotAskedAbout lets the model change text that is not in the file:
// of one that it may read, of one that it may not, and where there is nobody to ask.
func TestAnEditThatDoesNotFitIsNotAskedAbout(t *testing.T) {
	edit := func(name string) modeltest.Step {
		return modeltest.Step{Calls: []modeltest.Call{{ID: "a", Name: "edit_file", Input: `{"file_path":"` + name + `","old_string":"not in there","new_string":"two"}`}}}
	}
	const told = "old_string does not occur in the file; read it again"
	knows := func(srv *modeltest.Server) int { // of so many calls
		all := srv.Requests()
		return strings.Count(string(all[len(all)-1].Body), told)
	}
	srv := modeltest.New(t)
	p := terminal(t)
	p.write("a.txt", "one\n")
	p.write(".env", "ONE=1\n")
	srv.Script(edit("a.txt"), modeltest.Step{Text: "Then not."}, edit(".env"), modeltest.Step{Text: "Nor that."}, edit("a.txt"), modeltest.Step{Text: "Nobody here."})
	p.start(100, 30, srv, nil)
	p.await(`mode manual`)
	p.say("Change it")
	p.await(`(?s)✗ edit_file \S*/a\.txt no match.*Then not\.`)
	if strings.Contains(p.screen(), "May this run?") || knows(srv) != 1 {
		t.Errorf("the model is not told that it does not fit:\n%s", p.screen())
	}
	p.say("Change the other")
	p.await(`(?s)May this run\?.*changes \S*/\.env: cannot be made as it\s+stands: old_string does not occur in the file`)
	p.keys("n")
	p.await(`Why not\?`)
	p.keys("Enter")
	p.await(`Nor that\.`)
	if knows(srv) != 1 {
		t.Error("the model is told what is not in a file that it may not read")
	}

	cmd := exec.Command(p.bin, "-p", "Change it", "--approval-mode", "manual")
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "TALKOPS_HOME="+p.home, "HOME="+p.home, "OPENAI_API_KEY=sk-story-0123456789abcdef", "OPENAI_BASE_URL="+srv.OpenAI(), "TALKOPS_MODEL=openai:gpt-5.1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 4 || !strings.Contains(string(out), "✗ refused edit_file") || knows(srv) != 0 {
		t.Errorf("without anybody to ask: %v\n%s", err, out)
	}
}

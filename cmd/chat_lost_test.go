//go:build unix

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

// TestChatWhoseMachineVanishes goes on in a new machine, which has what was saved of
// the one that vanished; and, when that vanishes too, without any.
func TestChatWhoseMachineVanishes(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(execute("a", "echo kestrel > bird.txt"), modeltest.Step{Text: "It is written."}, execute("b", "cat bird.txt"))
	cloud := daytonatest.New(t)
	p := inTerminal(t, 100, 30, srv, daytona(cloud), "--sandbox", "daytona", "--smart", "-m", "Write it")
	p.await(`It is written\.`)
	p.awaitSaved("kestrel\n")
	first := cloud.Boxes()[0]
	cloud.Vanish(first)
	p.say("Read it")
	p.await(`(?s)The vendor says that Daytona ` + first + ` is no more.*what was saved: 1 written.*what now\?.*> a new machine.*go on without`)
	if strings.Contains(p.screen(), "try again") {
		t.Error("a machine that is no more is offered")
	}
	srv.Script(execute("c", "cat bird.txt"), modeltest.Step{Text: "It says kestrel."})
	p.keys("Enter")
	p.await(`(?s)a new machine is opened with what was saved.*put into it: 1 change .*› Write it.*This conversation goes on`)
	p.say("Read it now")
	p.await(`(?s)cat bird\.txt.*kestrel.*It says kestrel`)
	boxes := cloud.Boxes()
	if len(boxes) != 1 || boxes[0] == first {
		t.Fatalf("machines: %v", boxes)
	}
	cloud.Vanish(boxes[0])
	srv.Script(execute("d", "true"))
	p.say("Again")
	p.await(`(?s)` + boxes[0] + ` is no more.*> a new machine`)
	p.keys("Down", "Enter")
	p.await(`nothing runs, here or there`)
	srv.Script(modeltest.Step{Text: "The bird was a kestrel."})
	p.say("Which bird?")
	p.await(`The bird was a kestrel`)
	requests := srv.Requests()
	if body := requests[len(requests)-1].Body; strings.Contains(body, `"name":"execute","description"`) || strings.Contains(body, `"name":"write_file","description"`) {
		t.Error("the model still has tools of the machine")
	}
	p.say("/exit")
	p.await(`(?s)the machine is no more; saved of it: 1 written.*A bird\.txt.*\[d\]iscard: `)
	if _, err := os.Stat(filepath.Join(p.dir, "bird.txt")); err == nil {
		t.Error("a command ran on this computer")
	}
	p.say("a")
	p.await(`applied to the project: 1 change`)
	p.await(`ended with \d`)
	if data, err := os.ReadFile(filepath.Join(p.dir, "bird.txt")); err != nil || string(data) != "kestrel\n" {
		t.Errorf("bird.txt: %q, %v", data, err)
	}
	if left := cloud.Boxes(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestANewMachineHasWhatWasDoneSinceItWasApplied loses a machine after some of its work was
// applied, and some of that was changed and removed again.
func TestANewMachineHasWhatWasDoneSinceItWasApplied(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(execute("a", "echo kite > bird.txt; echo oak > tree.txt"), modeltest.Step{Text: "It is written."},
		execute("b", "echo kestrel > bird.txt; rm tree.txt"), modeltest.Step{Text: "It is changed."}, execute("c", "cat bird.txt"))
	cloud := daytonatest.New(t)
	p := inTerminal(t, 100, 40, srv, daytona(cloud), "--sandbox", "daytona", "--smart", "-m", "Write it")
	p.await(`It is written\.`)
	p.say("/apply")
	p.await(`applied to the project: 2 changes`)
	p.say("Change it")
	p.await(`It is changed\.`)
	p.awaitSaved("kestrel\n")
	cloud.Vanish(cloud.Boxes()[0])
	p.say("Read it")
	p.await(`> a new machine`)
	srv.Script(execute("d", "cat bird.txt; ls"), modeltest.Step{Text: "It says kestrel."})
	p.keys("Enter")
	p.await(`(?s)put into it: 2 changes .*This conversation goes on`)
	p.say("Read it now")
	p.await(`(?s)cat bird\.txt; ls exit 0[^\n]*\n  kestrel\n  bird\.txt\n.*It says kestrel`)
	p.say("/exit")
	p.await(`(?s)changed in the sandbox: 1 written, 1 deleted\s+M bird\.txt\s+D tree\.txt`)
	p.say("a")
	p.await(`(?s)applied to the project: 2 changes.*ended with 0`)
	if names, _ := filepath.Glob(filepath.Join(p.dir, "*.txt")); len(names) != 1 {
		t.Errorf("the project holds %q", names)
	}
	if data, err := os.ReadFile(filepath.Join(p.dir, "bird.txt")); err != nil || string(data) != "kestrel\n" {
		t.Errorf("bird.txt: %q, %v", data, err)
	}
}

// TestChatWhoseKeyIsRefused keeps to the machine it has, until the vendor takes the
// key again.
func TestChatWhoseKeyIsRefused(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(execute("a", "echo kestrel > bird.txt"), modeltest.Step{Text: "It is written."}, execute("b", "cat bird.txt"))
	cloud := daytonatest.New(t)
	p := inTerminal(t, 100, 30, srv, daytona(cloud), "--sandbox", "daytona", "--smart", "-m", "Write it")
	p.await(`It is written\.`)
	p.awaitSaved("kestrel\n")
	box := cloud.Boxes()[0]
	for _, op := range []string{"session-exec", "session-create", "get", "execute"} {
		cloud.Inject(daytonatest.Fault{Op: op, Times: -1, Status: 401, Body: `{"statusCode":401,"message":"Unauthorized"}`})
	}
	p.say("Read it")
	p.await(`(?s)The vendor refuses the sign-in; Daytona ` + box + ` may still run.*what now\?.*> try again.*go on without`)
	p.keys("Enter")
	p.await(`(?s)could not attach to a Daytona sandbox.*\[t\]ry again, a \[n\]ew machine.*or \[l\]eave`)
	p.say("t")
	p.await(`(?s)\[l\]eave.*\[l\]eave`)
	cloud.Heal()
	p.say("t")
	p.await(`(?s)` + box + ` is there again.*› Write it.*This conversation goes on`)
	srv.Script(execute("c", "cat bird.txt"), modeltest.Step{Text: "It says kestrel."})
	p.say("Read it now")
	p.await(`(?s)cat bird\.txt.*kestrel.*It says kestrel`)
	if boxes := cloud.Boxes(); len(boxes) != 1 || boxes[0] != box {
		t.Errorf("machines: %v", boxes)
	}
	p.say("/exit")
	p.await(`A bird\.txt`)
	p.say("d")
	p.await(`ended with 0`)
	if left := cloud.Boxes(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestChatWhoseMachineDoesNotAnswer is cut off from the vendor for a while.
func TestChatWhoseMachineDoesNotAnswer(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(execute("a", "echo kestrel > bird.txt"), modeltest.Step{Text: "It is written."}, execute("b", "cat bird.txt"), modeltest.Step{Text: "I cannot reach it."})
	cloud := daytonatest.New(t)
	p := inTerminal(t, 100, 30, srv, daytona(cloud), "--sandbox", "daytona", "--smart", "-m", "Write it")
	p.await(`It is written\.`)
	p.awaitSaved("kestrel\n")
	box := cloud.Boxes()[0]
	cloud.Unplug(true)
	p.say("Read it")
	p.await(`(?s)I cannot reach it.*Daytona ` + box + ` cannot be reached.*what now\?.*> try again.*a new machine.*go on without`)
	cloud.Plug()
	p.keys("Enter")
	p.await(`(?s)` + box + ` is there again.*› Write it.*This conversation goes on`)
	srv.Script(execute("c", "cat bird.txt"), modeltest.Step{Text: "It says kestrel."})
	p.say("Read it now")
	p.await(`(?s)cat bird\.txt.*kestrel.*It says kestrel`)
	p.say("/exit")
	p.await(`A bird\.txt`)
	p.say("d")
	p.await(`ended with 0`)
	if left := cloud.Boxes(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// awaitSaved waits until a file of the sandbox with that content is home.
func (p *pane) awaitSaved(content string) {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		files, _ := filepath.Glob(filepath.Join(p.home, "saved", "*", "content", "*"))
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil && string(data) == content {
				return
			}
		}
	}
	p.t.Fatalf("%q is not saved", content)
}

//go:build unix

package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/providers/vercel/verceltest"
	"github.com/talkops-ai/talkops/runtime/model/modeltest"
	"github.com/talkops-ai/talkops/runtime/workspace"
)

// repository makes the project one of git, with one commit.
func (p *pane) repository() {
	p.t.Helper()
	p.write("README", "a project\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			p.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

// TestChatTakesTheWorkHome uses the commands that act on the machine and on its work,
// and makes a branch of it at the end.
func TestChatTakesTheWorkHome(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(execute("a", "echo work > work.txt"), modeltest.Step{Text: "All done."}, execute("b", "echo more > more.txt"), modeltest.Step{Text: "More done."})
	cloud := verceltest.New(t)
	env := map[string]string{}
	for key, value := range cloud.Settings() {
		s, _ := builtin().Find("vercel").Describe().Setting(key)
		env[s.Env[0]] = value
	}
	p := terminal(t)
	p.repository()
	p.start(110, 40, srv, env, "--sandbox", "vercel", "--smart", "-m", "Do the work")
	p.await(`All done\.`)
	p.await(`VERCEL SANDBOX .* (4h00m|3h59m) left`)
	p.say("/sandbox extend 6h")
	p.await(`It ends by itself at \d\d:\d\d on`)
	p.await(`(6h00m|5h59m) left`)
	p.say("/apply")
	p.await(`applied to the project: 1 change`)
	if data, err := os.ReadFile(filepath.Join(p.dir, "work.txt")); err != nil || string(data) != "work\n" {
		t.Errorf("work.txt: %q, %v", data, err)
	}
	p.say("/export")
	p.await(`/export patch \[FILE\] or /export branch NAME`)
	p.say("/export patch out.patch")
	p.await(`patch: .*out\.patch`)
	if data, err := os.ReadFile(filepath.Join(p.dir, "out.patch")); err != nil || !strings.Contains(string(data), "+work") {
		t.Errorf("out.patch: %q, %v", data, err)
	}
	p.say("/export branch agent/now")
	p.await(`branch: .*agent/now|agent/now`)
	p.say("More")
	p.await(`More done\.`)
	p.say("/apply")
	p.await(`applied to the project: 1 change; 1 there already`)
	p.say("/exit")
	p.await(`(?s)A more\.txt.*All of it is in the project already\.\s+What becomes of it\?`)
	p.say("b main")
	p.await(`a branch of that name exists: main\s+Another name`)
	p.say("agent/now/later")
	p.await(`there cannot be a branch agent/now/later beside agent/now\s+Another name`)
	p.say("agent/end")
	p.await(`ended with 0`)
	if said := strings.Count(p.screen(), "2 written, 0 deleted"); said != 1 {
		t.Errorf("what was changed is said %d times:\n%s", said, p.screen())
	}
	for branch, file := range map[string]string{"agent/now": "work.txt", "agent/end": "more.txt"} {
		cmd := exec.Command("git", "show", branch+":"+file)
		cmd.Dir = p.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s in %s: %v\n%s", file, branch, err, out)
		}
	}
	if left := cloud.Boxes(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestChatLeavesAfterApplying holds that work which is in the project already is not said
// to be missing there, whatever is answered.
func TestChatLeavesAfterApplying(t *testing.T) {
	for answer, said := range map[string]string{"": `patch: .*changes\.patch`, "d": `What is in the project stays there\.`} {
		t.Run("answer "+answer, func(t *testing.T) {
			t.Parallel()
			srv := modeltest.New(t)
			srv.Script(execute("a", "echo work > work.txt"), modeltest.Step{Text: "All done."})
			p := inTerminal(t, 100, 30, srv, daytona(daytonatest.New(t)), "--sandbox", "daytona", "--smart", "-m", "Do the work")
			p.await(`All done\.`)
			p.say("/apply")
			p.await(`applied to the project: 1 change`)
			p.say("/exit")
			p.await(`All of it is in the project already\.\s+What becomes of it\?`)
			p.say(answer)
			p.await(`(?s)` + said + `.*ended with 0`)
			if wrong := regexp.MustCompile(`to make the changes here|Nothing is taken over`).FindString(p.screen()); wrong != "" {
				t.Errorf("%q is said of what is there:\n%s", wrong, p.screen())
			}
			if data, err := os.ReadFile(filepath.Join(p.dir, "work.txt")); err != nil || string(data) != "work\n" {
				t.Errorf("work.txt: %q, %v", data, err)
			}
		})
	}
}

// TestChatDiscards takes nothing over, and says how it can be had still. Without
// colours there are none.
func TestChatDiscards(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(execute("a", "echo work > work.txt"), modeltest.Step{Text: "All **done**."})
	cloud := daytonatest.New(t)
	p := inTerminal(t, 100, 30, srv, daytona(cloud), "--sandbox", "daytona", "--smart", "--no-color", "-m", "Do the work")
	p.await(`DAYTONA box-\d+`)
	p.await(`All \**done`)
	if seen := regexp.MustCompile(`\x1b\[[0-9;]*[34][0-7][0-9;]*m`).FindString(p.tmux("capture-pane", "-p", "-e", "-S", "-500")); seen != "" {
		t.Errorf("there is a colour: %q", seen)
	}
	p.say("/exit")
	p.await(`What becomes of it\?`)
	p.say("d")
	p.await(`(?s)Nothing is taken over\. .*talkops sandbox apply [0-9a-f]+.*ended with 0`)
	if _, err := os.Stat(filepath.Join(p.dir, "work.txt")); err == nil {
		t.Error("it is in the project")
	}
	if files, _ := filepath.Glob(filepath.Join(p.dir, "*.patch")); len(files) > 0 {
		t.Errorf("there is a patch: %v", files)
	}
	if left := cloud.Boxes(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestWhatIsSetAsideIsToldOnce leaves with a file that acts on this computer, in windows
// of two widths: it is marked where the user is asked, is named afterwards in the same
// words without its directories, and is not counted as applied; nor are its directories
// made.
func TestWhatIsSetAsideIsToldOnce(t *testing.T) {
	t.Parallel()
	for _, width := range []int{200, 60} {
		t.Run(strconv.Itoa(width), func(t *testing.T) {
			srv := modeltest.New(t)
			srv.Script(execute("a", "mkdir -p .github/workflows docs; echo 'on: push' > .github/workflows/ci.yaml; echo run > docs/runbook.md"), modeltest.Step{Text: "All done."})
			cloud := daytonatest.New(t)
			p := inTerminal(t, width, 40, srv, daytona(cloud), "--sandbox", "daytona", "--smart", "-m", "Do the work")
			p.await(`All done\.`)
			p.say("/exit")
			p.await(`changed in the sandbox: 2 written, 0 deleted\s+A \.github/workflows/ci\.yaml: set aside, since it acts on\s+this computer\s+A docs/runbook\.md\s+What becomes of it\?`)
			p.say("apply")
			p.await(`(?s)is ended; its work is\s+saved\s+"\.github/workflows/ci\.yaml" is set aside, since it acts on\s+this computer; it is kept:\s+talkops sandbox diff --all [0-9a-f]+\s+applied to the project: 1 change\s`)
			p.await(`ended with 0`)
			if _, err := os.Stat(filepath.Join(p.dir, "docs", "runbook.md")); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(filepath.Join(p.dir, ".github")); err == nil {
				t.Error("there is a directory for what was set aside")
			}
		})
	}
}

// TestWhatIsNotNamedIsCountedAsSetAside holds that the end of a long list still says that
// some of it is set aside.
func TestWhatIsNotNamedIsCountedAsSetAside(t *testing.T) {
	kept := map[string]string{".envrc": ": set aside", "z/.env": ": set aside"}
	for want, names := range map[string][]string{"": {"a", "b"}, ", 1 of them set aside": {"a", ".envrc"}, ", 2 of them set aside": {".envrc", "m", "z/.env"}} {
		var changes []workspace.Change
		for _, name := range names {
			changes = append(changes, workspace.Change{Name: name})
		}
		if got := asideOf(changes, kept); got != want {
			t.Errorf("of %q: %q, want %q", names, got, want)
		}
	}
}

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
	srv.Script(execute("a", "echo work > work.txt"), modeltest.Step{Text: "All done."}, execute("b", "echo more > more.txt"), modeltest.Step{Text: "More done."}, execute("c", "rm work.txt; echo last > last.txt"), modeltest.Step{Text: "Last done."})
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
	p.say("/apply now")
	p.await(`/apply takes nothing behind it`)
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
	p.say("And last")
	p.await(`Last done\.`)
	p.say("/exit")
	p.await(`changed in the sandbox, and not applied yet: 1 written, 1 deleted\s+A last\.txt\s+D work\.txt\s+What becomes of it\?`)
	p.say("b main")
	p.await(`a branch of that name exists: main\s+Another name`)
	p.say("agent/now/later")
	p.await(`there cannot be a branch agent/now/later beside agent/now\s+Another name`)
	p.say("agent/end")
	p.await(`branch agent/end holds the changes \([0-9a-f]+\), also those that were\s+applied before`)
	p.await(`ended with 0`)
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

// TestDiffShowsWhatIsNotAppliedYet looks before anything is applied, after all was, and after
// one of the files was removed again and another made.
func TestDiffShowsWhatIsNotAppliedYet(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(execute("a", "echo one > a.txt; echo two > b.txt"), modeltest.Step{Text: "All done."}, execute("b", "rm a.txt; echo three > c.txt"), modeltest.Step{Text: "More done."})
	p := inTerminal(t, 100, 60, srv, daytona(daytonatest.New(t)), "--sandbox", "daytona", "--smart", "-m", "Do the work")
	p.await(`All done\.`)
	p.say("/diff")
	p.await(`(?s)\+one.*\+two`)
	if seen := p.screen(); strings.Contains(seen, "applied") {
		t.Errorf("nothing was applied:\n%s", seen)
	}
	p.say("/apply")
	p.await(`applied to the project: 2 changes`)
	p.say("/diff")
	p.await(`All that was changed in the sandbox is applied to the project\.`)
	p.say("/apply")
	p.await(`All that was changed is in the project already\.`)
	p.say("/export patch all.patch")
	p.await(`patch: \S*all\.patch\s+it holds also what was applied before, for another copy of the project`)
	if seen := p.screen(); strings.Contains(seen, "to make the changes here") {
		t.Errorf("they are made:\n%s", seen)
	}
	p.say("More")
	p.await(`More done\.`)
	p.say("/diff")
	p.await(`(?s)not applied yet:\s+diff --git a/a\.txt.*-one.*\+three`)
	_, seen, _ := strings.Cut(p.screen(), "not applied yet:")
	if !strings.Contains(seen, "deleted file") || strings.Contains(seen, "b.txt") {
		t.Errorf("not what is to be done yet:\n%s", seen)
	}
	p.say("/export patch more.patch")
	p.await(`more\.patch\s+it holds also what was applied before, for another copy of the project\s+to make the changes here: /apply`)
}

// TestChatAsksOnlyForWhatIsNotAppliedYet leaves after all was applied, after more was done
// then, and after what was applied was removed again.
func TestChatAsksOnlyForWhatIsNotAppliedYet(t *testing.T) {
	for _, row := range []struct{ name, then, asked, answer, said, project string }{
		{"nothing more", "true", "", "", `All that was changed in the sandbox is applied to the project\.`, "a.txt: a"},
		{"more, as a patch", "echo b > b.txt", `and not applied yet: 1 written, 0 deleted\s+A b\.txt\s+What becomes`, "", `patch:\s+\S*changes\.patch`, "a.txt: a"},
		{"more of the same, applied", "echo aa > a.txt", `and not applied yet: 1 written, 0 deleted\s+M a\.txt\s+What becomes`, "a", `applied to the project: 1 change\s`, "a.txt: aa"},
		{"more, discarded", "echo b > b.txt", `A b\.txt\s+What becomes`, "d", `What was applied stays in the project; the rest is not taken over\.`, "a.txt: a"},
		{"less, applied", "rm a.txt", `and not applied yet: 0 written, 1 deleted\s+D a\.txt\s+What becomes`, "a", `applied to the project: 1 change\s`, ""},
		{"less, later", "rm a.txt", `D a\.txt\s+What becomes`, "", `patch:\s+\S*changes\.patch`, "a.txt: a"},
		{"what is set aside", "echo X=1 > .envrc", "", "", `is applied to the project, but for what is set aside\.(?s).*"\.envrc" is set aside`, "a.txt: a"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			srv := modeltest.New(t)
			srv.Script(execute("a", "echo a > a.txt"), modeltest.Step{Text: "All done."}, execute("b", row.then), modeltest.Step{Text: "More done."})
			p := inTerminal(t, 100, 40, srv, daytona(daytonatest.New(t)), "--sandbox", "daytona", "--smart", "-m", "Do the work")
			p.await(`All done\.`)
			p.say("/apply")
			p.await(`applied to the project: 1 change`)
			p.say("More")
			p.await(`More done\.`)
			p.say("/exit")
			if row.asked != "" {
				p.await(row.asked)
				p.say(row.answer)
			}
			p.await(`(?s)` + row.said + `.*ended with 0`)
			if asked := strings.Contains(p.screen(), "What becomes of it?"); asked != (row.asked != "") {
				t.Errorf("it is asked (%v):\n%s", asked, p.screen())
			}
			project := func() string {
				all := ""
				for _, name := range []string{"a.txt", "b.txt"} {
					if data, err := os.ReadFile(filepath.Join(p.dir, name)); err == nil {
						all += name + ": " + strings.TrimSpace(string(data))
					}
				}
				return all
			}
			if got := project(); got != row.project {
				t.Errorf("the project holds %q, want %q", got, row.project)
			}
			// What was not taken over is no more than a patch, or another process, away.
			want := map[string]string{"nothing more": "a.txt: a", "more, as a patch": "a.txt: ab.txt: b", "more of the same, applied": "a.txt: aa", "more, discarded": "a.txt: ab.txt: b", "what is set aside": "a.txt: a"}[row.name]
			if patches, _ := filepath.Glob(filepath.Join(p.home, "saved", "*", "changes.patch")); len(patches) == 1 {
				if out, err := exec.Command("git", "-C", p.dir, "apply", patches[0]).CombinedOutput(); err != nil {
					t.Errorf("git apply: %v\n%s", err, out)
				}
			} else if strings.Contains(row.said, "patch") {
				t.Errorf("patches: %v", patches)
			} else if row.answer == "d" {
				apply := exec.Command(p.bin, "sandbox", "apply")
				apply.Dir, apply.Env = p.dir, append(os.Environ(), "TALKOPS_HOME="+p.home)
				if out, err := apply.CombinedOutput(); err != nil {
					t.Errorf("sandbox apply: %v\n%s", err, out)
				}
			}
			if got := project(); got != want {
				t.Errorf("with all of it the project holds %q, want %q", got, want)
			}
		})
	}
}

// TestChatLeavesWhatIsThere holds that work which is in the project already, as the user
// has taken it over, is not said to be missing there, whatever is answered.
func TestChatLeavesWhatIsThere(t *testing.T) {
	for answer, said := range map[string]string{"": `patch: .*changes\.patch`, "d": `What is in the project stays there\.`} {
		t.Run("answer "+answer, func(t *testing.T) {
			t.Parallel()
			srv := modeltest.New(t)
			srv.Script(execute("a", "echo work > work.txt"), modeltest.Step{Text: "All done."})
			p := inTerminal(t, 100, 30, srv, daytona(daytonatest.New(t)), "--sandbox", "daytona", "--smart", "-m", "Do the work")
			p.await(`All done\.`)
			p.write("work.txt", "work\n")
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

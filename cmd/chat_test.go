//go:build unix

package cmd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/runtime/model/modeltest"
	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
)

// A pane is talkops in a real terminal: tmux.
type pane struct {
	t      *testing.T
	socket string
	dir    string // the project
	home   string // TALKOPS_HOME
	bin    string
}

// inTerminal starts talkops with those arguments in a terminal of that size.
func inTerminal(t *testing.T, width, height int, srv *modeltest.Server, env map[string]string, args ...string) *pane {
	t.Helper()
	p := terminal(t)
	p.start(width, height, srv, env, args...)
	return p
}

// terminal is a terminal in which nothing runs yet.
func terminal(t *testing.T) *pane {
	t.Helper()
	if wasmtest.Raced {
		t.Skip("the window is a program of its own, built without the race detector")
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux here")
	}
	return &pane{t: t, socket: filepath.Join(t.TempDir(), "s"), dir: t.TempDir(), home: t.TempDir()}
}

// write writes a file of the project.
func (p *pane) write(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		p.t.Fatal(err)
	}
}

// built is talkops as its users have it, without the race detector.
var built = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(buildDir, "talkops")
	if out, err := exec.Command("go", "build", "-o", bin, "../cmd/talkops").CombinedOutput(); err != nil {
		return bin, fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
})

// start starts talkops.
func (p *pane) start(width, height int, srv *modeltest.Server, env map[string]string, args ...string) {
	p.t.Helper()
	bin, err := built()
	if err != nil {
		p.t.Fatal(err)
	}
	p.run(bin, width, height, srv, env, args...)
}

// again starts talkops anew with other arguments, in the same project and home.
func (p *pane) again(srv *modeltest.Server, env map[string]string, args ...string) *pane {
	p.t.Helper()
	q := &pane{t: p.t, socket: filepath.Join(p.t.TempDir(), "s"), dir: p.dir, home: p.home}
	q.run(p.bin, 100, 30, srv, env, args...)
	return q
}

func (p *pane) run(bin string, width, height int, srv *modeltest.Server, env map[string]string, args ...string) {
	t := p.t
	t.Helper()
	p.bin = bin
	tmux := "tmux"
	command := []string{tmux, "-S", p.socket, "-f", os.DevNull, "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "-c", p.dir}
	all := map[string]string{
		"TALKOPS_HOME": p.home, "OPENAI_API_KEY": "sk-story-0123456789abcdef", "OPENAI_BASE_URL": srv.OpenAI(), "TALKOPS_MODEL": "openai:gpt-5.1",
		"PATH": os.Getenv("PATH"), "HOME": p.home,
	}
	for name, value := range env {
		all[name] = value
	}
	for name, value := range all {
		command = append(command, "-e", name+"="+value)
	}
	line := bin
	if term := env["TERM"]; term != "" { // tmux sets its own
		line = "env TERM=" + term + " " + bin
	}
	for _, a := range args {
		line += " '" + a + "'"
	}
	command = append(command, line+"; echo ended with $?; sleep 60")
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v\n%s", err, out)
	}
	t.Cleanup(func() { p.tmux("kill-server") })
}

func (p *pane) tmux(args ...string) string {
	out, _ := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	return string(out)
}

// screen is what stands in the terminal, with what has scrolled away.
func (p *pane) screen() string { return p.tmux("capture-pane", "-p", "-J", "-S", "-500") }

func (p *pane) keys(keys ...string) { p.tmux(append([]string{"send-keys"}, keys...)...) }

func (p *pane) say(text string) {
	p.tmux("send-keys", "-l", text)
	p.keys("Enter")
}

// await waits until the screen shows what matches.
func (p *pane) await(pattern string) {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if re.MatchString(p.screen()) {
			return
		}
	}
	p.t.Fatalf("never seen: %s\n%s", pattern, p.screen())
}

func execute(id, command string) modeltest.Step {
	return modeltest.Step{Calls: []modeltest.Call{{ID: id, Name: "execute", Input: fmt.Sprintf(`{"command":%q}`, command)}}}
}

func TestChatOnThisComputer(t *testing.T) {
	for _, width := range []int{60, 80, 200} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			srv := modeltest.New(t)
			srv.Script(
				execute("a", "echo made > made.txt"), modeltest.Step{Text: "I made it."},
				execute("b", "terraform apply"), modeltest.Step{Text: "Then not."},
				execute("c", "touch wrong.txt"), modeltest.Step{Text: "As you changed it."},
				execute("d", "sleep 50; touch late.txt"), modeltest.Step{Text: "Going on."},
			)
			p := inTerminal(t, width, 24, srv, nil)
			p.await(`THIS COMPUTER .* mode manual`)
			p.say("Make it")
			p.await(`May this run\?.*on THIS COMPUTER`)
			if _, err := os.Stat(filepath.Join(p.dir, "made.txt")); err == nil {
				t.Error("it ran before it was allowed")
			}
			p.keys("y")
			p.await(`I made it\.`)
			if data, err := os.ReadFile(filepath.Join(p.dir, "made.txt")); err != nil || string(data) != "made\n" {
				t.Errorf("made.txt: %q, %v", data, err)
			}
			p.say("Apply it")
			p.await(`acts on shared infrastructure`)
			p.keys("n")
			p.await(`Why not\?`)
			p.say("not today")
			p.await(`Then not\.`)
			if body := srv.Requests()[3].Body; !strings.Contains(fmt.Sprint(body), "not today") {
				t.Errorf("the model is not told why: %s", body)
			}
			p.say("Once more")
			p.await(`touch wrong\.txt`)
			p.keys("e")
			p.await(`Change it:`)
			p.keys("C-u")
			p.say("touch right.txt")
			p.await(`As you changed it\.`)
			if _, err := os.Stat(filepath.Join(p.dir, "right.txt")); err != nil {
				t.Error("the changed command did not run")
			}
			if _, err := os.Stat(filepath.Join(p.dir, "wrong.txt")); err == nil {
				t.Error("the command ran as it was asked for")
			}
			p.keys("BTab")
			p.await(`mode smart`)
			p.say("Sleep")
			p.await(`sleep 50.* \d+\.\ds`)
			p.keys("Escape")
			p.await(`Interrupted\.`)
			p.say("/config set sandbox.provider modal")
			p.await(`Saved\. The next session`)
			if data, _ := os.ReadFile(filepath.Join(p.home, "config.toml")); !strings.Contains(string(data), "modal") {
				t.Errorf("the configuration is %q", data)
			}
			p.say("/config set sandbox.provider nope")
			p.await(`(?m)^Unknown sandbox "nope"`)
			if seen := p.screen(); strings.Contains(seen, "(exit") {
				t.Errorf("the window names the exit of a program:\n%s", seen)
			}
			p.say("!echo from me")
			p.await(`(?m)^  from me`)
			p.keys("C-c")
			p.await(`Ctrl\+C once more leaves`)
			p.keys("C-c")
			p.await(`ended with 0`)
			if _, err := os.Stat(filepath.Join(p.dir, "late.txt")); err == nil {
				t.Error("the interrupted command went on")
			}
		})
	}
}

func TestChatInASandbox(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(execute("a", "echo work > work.txt; mkdir -p one/two/three; cat hello.txt"), modeltest.Step{Text: "All done."})
	cloud := daytonatest.New(t)
	p := inTerminal(t, 100, 30, srv, map[string]string{"DAYTONA_API_KEY": cloud.Key(), "DAYTONA_API_URL": cloud.URL()}, "--sandbox", "daytona", "--smart", "-m", "Do the work")
	p.await(`is ready after`)
	p.await(`All done\.`)
	p.await(`DAYTONA box-\d+ .*mode smart`)
	p.say("/config get sandbox.provider")
	p.await(`(?m)^local\s+this session was started with sandbox\.provider = daytona \(--sandbox\)$`)
	p.say("/config get sandbox.image")
	p.await(`(?m)^› /config get sandbox\.image\s+\(none\)\s+^─`)
	p.say("/sandbox")
	p.await(`this session's own and is ended with it`)
	p.say("/sandbox keep")
	p.await(`left running at the end`)
	p.say("/sandbox")
	p.await(`this session's own and is left running at its end`)
	p.say("/sandbox keep off")
	p.await(`is ended with this session`)
	p.say("/sandbox extend soon")
	p.await(`needs a time from now`)
	p.say("/sandbox extend 2h")
	p.await(`Daytona cannot make a machine live longer; this one ends by itself at \d\d:\d\d on`)
	p.say("/diff")
	p.await(`\+work`)
	p.say("/exit")
	p.await(`(?s)changed in the sandbox: 1 written, 0 deleted, 1 directory\s+A one/two/three/\s+A work\.txt\s+What becomes of it\?`)
	if len(cloud.Boxes()) != 1 {
		t.Error("the machine is gone before it is said what becomes of the work")
	}
	p.say("maybe")
	p.await(`maybe is none of these\.`)
	p.say("apply")
	p.await(`applied to the project: 2 changes`)
	p.await(`box-\d+ is ended`)
	p.await(`ended with 0`)
	if data, err := os.ReadFile(filepath.Join(p.dir, "work.txt")); err != nil || string(data) != "work\n" {
		t.Errorf("work.txt: %q, %v", data, err)
	}
	if left := cloud.Boxes(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if !strings.Contains(p.screen(), "[daytona]") {
		t.Error("the call does not say where it ran")
	}
}

func TestChatNeedsATerminal(t *testing.T) {
	t.Parallel()
	p := inTerminal(t, 200, 24, modeltest.New(t), map[string]string{"TERM": "dumb"}, "-m", "hi")
	p.await(`--message opens the chat window, which needs a terminal; without one, use -p`)
	p.await(`ended with 2`)
	p = inTerminal(t, 200, 24, modeltest.New(t), map[string]string{"TERM": "dumb"})
	p.await(`this terminal \(TERM=dumb\) cannot show the chat window: give a prompt, as in: talkops -p .* set ui.plain`)
	p.await(`ended with 2`)
}

func TestAChatOfLinesNeedsNoMoreThanADumbTerminal(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(modeltest.Step{Text: "Hello, this is more than one line can hold in a terminal that is as narrow as this."})
	p := inTerminal(t, 60, 24, srv, map[string]string{"TERM": "dumb", "TALKOPS_PLAIN": "true"}, "-m", "hi")
	p.await(`(?s)Commands run on this computer\. .*Hello, this is more than one line can hold in a terminal\nthat is as narrow as this.*Ready\.`)
	p.say("/resume")
	p.await(`there is no other conversation of this project`)
	p.say("/exit")
	p.await(`ended with 0`)
}

// TestLinesOutsideTheWindow runs without one in a narrow terminal: what is told is broken
// between words, and a command stays whole.
func TestLinesOutsideTheWindow(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(execute("a", "echo work > work.txt"), modeltest.Step{Text: "The answer is longer than a line of this terminal, and is read by a person."})
	cloud := daytonatest.New(t)
	p := inTerminal(t, 60, 24, srv, daytona(cloud), "--sandbox", "daytona", "-p", "Do the work")
	p.await(`ended with 0`)
	for _, want := range []string{
		`this conversation is kept; to go on with it:\n  talkops -r \d{8}-\d{6}-[0-9a-f]{8}\n`,
		`The answer is longer than a line of this terminal, and is\nread by a person\.\n`,
		`changed in the sandbox \(1 written, 0 deleted\), saved in\n  /`,
	} {
		if !regexp.MustCompile(want).MatchString(p.screen()) {
			t.Errorf("not seen: %s\n%s", want, p.screen())
		}
	}
}

//go:build unix

package e2b

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/posix"
)

// shells are those a sandbox may have.
func shells(t *testing.T) map[string][]string {
	found := map[string][]string{"sh": {"sh"}}
	for name, args := range map[string][]string{"bash": {"bash", "--posix"}, "busybox": {"busybox", "sh"}, "dash": {"dash"}} {
		if _, err := exec.LookPath(args[0]); err == nil {
			found[name] = args
		}
	}
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	return found
}

// heard is what a run of the script sends, as a job takes it.
type heard struct {
	job
	stdout, stderr bytes.Buffer
}

func hear(t *testing.T, shell []string, dir, limit, script string, have ...string) (*heard, error) {
	t.Helper()
	h := &heard{}
	h.out, h.err = &stream{w: &h.stdout}, &stream{w: &h.stderr}
	script = `echo $$ >` + filepath.Join(dir, "it.p") + "\n" + script
	cmd := exec.Command(shell[0], append(shell[1:len(shell):len(shell)], append([]string{
		"-c", runScript, posix.KillScript, filepath.Join(dir, "it"), limit, "/dev/null", "oe"}, append(have, "setsid", "sh", "-c", script)...)...)...)
	cmd.Dir = dir
	sent, err := cmd.Output()
	if err != nil {
		t.Errorf("the script ended with %v", err)
	}
	// However it is cut, it means the same.
	for len(sent) > 0 && err == nil {
		n := min(len(sent), 3)
		_, err = h.Write(sent[:n])
		sent = sent[n:]
	}
	return h, err
}

func TestRunScript(t *testing.T) {
	for name, shell := range shells(t) {
		for _, row := range []struct {
			name, limit, script string
			stdout, stderr      string
			status              string
		}{
			{"output and status", "0", `echo "$0"; echo e >&2; exit 5`, "sh\n", "e\n", "5"},
			{"no output", "60", "", "", "", "0"},
			{"bytes", "0", `printf 'a\000\377\no 5\nb'`, "a\x00\xff\no 5\nb", "", "0"},
			{"a signal", "0", "kill -9 $$", "", "", "137"},
			{"input is empty", "0", "cat; echo end", "end\n", "", "0"},
			{"an interrupt is not ignored", "0", "kill -INT $$; sleep 1; echo on", "", "", "130"},
			{"children in the background are not waited for", "0", "sleep 60 & echo on", "on\n", "", "0"},
			{"the limit", "1", "exec 2>/dev/null; trap 'echo ended; exit 6' TERM; while :; do sleep 0.1; done", "ended\n", "", "6"},
		} {
			t.Run(name+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				h, err := hear(t, shell, dir, row.limit, row.script, "0", "0")
				defer func() {
					if pid, err := os.ReadFile(filepath.Join(dir, "it.p")); err == nil {
						exec.Command("kill", "-9", "--", "-"+strings.TrimSpace(string(pid))).Run()
					}
				}()
				if err != nil || len(h.report) < 4 || h.report[0] != row.status || h.stdout.String() != row.stdout || h.stderr.String() != row.stderr {
					t.Errorf("got %q and %q, report %q, %v; want %q, %q, %s", h.stdout.String(), h.stderr.String(), h.report, err, row.stdout, row.stderr, row.status)
				}
				// A second copy tells the rest, and runs nothing.
				again, err := hear(t, shell, dir, row.limit, "touch "+filepath.Join(dir, "twice"), "1", "0")
				if err != nil || strings.Join(again.report, " ") != strings.Join(h.report, " ") {
					t.Errorf("a second copy reports %q, %v", again.report, err)
				}
				if want := row.stdout[min(1, len(row.stdout)):]; again.stdout.String() != want || again.stderr.String() != row.stderr {
					t.Errorf("a second copy tells %q and %q", again.stdout.String(), again.stderr.String())
				}
				if _, err := os.Stat(filepath.Join(dir, "twice")); err == nil {
					t.Error("a second copy ran its command")
				}
			})
		}
	}
}

// A command whose shell has gone before its status was written is lost, not well;
// one that was stopped before it started never starts.
func TestRunScriptKnowsWhatIsLost(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "it.l"), 0o700); err != nil {
				t.Fatal(err)
			}
			gone := exec.Command("true")
			if err := gone.Run(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "it.l", "w"), []byte(strconv.Itoa(gone.ProcessState.Pid())+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := hear(t, shell, dir, "0", "echo no", "0", "0"); !errors.Is(err, errLost) {
				t.Errorf("got %v, want that it is lost", err)
			}
			dir = t.TempDir()
			stop := exec.Command(shell[0], append(shell[1:len(shell):len(shell)], "-c", stopScript, "sh", filepath.Join(dir, "it"))...)
			if out, err := stop.CombinedOutput(); err != nil {
				t.Errorf("stop: %v, %s", err, out)
			}
			if h, err := hear(t, shell, dir, "0", "echo no", "0", "0"); !errors.Is(err, errLost) || h.stdout.Len() > 0 {
				t.Errorf("after it was stopped: got %q, %v", h.stdout.String(), err)
			}
		})
	}
}

// What is no record of the script's is an error, never output.
func TestRecordsThatAreNone(t *testing.T) {
	for _, text := range []string{"x 1\n", "o\n", "o -1\n", "o x\n", "= 0\n", "\n", "#\n", strings.Repeat("o", 300), "= 0 0 0 0\no 1\nx"} {
		var out bytes.Buffer
		j := &job{out: &stream{w: &out}, err: &stream{}}
		if _, err := j.Write([]byte(text)); err == nil || out.Len() > 0 {
			t.Errorf("%.20q: got %q, %v", text, out.String(), err)
		}
	}
}

//go:build unix

package vercel

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// shells are those an image may have.
func shells() map[string][]string {
	found := map[string][]string{"sh": {"sh"}}
	for name, args := range map[string][]string{"bash": {"bash", "--posix"}, "busybox": {"busybox", "sh"}, "dash": {"dash"}} {
		if _, err := exec.LookPath(args[0]); err == nil {
			found[name] = args
		}
	}
	return found
}

func TestRunScript(t *testing.T) {
	setsid := []string{"setsid"}
	if _, err := exec.LookPath("setsid"); err != nil {
		setsid = nil
	}
	for name, shell := range shells() {
		for _, row := range []struct {
			name, limit, script string
			out, errOut         string // with the size that ends each
			exit                int
			tree                bool // there is no setsid
		}{
			{"output and status", "0", `echo "$0"; echo e >&2; exit 5`, "sh\n.3=5", "e\n.2", 5, false},
			{"no output", "60", "", ".0=0", ".0", 0, false},
			{"a signal", "0", "kill -9 $$", ".0=137", ".0", 137, false},
			{"input is the joined pieces", "0", "cat", "onetwothree.11=0", ".0", 0, false},
			{"children in the background are not waited for", "0", "sleep 60 & echo on", "on\n.3=0", ".0", 0, false},
			{"the limit", "1", "exec 2>/dev/null; trap 'echo ended; exit 6' TERM; while :; do sleep 0.1; done", "ended\n.6=6", ".0", 6, false},
			{"the limit, without setsid", "1", "sh -c 'trap \"\" TERM; sleep 60 & echo $! >child; wait; sleep 60'", ".0=143", ".0", 143, true},
		} {
			t.Run(name+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				if setsid == nil && !row.tree {
					t.Skip("there is no setsid")
				}
				dir := t.TempDir()
				for file, text := range map[string]string{"it.i": "one", "it.i.000001": "two", "it.i.000002": "three"} {
					if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				script := `echo $$ >` + filepath.Join(dir, "it.p") + "\n" + row.script
				kind, program := "group", append(setsid[:len(setsid):len(setsid)], "sh", "-c", script)
				if row.tree {
					kind, program = "tree", []string{"sh", "-c", script}
				}
				args := append(shell[1:len(shell):len(shell)], "-c", runScript, "sh", filepath.Join(dir, "it"), row.limit, filepath.Join(dir, "it.i"), "oe", kind)
				args = append(args, program...)
				var out, errOut bytes.Buffer
				cmd := exec.Command(shell[0], args...)
				cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errOut
				begin := time.Now()
				cmd.Run()
				if got := cmd.ProcessState.ExitCode(); got != row.exit {
					t.Errorf("exit %d, want %d", got, row.exit)
				}
				if got := decoded(t, out.String()); got != row.out {
					t.Errorf("stdout %q, want %q", got, row.out)
				}
				if got := decoded(t, errOut.String()); got != row.errOut {
					t.Errorf("stderr %q, want %q", got, row.errOut)
				}
				if took := time.Since(begin); took > time.Minute {
					t.Errorf("took %v", took)
				}
				if pid, err := os.ReadFile(filepath.Join(dir, "child")); err == nil {
					stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
					if err == nil && !strings.Contains(string(stat), ") Z ") {
						t.Error("a grandchild still runs")
					}
				} else if row.tree {
					t.Error("there was no grandchild")
				}
				again, err := exec.Command(shell[0], args...).Output()
				if string(again) != "!\n" || err != nil {
					t.Errorf("a second copy: %q, %v", again, err)
				}
				if pid, err := os.ReadFile(filepath.Join(dir, "it.p")); err == nil && !row.tree {
					exec.Command("kill", "-9", "--", "-"+strings.TrimSpace(string(pid))).Run()
				}
			})
		}
	}
}

// decoded is what the stream says, without its line ends.
func decoded(t *testing.T, stream string) string {
	var b strings.Builder
	for line := range strings.Lines(stream) {
		line = strings.TrimSpace(line)
		if line == "" || strings.Contains(".=!", line[:1]) {
			b.WriteString(line)
			continue
		}
		data, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			t.Errorf("the line %q: %v", line, err)
		}
		b.Write(data)
	}
	return b.String()
}

func TestScriptThatPrintsWithoutEnd(t *testing.T) {
	var o output
	piece, _ := json.Marshal(strings.Repeat("x", 1<<20))
	for range 100 {
		if err := o.add(logLine{Stream: "stdout", Data: piece}); err != nil {
			if sandbox.CodeOf(err) != sandbox.CodeTooLarge {
				t.Errorf("got %v, want that it is too large", err)
			}
			return
		}
	}
	t.Errorf("%d bytes are kept", o.out.Len())
}

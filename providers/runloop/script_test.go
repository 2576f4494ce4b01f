//go:build unix

package runloop

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/spool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// shells are those a devbox may have.
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

func TestRunScript(t *testing.T) {
	for name, shell := range shells(t) {
		for _, row := range []struct {
			name, limit, script string
			out, errOut         string // with the size that ends each
			exit                int
		}{
			{"output and status", "0", `echo "$0"; echo e >&2; exit 5`, "sh\n.3=5", "e\n.2", 5},
			{"no output", "60", "", ".0=0", ".0", 0},
			{"a signal", "0", "kill -9 $$", ".0=137", ".0", 137},
			{"input is empty", "0", "cat; echo end", "end\n.4=0", ".0", 0},
			{"an interrupt is not ignored", "0", "kill -INT $$; sleep 1; echo on", ".0=130", ".0", 130},
			{"children in the background are not waited for", "0", "sleep 60 & echo $$ >pid", ".0=0", ".0", 0},
			{"the limit", "1", "exec 2>/dev/null; trap 'echo ended; exit 6' TERM; while :; do sleep 0.1; done", "ended\n.6=6", ".0", 6},
		} {
			t.Run(name+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				script := `echo $$ >` + filepath.Join(dir, "it.p") + "\n" + row.script
				args := append(shell[1:len(shell):len(shell)], "-c", runScript, "sh", filepath.Join(dir, "it"), row.limit, "/dev/null", "oe", "", "setsid", "sh", "-c", script)
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
				again, err := exec.Command(shell[0], args...).Output()
				if string(again) != "!\n" || err != nil {
					t.Errorf("a second copy: %q, %v", again, err)
				}
				if pid, err := os.ReadFile(filepath.Join(dir, "it.p")); err == nil {
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
		if strings.Contains(".=!", line[:1]) {
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

// A piece of a stream may overlap what was read, or leave something out.
func TestStreamOffsets(t *testing.T) {
	text := base64.StdEncoding.EncodeToString([]byte("hello")) + "\n"
	n := int64(len(text))
	at := func(offset int64) *int64 { return &offset }
	type piece struct {
		text   string
		offset *int64
	}
	for _, row := range []struct {
		name   string
		pieces []piece
		out    string
		broken bool
	}{
		{"ends", []piece{{text, at(n)}, {text, at(2 * n)}}, "hellohello", false},
		{"begins", []piece{{text, at(0)}, {text, at(n)}}, "hellohello", false},
		{"none", []piece{{text, nil}, {text, nil}}, "hellohello", false},
		{"nonsense", []piece{{text, at(7)}, {text, at(7)}}, "hellohello", false},
		{"ends, the same again", []piece{{text, at(n)}, {text, at(n)}, {text, at(2 * n)}}, "hellohello", false},
		{"begins, the same again", []piece{{text, at(0)}, {text, at(0)}, {text, at(n)}}, "hellohello", false},
		{"ends, an overlap", []piece{{text, at(n)}, {text + text, at(2 * n)}}, "hellohello", false},
		{"pieces of lines", []piece{{text[:3], at(3)}, {text[1:5], at(5)}, {text[5:], at(n)}}, "hello", false},
		{"ends, a gap", []piece{{text, at(n)}, {text, at(3 * n)}}, "hello", true},
		{"begins, a gap", []piece{{text, at(0)}, {text, at(2 * n)}}, "hello", true},
		{"not base64", []piece{{"***\n" + text, nil}}, "", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out strings.Builder
			o := spool.Machine{}.New("", sandbox.Cmd{Stdout: &out})
			s := &stream{Stream: o.Out}
			for _, p := range row.pieces {
				if err := s.take(p.text, p.offset); err != nil {
					t.Fatal(err)
				}
			}
			if out.String() != row.out || s.Broken != row.broken {
				t.Errorf("got %q, broken %v; want %q, %v", out.String(), s.Broken, row.out, row.broken)
			}
		})
	}
}

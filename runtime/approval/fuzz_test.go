//go:build unix

package approval_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// A lab runs command lines in a real shell whose programs are replaced: those
// that change something note that they were started, the others do nothing.
type lab struct {
	bin, work, log string
}

var mutating = []string{"rm", "terraform", "git", "kubectl", "docker", "npm", "python3", "curl", "tee", "dd", "truncate", "aws"}

// passing programs start what they are given, as the real ones do.
var passing = []string{"nice", "nohup", "timeout", "xargs", "env", "setsid", "stdbuf", "sh", "find"}

func newLab(t testing.TB) *lab {
	l := &lab{bin: t.TempDir(), work: t.TempDir()}
	// What is run belongs to nobody: it can end no process but its own.
	for _, dir := range []string{filepath.Dir(l.bin), l.bin, l.work} {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	l.log = filepath.Join(l.work, "started")
	for _, name := range mutating {
		script := "#!/bin/sh\necho \"" + name + " $*\" >>" + l.log + "\n"
		if err := os.WriteFile(filepath.Join(l.bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range append(passing, "ls", "cat", "head", "grep", "wc", "sort", "tr", "seq", "sleep", "base64", "basename", "dirname", "date", "id") {
		real, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("no %s here", name)
		}
		if err := os.Symlink(real, filepath.Join(l.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// started returns which mutating programs line starts.
func (l *lab) started(line string) string {
	os.Remove(l.log)
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Dir = l.work
	cmd.Env = []string{"PATH=" + l.bin, "HOME=/nonexistent", "LC_ALL=C.UTF-8"}
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	done := time.AfterFunc(3*time.Second, func() { cmd.Process.Kill() })
	defer done.Stop()
	cmd.Run()
	data, _ := os.ReadFile(l.log)
	return string(data)
}

// acts are command lines that change something wherever they run.
var acts = []string{"rm -rf build", "terraform apply -auto-approve", "git push origin HEAD", "kubectl delete ns a", "docker push a", "npm publish", "python3 -c 1", "curl -d x http://example.com", "aws s3 rm s3://a", "truncate -s 0 a"}

// hide puts a command line into another that starts it, by one of many ways.
func hide(r *rand.Rand, line string) string {
	quoted := "'" + strings.ReplaceAll(line, "'", `'\''`) + "'"
	program, rest, _ := strings.Cut(line, " ")
	simple := program != "" && !strings.ContainsAny(line, "'\"\\$`;&|<>(){}\n=")
	ways := []func() string{
		func() string { return "ls; " + line },
		func() string { return "true && " + line },
		func() string { return "false || " + line },
		func() string { return "echo $(" + line + ")" },
		func() string {
			return "echo \"`" + strings.NewReplacer(`\`, `\\`, "`", "\\`", "$", `\$`, `"`, `\"`).Replace(line) + "`\""
		},
		func() string { return "( " + line + " )" },
		func() string { return "{ " + line + "; }" },
		func() string { return "if true; then " + line + "; fi" },
		func() string { return "for i in 1; do " + line + "; done" },
		func() string { return "while " + line + " && false; do :; done" },
		func() string { return "case a in a) " + line + " ;; esac" },
		func() string { return "f() { " + line + "; }; f" },
		func() string { return "sh -c " + quoted },
		func() string { return "eval " + quoted },
		func() string { return "echo " + quoted + " | sh" },
		func() string { return "sh <<'E'\n" + line + "\nE" },
		func() string { return "cat <<E\n$(" + line + ")\nE" },
		func() string { return "cat /dev/null | " + line },
		func() string { return line + " | cat" },
		func() string { return "ls # look\n" + line },
		func() string { return "! " + line },
		func() string { return line + " &\nwait" },
		func() string { return "trap " + quoted + " EXIT" },
		func() string { return "x=" + quoted + "; eval \"$x\"" },
		func() string { return "x=$(" + line + "); echo \"$x\"" },
		func() string { return "echo ${y:-$(" + line + ")}" },
		func() string { return "echo $(($(" + line + " >/dev/null; echo 1) + 1))" },
		func() string { return "echo a >/dev/null; " + line + " 2>&1" },
		func() string { return "alias q=" + quoted + "\nq" },
	}
	if simple {
		ways = append(ways,
			func() string { return "command " + line },
			func() string { return "env A=1 " + line },
			func() string { return "env -i PATH=\"$PATH\" " + line },
			func() string { return "nice -n 5 nohup " + line },
			func() string { return "timeout 5 " + line },
			func() string { return "setsid -w " + line },
			func() string { return "stdbuf -o L " + line },
			func() string { return "echo 1 | xargs " + line },
			func() string { return "echo '" + rest + "' | xargs " + program },
			func() string { return "find . -maxdepth 0 -exec " + line + ` \;` },
			func() string { return program[:1] + `\` + "\n" + program[1:] + " " + rest },
			func() string { return program[:1] + "''" + program[1:] + " " + rest },
			func() string { return `"` + program + `" ` + rest },
			func() string { return `\` + program + " " + rest },
			func() string { return "p=" + program + "; $p " + rest },
			func() string { return "set -- " + line + `; "$@"` },
			func() string { return "A=1 " + line },
			func() string { return "exec " + line },
			func() string { return "x=" + program[:1] + "; ${x}" + program[1:] + " " + rest },
			func() string { return "printf '%s\\n' '" + line + "' | while read l; do $l; done" },
			func() string { return "time=1; " + line },
		)
	}
	return ways[r.IntN(len(ways))]()
}

// TestHiddenCommandsAreFound holds the classifier to a real shell: what the shell
// is seen to start must never be allowed on this computer.
func TestHiddenCommandsAreFound(t *testing.T) {
	l := newLab(t)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	ran := 0
	for range 400 {
		line := acts[r.IntN(len(acts))]
		for range 1 + r.IntN(3) {
			line = hide(r, line)
		}
		started := l.started(line)
		if started == "" {
			continue
		}
		ran++
		if j := approval.Judge(line, onHost, ""); j.Verdict == approval.Allow {
			t.Errorf("seed %d: %q starts %q and is allowed (%s)", seed, line, started, j.Finding.Reason)
		}
	}
	if ran < 100 {
		t.Errorf("only %d of 400 lines started what they hide", ran)
	}
}

// FuzzVerdict looks for lines that a real shell takes differently.
func FuzzVerdict(f *testing.F) {
	for i, act := range acts {
		f.Add(act, uint64(i))
	}
	l := newLab(f)
	f.Fuzz(func(t *testing.T, line string, seed uint64) {
		if len(line) > 300 || strings.ContainsAny(line, "/~\x00") {
			t.Skip() // the lab has nothing to protect it from paths
		}
		line = hide(rand.New(rand.NewPCG(seed, 2)), line)
		if approval.Judge(line, onHost, "").Verdict != approval.Allow {
			return
		}
		if started := l.started(line); started != "" && !looks(started) {
			t.Errorf("%q starts %q and is allowed", line, started)
		}
	})
}

// looks reports whether all that was started only looks, by a table of its own.
func looks(started string) bool {
	for line := range strings.Lines(started) {
		// A program with nothing but options prints how it is used.
		ok := !slices.ContainsFunc(strings.Fields(line)[1:], func(f string) bool { return !strings.HasPrefix(f, "-") }) && !strings.HasPrefix(line, "npm") && !strings.HasPrefix(line, "rm")
		for _, prefix := range []string{"git status", "git diff", "git log", "git show", "git branch\n", "git \n", "git\n", "kubectl get", "kubectl \n", "kubectl\n", "terraform version", "terraform \n", "terraform fmt", "docker ps", "docker \n", "aws \n", "npm version", "curl \n", "tee \n", "dd \n"} {
			ok = ok || strings.HasPrefix(line, prefix)
		}
		if !ok {
			return false
		}
	}
	return true
}

func BenchmarkJudge(b *testing.B) {
	for i, line := range []string{"ls -la", "timeout 5 env FOO=1 nice rm -rf build", "for f in *.tf; do terraform fmt \"$f\" && git diff --stat -- \"$f\" | head -20; done"} {
		b.Run(fmt.Sprint(i), func(b *testing.B) {
			for b.Loop() {
				approval.Judge(line, inBox, "")
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/100, "ratio-to-100µs")
		})
	}
}

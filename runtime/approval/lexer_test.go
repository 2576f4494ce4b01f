//go:build unix

package approval_test

import (
	"context"
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

// A line that is not plain in its letters is asked for on this computer, also where it
// is the text of a command.
func TestLettersThatAreNotPlain(t *testing.T) {
	for _, line := range []string{
		"ec\\\nho a", "ls \\\n# a", "echo \"a\\\nb\"", "ls\\", "ls\r", "ls\x01", "echo a\u2003b", "echo a\u034fb", "echo \"a\u00a0b\"", "echo a\ufe0f", "echo \xff",
		"echo `ls`", "echo \"`ls`\"", `echo $'a\x62'`, `echo $"a"`, `echo $[1]`, `echo "$[1]"`, `echo ${HOME:-'a'}`, `echo ${HOME:-"a"}`, `echo ${HOME:-\a}`, "echo ${HOME:-`ls`}", `echo ${HOME:-${PWD}}`, `echo ${HOME:-{a}}`,
		"cat <<E'F'\na\nEF", "cat <<$E\na\n$E", "cat <<'E F'\na\nE F", "cat <<E\nEE\nE", "cat <<E\n$(ls)\nE", "cat <<E\n`ls`\nE", "cat <<E\na\\b\nE", "echo \"$(cat <<'E'\na\nE\n)\"", "(cat <<'E'\na\nE\n)", "{ cat <<'E'\na\nE\n}", "cat <<A <<B\na\nA\nb\nB", "cat <<E", "cat <<E 'a\nb'\nE",
		"ls # it's", "ls # \\a", "ls # `a", `ls # "a`, "ls;# a", "echo $(ls # a\n)", "echo !ls", "echo a!!", `echo "!ls"`, "ls @(a)", "ls +(a)", "ls ?(a)", "ls *(a)", "ls !(a)", "cat <(ls)", "ls > >(cat)", "ls |& cat", "ls &>> a", "case a in a) ls ;& b) ls ;; esac", "case a in a) ls ;;& b) ls ;; esac", "((1))", "ls; ((1))", "echo {a,$HOME}", `echo {a,"b"}`, "echo a}",
		"echo $(case a in a) ls ;; esac)", "sh -c 'echo `ls`'", "bash -c \"ls |& cat\"",
	} {
		j := approval.Judge(line, onHost, "")
		said := slices.ContainsFunc(j.All, func(f approval.Finding) bool {
			return strings.Contains(f.Reason, "plain in its letters") || strings.Contains(f.Reason, "invisible character") || strings.Contains(f.Reason, "cannot be read")
		})
		if j.Verdict == approval.Allow || !said {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
	for _, line := range []string{
		"ls \\\n  -l \\\n  a.txt", "ls | \\\n  cat", "# all\nls # of it", "ls\t-l", "echo é 日本 → '\u2003a'", "echo '`ls` ${a:-\"b\"} $[1] !x <(a)'", `grep -E "a$" a.txt`,
		"cat <<'EOF'\n$(a) `b` \\ ${c:-'d'}\nEOF", "! grep -q a b", "[ a != b ]", "find . -name '*.tf' -exec cat {} +", "git show HEAD@{1}", "docker ps --format {{.Names}}", "echo a#b",
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict != approval.Allow {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// ingredients are what shells read in more than one way, and what may be made of it.
var ingredients = []string{
	"./x", "./x", "./x", "\n./x\n", "; ./x", "$(./x)", "`./x`", "$(./x)", "a", "a", "E", "E", "\nE\n", "\nE", " ", " ", " ", "\n", "\n", "\t", "\\", "\\\n", "\\\n", "\\\r\n", "\r", "'", "'", `"`, `"`, "`", "#", " # ", "# a", "$", "$'", `$"`, "$[", "${HOME:+", "${HOME:-", "${", "}", "{", "(", ")", "$(", "$((", "))", "<<E", "<<'E'", "<<-E", "<<\\E", `<<"E\""`, "<<E'F'", "<<", "<(", ";", ";;", ";&", ";;&", "&&", "||", "|", "|&", "&>>", "!", "@(", "*(", "\u00a0", "\u200b", "\v", "case a in a)", "esac", "echo ", "echo ", ": ", "cat ", "sh -c '", "[[ ", " ]]", "1", ",", "=", "~",
}

// sharp are those that cut most.
var sharp = []string{"\\", "\\", "\\\n", "\\\n", "'", "'", `"`, "`", "$", "E", "\n", "\nE\n", "#", " ", "a", "}"}

// moulds are lines into which ingredients go, at each %.
var moulds = []string{
	"echo %%\n./x", "echo a%# a%\n./x", "echo \"%${HOME:+%./x%}%\"", "echo \"%${HOME:+%$(./x)%}%\"", "echo \"%%(./x)\"", "echo ${HOME:-%%}%\n", ": <<E\n%%\nE\n%", ": <<E\n%E%\n./x\nE", ": <<%E%\n%\n./x\nE", ": <<'E'%\n%E%./x\nE", ": <<-E\n\t%\nE\n%", ": <<E\n%${HOME:+%$(./x)%}%\nE", "echo $(: <<E\n%E%\n./x\nE\n)", "echo $(echo %%%)", "echo '%' %%'./x'%", "sh -c 'echo %%\n./x'", "sh -c ': <<E\n%\n./x\nE'", "echo %'%\n./x\n'%", "echo %\"%\n./x\n\"%", "echo $((%%1%))", "{ echo %; }%", "(echo %)%", ": # %%\n%",
}

// concoct makes a line of the ingredients.
func concoct(r *rand.Rand) string {
	var b strings.Builder
	some := func(most int) {
		for range 1 + r.IntN(most) {
			from := ingredients
			if r.IntN(3) > 0 {
				from = sharp
			}
			b.WriteString(from[r.IntN(len(from))])
		}
	}
	if r.IntN(8) == 0 {
		b.WriteString("echo ")
		some(10)
		return b.String()
	}
	for _, letter := range moulds[r.IntN(len(moulds))] {
		if letter != '%' {
			b.WriteRune(letter)
		} else if r.IntN(5) < 2 {
			some(2)
		}
	}
	return b.String()
}

// FuzzLetters runs lines that are allowed in two shells, where a program lies that leaves
// a mark, and that no line may start.
func FuzzLetters(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	dir := f.TempDir()
	for d := dir; d != os.TempDir() && len(d) > 1; d = filepath.Dir(d) {
		os.Chmod(d, 0o777) // what is run belongs to nobody
	}
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("#!/bin/sh\n: >P\n"), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 3))
		var lines []string
		for range 1000 {
			if line := concoct(r); approval.Judge(line, onHost, "").Verdict == approval.Allow {
				lines = append(lines, line)
			}
		}
		if len(lines) < 20 {
			t.Fatalf("only %d lines of 1000 are allowed", len(lines))
		}
		for _, shell := range []string{"bash", "dash"} {
			if _, err := exec.LookPath(shell); err != nil {
				continue
			}
			var script strings.Builder
			for _, line := range lines {
				quoted := "'" + strings.ReplaceAll(line, "'", `'\''`) + "'"
				script.WriteString("(eval " + quoted + ") </dev/null >/dev/null 2>&1\n[ -e P ] && { printf '%s\\0' " + quoted + "; rm -f P; }\n")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			cmd := exec.CommandContext(ctx, shell, "-s")
			cmd.Dir, cmd.Stdin, cmd.WaitDelay = dir, strings.NewReader(script.String()+"echo done\n"), 5*time.Second
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C.UTF-8"}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if os.Getuid() == 0 {
				cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
			}
			out, err := cmd.Output()
			cancel()
			started, all := strings.CutSuffix(string(out), "done\n")
			if !all {
				t.Fatalf("%s did not come to the end: %v", shell, err)
			}
			for line := range strings.SplitSeq(strings.TrimSuffix(started, "\x00"), "\x00") {
				if line != "" {
					t.Errorf("%s: %q starts a program, and is allowed", shell, line)
				}
			}
		}
	})
}

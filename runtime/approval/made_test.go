package approval_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// A maker makes command lines that set a variable in one way after the other, and
// use it.
type maker struct{ *rand.Rand }

func (m maker) one(of ...string) string { return of[m.IntN(len(of))] }

// evil is the verb that the program must not be given.
const evil = "apply"

var variable = regexp.MustCompile(`\bx\b`)

// value is more often harmless than not.
func (m maker) value() string {
	return m.one("fmt", "fmt", "graph", "fmt", "'fmt'", `"graph"`, "fmt", "graph", evil, "$y", `"$y"`, "f*")
}

func (m maker) name() string { return m.one("x", "y", "y", "z", "z", "w", "w", "w") }

// set sets x once, if it does.
func (m maker) set() string {
	statement := "x=" + m.value()
	switch m.IntN(3) {
	case 0:
		return fmt.Sprintf(m.one("%s < none", "%s > none/f", "{ %s; }", "{ %s; } < none", "false && %s", "cd none && %s", "true && %s", "true || %s", "if false; then %s; fi", "while false; do %s; done", "for i in 1; do %s; done", "(%s)", "%s | cat", "case f in g) %s;; esac", "echo $((1/0)); %s", "! %s", "%s true", "false && ls && %s", "z=g && %s"), statement)
	case 1:
		return m.sets() + m.one("; ", "\n") + statement
	}
	return statement
}

func (m maker) use() string {
	return m.one("terraform $x f", "terraform $x f", "terraform $x f", `terraform "$x" f`, "terraform $x f | cat", "(terraform $x f)", "echo $(terraform $x f)", "terraform ${x} f", "terraform $y f")
}

func (m maker) sets() string {
	x, v := m.name(), m.value()
	if m.IntN(3) > 0 {
		return x + "=" + v
	}
	return m.one("export "+x+"="+v, "read "+x+" < verb", "read -r "+x+" < f", ": ${"+x+":="+v+"}", "unset "+x, x+"="+v+" true", x+"="+v+" < none", "{ "+x+"="+v+"; } < none", "("+x+"="+v+")", x+"="+v+" | cat", x+"="+v+" & true",
		"sh -c '"+x+"=graph; true'", "eval '"+x+"="+evil+"'", "printf -v "+x+" %s "+evil, "test -v 'a["+x+"=-5]'", "readonly "+x, "cd sub")
}

// simple is a simple command.
func (m maker) simple() string {
	switch m.IntN(6) {
	case 0, 1:
		return m.use()
	case 2:
		return m.one("true", "false", "ls", "cat f", "cat none", "cat < none", "echo hi", "echo $((1/0))")
	}
	return m.sets()
}

func (m maker) statement(depth int) string {
	if depth == 0 {
		return m.simple()
	}
	in := func() string { return m.line(depth-1, 1+m.IntN(2)) }
	switch m.IntN(14) {
	case 0:
		return "for " + m.name() + " in " + m.one("fmt graph", "fmt", evil, "fmt "+evil, "f*", "{fmt,"+evil+"}", "$y") + "; do " + in() + "; done"
	case 1:
		return "for i in 1 2; do " + in() + "; done"
	case 2:
		return "if " + m.one("true", "false", m.sets()) + "; then " + in() + "; fi"
	case 3:
		return "if " + m.one("true", "false") + "; then " + in() + "; else " + in() + "; fi"
	case 4:
		return "{ " + in() + "; }" + m.one("", " < none", " 2>/dev/null")
	case 5:
		return "(" + in() + ")"
	case 6:
		return m.one("true", "false", "cd none", m.sets()) + m.one(" && ", " || ") + m.statement(depth-1)
	case 7:
		return "case f in " + m.one("f", "g") + ") " + in() + ";; esac"
	case 8:
		return "i=; while test ! \"$i\"; do i=1; " + in() + "; done"
	}
	return m.simple()
}

func (m maker) line(depth, n int) string {
	var all []string
	for range n {
		all = append(all, m.statement(depth))
	}
	return strings.Join(all, m.one("; ", "; ", "; ", " && ", "\n", "; \\\n"))
}

// No shell in a sandbox that runs an allowed line hands a program the verb that is asked
// for, whatever the line does to its variables.
func TestMadeLines(t *testing.T) {
	t.Parallel()
	shells := []string{"dash", "bash"}
	for _, name := range shells {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	m := maker{rand.New(rand.NewPCG(1, 2))}
	var allowed []string
	seen := map[string]bool{}
	for made := 0; made < 6000; {
		line := m.set() + m.one("; ", "; ", " && ", "\n") + m.use()
		if m.IntN(2) == 0 {
			line = m.set() + "; " + m.line(2, 1+m.IntN(2)) + m.one("; ", "\n") + m.use()
		}
		if m.IntN(3) == 0 {
			line = m.line(1, 1) + m.one("; ", "\n", "; \\\n") + line
		}
		if m.IntN(2) == 0 {
			// This one may be shown, so that nothing but what it holds decides.
			line = variable.ReplaceAllString(line, "JAVA_HOME")
		}
		if seen[line] {
			continue
		}
		seen[line] = true
		made++
		if approval.Judge(line, inBox, "").Verdict == approval.Allow {
			allowed = append(allowed, line)
		}
	}
	if len(allowed) < 600 {
		t.Errorf("no more than %d lines are allowed", len(allowed))
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"f": "fmt\n", "g": "graph\n", "verb": evil + "\n", "sub/f": "fmt\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, shell := range shells {
		// What the line did not set is the option.
		env := []string{"PATH=/usr/bin:/bin"}
		for _, name := range []string{"x", "y", "z", "w", "JAVA_HOME"} {
			env = append(env, name+"="+evil)
		}
		// A function is the program, so that one shell runs all of them.
		var script strings.Builder
		script.WriteString("terraform() { for a; do case $a in apply) echo \"$line: $a\" >&3;; esac; done; echo x >&4; }\nexec 3>bad 4>ran\n")
		for i, line := range allowed {
			fmt.Fprintf(&script, "line=%d\n(eval %s) </dev/null >/dev/null 2>&1\n", i, quoted(line))
		}
		cmd := exec.CommandContext(t.Context(), shell, "-s")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(script.String())
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil && len(out) > 0 {
			t.Fatalf("%s: %v\n%s", shell, err, out)
		}
		ran, _ := os.ReadFile(filepath.Join(dir, "ran"))
		if n := bytes.Count(ran, []byte("x")); n < len(allowed)/2 {
			t.Errorf("%s ran the program %d times for %d lines", shell, n, len(allowed))
		}
		bad, _ := os.ReadFile(filepath.Join(dir, "bad"))
		for one := range strings.Lines(string(bad)) {
			var i int
			if _, err := fmt.Sscanf(one, "%d:", &i); err == nil {
				t.Errorf("%s, %q: %s", shell, allowed[i], one)
			}
		}
	}
	t.Logf("%d of %d lines are allowed", len(allowed), len(seen))
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

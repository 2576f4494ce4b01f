package approval

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// What counts as alike has one tree in both readings, and plain lines count so.
func TestAlike(t *testing.T) {
	print := func(f *syntax.File) string {
		var b strings.Builder
		if err := syntax.DebugPrint(&b, f); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	words := []string{"ls", "-la", "a b", "'a b'", `"$x"`, "$x", "${x}", "$(ls)", "{a,b}", "{", "}", "$'a'", "[[", "]]", "((", "))", "&", "&&", "||", "|", "|&", ";", "\n", "&>f", ">f", "2>&1", "<<<x", "if", "then", "fi", "for", "in", "do", "done", "function", "time", "!", "x=1", "x=(a)", "x+=a", "case", "esac", ")", "(", "local", "export", "@(a)", "\\", "#", "~"}
	kept := 0
	for i := range 60_000 {
		var line []string
		for at := i; at > 0 || len(line) < 2; at /= len(words) {
			line = append(line, words[at%len(words)])
		}
		text := strings.Join(line, " ")
		f := parse(text, syntax.LangBash)
		if f == nil || !alike(f) {
			continue
		}
		kept++
		if strict := posix(text); print(strict) != print(f) {
			t.Errorf("%q is read differently", text)
		}
	}
	if kept < 1000 {
		t.Errorf("no more than %d lines count as alike", kept)
	}
	for _, text := range []string{"ls -la", "git status && git diff --stat", "for f in *.tf; do wc -l \"$f\"; done", "cat a | sort > b 2>&1"} {
		if !alike(parse(text, syntax.LangBash)) {
			t.Errorf("%q counts as read differently", text)
		}
	}
}

package term_test

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/term"
)

func TestClean(t *testing.T) {
	for _, row := range []struct{ name, in, want string }{
		{"colours", "a\x1b[1;31mb\x1b[0m", "ab"},
		{"a title ended by BEL", "a\x1b]0;evil\x07b", "ab"},
		{"a link ended by ST", "a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\", "ab"},
		{"C1 control sequence", "a\u009b31mb", "ab"},
		{"backspace, delete, bell", "a\x08\x7f\x07b", "ab"},
		{"carriage returns", "a\rb\r\nc", "a\nb\nc"},
		{"text direction", "a\u202eb\u2066c\u200fd", "abcd"},
		{"zero width", "a\u200bb\ufeffc", "abc"},
		{"an unfinished sequence", "a\x1b", "a"},
		{"broken UTF-8", "a\xffb", "a\ufffdb"},
		{"newlines, tabs and emoji stay", "a\n\tb 👩‍🚀 é", "a\n\tb 👩‍🚀 é"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := term.Clean(row.in); got != row.want {
				t.Errorf("Clean(%q) is %q, want %q", row.in, got, row.want)
			}
		})
	}
}

func TestVisible(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"ls -l\n\tx", "ls -l\n\tx"},
		{"echo hi \x1b]0;touch x;\x07", "echo hi <U+001B>]0;touch x;<U+0007>"},
		{"a\x1b[2Kb\x08\u009b", "a<U+001B>[2Kb<U+0008><U+009B>"},
		{"a\r\nb\rc\u2028d", "a\nb<U+000D>c<U+2028>d"},
		{"a\u202eb\u200bc\ufeff", "a<U+202E>b<U+200B>c<U+FEFF>"},
		{"x\u200d \u3164\u00a0", "x<U+200D> <U+3164><U+00A0>"},
		{"a\ufe0f", "a<U+FE0F>"},
		{"\U000e0041", "<U+E0041>"},
		{"a\u2003b\u3000\u034f\u17b4\ufff0\ue000", "a<U+2003>b<U+3000><U+034F><U+17B4><U+FFF0><U+E000>"},
		{"b 👩‍🚀 é ❤️", "b 👩‍🚀 é ❤️"},
		{"a\xffb", "a\ufffdb"},
	} {
		if got := term.Visible(row.in); got != row.want {
			t.Errorf("Visible(%q) is %q, want %q", row.in, got, row.want)
		}
		if got := term.Visible(row.in); term.Clean(got) != got {
			t.Errorf("Visible(%q) steers: %q", row.in, got)
		}
	}
}

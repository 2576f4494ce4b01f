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

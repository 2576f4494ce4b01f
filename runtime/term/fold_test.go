package term_test

import (
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/term"
)

func TestFold(t *testing.T) {
	for _, row := range []struct {
		name  string
		width int
		in    string
		want  string
	}{
		{"what fits", 20, "a line  of\ttext", "a line  of\ttext"},
		{"whole lines", 20, "one\n\ntwo\n", "one\n\ntwo\n"},
		{"between words", 20, "the changes are saved in a place\n", "the changes are\n  saved in a place\n"},
		{"an indented line", 20, "  exit 1 after a very long time", "  exit 1 after a\n    very long time"},
		{"a word that is too wide", 20, "saved in /home/acme/.talkops/saved/0a1b2c3d4e5f now", "saved in\n  /home/acme/.talkops/saved/0a1b2c3d4e5f\n  now"},
		{"a word that is too wide behind a mark", 20, "  M deploy/overlays/staging.yaml: kept", "  M deploy/overlays/staging.yaml:\n    kept"},
		{"a word that is too wide in a list", 20, "- deploy/overlays/staging.yaml", "- deploy/overlays/staging.yaml"},
		{"wide characters", 20, "你好 世界 你好 世界 你好", "你好 世界 你好 世界\n  你好"},
		{"colours have no width", 20, "\x1b[1mone two three\x1b[0m four five", "\x1b[1mone two three\x1b[0m four\n  five"},
		{"a command gets its own line", 40, "to make the changes here: talkops sandbox apply 0a1b", "to make the changes here:\n  talkops sandbox apply 0a1b"},
		{"a command that is too wide", 30, "fetch it: talkops sandbox rescue --no-limit 0a1b2c3d4e5f", "fetch it:\n  talkops sandbox rescue --no-limit 0a1b2c3d4e5f"},
		{"what follows a command", 40, "it is left; end it with: talkops sandbox rm box-1; it ends by itself soon", "it is left; end it with:\n  talkops sandbox rm box-1; it ends by\n  itself soon"},
		{"two commands", 40, "look with: talkops sandbox diff 0a1b, or: talkops sandbox pull 0a1b DIR", "look with: talkops sandbox diff 0a1b,\n  or: talkops sandbox pull 0a1b DIR"},
		{"a sentence behind a command", 40, "To agree to it: talkops trust add. Or add --trust-project to use it", "To agree to it: talkops trust add. Or\n  add --trust-project to use it"},
		{"quotes in a command", 40, `give one, as in: talkops -p "Why; does it. Fail?"`, "give one, as in:\n  talkops -p \"Why; does it. Fail?\""},
		{"a variable to set", 40, `not signed in, run: export DAYTONA_API_KEY="your-key"`, "not signed in, run:\n  export DAYTONA_API_KEY=\"your-key\""},
		{"what is no part of a command", 40, `Daytona is not signed in: export DAYTONA_API_KEY="your-key" (exit 2)`, "Daytona is not signed in:\n  export DAYTONA_API_KEY=\"your-key\"\n  (exit 2)"},
		{"a command in brackets", 40, "the branch was not made (talkops sandbox export 0a1b --branch NAME): no", "the branch was not made\n  (talkops sandbox export 0a1b --branch NAME):\n  no"},
		{"between backquotes", 30, "the answer is to use `terraform plan -out x`", "the answer is to use\n  `terraform plan -out x`"},
		{"the program in a sentence", 30, "while talkops runs nothing else can be done", "while talkops runs nothing\n  else can be done"},
		{"the name of the program", 30, "talkops: no model is chosen and none is found", "talkops: no model is chosen\n  and none is found"},
		{"a question keeps its end", 20, "apply to the project or discard: ", "apply to the project\n  or discard: "},
		{"code", 20, "so:\n```\na line of code that is long\n```\nand words that go on and on\n", "so:\n```\na line of code that is long\n```\nand words that go on\n  and on\n"},
		{"a table", 20, "| a | table that is very wide |", "| a | table that is very wide |"},
		{"tabs of a line that does not fit", 20, "a\tb and what is behind it", "a       b and what\n  is behind it"},
		{"no room at all", 5, "a line of text", "a line of text"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := term.Fold(row.in, row.width); got != row.want {
				t.Errorf("Fold is\n%q, want\n%q", got, row.want)
			}
		})
	}
}

func TestFoldProse(t *testing.T) {
	in := "A paragraph of the answer.\n\n- an item that is long\n10. another one of a list\n"
	want := "A paragraph of the\nanswer.\n\n- an item that is\n  long\n10. another one of a\n    list\n"
	if got := term.FoldProse(in, 20); got != want {
		t.Errorf("FoldProse is\n%q, want\n%q", got, want)
	}
}

func FuzzFold(f *testing.F) {
	f.Add("end it with: talkops sandbox rm box-1; it ends by itself", 30)
	f.Add("你好 `a b` \t c", 21)
	f.Fuzz(func(t *testing.T, text string, width int) {
		got := term.Fold(text, width)
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(text), " ") {
			t.Errorf("Fold(%q, %d) is %q", text, width, got)
		}
	})
}

func TestUntab(t *testing.T) {
	for text, want := range map[string]string{
		"no tab":               "no tab",
		"a\tb\nlonger is\tb\n": "a       b\nlonger is       b\n",
		"12345678\tb":          "12345678        b",
		"\x1b[1m你\x1b[m\tb":    "\x1b[1m你\x1b[m      b",
	} {
		if got := term.Untab(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

package cmd

import (
	"errors"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestALongNameIsCutInItsMiddle(t *testing.T) {
	for _, row := range []struct {
		text  string
		width int
		want  string
	}{
		{"short", 5, "short"},
		{"modules/network/main.tf", 15, "modu…rk/main.tf"},
		{"ein/sehr/großer/Überblick.md", 14, "ein/…rblick.md"},
		{"目录目录目录目录目录", 11, "目…目录目录"},
	} {
		got := cutMiddle(row.text, row.width)
		if got != row.want || ansi.StringWidth(got) > row.width {
			t.Errorf("%q in %d columns is %q (%d wide), want %q", row.text, row.width, got, ansi.StringWidth(got), row.want)
		}
	}
}

// A patch is counted in whatever pieces it is written.
func TestLinesOfAPatchAreCounted(t *testing.T) {
	patch := "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n same\n-one\n--- two\n+++ three\n\\ No newline at end of file\n" +
		"diff --git a/g b/g\nnew file mode 100644\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+" + strings.Repeat("long", 1000) + "\n"
	for _, size := range []int{1, 3, 7, len(patch)} {
		var n counter
		for rest := patch; rest != ""; rest = rest[min(size, len(rest)):] {
			if _, err := n.Write([]byte(rest[:min(size, len(rest))])); err != nil {
				t.Fatal(err)
			}
		}
		if n.plus != 2 || n.minus != 2 {
			t.Errorf("in pieces of %d: +%d -%d, want +2 -2", size, n.plus, n.minus)
		}
	}
	var n counter
	if _, err := n.Write([]byte("diff --git a/f b/f\nGIT binary patch\nliteral 3\n")); !errors.Is(err, errBinary) || !n.binary {
		t.Errorf("a binary file: %v", err)
	}
}

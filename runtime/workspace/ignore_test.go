//go:build unix

package workspace

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What .talkopsignore drops is what git check-ignore says of the same lines in a
// .gitignore.
func TestIgnoreLinesMeanWhatTheyMeanToGit(t *testing.T) {
	names := []string{"c/a", "c/b", "ab", "a/b/c", "b/a", "x.log", "a/x.log", "a/b/x.log", "log", "foo bar", "#h", "!n", "a/.h", ".h", "A", "[x]", "a-b", "d/e/f/g", "a\\b", "tail ", "ax/y/b", "axb", "a/x/y/b", "c-e", "["}
	pieces := []string{"a", "b", "ab", "x", "*", "**", "?", "*.log", "x.*", "[ab]", "[!a]", "[^b]", "[a-c]", "log", "d", "e", "f", "g", ".h", ".*", "foo bar", `\#h`, "#h", `\!n`, `a\b`, `\a`, `[x]`, `\[x\]`, "*b*", "**b", "tail", `tail\ `, "tail ", "[]a]", "a-b", "[[:alpha:]]", `a\\b`, "a**", "[a/]", "[/]", "[!/]", "a[/]b", "[.-0]", "x**x", "***", `**\/`, "[a-c-e]", "[[:nope:]]", "[a", "a*", "?*", "c[^b]", "//"}
	root := t.TempDir()
	for _, name := range names {
		p := filepath.Join(root, name)
		os.MkdirAll(filepath.Dir(p), 0o755)
		if info, err := os.Stat(p); err == nil && info.IsDir() {
			continue
		}
		if err := os.WriteFile(p, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, root, "git init -q; git config core.excludesFile /dev/null")
	var all []string
	filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, p)
		if rel == ".git" {
			return filepath.SkipDir
		}
		if rel != "." {
			if d.IsDir() {
				rel += "/"
			}
			all = append(all, rel)
		}
		return nil
	})
	r := rand.New(rand.NewPCG(1, 2))
	for range 1500 {
		var lines []string
		for range 1 + r.IntN(4) {
			line := ""
			for i := range 1 + r.IntN(3) {
				if i > 0 {
					line += "/"
				}
				line += pieces[r.IntN(len(pieces))]
			}
			if r.IntN(4) == 0 {
				line = "/" + line
			}
			if r.IntN(4) == 0 {
				line += "/"
			}
			if r.IntN(4) == 0 {
				line = "!" + line
			}
			lines = append(lines, line)
		}
		os.WriteFile(filepath.Join(root, ".gitignore"), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
		cmd := exec.Command("git", "-C", root, "check-ignore", "--no-index", "-z", "--stdin")
		cmd.Stdin = strings.NewReader(strings.ReplaceAll(strings.Join(all, "\x00")+"\x00", "/\x00", "\x00"))
		out, _ := cmd.Output() // 1: nothing is ignored
		ignored := strings.Split(string(out), "\x00")
		list := parsePatterns(lines)
		for _, name := range all {
			bare, isDir := strings.CutSuffix(name, "/")
			if got, want := match(list, bare, isDir), slices.Contains(ignored, bare); got != want {
				t.Errorf("lines %q, name %q: ignored %v, git says %v", lines, name, got, want)
			}
		}
		if t.Failed() {
			return
		}
	}
}

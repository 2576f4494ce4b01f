package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What git would show of files of credentials is found in the index and in revisions.
func TestTrackedSecrets(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	dir := real(t.TempDir())
	git := func(args ...string) string {
		out, err := lookGit(t.Context(), dir, append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		if err != nil {
			t.Fatal(args, err)
		}
		return strings.TrimSpace(out)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	write("a.txt", "a")
	git("add", ".")
	git("commit", "-qm", "1")
	write(".env", "KEY=1")
	git("add", "-f", ".")
	git("commit", "-qm", "2")
	blob := git("rev-parse", "HEAD:.env")
	for _, x := range []struct {
		words  []string
		differ bool
		found  bool
		known  bool
	}{{nil, false, true, true}, {nil, true, false, true}, {[]string{"HEAD~1"}, false, false, true}, {[]string{"HEAD~1"}, true, true, true}, {[]string{"HEAD~1..HEAD"}, false, true, true}, {[]string{blob}, false, false, false}, {[]string{"HEAD:a.txt"}, false, false, true}, {[]string{"src"}, false, true, true}} {
		all, known := trackedSecrets("", dir, x.words, x.differ)
		if known != x.known || slices.Contains(all, filepath.ToSlash(filepath.Join(dir, ".env"))) != x.found {
			t.Errorf("%v, %v: %v, %v", x.words, x.differ, all, known)
		}
	}
	git("remote", "add", "origin", "https://user:tok@example.com/x.git")
	if all, known := remotes(dir); !known || !slices.Contains(all, "remote.origin.url https://user:tok@example.com/x.git") {
		t.Error(all, known)
	}
	if all := secretsBelow("", dir); !slices.Contains(all, filepath.ToSlash(filepath.Join(dir, ".git", "config"))) {
		t.Errorf("the login in git's settings is not seen: %v", all)
	}
	if gitRuns(dir) {
		t.Error("git is taken to run programs")
	}
	git("config", "remote.origin.promisor", "true")
	if !gitRuns(dir) {
		t.Error("a partial clone fetches what is missing")
	}
}

// A newer go than the installed one is fetched where the project asks for it.
func TestGoNewer(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go here")
	}
	for text, newer := range map[string]bool{"module x\n": false, "module x\n\ngo 1.20\n": false, "module x\n\ngo 1.999.0\n": true, "module x\n\ngo 1.20\n\ntoolchain go1.999.0\n": true, "module x\ntoolchain default\n": false, "module x\ngo \"1.999\"\n": true, "module x\ntoolchain elsewhere\n": true} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		sub := filepath.Join(dir, "sub")
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		if got := goNewer(sub, t.TempDir()); got != newer {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Links at or below a directory are found, wherever out of the project they lead.
func TestLinksBelow(t *testing.T) {
	root := real(t.TempDir())
	for _, d := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(real(t.TempDir()), filepath.Join(root, "b", "x")); err != nil {
		t.Skip(err)
	}
	for name, want := range map[string]bool{"a": false, "b": true, "b/x": true, "": true, "none": false} {
		if got := linksBelow(root, filepath.Join(root, name)); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// A file that sends git to a repository of another place is not followed; a work tree
// is what it says.
func TestGitElsewhere(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	root := real(t.TempDir())
	own, other := filepath.Join(root, "own"), filepath.Join(root, "other")
	git := func(args ...string) {
		if _, err := lookGit(t.Context(), root, append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...); err != nil {
			t.Fatal(args, err)
		}
	}
	for _, d := range []string{own, other} {
		git("init", "-q", d)
		git("-C", d, "commit", "-q", "--allow-empty", "-m", "1")
	}
	git("-C", own, "worktree", "add", "-q", filepath.Join(root, "tree"))
	fake := filepath.Join(own, "fake")
	if err := os.Mkdir(fake, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(fake, ".git"), []byte("gitdir: "+filepath.Join(other, ".git")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{own: false, other: false, filepath.Join(root, "tree"): false, fake: true} {
		if got := gitRuns(dir); got != want {
			t.Errorf("%s: %v", dir, got)
		}
	}
}

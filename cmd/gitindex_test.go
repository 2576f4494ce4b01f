package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A path of git's index counts, though there is no such file.
func TestDashedIndex(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	const empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
	for _, row := range []struct {
		name  string
		paths []string
		setup []string
		want  bool
	}{
		{"nothing", nil, nil, false},
		{"plain names of every length", []string{"a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh", "a-b/c-d"}, nil, false},
		{"at the top", []string{"a", "--pre=x.sh", "z"}, nil, true},
		{"deep", []string{"a/b/-f"}, nil, true},
		{"a longer header", []string{"a", "b"}, []string{"update-index", "--skip-worktree", "a"}, false},
		{"names that cannot be read", []string{"a", "b"}, []string{"update-index", "--index-version", "4"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			git := func(args ...string) {
				t.Helper()
				if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
			git("init", "-q")
			for _, p := range row.paths {
				git("update-index", "--add", "--cacheinfo", "100644,"+empty+","+p)
			}
			if row.setup != nil {
				git(row.setup...)
			}
			if got := namedIndex(dir, dashed); got != row.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if namedIndex(t.TempDir(), dashed) {
		t.Error("a directory that is no repository counts")
	}
	odd := t.TempDir()
	if err := os.WriteFile(filepath.Join(odd, ".git"), []byte("gitdir: ../nowhere\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if namedIndex(odd, dashed) {
		t.Error("a repository without an index counts")
	}
}

package cmd

import (
	"os"
	"path/filepath"
	"testing"
)

// A path is judged where it leads, also through links to what is not there yet.
func TestRealFollowsLinksToNothing(t *testing.T) {
	root := real(t.TempDir())
	for name, to := range map[string]string{
		"up": "../elsewhere", "abs": filepath.Join(root, "none", "deep"), "again": "up", "dir": "sub", "sub/back": "../made", "loop": "loop",
	} {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.FromSlash(to), name); err != nil {
			t.Skip(err)
		}
	}
	for name, want := range map[string]string{
		"plain": "plain", "up": "../elsewhere", "up/x": "../elsewhere/x", "again": "../elsewhere", "abs/x": "none/deep/x",
		"dir": "sub", "dir/back": "made", "dir/new": "sub/new", "loop": "loop",
	} {
		if got := real(filepath.Join(root, filepath.FromSlash(name))); got != filepath.Join(root, filepath.FromSlash(want)) {
			t.Errorf("%s leads to %s, want %s", name, got, want)
		}
	}
}

//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// An ignore file that is a pipe would make git wait for ever.
func TestAPipeAsIgnoreFileIsSaid(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, ".gitignore"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := gitIgnored(t.Context(), root); err == nil || !strings.Contains(err.Error(), ".gitignore is not a regular file") {
		t.Errorf("got %v", err)
	}
}

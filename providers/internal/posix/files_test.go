//go:build unix

package posix

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// An image may lack all but the plainest programs.
func TestWriteScriptWithFewPrograms(t *testing.T) {
	for _, shell := range []string{"dash", "bash", "busybox"} {
		program, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		for _, kit := range []struct {
			name     string
			programs []string
		}{
			{"plain", []string{"cat", "chmod", "cp", "ls", "mkdir", "mv", "rm"}},
			{"readlink", []string{"cat", "chmod", "cp", "ls", "mkdir", "mv", "rm", "readlink"}},
			{"all", []string{"cat", "chmod", "cp", "ls", "mkdir", "mv", "rm", "readlink", "stat"}},
		} {
			bin := t.TempDir()
			for _, name := range kit.programs {
				full, err := exec.LookPath(name)
				if err != nil {
					t.Skipf("there is no %s", name)
				}
				if err := os.Symlink(full, filepath.Join(bin, name)); err != nil {
					t.Fatal(err)
				}
			}
			for _, row := range []struct {
				name, target, written string // target is what is named, written what changes
				mode                  os.FileMode
			}{
				{"a new file", "new", "new", 0o640},
				{"a file that is there keeps its mode", "old", "old", 0o755},
				{"a link is followed", "d/link", "old", 0o755},
				{"a link to a link", "d/second", "old", 0o755},
				{"a link to what is not there yet", "d/hope", "later", 0o640},
			} {
				t.Run(shell+"/"+kit.name+"/"+row.name, func(t *testing.T) {
					dir := t.TempDir()
					for _, err := range []error{
						os.Mkdir(filepath.Join(dir, "d"), 0o755),
						os.WriteFile(filepath.Join(dir, "old"), []byte("a longer old text"), 0o755),
						os.WriteFile(filepath.Join(dir, "upload"), []byte("new"), 0o600),
						os.Symlink("../old", filepath.Join(dir, "d/link")),
						os.Symlink("link", filepath.Join(dir, "d/second")),
						os.Symlink(filepath.Join(dir, "later"), filepath.Join(dir, "d/hope")),
					} {
						if err != nil {
							t.Fatal(err)
						}
					}
					args := []string{"-c", WriteScript, "sh", filepath.Join(dir, "upload"), filepath.Join(dir, row.target), "640"}
					if shell == "busybox" {
						args = append([]string{"sh"}, args...)
					}
					cmd := exec.Command(program, args...)
					cmd.Env = []string{"PATH=" + bin}
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Fatalf("%v: %s", err, out)
					}
					written := filepath.Join(dir, row.written)
					data, err := os.ReadFile(written)
					if err != nil || string(data) != "new" {
						t.Errorf("the file holds %q, %v", data, err)
					}
					if info, err := os.Stat(written); err == nil && info.Mode() != row.mode {
						t.Errorf("its mode is %v, want %v", info.Mode(), row.mode)
					}
					if info, err := os.Lstat(filepath.Join(dir, row.target)); row.target != row.written && (err != nil || info.Mode()&os.ModeSymlink == 0) {
						t.Errorf("the link is no link any more: %v", err)
					}
					left, _ := filepath.Glob(filepath.Join(dir, "*upload*"))
					if len(left) != 0 {
						t.Errorf("left behind: %v", left)
					}
				})
			}
		}
	}
}

func TestTextIsBounded(t *testing.T) {
	var text Text
	piece := make([]byte, 1<<20)
	for range textMost >> 20 {
		if _, err := text.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := text.Write(piece); sandbox.CodeOf(err) != sandbox.CodeTooLarge || text.Len() > textMost {
		t.Errorf("%d bytes are kept, %v", text.Len(), err)
	}
}

//go:build unix

package posix

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestRoom(t *testing.T) {
	for _, shell := range []string{"dash", "bash", "busybox"} {
		program, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		for _, row := range []struct {
			name   string
			free   string // KiB, as df says; empty: there is no df
			there  int    // pieces of the room
			script string
			want   int
		}{
			{"is made", "8192", 0, KeepRoom, 8},
			{"is not made on a small disk", "8191", 0, KeepRoom, 0},
			{"is not made where nobody knows the disk", "", 0, KeepRoom, 0},
			{"is made anew when a part was given", "8192", 7, KeepRoom, 8},
			{"is given in parts", "511", 8, GiveRoom, 7},
			{"is given to the last", "0", 1, GiveRoom, 0},
			{"is given once", "0", 0, GiveRoom, 0},
			{"stays where the disk is not full", "512", 8, GiveRoom, 8},
		} {
			t.Run(shell+"/"+row.name, func(t *testing.T) {
				dir, bin := t.TempDir(), t.TempDir()
				for _, name := range []string{"head", "rm"} {
					full, err := exec.LookPath(name)
					if err != nil {
						t.Skip(err)
					}
					if err := os.Symlink(full, filepath.Join(bin, name)); err != nil {
						t.Fatal(err)
					}
				}
				if row.free != "" {
					df := fmt.Sprintf("#!/bin/sh\necho Filesystem 1024-blocks Used Available Capacity Mounted on\necho overlay 1000000 1 %s 1%% /a mount\n", row.free)
					if err := os.WriteFile(filepath.Join(bin, "df"), []byte(df), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				for i := range row.there {
					if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("room%d", 8-i)), make([]byte, 524288), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				args := []string{"-c", "d=$1\n" + row.script + "echo on", "sh", dir}
				if shell == "busybox" {
					args = append([]string{"sh"}, args...)
				}
				cmd := exec.Command(program, args...)
				cmd.Env = []string{"PATH=" + bin}
				if out, err := cmd.CombinedOutput(); err != nil || string(out) != "on\n" {
					t.Errorf("the script printed %q, %v", out, err)
				}
				pieces, _ := filepath.Glob(filepath.Join(dir, "room[1-8]"))
				for _, piece := range pieces {
					if info, err := os.Stat(piece); err != nil || info.Size() != 524288 {
						t.Errorf("%s: %v, %v", piece, info, err)
					}
				}
				if len(pieces) != row.want {
					t.Errorf("there are %d pieces, want %d", len(pieces), row.want)
				}
			})
		}
	}
}

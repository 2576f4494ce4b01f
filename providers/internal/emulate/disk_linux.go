package emulate

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// fillDisk fills the disk with the file fill, again when something was freed meanwhile.
const fillDisk = "for i in 1 2 3 4 5 6 7 8; do cat /dev/zero >>fill; done 2>/dev/null"

// FullDisk checks what a provider says when the machine's disk is full to the last
// byte: output is whole or its loss is told, and then the next command works and has
// room for some output, as often as somebody makes room again. A file is written or
// old, and reading goes on. It needs the right to mount.
func FullDisk(t *testing.T, s Subject) {
	if testing.Short() {
		t.Skip("takes long")
	}
	t.Helper()
	// The machine's user must be able to get there, which t.TempDir does not allow.
	dir, err := os.MkdirTemp("", "disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=12m,mode=1777"); err != nil {
		t.Skipf("no small disk can be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	temp := os.TempDir()
	t.Setenv("TMPDIR", dir)
	service, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	sb, err := s.Provider.Open(t.Context(), sandbox.Spec{Settings: service.Settings()})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	os.Setenv("TMPDIR", temp) // only the machine is there, not what the emulator keeps
	name := sb.Info().Dir + "/f"
	if err := sb.WriteFile(t.Context(), name, strings.NewReader("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(script string) (out string, told bool) {
		var b bytes.Buffer
		exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"sh", "-c", script}, Stdout: &b})
		if told = sandbox.CodeOf(err) == sandbox.CodeNoSpace; !told && (err != nil || exit != 0) {
			t.Fatalf("%s: exit %d, %v", script, exit, err)
		}
		return b.String(), told
	}
	const many = 400
	list := fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); echo a-name-that-has-some-length-$i; done", many)
	for round := range 6 {
		// Twice, as a command that failed is often tried again.
		for range 2 {
			if out, told := run(fillDisk + "; echo hello"); !told && out != "hello\n" {
				t.Errorf("round %d: a command that fills the disk: %q, and no word of a loss", round, out)
			}
			if out, told := run("echo hello"); told || out != "hello\n" {
				t.Errorf("round %d: the next command: %q, told of a full disk: %v", round, out, told)
			}
			if out, told := run(list); told || strings.Count(out, "\n") != many {
				t.Errorf("round %d: of %d lines came %d, told of a full disk: %v", round, many, strings.Count(out, "\n"), told)
			}
		}
		// What runs on may fill it when no command is there to see.
		fill := exec.Command("sh", "-c", fillDisk)
		fill.Dir = sb.Info().Dir
		fill.Run() // with the status of the last write, which found no room
		if out, told := run(list); !told && strings.Count(out, "\n") != many {
			t.Errorf("round %d: on a full disk came %d of %d lines, and no word of a loss", round, strings.Count(out, "\n"), many)
		}
		if out, told := run(list); told || strings.Count(out, "\n") != many {
			t.Errorf("round %d: then came %d of %d lines, told of a full disk: %v", round, strings.Count(out, "\n"), many, told)
		}
		run("rm -f fill")
	}
	run(fillDisk + "; :")
	err = sb.WriteFile(t.Context(), name, io.LimitReader(zeros{}, 1<<20), 0o644)
	if err == nil || sandbox.CodeOf(err) != sandbox.CodeNoSpace && sandbox.CodeOf(err) != sandbox.CodeUnavailable && sandbox.CodeOf(err) != sandbox.CodeInternal {
		t.Errorf("a file that does not fit: %v", err)
	} else if sandbox.CodeOf(err) != sandbox.CodeNoSpace {
		t.Logf("a file that does not fit is told as %v", err)
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != "old" {
		t.Errorf("afterwards the file has %d bytes, %v", len(data), err)
	}
	spec := sandbox.Spec{Settings: service.Settings(), ID: sb.Info().ID, Token: sb.Info().Token}
	if err := s.Provider.Destroy(t.Context(), spec); err != nil {
		t.Errorf("destroy: %v", err)
	}
}

package emulate

import (
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// FullDisk checks what a provider says when the machine's disk is full: output is
// whole or its loss is told, a file is written or old, and reading goes on. It
// needs the right to mount.
func FullDisk(t *testing.T, s Subject) {
	t.Helper()
	// The machine's user must be able to get there, which t.TempDir does not allow.
	dir, err := os.MkdirTemp("", "disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=4m,mode=1777"); err != nil {
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
	var out bytes.Buffer
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"sh", "-c", "cat /dev/zero >fill 2>/dev/null; echo hello"}, Stdout: &out})
	if told := sandbox.CodeOf(err) == sandbox.CodeNoSpace; !told && (err != nil || exit != 0 || out.String() != "hello\n") {
		t.Errorf("a command that fills the disk: exit %d, %q, %v", exit, out.String(), err)
	}
	err = sb.WriteFile(t.Context(), name, io.LimitReader(zeros{}, 1<<20), 0o644)
	if err == nil || sandbox.CodeOf(err) != sandbox.CodeNoSpace && sandbox.CodeOf(err) != sandbox.CodeUnavailable && sandbox.CodeOf(err) != sandbox.CodeInternal {
		t.Errorf("a file that does not fit: %v", err)
	} else if sandbox.CodeOf(err) != sandbox.CodeNoSpace {
		t.Logf("a file that does not fit is told as %v", err)
	}
	out.Reset()
	if data, err := os.ReadFile(name); err != nil || string(data) != "old" {
		t.Errorf("afterwards the file has %d bytes, %v", len(data), err)
	}
	spec := sandbox.Spec{Settings: service.Settings(), ID: sb.Info().ID, Token: sb.Info().Token}
	if err := s.Provider.Destroy(t.Context(), spec); err != nil {
		t.Errorf("destroy: %v", err)
	}
}

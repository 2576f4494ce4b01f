//go:build unix

package machine_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/sdk/machine"
)

func newMachine(t *testing.T) *machine.Machine {
	t.Helper()
	m, err := machine.New("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func TestProcessEnds(t *testing.T) {
	m := newMachine(t)
	for _, row := range []struct {
		script string
		exit   int
		out    string
	}{
		{"echo hi", 0, "hi\n"},
		{"exit 3", 3, ""},
		{"kill -9 $$", 137, ""},
		{"pwd -P", 0, m.Dir() + "\n"},
		{"cat; echo $HOME", 0, m.Dir() + "\n"},
		{"sleep 60 & echo now", 0, "now\n"},
		{"head -c 300000 /dev/zero | wc -c | tr -d ' '", 0, "300000\n"},
	} {
		t.Run(row.script, func(t *testing.T) {
			var out bytes.Buffer
			r, err := m.Start(machine.Process{Args: []string{"sh", "-c", row.script}, Stdout: &out})
			if err != nil {
				t.Fatal(err)
			}
			exit, err := r.Wait()
			if exit != row.exit || err != nil || out.String() != row.out {
				t.Errorf("got %d, %v, %q; want %d and %q", exit, err, out.String(), row.exit, row.out)
			}
		})
	}
}

func TestKillEndsStubbornFamily(t *testing.T) {
	m := newMachine(t)
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Start(machine.Process{
		Args:   []string{"sh", "-c", "trap '' TERM; sleep 300 & echo $!; wait; sleep 300"},
		Stdout: pw,
	})
	pw.Close()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 32)
	n, err := pr.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		t.Fatal(err)
	}
	r.Kill(200 * time.Millisecond)
	if exit, _ := r.Wait(); exit != 137 {
		t.Errorf("got exit %d, want 137", exit)
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat")
	if err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("child still runs: %s", stat)
	} else if err != nil && syscall.Kill(child, 0) == nil {
		t.Error("child still runs")
	}
}

func TestPathStaysInside(t *testing.T) {
	m := newMachine(t)
	if err := os.Symlink("/etc", filepath.Join(m.Dir(), "out")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/etc/passwd", "../../x", "out/passwd", "out/new", "/"} {
		if got, err := m.Path(name); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Path(%q): got %q, %v; want a refusal", name, got, err)
		}
	}
	if got, err := m.Path("a/b"); err != nil || got != filepath.Join(m.Dir(), "a/b") {
		t.Errorf("Path(a/b): got %q, %v", got, err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	m := newMachine(t)
	r, err := m.Start(machine.Process{Args: []string{"sleep", "300"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if exit, _ := r.Wait(); exit != 137 {
		t.Errorf("got exit %d, want 137", exit)
	}
	if _, err := os.Stat(m.Root()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("tree: got %v, want it gone", err)
	}
	if _, err := m.Start(machine.Process{Args: []string{"true"}}); !errors.Is(err, machine.ErrClosed) {
		t.Errorf("start after close: got %v", err)
	}
}

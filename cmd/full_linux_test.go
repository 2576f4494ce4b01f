package cmd

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

// A machine whose disk is full: what does not fit at the start is told and nothing
// runs; what calls fill it with, to the last byte and once more, comes home with all
// else.
func TestAFullDiskInTheMachine(t *testing.T) {
	disk, err := os.MkdirTemp("", "disk-") // where the machine's user can get
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(disk) })
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=12m,mode=1777"); err != nil {
		t.Skipf("no small disk can be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
	temp := os.TempDir()
	l := newLife(t, "daytona", rand.New(rand.NewPCG(1, 1)))
	defer l.cloud.Close()
	defer l.model.Close()
	t.Setenv("TMPDIR", disk) // of the machines, which this process makes
	l.env = append(l.env, "TMPDIR="+temp)
	random := rand.NewChaCha8([32]byte{})
	large := make([]byte, 7_000_000)
	for _, name := range []string{"large", "larger"} {
		random.Read(large)
		if err := os.WriteFile(filepath.Join(l.project, name), large, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	status, said := l.talkops("--sandbox", "daytona", "-p", "Do it")
	if status != exitSandbox || !strings.Contains(said, "could not upload to a Daytona sandbox") || !strings.Contains(said, "Nothing ran on this computer") {
		t.Errorf("an upload that does not fit: status %d\n%s", status, said)
	}
	for _, name := range []string{"large", "larger"} {
		if err := os.Remove(filepath.Join(l.project, name)); err != nil {
			t.Fatal(err)
		}
	}

	// A write that is cut by the end of the disk is followed by more, until none is left.
	const fill = "for i in 1 2 3 4 5 6 7 8; do cat /dev/urandom >> fill; done"
	l.model = modeltest.Start()
	defer l.model.Close()
	l.env = append(l.env, "OPENAI_BASE_URL="+l.model.OpenAI())
	for _, command := range []string{"echo first > first", "rm gone.txt; " + fill + "; echo last > last; cat app.txt", "cat first", fill, fill} {
		input, _ := json.Marshal(map[string]string{"command": command})
		l.model.Script(modeltest.Step{Calls: []modeltest.Call{{Name: "execute", Input: string(input)}}})
	}
	l.model.Script(modeltest.Step{Text: "Done."})
	status, said = l.talkops("--sandbox", "daytona", "--sandbox-export", "apply", "-p", "Do it")
	if status != exitOK {
		t.Errorf("a disk that a call fills: status %d\n%s", status, said)
	}
	for _, name := range []string{"first", "fill"} {
		if info, err := os.Stat(filepath.Join(l.project, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(l.project, "gone.txt")); err == nil {
		t.Error("gone.txt is there")
	}
	if _, said := l.talkops("sandbox", "list"); !strings.Contains(said, "no sandboxes of ours") {
		t.Error(said)
	}
}

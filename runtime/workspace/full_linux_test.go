package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// small is a directory on a disk of its own, which holds a megabyte.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=1m,mode=1777"); err != nil {
		t.Skipf("no small disk can be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

const twoMegabytes = `head -c 2000000 /dev/urandom > large; echo small > also; echo z > z`

// Where this computer has no room, that is said, what came before stays, and all
// comes when there is room.
func TestAFullDiskHereLosesNothing(t *testing.T) {
	root, box, disk := lay(t, map[string]string{"a": "x"}), t.TempDir(), small(t)
	upload(t, root, box)
	sb := boxAt(t, box, os.Getenv("PATH"))
	l, err := List(t.Context(), sb, box, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewHome(filepath.Join(disk, "run"), Run{Project: root}, box, nil, l)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, box, "echo first > first")
	if err := h.Bring(t.Context(), sb, false); err != nil {
		t.Fatal(err)
	}
	sh(t, box, twoMegabytes)
	err = h.Bring(t.Context(), sb, false)
	if is, ok := errors.AsType[*FullError](err); !ok || is.Dir != h.Dir || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	kept, err := OpenHome(h.Dir)
	if err != nil || strings.Join(changed(kept), " ") != "also first z" {
		t.Fatalf("kept: %q, %v", changed(kept), err)
	}
	for _, l := range kept.Left {
		if l.Why != "the disk of this computer is full" {
			t.Errorf("%q: %s", l.Name, l.Why)
		}
	}
	sh(t, disk, "head -c 2000000 /dev/zero > fill || true")
	if err := h.Bring(t.Context(), sb, true); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a disk without a byte left: %v", err)
	}
	if kept, err := OpenHome(h.Dir); err != nil || kept.change("first") == nil {
		t.Errorf("kept: %v, %v", kept, err)
	}
	sh(t, disk, "rm fill")
	if err := syscall.Mount("none", disk, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	if err := h.Bring(t.Context(), sb, true); err != nil || len(h.Changes) != 4 {
		t.Errorf("when there is room: %v, %v", changed(h), err)
	}
}

// A disk of the sandbox that is full is told at the upload, and what stands there can
// still be brought home, also what was written in part.
func TestAFullDiskThereIsToldAndLosesNothing(t *testing.T) {
	root := lay(t, map[string]string{"a": "x\n", "d/b": strings.Repeat("y", 5000)})
	sh(t, root, "head -c 2000000 /dev/urandom > z-large")
	box := small(t)
	sb := boxAt(t, box, os.Getenv("PATH"))
	err := planHere(t, root).Upload(t.Context(), sb, box, nil, nil)
	if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Code != sandbox.CodeNoSpace {
		t.Errorf("an upload that does not fit: %v", err)
	}

	sh(t, box, "rm -rf ./*")
	sh(t, root, "rm z-large")
	h := upload(t, root, box)
	sh(t, box, "echo more >> a; rm d/b; head -c 2000000 /dev/urandom > fill 2>/dev/null || true; : > empty")
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatalf("home from a full disk: %v", err)
	}
	if got := strings.Join(changed(h), " "); got != "a d/b empty fill" {
		t.Errorf("home came %q", got)
	}
	if out, err := h.Apply(t.Context(), root, h.Changes, false); err != nil || len(out.Conflicts) > 0 {
		t.Fatal(out, err)
	}
	sameTrees(t, root, box)
}

// A project on a full disk keeps what it had.
func TestApplyOnAFullDiskLeavesFilesWhole(t *testing.T) {
	root := small(t)
	sh(t, root, "echo old > f; echo g > g")
	box := t.TempDir()
	h := upload(t, root, box)
	sb := boxAt(t, box, os.Getenv("PATH"))
	sh(t, box, "head -c 2000000 /dev/urandom > f; echo new > g; rm -f g2; echo n > n")
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Apply(t.Context(), root, h.Changes, false); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("applied: %v", err)
	}
	if got := sh(t, root, "cat f; ls -A"); got != "old\nf\ng\n" {
		t.Errorf("the project is %q", got)
	}
	if err := syscall.Mount("none", root, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	if out, err := h.Apply(t.Context(), root, h.Changes, false); err != nil || len(out.Made) != 3 {
		t.Errorf("when there is room: %+v, %v", out, err)
	}
	sameTrees(t, root, box)
}

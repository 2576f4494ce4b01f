//go:build unix

package workspace

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A shaky sandbox breaks off some answers that are larger than so many bytes.
type shaky struct {
	sandbox.Sandbox
	mu    sync.Mutex
	most  int
	times int
}

func (s *shaky) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	s.mu.Lock()
	cut := cmd.Stdout != nil && s.times > 0
	s.mu.Unlock()
	if !cut {
		return s.Sandbox.Exec(ctx, cmd)
	}
	w := &cutting{w: cmd.Stdout, rest: s.most}
	cmd.Stdout = w
	exit, err := s.Sandbox.Exec(ctx, cmd)
	if w.rest < 0 {
		s.mu.Lock()
		s.times--
		s.mu.Unlock()
		return 0, sandbox.Errorf(sandbox.CodeUnavailable, "the connection was cut")
	}
	return exit, err
}

type cutting struct {
	w    io.Writer
	rest int
}

func (w *cutting) Write(p []byte) (int, error) {
	n := min(len(p), max(w.rest, 0))
	if w.rest -= len(p); w.rest < 0 {
		w.rest = -1
	}
	if _, err := w.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// A large file comes home part by part, with whatever compresses there, also where
// the connection is cut.
func TestALargeFileComesHomeInParts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for name, path := range map[string]string{"zstd": os.Getenv("PATH"), "gzip": pathWithout(t, "zstd"), "nothing": pathWithout(t, "zstd", "gzip")} {
		t.Run(name, func(t *testing.T) {
			root, box := lay(t, map[string]string{"a": "x"}), t.TempDir()
			upload(t, root, box)
			sb := &shaky{Sandbox: boxAt(t, box, path), most: 300_000}
			h := homeOf(t, sb, root, box, nil)
			sh(t, box, `mkdir -- '-d'; f='./-d/-large
file'; head -c 1000000 /dev/urandom > "$f"; truncate -s 280M "$f"; head -c 500001 /dev/urandom >> "$f"; echo small > small`)
			sb.times = 2
			arrived := int64(0)
			h.Heard = func(n int64, _ time.Duration) { arrived += n }
			err := h.Bring(t.Context(), sb, false)
			for errors.Is(err, sandbox.ErrUnavailable) { // the list was cut, which is asked for again
				err = h.Bring(t.Context(), sb, false)
			}
			if err != nil || len(h.Left) > 0 {
				t.Fatal(h.Left, err)
			}
			if out, err := h.Apply(t.Context(), root, h.Changes, false); err != nil || len(out.Conflicts) > 0 {
				t.Fatal(out, err)
			}
			sameTrees(t, root, box)
			if arrived < 280<<20 {
				t.Errorf("%d bytes were heard of", arrived)
			}
			if sb.times > 0 {
				t.Error("nothing was cut")
			}
			info, err := os.Stat(filepath.Join(root, "-d/-large\nfile"))
			if err != nil || stored(info) > 8<<20 {
				t.Errorf("it takes %d bytes of the disk: %v", stored(info), err)
			}
		})
	}
}

// What is more than may come home stays, the largest first, and comes when it may.
func TestWhatIsOverTheLimitStaysAndIsNamed(t *testing.T) {
	_, box, sb, h := sent(t, map[string]string{"a": "x"})
	sh(t, box, `head -c 5000 /dev/zero > aaa; head -c 400 /dev/zero > b; head -c 500 /dev/zero > c; head -c 200 /dev/zero > d; ln -s c l`)
	h.Most = 1000
	err := h.Bring(t.Context(), sb, true)
	lost, is := errors.AsType[*LostError](err)
	if !is || len(lost.Left) != 2 || lost.Left[0].Name != "aaa" || lost.Left[1].Name != "c" || !lost.Left[0].Over ||
		lost.Left[0].Why != "it has 4.9 KiB, and no more than 1000 B comes home (sync.max_return_bytes)" {
		t.Fatalf("lost %+v, %v", lost, err)
	}
	if got := changed(h); strings.Join(got, " ") != "b d l" {
		t.Errorf("home came %q", got)
	}
	again, err := OpenHome(h.Dir)
	if err != nil || len(again.Left) != 2 || !again.Left[0].Over {
		t.Fatalf("noted %+v, %v", again, err)
	}
	if err := again.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := again.Bring(t.Context(), sb, true); err != nil || len(again.Left) > 0 || len(again.Changes) != 5 {
		t.Errorf("left %v, %v", again.Left, err)
	}
	// What has come stays, whatever the limit is the next time.
	third, err := OpenHome(h.Dir)
	if err == nil {
		err = third.Resume()
	}
	if err != nil {
		t.Fatal(err)
	}
	third.Most = 1000
	sh(t, box, `echo new > e`)
	if err, is := errors.AsType[*LostError](third.Bring(t.Context(), sb, true)); !is || len(err.Left) != 1 || err.Left[0].Name != "e" || len(third.Changes) != 5 {
		t.Errorf("with the limit again: %v, %q", err, changed(third))
	}
}

func changed(h *Home) []string {
	var list []string
	for _, c := range h.Changes {
		list = append(list, c.Name)
	}
	return list
}

// A sandbox without tar is read file by file.
func TestChangesComeHomeWithoutTar(t *testing.T) {
	root, box, _, h := sent(t, start)
	sh(t, box, work)
	sb := boxAt(t, box, pathWithout(t, "tar"))
	if err := h.Bring(t.Context(), sb, true); err != nil || len(h.Left) > 0 {
		t.Fatal(h.Left, err)
	}
	if out, err := h.Apply(t.Context(), root, h.Changes, false); err != nil || len(out.Conflicts) > 0 {
		t.Fatal(out, err)
	}
	os.RemoveAll(filepath.Join(box, "node_modules"))
	sameTrees(t, root, box)
}

// Of a file that grew over the limit, what came home before is kept.
func TestWhatGrowsOverTheLimitStaysAsItCameBefore(t *testing.T) {
	_, box, sb, h := sent(t, map[string]string{"a": "x"})
	sh(t, box, `echo first > log; echo b > b`)
	h.Most = 1000
	if err := h.Bring(t.Context(), sb, false); err != nil {
		t.Fatal(err)
	}
	sh(t, box, `head -c 5000 /dev/zero >> log`)
	if err := h.Bring(t.Context(), sb, true); err == nil {
		t.Fatal("nothing is over")
	}
	again, err := OpenHome(h.Dir)
	if err != nil || strings.Join(changed(again), " ") != "b log" || len(again.Left) != 1 {
		t.Fatalf("noted %+v, %v", again, err)
	}
	root := t.TempDir()
	if out, err := again.Pull(t.Context(), root, again.Changes); err != nil || len(out.Conflicts) > 0 {
		t.Fatal(out, err)
	}
	if got := sh(t, root, "cat log"); got != "first\n" {
		t.Errorf("kept is %q", got)
	}
}

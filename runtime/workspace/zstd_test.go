//go:build unix

package workspace

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A wire notes what archives on their way to and from a sandbox begin with.
type wire struct {
	sandbox.Sandbox
	up, down string
}

func (w *wire) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	script := cmd.Args[2]
	if cmd.Stdin != nil {
		head := make([]byte, 2)
		if n, _ := io.ReadFull(cmd.Stdin, head); n == 2 {
			w.up = string(head)
		}
		cmd.Stdin = io.MultiReader(strings.NewReader(w.up), cmd.Stdin)
	}
	if strings.Contains(script, "tar $u -cf") {
		cmd.Stdout = &began{cmd.Stdout, &w.down}
	}
	return w.Sandbox.Exec(ctx, cmd)
}

type began struct {
	io.Writer
	head *string
}

func (b *began) Write(p []byte) (int, error) {
	if *b.head == "" {
		*b.head = string(p[:2])
	}
	return b.Writer.Write(p)
}

func TestArchivesTravelByTheBestTheSandboxHas(t *testing.T) {
	for _, row := range []struct {
		without  []string
		up, down string
	}{
		{nil, "\x28\xb5", "\x28\xb5"},
		{[]string{"zstd"}, "\x1f\x8b", "\x1f\x8b"},
		{[]string{"zstd", "gzip"}, "", "./"},
		{[]string{"zstd", "gzip", "tar"}, "", ""},
	} {
		t.Run("without "+strings.Join(row.without, " "), func(t *testing.T) {
			root, box := lay(t, start), t.TempDir()
			noise := make([]byte, 3<<20)
			rand.NewChaCha8([32]byte{}).Read(noise)
			os.WriteFile(filepath.Join(root, "noise"), noise, 0o644)
			sb := &wire{Sandbox: boxAt(t, box, pathWithout(t, row.without...))}
			p, err := Make(t.Context(), root, limits)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Upload(t.Context(), sb, box, nil, nil); err != nil {
				t.Fatal(err)
			}
			sameTrees(t, box, root)
			h := homeOf(t, sb, root, box, p)
			sh(t, box, work+"; cat noise noise > more")
			if err := h.Bring(t.Context(), sb, true); err != nil && row.down != "" {
				t.Fatal(err)
			}
			if sb.up != row.up || sb.down != row.down {
				t.Errorf("an archive began with %q on its way there and %q on its way back, want %q and %q", sb.up, sb.down, row.up, row.down)
			}
			if row.down == "" {
				return
			}
			if out, err := h.Apply(t.Context(), root, h.Changes, false); err != nil || len(out.Conflicts) > 0 {
				t.Fatal(out, err)
			}
			os.RemoveAll(filepath.Join(box, "node_modules"))
			sameTrees(t, root, box)
		})
	}
}

// pathWithout is a directory of commands with all that PATH has but these.
func pathWithout(t *testing.T, not ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		entries, _ := os.ReadDir(from)
		for _, e := range entries {
			os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name()))
		}
	}
	for _, name := range not {
		os.Remove(filepath.Join(dir, name))
	}
	if _, err := exec.LookPath("zstd"); err != nil {
		t.Skip(err)
	}
	return dir
}

// A sandbox that loses the end of an upload has not taken it.
func TestAnUploadThatIsCutFails(t *testing.T) {
	for _, without := range [][]string{nil, {"zstd"}} {
		root, box := lay(t, map[string]string{}), t.TempDir()
		for i := range 50 {
			noise := make([]byte, i*100)
			rand.NewChaCha8([32]byte{}).Read(noise)
			os.WriteFile(filepath.Join(root, strings.Repeat("f", i+1)), noise, 0o644)
		}
		p, err := Make(t.Context(), root, limits)
		if err != nil {
			t.Fatal(err)
		}
		for _, room := range []int64{0, 10, 200, 1000, 3000} {
			if err := p.Upload(t.Context(), cut{boxAt(t, box, pathWithout(t, without...)), room}, box, nil, nil); err == nil {
				t.Errorf("an upload cut after %d bytes went well", room)
			}
		}
	}
}

// A cut sandbox gives commands the beginning of their input.
type cut struct {
	sandbox.Sandbox
	room int64
}

func (c cut) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	if r := cmd.Stdin; r != nil {
		cmd.Stdin = io.LimitReader(r, c.room)
		defer io.Copy(io.Discard, r)
	}
	return c.Sandbox.Exec(ctx, cmd)
}

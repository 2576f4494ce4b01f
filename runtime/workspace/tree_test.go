//go:build unix

package workspace

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// boxAt is a sandbox at dir with the programs of path.
func boxAt(t testing.TB, dir, path string) sandbox.Sandbox {
	t.Helper()
	sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{Dir: dir, Env: map[string]string{"PATH": path}})
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// userlands are what sandboxes may have: a directory of programs by name.
func userlands(t *testing.T) map[string]string {
	list := map[string]string{"GNU": os.Getenv("PATH")}
	with := func(name string, without ...string) {
		bin := t.TempDir()
		for _, tool := range []string{"find", "stat", "sha256sum", "cksum", "readlink", "date", "ls", "sh", "tar"} {
			if slices.Contains(without, tool) {
				continue
			}
			from, err := exec.LookPath("busybox")
			if err != nil {
				t.Log(err)
				return
			}
			if tool == "cksum" { // not in every build of BusyBox
				if from, err = exec.LookPath("cksum"); err != nil {
					continue
				}
			}
			if err := os.Symlink(from, filepath.Join(bin, tool)); err != nil {
				t.Fatal(err)
			}
		}
		list[name] = bin
	}
	with("BusyBox")
	with("BusyBox without stat and sha256sum", "stat", "sha256sum")
	return list
}

func TestListingTellsEverythingInEveryUserland(t *testing.T) {
	odd := []string{"plain", "a b", "it's", `q"q`, "new\nline", `back\slash`, `\n`, "-dash", "tab\t", "cr\r", "$HOME", "*", "\xff\xfe", "é", "e\u0301", " lead", "trail ", "x\n\ny"}
	for userland, path := range userlands(t) {
		t.Run(userland, func(t *testing.T) {
			root := lay(t, map[string]string{"d/f": "in d", "empty/": "", "link": "->d/f", "dangling": "->no\nwhere\n", "n/node_modules/x": "x", ".cache/x": "x", ".terraform.d/checkpoint_signature": "x", ".ansible/tmp/x": "x", "sub/.cache/x": "x", ".bash_history": "x",
				".talkops-1000/room1": "x", ".talkops-1/d/x": "x", "sub/.talkops-1/x": "x"})
			os.Chmod(filepath.Join(root, ".talkops-1000"), 0o700)
			os.Chmod(filepath.Join(root, ".talkops-1/d"), 0o700)
			os.Chmod(filepath.Join(root, "sub/.talkops-1"), 0o700)
			for _, name := range odd {
				if err := os.WriteFile(filepath.Join(root, name), []byte(name), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			os.Chmod(filepath.Join(root, "plain"), 0o4755|os.ModeSetuid)
			os.Chmod(filepath.Join(root, "empty"), 0o711)
			if err := syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := List(t.Context(), boxAt(t, root, path), root, nil, nil)
			if err != nil || len(l.Blind) > 0 {
				t.Fatal(l, err)
			}
			want := append([]string{"d", "d/f", "empty", "link", "dangling", "n", "sub", "sub/.cache", "sub/.cache/x", "fifo", ".talkops-1", ".talkops-1/d", ".talkops-1/d/x", "sub/.talkops-1", "sub/.talkops-1/x"}, odd...)
			slices.Sort(want)
			if got := slices.Sorted(maps.Keys(l.Tree)); !slices.Equal(got, want) {
				t.Fatalf("listed %q\nwant %q", got, want)
			}
			for _, name := range odd {
				e := l.Tree[name]
				sum, err := localSum(filepath.Join(root, name), e.Sum)
				if err != nil || e.Kind != File || e.Sum != sum || e.Size != int64(len(name)) {
					t.Errorf("%q: %+v, want the checksum %s", name, e, sum)
				}
				want := os.FileMode(0o640)
				if name == "plain" {
					want = 0o755
				}
				if e.Mode != want {
					t.Errorf("%q: mode %o, want %o", name, e.Mode, want)
				}
			}
			for name, want := range map[string]Entry{"empty": {Kind: Dir, Mode: 0o711}, "link": {Kind: Link, Target: "d/f"}, "dangling": {Kind: Link, Target: "no\nwhere\n"}, "fifo": {Kind: Other}} {
				if e := l.Tree[name]; !e.same(want) {
					t.Errorf("%q: %+v, want %+v", name, e, want)
				}
			}
		})
	}
}

// A counting sandbox counts the bytes of the names it was asked the content of.
type counting struct {
	sandbox.Sandbox
	asked []string
}

func (c *counting) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	if strings.Contains(cmd.Args[2], "&& shift") {
		c.asked = append(c.asked, cmd.Args[5:]...)
	}
	return c.Sandbox.Exec(ctx, cmd)
}

func TestOnlyWhatChangedIsReadAgain(t *testing.T) {
	for userland, path := range userlands(t) {
		t.Run(userland, func(t *testing.T) {
			if strings.Contains(userland, "without stat") {
				t.Skip("without stat every file is read")
			}
			root := lay(t, map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"})
			sb := &counting{Sandbox: boxAt(t, root, path)}
			settle()
			first, err := List(t.Context(), sb, root, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			at := time.Now().Add(-time.Hour)
			os.WriteFile(filepath.Join(root, "b"), []byte("9"), 0o644) // same size
			os.Chtimes(filepath.Join(root, "b"), at, at)
			os.Chmod(filepath.Join(root, "c"), 0o600)
			os.Remove(filepath.Join(root, "d"))
			second, err := List(t.Context(), sb, root, nil, first.Tree)
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{"./b", "./c"}; !slices.Equal(sb.asked, want) {
				t.Errorf("read again: %q, want %q", sb.asked, want)
			}
			whole, err := List(t.Context(), sb, root, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c := Compare(whole.Tree, second.Tree); !c.Empty() {
				t.Errorf("a listing with what is known differs from a whole one in %v", c)
			}
			if c := Compare(first.Tree, second.Tree); !slices.Equal(c.Written, []string{"b", "c"}) || !slices.Equal(c.Deleted, []string{"d"}) {
				t.Errorf("changes %+v", c)
			}
		})
	}
}

// settle lets the clock go on: what was written in the moment of a listing may
// change again unseen, and is read again by the next.
func settle() { <-time.After(3500 * time.Millisecond) }

// BenchmarkListing reports "ratio": our time over that of tar and gzip reading the
// same tree.
func BenchmarkListing(b *testing.B) {
	for _, n := range []int{10_000, 50_000} {
		root := manyFiles(b, n, 2_000)
		sb := boxAt(b, root, os.Getenv("PATH"))
		began := time.Now()
		if out, err := exec.Command("sh", "-c", `tar -C "$1" -c . | gzip -1 > /dev/null`, "sh", root).CombinedOutput(); err != nil {
			b.Skipf("%v: %s", err, out)
		}
		plain := time.Since(began)
		settle()
		l, err := List(b.Context(), sb, root, nil, nil)
		if err != nil || len(l.Tree) != n+n/100 {
			b.Fatal(err)
		}
		for _, known := range []Tree{nil, l.Tree} {
			name := fmt.Sprintf("%d files", n)
			if known != nil {
				name += ", nothing changed"
			}
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					if _, err := List(b.Context(), sb, root, nil, known); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(plain), "ratio")
			})
		}
	}
}

//go:build unix

package workspace

import (
	"archive/tar"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// What stands in the sandbox after an upload is what stands here, to the second and
// the bit, with whatever tools the sandbox has.
func TestAnUploadIsFaithful(t *testing.T) {
	bin := t.TempDir()
	paths := map[string]string{"GNU": os.Getenv("PATH"), "BusyBox": bin, "no tar": pathWithout(t, "tar")}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		delete(paths, "BusyBox")
	}
	for _, tool := range []string{"sh", "mkdir", "tar", "gzip", "cat"} {
		os.Symlink(busybox, filepath.Join(bin, tool))
	}
	for userland, path := range paths {
		t.Run(userland, func(t *testing.T) {
			root := lay(t, map[string]string{
				"plain": "x", "empty": "", "void/deep/": "", "run.sh": "#!/bin/sh\n", "readonly": "x", "d/f": "x", "link": "->d/f", "up/link": "->../d", "dangling": "->no\nwhere",
				"new\nline": "x", "it's": "x", `q"q`: "x", "-dash": "x", "--help": "x", " lead": "x", "trail ": "x", "\xff\xfe": "x", "$HOME": "x", "*": "x", `back\slash`: "x", "tab\t": "x",
				"caf\u00e9": "composed", "cafe\u0301": "apart", "Makefile": "upper", "makefile": "lower", strings.Repeat("n", 255): "long", strings.Repeat("dir/", 60) + "f": "far",
				"equal=sign": "x", "%s": "x", "a:b": "x", "日本語": "x",
			})
			for name, mode := range map[string]os.FileMode{"run.sh": 0o755, "readonly": 0o444, "plain": 0o640, "d": 0o711, "void": 0o700, "d/f": 0o600} {
				os.Chmod(filepath.Join(root, name), mode)
			}
			holes := map[string]int64{"sparse": 0, "d/sparse tail\n": 7 << 20, "all hole": 8 << 20, strings.Repeat("s", 200): 0}
			for name, size := range holes {
				f, err := os.Create(filepath.Join(root, name))
				if err != nil {
					t.Fatal(err)
				}
				if name != "all hole" {
					f.WriteAt([]byte("middle"), 5<<20+100)
				}
				if size > 0 {
					f.Truncate(size)
				} else {
					f.WriteAt([]byte("end"), 9<<20)
				}
				f.Close()
			}
			old := time.Date(1999, 12, 31, 23, 59, 59, 123456789, time.UTC)
			for _, name := range []string{"plain", "run.sh", "d/f", "void/deep", "d", "sparse"} {
				os.Chtimes(filepath.Join(root, name), old, old)
			}
			box := filepath.Join(t.TempDir(), "box")
			p := planHere(t, root)
			if err := p.Upload(t.Context(), boxAt(t, t.TempDir(), path), box, nil, nil); err != nil {
				t.Fatal(err)
			}
			sameTrees(t, box, root)
			for _, item := range p.Items {
				info, err := os.Lstat(filepath.Join(box, item.Name))
				if err != nil {
					t.Fatal(err)
				}
				// BusyBox's tar writes into directories after it set their time.
				if got := info.ModTime(); item.Link == "" && (userland == "GNU" || userland == "BusyBox" && !item.Mode.IsDir()) && got.Unix() != item.Time.Unix() {
					t.Errorf("%q was written at %v, want %v", item.Name, got, item.Time)
				}
				if _, is := holes[item.Name]; is && userland == "GNU" && stored(info) > 64<<10 {
					t.Errorf("%q takes %d bytes of the disk, %d here", item.Name, stored(info), item.Stored)
				}
			}
			var report strings.Builder
			p.Report(&report)
			if told := strings.Contains(report.String(), "arrived without holes"); told != (userland != "GNU") {
				t.Errorf("the report is %q", report.String())
			}
		})
	}
}

func planHere(t *testing.T, root string) *Plan {
	t.Helper()
	p, err := Make(t.Context(), root, limits)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNamesThatAreOneElsewhereAreNamed(t *testing.T) {
	root := lay(t, map[string]string{"caf\u00e9": "", "cafe\u0301": "", "CAFE\u0301": "", "Makefile": "", "makefile": "", "d/A": "", "D/a": "", "other": "", "\xff": "", "\xfe": "", "stra\u00dfe": "", "strasse": ""})
	got := planHere(t, root).Alike
	for _, names := range got {
		slices.Sort(names)
	}
	want := [][]string{{"CAFE\u0301", "cafe\u0301", "caf\u00e9"}, {"D", "d"}, {"D/a", "d/A"}, {"Makefile", "makefile"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("alike are %q, want %q", got, want)
	}
	var report strings.Builder
	planHere(t, root).Report(&report)
	if !strings.Contains(report.String(), "note: Makefile, makefile are sent as they are, but are one name where case") {
		t.Errorf("the report is %q", report.String())
	}
}

// A file that becomes shorter while it is sent is noted as what arrives.
func TestTheSumOfAFileThatShrinksIsThatOfWhatIsSent(t *testing.T) {
	root := lay(t, map[string]string{"f": strings.Repeat("x", 1<<20)})
	p, err := Make(t.Context(), root, Rules{MaxFileBytes: 10 << 20})
	if err != nil {
		t.Fatal(err)
	}
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(p.write(pw, true, nil, nil)) }()
	tr := tar.NewReader(pr)
	if _, err := tr.Next(); err != nil {
		t.Fatal(err)
	}
	sh(t, root, "truncate -s 10 f")
	data, err := io.ReadAll(tr)
	if err != nil || len(data) != 1<<20 || !strings.HasSuffix(string(data), "\x00") {
		t.Fatalf("%d bytes came, %v", len(data), err)
	}
	io.Copy(io.Discard, pr)
	if got, want := p.sent["f"].Sum, sumOf(data); got != want {
		t.Errorf("noted %s, sent %s", got, want)
	}
}

// What is too large is told with its size, and how much of it there is.
func TestALargeFileIsNamedWithItsSizes(t *testing.T) {
	root := lay(t, map[string]string{"a": "x"})
	sh(t, root, "truncate -s 10G disk.img; head -c 11534336 /dev/zero > full")
	var report strings.Builder
	planHere(t, root).Report(&report)
	if got, want := report.String(), "too large: disk.img (10.0 GiB, of which 0 B on the disk), full (11.0 MiB)\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want it to end in %q", got, want)
	}
}

// What was saved with holes has them in another machine too, or it is told.
func TestSavedHolesStayHolesInAnotherMachine(t *testing.T) {
	_, box, sb, h := sent(t, map[string]string{"a": "x"})
	sh(t, box, `truncate -s 9M tail; truncate -s 8M all; printf end >> tail; chmod 755 tail; echo y > a; mkdir d; ln -s a d/link`)
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	for userland, path := range map[string]string{"GNU": os.Getenv("PATH"), "no tar": pathWithout(t, "tar")} {
		t.Run(userland, func(t *testing.T) {
			other := t.TempDir()
			filled, err := h.Send(t.Context(), boxAt(t, other, path), other, h.Changes)
			if err != nil {
				t.Fatal(err)
			}
			sameTrees(t, other, box)
			want := []string{"all", "tail"}
			if userland == "GNU" {
				want = nil
			}
			if !slices.Equal(filled, want) {
				t.Errorf("told are %q, want %q", filled, want)
			}
			info, err := os.Lstat(filepath.Join(other, "tail"))
			if err != nil {
				t.Fatal(err)
			}
			if userland == "GNU" && stored(info) > 64<<10 {
				t.Errorf("%d bytes are on the disk", stored(info))
			}
		})
	}
}

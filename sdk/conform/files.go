package conform

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// oddNames are file names that must be taken literally.
var oddNames = []string{"a b", "it's", `q"q`, "$HOME", "`id`", "$(id)", "a;b", "a&b", "*", "[x]", "(1)", `back\slash`, "tab\tx", "-dash", "new\nline", "日本語", "é", "e\u0301"}

func fileRules() []Rule {
	return []Rule{
		{"C227", "a written file can be read and seen by commands", func(ctx context.Context, c *Case) {
			c.write(ctx, "a.txt", "one\ntwo\n")
			c.want(c.script(ctx, "cat a.txt"), 0, "one\ntwo\n", "")
			if got := c.read(ctx, "a.txt"); got != "one\ntwo\n" {
				c.errorf("read %q", got)
			}
		}},
		{"C228", "bytes are exact both ways", func(ctx context.Context, c *Case) {
			var all []byte
			for i := range 256 {
				all = append(all, byte(i))
			}
			want := string(all) + "\n\t\r\x00 no newline"
			c.write(ctx, "bytes", want)
			if got := c.read(ctx, "bytes"); got != want {
				c.errorf("read %q", clip(got))
			}
			c.write(ctx, "empty", "")
			if got := c.read(ctx, "empty"); got != "" {
				c.errorf("the empty file reads %q", got)
			}
		}},
		{"C10", "names are taken literally", func(ctx context.Context, c *Case) {
			for _, name := range oddNames {
				c.write(ctx, "d/"+name, name)
				if got := c.read(ctx, "d/"+name); got != name {
					c.errorf("%q reads %q", name, got)
				}
			}
			if n := len(c.sh(ctx, `cd "$1" && for f in * .*; do case $f in .|..|'.*') ;; *) printf x;; esac; done`, c.path("d"))); n != len(oddNames) {
				c.errorf("%d files, want %d", n, len(oddNames))
			}
		}},
		{"C65", "writing replaces what was there", func(ctx context.Context, c *Case) {
			c.write(ctx, "f", strings.Repeat("long", 100))
			c.write(ctx, "f", "short")
			if got := c.read(ctx, "f"); got != "short" {
				c.errorf("read %q", clip(got))
			}
		}},
		{"C66", "an existing file keeps its mode", func(ctx context.Context, c *Case) {
			c.sh(ctx, `cd "$1" && echo old > f && chmod 0755 f`, c.Dir)
			c.write(ctx, "f", "new")
			if got := c.sh(ctx, `cd "$1" && ls -l f | cut -c1-10`, c.Dir); got != "-rwxr-xr-x\n" {
				c.errorf("mode is %q", got)
			}
		}},
		{"C67", "a link stays a link and its target is written", func(ctx context.Context, c *Case) {
			c.sh(ctx, `cd "$1" && mkdir s && echo old > s/f && ln -s s/f link`, c.Dir)
			c.write(ctx, "link", "new")
			c.want(c.script(ctx, "cat s/f; [ -h link ] && echo link"), 0, "newlink\n", "")
		}},
		{"C73", "a directory cannot be written", func(ctx context.Context, c *Case) {
			c.sh(ctx, `mkdir "$1"/d && : > "$1"/d/x`, c.Dir)
			c.code(c.Sandbox.WriteFile(ctx, c.path("d"), strings.NewReader("x"), 0o644), sandbox.CodeIsDirectory)
			c.want(c.script(ctx, "ls d"), 0, "x\n", "")
		}},
		{"C76", "a write cut half way leaves the old file whole", func(ctx context.Context, c *Case) {
			c.write(ctx, "f", "old content")
			broken := errors.New("the source broke")
			r := io.MultiReader(strings.NewReader(strings.Repeat("new", 100000)), errReader{broken})
			if err := c.Sandbox.WriteFile(ctx, c.path("f"), r, 0o644); err == nil {
				c.errorf("no error")
			}
			if got := c.read(ctx, "f"); got != "old content" {
				c.errorf("the file now reads %q", clip(got))
			}
			c.want(c.script(ctx, "ls -A"), 0, "f\n", "")
		}},
		{"C232", "a relative path is invalid", func(ctx context.Context, c *Case) {
			c.code(c.Sandbox.WriteFile(ctx, "relative.txt", strings.NewReader("x"), 0o644), sandbox.CodeInvalidPath)
			c.code(c.Sandbox.ReadFile(ctx, "relative.txt", io.Discard), sandbox.CodeInvalidPath)
			c.code(c.Sandbox.ReadFile(ctx, "", io.Discard), sandbox.CodeInvalidPath)
		}},
		{"C8", "a path that holds NUL is invalid", func(ctx context.Context, c *Case) {
			c.code(c.Sandbox.WriteFile(ctx, c.path("a\x00b"), strings.NewReader("x"), 0o644), sandbox.CodeInvalidPath)
			c.code(c.Sandbox.ReadFile(ctx, c.path("a\x00b"), io.Discard), sandbox.CodeInvalidPath)
		}},
		{"C234", "a missing file is file_not_found", func(ctx context.Context, c *Case) {
			var b bytes.Buffer
			c.code(c.Sandbox.ReadFile(ctx, c.path("missing"), &b), sandbox.CodeFileNotFound)
			if b.Len() > 0 {
				c.errorf("content %q", clip(b.String()))
			}
			c.sh(ctx, `ln -s nowhere "$1"/dangling`, c.Dir)
			c.code(c.Sandbox.ReadFile(ctx, c.path("dangling"), io.Discard), sandbox.CodeFileNotFound)
		}},
		{"C235", "reading a directory is is_directory", func(ctx context.Context, c *Case) {
			c.code(c.Sandbox.ReadFile(ctx, c.Dir, io.Discard), sandbox.CodeIsDirectory)
		}},
		{"C82", "reading a FIFO fails at once", func(ctx context.Context, c *Case) {
			c.sh(ctx, `mkfifo "$1"/p`, c.Dir)
			c.code(c.Sandbox.ReadFile(ctx, c.path("p"), io.Discard), sandbox.CodeNotAFile)
		}},
		{"C236", "an unreadable file is permission_denied", func(ctx context.Context, c *Case) {
			if c.sh(ctx, "id -u") == "0\n" {
				c.skip("the sandbox's user is root, who may read everything")
			}
			c.sh(ctx, `cd "$1" && echo x > f && chmod 000 f`, c.Dir)
			c.code(c.Sandbox.ReadFile(ctx, c.path("f"), io.Discard), sandbox.CodePermissionDenied)
		}},
		{"C75", "an unwritable directory is permission_denied and nothing is left", func(ctx context.Context, c *Case) {
			if c.sh(ctx, "id -u") == "0\n" {
				c.skip("the sandbox's user is root, who may write everything")
			}
			c.sh(ctx, `mkdir "$1"/d && chmod 0555 "$1"/d`, c.Dir)
			c.code(c.Sandbox.WriteFile(ctx, c.path("d/f"), strings.NewReader("x"), 0o644), sandbox.CodePermissionDenied)
			c.want(c.script(ctx, "ls -A d"), 0, "", "")
		}},
		{"C237", "missing parents are made", func(ctx context.Context, c *Case) {
			c.write(ctx, "a/b/c/f", "deep")
			c.want(c.script(ctx, "cat a/b/c/f"), 0, "deep", "")
		}},
		{"C238", "a file as parent is invalid_path", func(ctx context.Context, c *Case) {
			c.write(ctx, "f", "x")
			c.code(c.Sandbox.WriteFile(ctx, c.path("f/x"), strings.NewReader("y"), 0o644), sandbox.CodeInvalidPath)
		}},
		{"C239", "a new file has the mode asked for", func(ctx context.Context, c *Case) {
			if err := c.Sandbox.WriteFile(ctx, c.path("run"), strings.NewReader("#!/bin/sh\necho ran\n"), 0o755); err != nil {
				c.fatalf("write: %v", err)
			}
			c.want(c.script(ctx, "./run"), 0, "ran\n", "")
		}},
		{"C240", "10 MiB go both ways exactly", func(ctx context.Context, c *Case) {
			const size = 10 << 20
			up := sha256.New()
			err := c.Sandbox.WriteFile(ctx, c.path("big"), io.TeeReader(io.LimitReader(&noise{}, size), up), 0o644)
			if err != nil {
				c.fatalf("write: %v", err)
			}
			c.want(c.script(ctx, "wc -c < big | tr -d ' '"), 0, fmt.Sprintln(size), "")
			down := sha256.New()
			if err := c.Sandbox.ReadFile(ctx, c.path("big"), down); err != nil {
				c.fatalf("read: %v", err)
			}
			if a, b := hex.EncodeToString(up.Sum(nil)), hex.EncodeToString(down.Sum(nil)); a != b {
				c.errorf("what came back differs")
			}
		}},
		{"C243", "a tree keeps modes, links, empty directories and names", func(ctx context.Context, c *Case) {
			dir := c.path("tree")
			if err := sandbox.Unpack(ctx, c.Sandbox, dir, bytes.NewReader(sampleTree())); err != nil {
				c.fatalf("unpack: %v", err)
			}
			c.want(c.exec(ctx, sandbox.Cmd{Dir: dir, Args: []string{"/bin/sh", "-c", `[ -x run ] && [ -d empty ] && [ -h link ] && [ "$(readlink link)" = run ] && [ -h dangling ] && cat 'sub/new
line'`}}), 0, "odd", "")
		}},
		{"C253", "a packed tree comes back as it is", func(ctx context.Context, c *Case) {
			c.sh(ctx, `cd "$1" && mkdir -p t/d && printf x > t/d/f && chmod 755 t/d/f && ln -s d/f t/l`, c.Dir)
			var b bytes.Buffer
			if err := sandbox.Pack(ctx, c.Sandbox, c.path("t"), []string{"d", "l"}, &b); err != nil {
				c.fatalf("pack: %v", err)
			}
			got := map[string]string{}
			for tr := tar.NewReader(&b); ; {
				h, err := tr.Next()
				if err != nil {
					break
				}
				data, _ := io.ReadAll(tr)
				got[path.Clean(h.Name)] = fmt.Sprintf("%c %o %s%s", h.Typeflag, h.Mode&0o777, h.Linkname, data)
			}
			if got["d/f"] != "0 755 x" || !strings.HasSuffix(got["l"], " d/f") {
				c.errorf("archive holds %q", got)
			}
		}},
		{"C275", "two writes of one file at once leave one of the two, whole", func(ctx context.Context, c *Case) {
			a, b := strings.Repeat("a", 300000), strings.Repeat("b", 300000)
			var wg sync.WaitGroup
			for _, s := range []string{a, b} {
				wg.Go(func() {
					if err := c.Sandbox.WriteFile(ctx, c.path("f"), strings.NewReader(s), 0o644); err != nil {
						c.errorf("write: %v", err)
					}
				})
			}
			wg.Wait()
			if got := c.read(ctx, "f"); got != a && got != b {
				c.errorf("the file is a mixture of %d bytes", len(got))
			}
		}},
		{"C277", "files are read while a command runs", func(ctx context.Context, c *Case) {
			c.write(ctx, "f", "x")
			long, cancel := context.WithCancel(ctx)
			var wg sync.WaitGroup
			wg.Go(func() { c.script(long, "sleep 20") })
			if got := c.read(ctx, "f"); got != "x" {
				c.errorf("read %q", got)
			}
			cancel()
			wg.Wait()
		}},
	}
}

func sampleTree() []byte {
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	add := func(h tar.Header, body string) {
		h.Size = int64(len(body))
		tw.WriteHeader(&h)
		io.WriteString(tw, body)
	}
	add(tar.Header{Name: "run", Mode: 0o755, Typeflag: tar.TypeReg}, "#!/bin/sh\n")
	add(tar.Header{Name: "empty/", Mode: 0o755, Typeflag: tar.TypeDir}, "")
	add(tar.Header{Name: "link", Linkname: "run", Typeflag: tar.TypeSymlink, Mode: 0o777}, "")
	add(tar.Header{Name: "dangling", Linkname: "nowhere", Typeflag: tar.TypeSymlink, Mode: 0o777}, "")
	add(tar.Header{Name: "sub/", Mode: 0o755, Typeflag: tar.TypeDir}, "")
	add(tar.Header{Name: "sub/new\nline", Mode: 0o644, Typeflag: tar.TypeReg}, "odd")
	tw.Close()
	return b.Bytes()
}

// noise is an endless stream of bytes that do not repeat soon.
type noise struct{ x uint64 }

func (n *noise) Read(p []byte) (int, error) {
	for i := range p {
		n.x = n.x*6364136223846793005 + 1442695040888963407
		p[i] = byte(n.x >> 33)
	}
	return len(p), nil
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

package sandbox

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A Codec is a compression that is used where the sandbox has its program.
type Codec struct {
	Program string // of the sandbox, called like gzip: -1 -c, -d -c and -q
	Magic   string // what a compressed stream begins with
	Writer  func(io.Writer) (io.WriteCloser, error)
	Reader  func(io.Reader) (io.ReadCloser, error)
}

// gzipped is the codec that is used when no better one can be.
func gzipped() Codec {
	return Codec{
		Program: "gzip", Magic: "\x1f\x8b",
		Writer: func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.BestSpeed) },
		Reader: func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) },
	}
}

// unpackScript fails if either program does: to tar, an archive that was cut
// between two files is whole.
const unpackScript = `mkdir -p -- "$1" && cd -- "$1" &&
r=$({ { "$2" -d -c -q || echo bad >&4; } | { tar -xpof - && cat >/dev/null; } >&2 || echo bad >&4; } 4>&1) && [ -z "$r" ]`

// Unpack extracts the uncompressed tar stream r below the absolute directory
// dir of sb: by the provider's own way if it is an Unpacker, else compressed, by
// the first of better that the sandbox has or by gzip, as the input of tar in the
// sandbox, else, where the sandbox has no tar, entry by entry. Owners in the
// archive are ignored; modes, links and empty directories are kept.
func Unpack(ctx context.Context, sb Sandbox, dir string, r io.Reader, better ...Codec) error {
	if u, ok := As[Unpacker](sb); ok {
		return u.Unpack(ctx, dir, r)
	}
	codecs := append(slices.Clone(better), gzipped())
	found, err := output(ctx, sb, `command -v tar >/dev/null || exit 90
for c do command -v "$c" >/dev/null && echo "$c" && exit; done; exit 90`, programs(codecs)...)
	if exit, ok := errors.AsType[*exitError](err); ok && exit.status == 90 {
		return unpackEach(ctx, sb, dir, r)
	}
	if err != nil {
		return fmt.Errorf("prepare to unpack: %w", err)
	}
	codec := codecs[len(codecs)-1]
	for _, c := range better {
		if c.Program == strings.TrimSpace(found) {
			codec = c
		}
	}
	pr, pw := io.Pipe()
	source := make(chan error, 1)
	go func() {
		// A provider may make a request of every write.
		large := bufio.NewWriterSize(pw, 256<<10)
		zw, err := codec.Writer(large)
		if err == nil {
			_, err = io.Copy(zw, r)
			if cerr := zw.Close(); err == nil {
				err = errors.Join(cerr, large.Flush())
			}
		}
		pw.CloseWithError(err)
		source <- err
	}()
	var stderr tail
	exit, err := sb.Exec(ctx, Cmd{
		Args: []string{"/bin/sh", "-c", unpackScript, "sh", dir, codec.Program},
		Dir:  "/", Stdin: pr, Stderr: &stderr,
	})
	ended := errors.New("the upload has ended")
	pr.CloseWithError(ended)
	if serr := <-source; serr != nil && !errors.Is(serr, ended) {
		return serr
	}
	if err == nil && exit != 0 {
		err = &exitError{exit, stderr.String()}
	}
	return err
}

func programs(codecs []Codec) []string {
	var list []string
	for _, c := range codecs {
		list = append(list, c.Program)
	}
	return list
}

// unpackEach extracts r with no more than a shell and WriteFile.
func unpackEach(ctx context.Context, sb Sandbox, dir string, r io.Reader) error {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Join(dir, h.Name)
		if name != path.Clean(dir) && !strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/") {
			return &Error{Code: CodeInvalidPath, Msg: fmt.Sprintf("archive entry %q leads outside", h.Name)}
		}
		mode := fmt.Sprintf("%o", h.FileInfo().Mode().Perm())
		switch h.Typeflag {
		case tar.TypeDir:
			_, err = output(ctx, sb, `mkdir -p -- "$1" && chmod "$2" "$1"`, name, mode)
		case tar.TypeSymlink:
			_, err = output(ctx, sb, `mkdir -p -- "${1%/*}" && ln -sfn -- "$2" "$1"`, name, h.Linkname)
		case tar.TypeReg:
			err = sb.WriteFile(ctx, name, tr, h.FileInfo().Mode().Perm())
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", h.Name, err)
		}
	}
}

// packScript takes names as they are: GNU tar would read escapes in them. $2 are
// programs to compress with, the first that is there; its status is that of tar.
const packScript = `cd -- "$1" || exit 91
z=; for c in $2; do command -v "$c" >/dev/null && z=$c && break; done; shift 2
u=; tar --no-unquote --version >/dev/null 2>&1 && u=--no-unquote
[ "$z" ] || exec tar $u -cf - -- "$@"
exec 3>&1; r=$({ { tar $u -cf - -- "$@" 3>&- 4>&-; echo $? >&4; } | "$z" -1 -c -q >&3 3>&- 4>&-; } 4>&1) && exit "$r"`

// Pack writes the named entries below dir of sb to w as an uncompressed tar
// stream: by the provider's own way if it is a Packer, else by tar in the
// sandbox, compressed on its way by the first of codecs that the sandbox has, or
// by gzip; as it is if there is neither, or codecs is empty. The archive comes from
// the sandbox and is not to be trusted.
func Pack(ctx context.Context, sb Sandbox, dir string, names []string, w io.Writer, codecs ...Codec) error {
	if p, ok := As[Packer](sb); ok {
		return p.Pack(ctx, dir, names, w)
	}
	if len(codecs) > 0 {
		codecs = append(slices.Clone(codecs), gzipped())
	}
	args := []string{"/bin/sh", "-c", packScript, "sh", dir, strings.Join(programs(codecs), " ")}
	pr, pw := io.Pipe()
	sink := make(chan error, 1)
	go func() {
		err := decompress(pr, w, codecs)
		pr.CloseWithError(err)
		sink <- err
	}()
	var stderr tail
	exit, err := sb.Exec(ctx, Cmd{Args: append(args, names...), Stdout: pw, Stderr: &stderr})
	pw.Close()
	serr := <-sink
	switch {
	case err != nil && serr != nil && ctx.Err() == nil && !errors.Is(serr, io.ErrUnexpectedEOF):
		return serr // nobody took what it wrote, which was not just cut short
	case err != nil:
		return err
	case exit != 0:
		return &Error{Code: CodeInternal, Op: "pack " + dir, Msg: fmt.Sprintf("tar ended with %d: %s", exit, stderr.String())}
	}
	return serr
}

// decompress copies r to w, out of the codec that it begins as.
func decompress(r io.Reader, w io.Writer, codecs []Codec) error {
	br := bufio.NewReader(r)
	for _, c := range codecs {
		if head, _ := br.Peek(len(c.Magic)); string(head) != c.Magic {
			continue
		}
		zr, err := c.Reader(br)
		if err != nil {
			return err
		}
		defer zr.Close()
		_, err = io.Copy(w, zr)
		return err
	}
	_, err := io.Copy(w, br)
	return err
}

// output runs a shell script and returns what it prints; a non-zero status is
// an exitError.
func output(ctx context.Context, sb Sandbox, script string, args ...string) (string, error) {
	var stdout bytes.Buffer
	var stderr tail
	exit, err := sb.Exec(ctx, Cmd{
		Args:   append([]string{"/bin/sh", "-c", script, "sh"}, args...),
		Dir:    "/",
		Stdout: &stdout,
		Stderr: &stderr,
	})
	if err != nil {
		return "", err
	}
	if exit != 0 {
		return "", &exitError{exit, stderr.String()}
	}
	return stdout.String(), nil
}

type exitError struct {
	status int
	stderr string
}

func (e *exitError) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("command ended with %d", e.status)
	}
	return fmt.Sprintf("command ended with %d: %s", e.status, e.stderr)
}

func (e *exitError) Unwrap() error {
	switch {
	case strings.Contains(e.stderr, "No space left"), strings.Contains(e.stderr, "tar: ") && strings.Contains(e.stderr, ": Wrote only "):
		return &Error{Code: CodeNoSpace}
	case strings.Contains(e.stderr, "Permission denied"):
		return fs.ErrPermission
	}
	return nil
}

// tail keeps the last bytes written to it, for error messages.
type tail struct{ buf []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 2000
	t.buf = append(t.buf, p...)
	if len(t.buf) > most {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-most:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.buf)) }

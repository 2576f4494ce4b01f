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
	"strings"
)

// Unpack extracts the uncompressed tar stream r below the absolute directory
// dir of sb: by the provider's own way if it is an Unpacker, else compressed, as
// the input of tar in the sandbox, else, where the sandbox has no tar,
// entry by entry. Owners in the archive are ignored; modes, links and empty
// directories are kept.
func Unpack(ctx context.Context, sb Sandbox, dir string, r io.Reader) error {
	if u, ok := As[Unpacker](sb); ok {
		return u.Unpack(ctx, dir, r)
	}
	_, err := output(ctx, sb, `command -v tar >/dev/null && command -v gzip >/dev/null || exit 90`)
	if exit, ok := errors.AsType[*exitError](err); ok && exit.status == 90 {
		return unpackEach(ctx, sb, dir, r)
	}
	if err != nil {
		return fmt.Errorf("prepare to unpack: %w", err)
	}
	pr, pw := io.Pipe()
	source := make(chan error, 1)
	go func() {
		// A provider may make a request of every write.
		large := bufio.NewWriterSize(pw, 256<<10)
		zw, _ := gzip.NewWriterLevel(large, gzip.BestSpeed)
		_, err := io.Copy(zw, r)
		if err == nil {
			err = errors.Join(zw.Close(), large.Flush())
		}
		pw.CloseWithError(err)
		source <- err
	}()
	var stderr tail
	exit, err := sb.Exec(ctx, Cmd{
		Args: []string{"/bin/sh", "-c", `mkdir -p -- "$1" && cd -- "$1" && exec tar -xpozf -`, "sh", dir},
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

// packScript takes names as they are: GNU tar would read escapes in them.
const packScript = `cd -- "$1" && shift || exit 91
u=; tar --no-unquote --version >/dev/null 2>&1 && u=--no-unquote
exec tar $u -cf - -- "$@"`

// Pack writes the named entries below dir of sb to w as an uncompressed tar
// stream: by the provider's own way if it is a Packer, else by tar in the
// sandbox. The archive comes from the sandbox and is not to be trusted.
func Pack(ctx context.Context, sb Sandbox, dir string, names []string, w io.Writer) error {
	if p, ok := As[Packer](sb); ok {
		return p.Pack(ctx, dir, names, w)
	}
	args := []string{"/bin/sh", "-c", packScript, "sh", dir}
	var stderr tail
	exit, err := sb.Exec(ctx, Cmd{Args: append(args, names...), Stdout: w, Stderr: &stderr})
	if err != nil {
		return err
	}
	if exit != 0 {
		return &Error{Code: CodeInternal, Op: "pack " + dir, Msg: fmt.Sprintf("tar ended with %d: %s", exit, stderr.String())}
	}
	return nil
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
	case strings.Contains(e.stderr, "No space left"):
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

package sandbox

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// Unpack extracts the uncompressed tar stream r below the absolute directory
// dir of sb: by the provider's own way if it is an Unpacker, else as one
// compressed file and tar in the sandbox, else, where the sandbox has no tar,
// entry by entry. Owners in the archive are ignored; modes, links and empty
// directories are kept.
func Unpack(ctx context.Context, sb Sandbox, dir string, r io.Reader) error {
	if u, ok := As[Unpacker](sb); ok {
		return u.Unpack(ctx, dir, r)
	}
	tmp, err := output(ctx, sb, `command -v tar >/dev/null && command -v gzip >/dev/null || exit 90
umask 077; mktemp -d "${TMPDIR:-/tmp}/talkops-XXXXXX"`)
	if exit, ok := errors.AsType[*exitError](err); ok && exit.status == 90 {
		return unpackEach(ctx, sb, dir, r)
	}
	if err != nil {
		return fmt.Errorf("prepare to unpack: %w", err)
	}
	tmp = strings.TrimSuffix(tmp, "\n")
	archive := path.Join(tmp, "tree.tar.gz")
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		output(ctx, sb, `rm -rf -- "$1"`, tmp)
	}()

	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		zw, _ := gzip.NewWriterLevel(pw, gzip.BestSpeed)
		_, err := io.Copy(zw, r)
		if err == nil {
			err = zw.Close()
		}
		pw.CloseWithError(err)
	}()
	err = sb.WriteFile(ctx, archive, pr, 0o600)
	pr.CloseWithError(errors.New("the upload has ended"))
	<-done
	if err != nil {
		return err
	}
	_, err = output(ctx, sb, `mkdir -p -- "$2" && cd -- "$2" && tar -xpozf "$1"`, archive, dir)
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

package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// ReadFile copies the regular file name to w.
func (c *computer) ReadFile(ctx context.Context, name string, w io.Writer) error {
	if err := usable(ctx, "read", name); err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return fileError("read", name, err)
	}
	if err := regular("read", name, info); err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return fileError("read", name, err)
	}
	defer f.Close()
	// Some files of the kernel's wait for more; a deadline ends that.
	stop := context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.Copy(struct{ io.Writer }{w}, reader{ctx, f}); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fileError("read", name, err)
	}
	return nil
}

// WriteFile writes a new file beside the target and renames it.
func (c *computer) WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error {
	if err := usable(ctx, "write", name); err != nil {
		return err
	}
	target, err := follow(name)
	if err != nil {
		return writeError(name, err)
	}
	perm = perm.Perm()
	info, err := os.Stat(target)
	switch {
	case err == nil:
		if err := regular("write", name, info); err != nil {
			return err
		}
		// Replacing needs no permission on the file itself; writing it does.
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return writeError(name, err)
		}
		f.Close()
		perm = info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return writeError(name, err)
		}
	default:
		return writeError(name, err)
	}
	if err := replace(ctx, target, r, perm, info); err != nil {
		return writeError(name, err)
	}
	return nil
}

// replace puts what r gives in the place of target, whole or not at all.
func replace(ctx context.Context, target string, r io.Reader, perm fs.FileMode, old fs.FileInfo) (err error) {
	f, err := os.CreateTemp(filepath.Dir(target), ".talkops-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err := io.Copy(f, reader{ctx, r}); err != nil {
		return err
	}
	keepOwner(f, old)
	if err := f.Chmod(perm); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), target)
}

// follow returns what the symlink name leads to, which need not exist.
func follow(name string) (string, error) {
	for range 40 {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		to, err := os.Readlink(name)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(name))
			if err != nil {
				return "", err
			}
			to = filepath.Join(dir, to)
		}
		name = to
	}
	return "", syscall.ELOOP
}

// usable refuses a call that cannot be done whatever the file is.
func usable(ctx context.Context, op, name string) error {
	if err := ctx.Err(); err != nil {
		return &sandbox.Error{Code: sandbox.CodeOf(err), Op: op + " " + name, Err: err}
	}
	if !filepath.IsAbs(name) {
		return &sandbox.Error{Code: sandbox.CodeInvalidPath, Op: op + " " + name, Msg: "the path is not absolute"}
	}
	return nil
}

func regular(op, name string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return &sandbox.Error{Code: sandbox.CodeIsDirectory, Op: op + " " + name, Msg: "it is a directory"}
	case !info.Mode().IsRegular():
		return &sandbox.Error{Code: sandbox.CodeNotAFile, Op: op + " " + name, Msg: "it is not a regular file"}
	}
	return nil
}

func fileError(op, name string, err error) error {
	code := sandbox.CodeOf(err)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EINVAL) {
		code = sandbox.CodeInvalidPath
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the name is said already
	}
	return &sandbox.Error{Code: code, Op: op + " " + name, Err: err}
}

// writeError is fileError for writing, where a file in the place of a parent
// makes the path itself wrong.
func writeError(name string, err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return &sandbox.Error{Code: sandbox.CodeInvalidPath, Op: "write " + name, Msg: "a parent is not a directory"}
	}
	return fileError("write", name, err)
}

// A reader stops when ctx ends.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

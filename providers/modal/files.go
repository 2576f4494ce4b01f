package modal

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/modal/internal/wire"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// readScript copies the regular file $1 to standard output, and says on the other
// stream how large it is or what is wrong with it.
const readScript = `(
` + posix.StatScript + `
) >&2 || exit
exec cat -- "$1"`

// ReadFile copies the file name to w.
func (b *box) ReadFile(ctx context.Context, name string, w io.Writer) error {
	op := "read " + name
	if err := posix.CheckPath(op, name); err != nil {
		return err
	}
	var said posix.Text
	content := &counter{w: w}
	p := &process{
		router: b.router, id: uuid.NewString(),
		args:   []string{"/bin/sh", "-c", posix.Script(readScript, name) + " </dev/null"},
		stdout: &stream{w: content},
		stderr: &stream{w: &said, fd: wire.TaskExecStdioFileDescriptor_TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR},
	}
	exit, err := p.follow(ctx)
	if err != nil {
		return posix.InOp(op, err)
	}
	if exit != 0 {
		return posix.FileError(op, exit, said.String())
	}
	size, err := strconv.ParseInt(strings.TrimSpace(said.String()), 10, 64)
	switch {
	case err != nil:
		return &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "its size cannot be read"}
	case content.n < size:
		return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("only %d of %d bytes arrived", content.n, size)}
	}
	return nil
}

// A counter counts what it passes on.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// placeScript moves the upload $1 into place, or removes it.
const placeScript = `(
` + posix.WriteScript + `
)
s=$?
[ $s = 0 ] || rm -f "$1"
exit $s`

// WriteFile makes the file name hold what r gives: it is uploaded to the private
// directory and moved into place by one script.
func (b *box) WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error {
	op := "write " + name
	if err := posix.CheckTarget(op, name); err != nil {
		return err
	}
	j := &job{box: b, id: "u" + uuid.NewString()}
	if err := b.upload(ctx, j.files(), r); err != nil {
		return posix.InOp(op, err)
	}
	out, exit, err := b.shell(ctx, placeScript, j.files(), name, fmt.Sprintf("%o", perm.Perm()))
	if err != nil {
		b.discard(ctx, j.files(), err)
		return posix.InOp(op, err)
	}
	if exit != 0 {
		return posix.WriteError(op, exit, out)
	}
	return nil
}

// uploadScript keeps its input as the file $1 and says how much it was.
const uploadScript = `umask 077
[ -d "${1%/*}" ] || mkdir -p "${1%/*}"
cat >"$1" && wc -c <"$1"`

// upload streams r to the file name in the private directory.
func (b *box) upload(ctx context.Context, name string, r io.Reader) error {
	const op = "upload"
	var said posix.Text
	p := &process{
		router: b.router, id: uuid.NewString(), input: r, bulk: true,
		args:   []string{"/bin/sh", "-c", posix.Script(uploadScript, name) + " 2>&1"},
		stdout: &stream{w: &said},
	}
	// What stops the upload is the end of its input.
	p.stop = func(ctx context.Context, p *process) {
		state, err := route(ctx, b.router, op, b.TaskExecStdinStatus, &wire.TaskExecStdinStatusRequest{TaskId: p.task, ExecId: p.id}, policy{})
		if err == nil && !state.GetClosed() {
			route(ctx, b.router, op, b.TaskExecStdinWrite, &wire.TaskExecStdinWriteRequest{
				TaskId: p.task, ExecId: p.id, Offset: state.GetNumBytesWritten(), Eof: true,
			}, policy{})
		}
	}
	exit, err := p.follow(ctx)
	if err == nil && exit != 0 {
		err = posix.FileError(op, exit, said.String())
	}
	if err == nil {
		if n, perr := strconv.ParseInt(strings.TrimSpace(said.String()), 10, 64); perr != nil || n != p.read.Load() {
			err = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("not all of %d bytes arrived", p.read.Load())}
		}
	}
	if err != nil {
		b.discard(ctx, name, err)
	}
	return err
}

// discard removes an upload that is of no use after err.
func (b *box) discard(ctx context.Context, name string, err error) {
	if dead(err) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	b.shell(ctx, `rm -f "$1"`, name)
}

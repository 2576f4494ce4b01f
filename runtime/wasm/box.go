package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/hostfuncs"
	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A box is one open sandbox of a module.
type box struct {
	p    *Provider
	spec sandbox.Spec // with the machine's id and token
	info sandbox.Info
}

// with shows the optional abilities that the module has, and no others.
func (b *box) with(can []string) sandbox.Sandbox {
	var sb sandbox.Sandbox = b
	if b.p.can(abi.Kill, can) {
		sb = killer{sb, b}
	}
	if b.p.can(abi.Snapshot, can) {
		sb = snapshotter{sb, b}
	}
	if b.p.can(abi.Unpack, can) {
		sb = unpacker{sb, b}
	}
	if b.p.can(abi.Pack, can) {
		sb = packer{sb, b}
	}
	if b.p.can(abi.Extend, can) {
		sb = extender{sb, b}
	}
	return sb
}

// Each ability wraps what is below it.
type (
	killer struct {
		sandbox.Sandbox
		b *box
	}
	snapshotter struct {
		sandbox.Sandbox
		b *box
	}
	unpacker struct {
		sandbox.Sandbox
		b *box
	}
	packer struct {
		sandbox.Sandbox
		b *box
	}
	extender struct {
		sandbox.Sandbox
		b *box
	}
)

func (w killer) Unwrap() sandbox.Sandbox      { return w.Sandbox }
func (w snapshotter) Unwrap() sandbox.Sandbox { return w.Sandbox }
func (w unpacker) Unwrap() sandbox.Sandbox    { return w.Sandbox }
func (w packer) Unwrap() sandbox.Sandbox      { return w.Sandbox }
func (w extender) Unwrap() sandbox.Sandbox    { return w.Sandbox }

// Info tells what the sandbox is.
func (b *box) Info() sandbox.Info { return b.info }

// Close lets go of the sandbox.
func (b *box) Close() error { return nil }

// named is how a request names the machine.
func (b *box) named() *abi.Sandbox {
	return &abi.Sandbox{ID: b.info.ID, Dir: abi.Text(b.info.Dir), Token: b.info.Token, Env: texts(b.spec.Env)}
}

// Exec runs cmd to completion.
func (b *box) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	if ctx.Err() != nil {
		return sandbox.ExitOf(ctx)
	}
	if len(cmd.Args) == 0 || strings.TrimSpace(cmd.Args[0]) == "" {
		return 0, sandbox.Errorf(sandbox.CodeInvalidArgument, "no command given")
	}
	if cmd.Dir != "" && !strings.HasPrefix(cmd.Dir, "/") {
		return 0, sandbox.Errorf(sandbox.CodeInvalidPath, "the directory %q is not absolute", cmd.Dir)
	}
	for _, arg := range cmd.Args {
		if len(arg) > sandbox.MaxArg {
			return 0, sandbox.Errorf(sandbox.CodeTooLarge, "an argument of %d bytes is longer than %d", len(arg), sandbox.MaxArg)
		}
		if strings.Contains(arg, "\x00") {
			return 0, sandbox.Errorf(sandbox.CodeInvalidArgument, "an argument holds a NUL byte")
		}
	}
	if cmd.ID == "" {
		cmd.ID = fmt.Sprintf("%d-%d", time.Now().UnixNano(), b.p.calls.Add(1))
	}
	req := &abi.ExecRequest{Cmd: abi.Cmd{ID: cmd.ID, Dir: abi.Text(cmd.Dir), Env: texts(cmd.Env), Stdout: cmd.Stdout != nil, Stderr: cmd.Stderr != nil}}
	for _, arg := range cmd.Args {
		req.Cmd.Args = append(req.Cmd.Args, abi.Text(arg))
	}
	req.Sandbox = b.named()
	var source *hostfuncs.Source
	var output error
	o := operation{
		export: abi.Exec, op: "exec", spec: b.spec, grace: graceExec, stdout: cmd.Stdout, stderr: cmd.Stderr,
		bind: func(c *hostfuncs.Call) {
			if cmd.Stdin != nil {
				req.Cmd.Stdin, source = c.AddSource(cmd.Stdin)
			}
		},
		after: func(c *hostfuncs.Call) { output = c.OutputError() },
	}
	var answer abi.Exited
	err := b.p.do(ctx, o, &req.Common, req, &answer)
	if ctx.Err() != nil {
		// The command's own end no longer counts. What a module left without a
		// word may still run.
		if e, ok := errors.AsType[*endedError](err); ok && e.hard && b.p.engine.Has(abi.Kill) {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), killWithin)
			defer cancel()
			b.kill(clean, cmd.ID)
		}
		if output == nil {
			return sandbox.ExitOf(ctx)
		}
	} else if _, ok := errors.AsType[*stoppedError](err); ok && b.p.engine.Has(abi.Kill) {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), killWithin)
		defer cancel()
		b.kill(clean, cmd.ID)
	}
	switch {
	case output != nil:
		return 0, fmt.Errorf("the output cannot be written: %w", output)
	case err != nil && source != nil && source.Err() != nil:
		return 0, fmt.Errorf("read standard input: %w", source.Err())
	case err != nil:
		return 0, err
	case answer.Exit == nil || *answer.Exit < 0 || *answer.Exit > 255:
		return 0, b.p.fault(abi.Exec, errors.New("an answer without a valid exit status"))
	}
	return *answer.Exit, nil
}

// checkName refuses a path before the module sees it.
func checkName(op, name string) error {
	if !strings.HasPrefix(name, "/") || strings.Contains(name, "\x00") || len(name) > 4095 {
		return &sandbox.Error{Code: sandbox.CodeInvalidPath, Op: op, Msg: "the path is not absolute, holds a NUL byte or is too long"}
	}
	return nil
}

// inOp says which operation an error ended.
func inOp(op string, err error) error {
	e, ok := errors.AsType[*sandbox.Error](err)
	if !ok || err == nil {
		return err
	}
	named := *e
	named.Op = op
	return &named
}

// ReadFile copies the file name to w.
func (b *box) ReadFile(ctx context.Context, name string, w io.Writer) error {
	op := "read " + name
	if err := checkName(op, name); err != nil {
		return err
	}
	req := &abi.FileRequest{Path: abi.Text(name)}
	req.Sandbox = b.named()
	var sink *hostfuncs.Sink
	o := operation{export: abi.ReadFile, op: "read_file", spec: b.spec, grace: graceOther, bind: func(c *hostfuncs.Call) { req.Dst, sink = c.AddSink(w) }}
	err := b.p.do(ctx, o, &req.Common, req, &abi.Done{})
	if sink != nil && sink.Err() != nil {
		return fmt.Errorf("%s: the content cannot be written: %w", op, sink.Err())
	}
	return inOp(op, err)
}

// WriteFile makes the file name hold what r gives.
func (b *box) WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error {
	op := "write " + name
	if err := checkName(op, name); err != nil {
		return err
	}
	if strings.HasSuffix(name, "/") {
		return &sandbox.Error{Code: sandbox.CodeIsDirectory, Op: op}
	}
	req := &abi.FileRequest{Path: abi.Text(name), Mode: fmt.Sprintf("%04o", perm.Perm())}
	req.Sandbox = b.named()
	return inOp(op, b.upload(ctx, abi.WriteFile, "write_file", &req.Common, req, &req.Src, r))
}

// upload runs an operation that takes the bytes of r.
func (b *box) upload(ctx context.Context, export, name string, common *abi.Common, req any, src *int32, r io.Reader) error {
	var source *hostfuncs.Source
	o := operation{export: export, op: name, spec: b.spec, grace: graceOther, bind: func(c *hostfuncs.Call) { *src, source = c.AddSource(r) }}
	err := b.p.do(ctx, o, common, req, &abi.Done{})
	if err != nil && ctx.Err() == nil && source != nil && source.Err() != nil {
		return fmt.Errorf("upload: %w", source.Err())
	}
	return err
}

// simple runs an operation that is no more than a request.
func (b *box) simple(ctx context.Context, export, name string, common *abi.Common, req, ok any) error {
	common.Sandbox = b.named()
	return b.p.do(ctx, operation{export: export, op: name, spec: b.spec, grace: graceOther}, common, req, ok)
}

func (b *box) kill(ctx context.Context, id string) error {
	req := &abi.NameRequest{Name: id}
	return b.simple(ctx, abi.Kill, "kill", &req.Common, req, &abi.Done{})
}

// Kill ends the command with that ID.
func (w killer) Kill(ctx context.Context, id string) error { return w.b.kill(ctx, id) }

// Snapshot keeps the state of the sandbox under name.
func (w snapshotter) Snapshot(ctx context.Context, name string) error {
	req := &abi.NameRequest{Name: name}
	return inOp("snapshot "+name, w.b.simple(ctx, abi.Snapshot, "snapshot", &req.Common, req, &abi.Done{}))
}

// Unpack extracts a tar stream below dir.
func (w unpacker) Unpack(ctx context.Context, dir string, r io.Reader) error {
	req := &abi.TreeRequest{Dir: abi.Text(dir)}
	req.Sandbox = w.b.named()
	return inOp("unpack into "+dir, w.b.upload(ctx, abi.Unpack, "unpack", &req.Common, req, &req.Src, r))
}

// Pack writes the named entries below dir as a tar stream.
func (w packer) Pack(ctx context.Context, dir string, names []string, out io.Writer) error {
	req := &abi.TreeRequest{Dir: abi.Text(dir)}
	for _, n := range names {
		req.Names = append(req.Names, abi.Text(n))
	}
	req.Sandbox = w.b.named()
	var sink *hostfuncs.Sink
	o := operation{export: abi.Pack, op: "pack", spec: w.b.spec, grace: graceOther, bind: func(c *hostfuncs.Call) { req.Dst, sink = c.AddSink(out) }}
	err := w.b.p.do(ctx, o, &req.Common, req, &abi.Done{})
	if sink != nil && sink.Err() != nil {
		return fmt.Errorf("pack: the archive cannot be written: %w", sink.Err())
	}
	return inOp("pack "+dir, err)
}

// Extend makes the vendor keep the machine at least until t.
func (w extender) Extend(ctx context.Context, t time.Time) (time.Time, error) {
	req := &abi.ExtendRequest{UntilMS: t.UnixMilli()}
	var answer abi.Extended
	err := w.b.simple(ctx, abi.Extend, "extend", &req.Common, req, &answer)
	return moment(answer.UntilMS), err
}

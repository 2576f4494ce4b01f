package modaltest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talkops-ai/talkops/providers/modal/internal/wire"
	"github.com/talkops-ai/talkops/sdk/machine"
)

// router is the command router of every sandbox.
type router struct {
	wire.UnimplementedTaskCommandRouterServer
	*Server
}

// maxArgs is the most bytes that all arguments of a command may have.
const maxArgs = 64 << 10

// A command is one exec. Its output is kept until the sandbox ends.
type command struct {
	out, err *output
	done     chan struct{}
	exit     int
	run      *machine.Running // nil for the file tool

	mu     sync.Mutex // one writer of standard input at a time
	input  *os.File
	have   uint64 // bytes of standard input so far
	closed bool
}

// An output is one stream. It can be read from any offset while it grows.
type output struct {
	mu      sync.Mutex
	file    *os.File
	size    int64
	closed  bool
	changed chan struct{}
}

func newOutput() (*output, error) {
	f, err := os.CreateTemp("", "modaltest-")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name())
	return &output{file: f, changed: make(chan struct{})}, nil
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.file.WriteAt(p, o.size)
	o.size += int64(n)
	close(o.changed)
	o.changed = make(chan struct{})
	return n, err
}

// end says that nothing more will come.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		close(o.changed)
		o.changed = make(chan struct{})
	}
}

// next returns what stands at offset, whether that is the end, and what to wait
// for if it is neither.
func (o *output) next(offset int64) (data []byte, end bool, more <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if left := o.size - offset; left > 0 {
		data = make([]byte, min(left, 64<<10))
		n, _ := o.file.ReadAt(data, offset)
		return data[:n], false, nil
	}
	return nil, o.closed, o.changed
}

// busy reports whether a command runs.
func (b *box) busy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.commands {
		select {
		case <-c.done:
		default:
			return true
		}
	}
	return false
}

// forget ends all commands and loses their output.
func (b *box) forget() {
	b.mu.Lock()
	commands := b.commands
	b.commands = map[string]*command{}
	b.mu.Unlock()
	for _, c := range commands {
		if c.run != nil {
			c.run.Kill(0)
		}
		c.stop()
	}
}

func (c *command) stop() {
	c.out.end()
	c.err.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.input.Close()
	c.closed = true
}

// task returns the running sandbox of a task.
func (r *router) task(id string) (*box, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.boxes {
		if b.task != id {
			continue
		}
		if r.settle(b); b.ended != nil {
			break
		}
		b.active = r.cfg.Now()
		return b, nil
	}
	// The worker that served it is gone.
	return nil, status.Error(codes.Unavailable, "connection error: connection refused")
}

func (r *router) find(task, exec string) (*box, *command, error) {
	b, err := r.task(task)
	if err != nil {
		return nil, nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.commands[exec]
	if c == nil {
		return nil, nil, status.Errorf(codes.NotFound, "Exec %s not found", exec)
	}
	return b, c, nil
}

func (r *router) TaskExecStart(_ context.Context, q *wire.TaskExecStartRequest) (*wire.TaskExecStartResponse, error) {
	b, err := r.task(q.GetTaskId())
	if err != nil {
		return nil, err
	}
	total := 0
	for _, arg := range q.GetCommandArgs() {
		total += len(arg)
	}
	if len(q.GetCommandArgs()) == 0 || q.GetExecId() == "" || total > maxArgs {
		return nil, status.Error(codes.InvalidArgument, "Invalid command")
	}
	if r.Behaviour().ForgetfulRouter {
		return &wire.TaskExecStartResponse{}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.commands[q.GetExecId()] != nil {
		return &wire.TaskExecStartResponse{}, nil
	}
	c := &command{done: make(chan struct{})}
	if c.out, err = newOutput(); err == nil {
		c.err, err = newOutput()
	}
	in, input, perr := os.Pipe()
	if err = cmp.Or(err, perr); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	c.input = input
	var stdout, stderr io.Writer
	if q.GetStdoutConfig() == wire.TaskExecStdoutConfig_TASK_EXEC_STDOUT_CONFIG_PIPE {
		stdout = c.out
	}
	switch q.GetStderrConfig() {
	case wire.TaskExecStderrConfig_TASK_EXEC_STDERR_CONFIG_PIPE:
		stderr = c.err
	case wire.TaskExecStderrConfig_TASK_EXEC_STDERR_CONFIG_STDOUT:
		stderr = stdout
	}
	if q.GetCommandArgs()[0] == toolsPath {
		b.commands[q.GetExecId()] = c
		go func() {
			defer in.Close()
			c.exit = b.tool(q.GetCommandArgs()[1:], in, c.out, c.err)
			close(c.done)
			r.ended(b, c)
		}()
		return &wire.TaskExecStartResponse{}, nil
	}
	defer in.Close()
	run, err := b.machine.Start(machine.Process{
		Args: q.GetCommandArgs(), Dir: q.GetWorkdir(), Env: b.environ(q), Stdin: in, Stdout: stdout, Stderr: stderr,
	})
	switch {
	case errors.Is(err, machine.ErrClosed):
		return nil, status.Error(codes.Unavailable, "connection error: connection refused")
	case err != nil:
		c.input.Close()
		return nil, status.Errorf(codes.NotFound, "failed to start command: %v", err)
	}
	c.run = run
	b.commands[q.GetExecId()] = c
	if q.GetTimeoutSecs() > 0 {
		limit := time.AfterFunc(time.Duration(q.GetTimeoutSecs())*time.Second, func() { run.Kill(0) })
		go func() { <-run.Done(); limit.Stop() }()
	}
	go func() {
		c.exit, _ = run.Wait()
		close(c.done)
		r.ended(b, c)
	}()
	return &wire.TaskExecStartResponse{}, nil
}

// ended ends the streams of a command that is done.
func (r *router) ended(b *box, c *command) {
	behave := r.Behaviour()
	if behave.OpenStreams {
		<-b.over
	}
	if behave.LateOutput > 0 {
		select {
		case <-time.After(behave.LateOutput):
		case <-b.over:
		}
	}
	c.stop()
}

// environ is what a command finds in its environment beside the machine's own.
func (b *box) environ(q *wire.TaskExecStartRequest) []string {
	all := map[string]string{}
	for _, sources := range [][]*wire.SecretSource{b.asked.GetSecretSources(), q.GetSecretSources()} {
		for _, source := range sources {
			maps.Copy(all, source.GetEnv().GetContents())
		}
	}
	maps.Copy(all, q.GetEnv())
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}

func (r *router) TaskExecStdioRead(q *wire.TaskExecStdioReadRequest, out wire.TaskCommandRouter_TaskExecStdioReadServer) error {
	b, c, err := r.find(q.GetTaskId(), q.GetExecId())
	if err != nil {
		return err
	}
	o := c.out
	if q.GetFileDescriptor() == wire.TaskExecStdioFileDescriptor_TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR {
		o = c.err
	}
	if late := r.Behaviour().LateOutput; late > 0 {
		select {
		case <-c.done:
			time.Sleep(late)
		case <-out.Context().Done():
			return status.FromContextError(out.Context().Err()).Err()
		}
	}
	for offset := int64(q.GetOffset()); ; {
		data, end, more := o.next(offset)
		switch {
		case len(data) > 0:
			if err := out.Send(&wire.TaskExecStdioReadResponse{Data: data}); err != nil {
				return err
			}
			offset += int64(len(data))
			continue
		case end:
			select {
			case <-b.over:
				return broken // the machine ended, not the command
			default:
				return nil
			}
		}
		select {
		case <-more:
		case <-out.Context().Done():
			return status.FromContextError(out.Context().Err()).Err()
		case <-b.over:
			return broken
		}
	}
}

// await returns the command's status when it is there; negative if it is not yet.
func (r *router) await(ctx context.Context, task, exec string, wait bool) (int, error) {
	b, c, err := r.find(task, exec)
	if err != nil {
		return 0, err
	}
	if !wait {
		select {
		case <-c.done:
			return c.exit, nil
		default:
			return -1, nil
		}
	}
	select {
	case <-b.over:
	case <-c.done:
	case <-ctx.Done():
		return 0, status.FromContextError(ctx.Err()).Err()
	}
	b.mu.Lock()
	known := b.commands[exec] == c
	b.mu.Unlock()
	select {
	case <-b.over:
		return 0, broken
	default:
	}
	if !known {
		return 0, status.Errorf(codes.NotFound, "Exec %s not found", exec)
	}
	return c.exit, nil
}

// signalled reports which signal a status tells of.
func signalled(exit int) (int32, bool) { return int32(exit - 128), exit > 128 && exit < 160 }

func (r *router) TaskExecWait(ctx context.Context, q *wire.TaskExecWaitRequest) (*wire.TaskExecWaitResponse, error) {
	exit, err := r.await(ctx, q.GetTaskId(), q.GetExecId(), true)
	if err != nil {
		return nil, err
	}
	answer := &wire.TaskExecWaitResponse{ExitStatus: &wire.TaskExecWaitResponse_Code{Code: int32(exit)}}
	if sig, ok := signalled(exit); ok {
		answer.ExitStatus = &wire.TaskExecWaitResponse_Signal{Signal: sig}
	}
	if r.Behaviour().NoExitStatus {
		answer.ExitStatus = nil
	}
	return answer, nil
}

func (r *router) TaskExecPoll(ctx context.Context, q *wire.TaskExecPollRequest) (*wire.TaskExecPollResponse, error) {
	exit, err := r.await(ctx, q.GetTaskId(), q.GetExecId(), false)
	if err != nil || exit < 0 {
		return &wire.TaskExecPollResponse{}, err
	}
	if sig, ok := signalled(exit); ok {
		return &wire.TaskExecPollResponse{ExitStatus: &wire.TaskExecPollResponse_Signal{Signal: sig}}, nil
	}
	return &wire.TaskExecPollResponse{ExitStatus: &wire.TaskExecPollResponse_Code{Code: int32(exit)}}, nil
}

// take writes what of data, which begins at offset, is new to standard input.
func (c *command) take(ctx context.Context, offset uint64, data []byte, eof bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if offset > c.have {
		return status.Errorf(codes.OutOfRange, "offset %d is beyond %d", offset, c.have)
	}
	if known := c.have - offset; known >= uint64(len(data)) {
		data = nil
	} else {
		data = data[known:]
	}
	select {
	case <-c.done:
		return status.Error(codes.FailedPrecondition, "process has exited")
	default:
	}
	if c.closed {
		if len(data) == 0 {
			return nil
		}
		return status.Error(codes.FailedPrecondition, "stdin is closed")
	}
	if len(data) > 0 {
		// Who takes no input must not hold up who gives it.
		written, watched := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(watched)
			select {
			case <-ctx.Done():
				c.input.SetWriteDeadline(time.Now())
			case <-c.done:
				c.input.SetWriteDeadline(time.Now())
			case <-written:
			}
		}()
		n, err := c.input.Write(data)
		close(written)
		<-watched
		c.input.SetWriteDeadline(time.Time{})
		c.have += uint64(n)
		switch {
		case ctx.Err() != nil && err != nil:
			return status.FromContextError(ctx.Err()).Err()
		case err != nil:
			return status.Error(codes.FailedPrecondition, "stdin: "+err.Error())
		}
	}
	if eof {
		c.closed = true
		c.input.Close()
	}
	return nil
}

func (r *router) TaskExecStdinWrite(ctx context.Context, q *wire.TaskExecStdinWriteRequest) (*wire.TaskExecStdinWriteResponse, error) {
	_, c, err := r.find(q.GetTaskId(), q.GetExecId())
	if err == nil {
		err = c.take(ctx, q.GetOffset(), q.GetData(), q.GetEof())
	}
	return &wire.TaskExecStdinWriteResponse{}, err
}

// TaskExecStdinWriteStream closes standard input on the end message only: a
// broken stream may be resumed.
func (r *router) TaskExecStdinWriteStream(in wire.TaskCommandRouter_TaskExecStdinWriteStreamServer) error {
	var c *command
	var offset uint64
	for {
		m, err := in.Recv()
		if err != nil {
			if err == io.EOF {
				return status.Error(codes.InvalidArgument, "stream ended without the end message")
			}
			return err
		}
		switch p := m.GetPayload().(type) {
		case *wire.TaskExecStdinWriteStreamRequest_Start:
			if _, c, err = r.find(p.Start.GetTaskId(), p.Start.GetExecId()); err != nil {
				return err
			}
			offset = p.Start.GetOffset()
		case *wire.TaskExecStdinWriteStreamRequest_Data:
			if c == nil {
				return status.Error(codes.InvalidArgument, "no start message")
			}
			if err := c.take(in.Context(), offset, p.Data, false); err != nil {
				return err
			}
			offset += uint64(len(p.Data))
		case *wire.TaskExecStdinWriteStreamRequest_End:
			if c == nil {
				return status.Error(codes.InvalidArgument, "no start message")
			}
			if err := c.take(in.Context(), offset, nil, true); err != nil {
				return err
			}
			return in.SendAndClose(&wire.TaskExecStdinWriteStreamResponse{})
		}
	}
}

func (r *router) TaskExecStdinStatus(_ context.Context, q *wire.TaskExecStdinStatusRequest) (*wire.TaskExecStdinStatusResponse, error) {
	_, c, err := r.find(q.GetTaskId(), q.GetExecId())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return &wire.TaskExecStdinStatusResponse{NumBytesWritten: c.have, Closed: c.closed}, nil
}

// TaskSnapshotFilesystem keeps a copy of the home directory as an image.
func (r *router) TaskSnapshotFilesystem(_ context.Context, q *wire.TaskSnapshotFilesystemRequest) (*wire.TaskSnapshotFilesystemResponse, error) {
	b, err := r.task(q.GetTaskId())
	if err != nil {
		return nil, err
	}
	// Snapshots are made once per id.
	id := "im-" + q.GetSnapshotId()
	r.mu.Lock()
	have := r.images[id]
	r.mu.Unlock()
	if have == nil {
		tree, err := machine.New("")
		if err == nil {
			err = copyHome(b.machine, tree)
		}
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		r.mu.Lock()
		r.images[id] = &image{tree: tree}
		r.mu.Unlock()
	}
	return &wire.TaskSnapshotFilesystemResponse{ImageId: id}, nil
}

// SandboxStdioReadV2 is the output of the sandbox's own process, which is silent.
func (r *router) SandboxStdioReadV2(q *wire.SandboxStdioReadV2Request, out wire.TaskCommandRouter_SandboxStdioReadV2Server) error {
	b, err := r.task(q.GetTaskId())
	if err != nil {
		return err
	}
	select {
	case <-b.over:
	case <-out.Context().Done():
	}
	return nil
}

package modal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/providers/modal/internal/wire"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	inlineMost  = 32 << 10         // a longer command travels as a file; Modal takes 64 KiB
	pieceMost   = 512 << 10        // of standard input in one message
	lostAfter   = 5 * time.Minute  // how long a running command may be out of sight
	stopWithin  = 15 * time.Second // for ending a command; the script gives it 1 s
	watchWithin = 15 * time.Second // one question for the status
	idleAfter   = 45 * time.Second // a silent stream is asked for again
	settleAfter = 2 * time.Second  // the same once the command has ended
	scriptMost  = 30 * time.Second // for a script of talkops's own
)

// A box is one open sandbox.
type box struct {
	*router
	dir     string
	run     string // a private directory in the sandbox
	setsid  bool   // the sandbox has that program
	env     map[string]string
	expires time.Time
}

// Info tells what the sandbox is.
func (b *box) Info() sandbox.Info {
	return sandbox.Info{Provider: "modal", ID: b.id, Dir: b.dir, Expires: b.expires}
}

// Close lets go of the sandbox.
func (b *box) Close() error {
	b.router.close()
	b.api.close()
	return nil
}

// A job is one command of the caller's. Its files are run/<id>.*.
type job struct {
	*box
	id string
}

func (j *job) files() string { return path.Join(j.run, j.id) }

func (j *job) file(kind string) string { return j.files() + "." + kind }

// Exec runs cmd to completion.
func (b *box) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	return posix.Exec(ctx, cmd, func(ctx context.Context, cmd sandbox.Cmd) (int, error) {
		return (&job{box: b, id: cmd.ID}).execute(ctx, cmd)
	})
}

// wrapper runs the shell text $1, or the file $1 if it is no text, as the leader
// of a session of its own. Behind its output it writes the mark $3. $2 are its
// files, $4 is setsid or nothing, $5 and $6 say whether $1 is a file and whether
// there is no input.
//
// Two shells: the inner becomes the command, the outer waits for it. So setsid is
// no group leader, and what a shell says of a killed child is not output.
const wrapper = `exec 3>&1 4>&2 >/dev/null 2>&1
[ -d "${2%/*}" ] || mkdir -p -m 700 "${2%/*}"
[ -n "$6" ] && exec </dev/null
if [ -n "$5" ]; then ( exec $4 sh "$1" >&3 2>&4 3>&- 4>&- ); else ( exec $4 sh -c "$1" >&3 2>&4 3>&- 4>&- ); fi
s=$?
rm -f "$2.p" "$2.c"
printf %s "$3" >&3
printf %s "$3" >&4
exit $s`

// execute starts cmd and follows it to its end.
func (j *job) execute(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	script := posix.Command(j.files(), j.dir, j.env, cmd)
	file, silent, setsid := "", "", ""
	if len(script) > inlineMost || !utf8.ValidString(script) {
		if err := j.upload(ctx, j.file("c"), strings.NewReader(script)); err != nil {
			return 0, err
		}
		file, script = "file", j.file("c")
	}
	if cmd.Stdin == nil {
		silent = "silent"
	}
	if j.setsid {
		setsid = "setsid"
	}
	mark := "\x1e" + rest.Random() + rest.Random() + "\x1e"
	p := &process{
		router: j.router, id: uuid.NewString(), input: cmd.Stdin, unheard: cmd.Unheard,
		args: []string{"/bin/sh", "-c", wrapper, "sh", script, j.files(), mark, setsid, file, silent},
		stop: func(ctx context.Context, p *process) { j.stop(ctx, p) },
	}
	if cmd.Stdout != nil {
		p.stdout = &stream{w: cmd.Stdout, mark: []byte(mark)}
	}
	if cmd.Stderr != nil {
		p.stderr = &stream{w: cmd.Stderr, mark: []byte(mark), fd: wire.TaskExecStdioFileDescriptor_TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR}
	}
	exit, err := p.follow(ctx)
	if err == nil && exit == posix.NoDir {
		dir := cmd.Dir
		if dir == "" {
			dir = j.dir
		}
		why, _, serr := j.shell(ctx, `cat "$1" 2>/dev/null; rm -f "$1"`, j.file("f"))
		if serr != nil {
			return 0, serr
		}
		err = posix.NoDirError(dir, why)
	}
	return exit, err
}

// stop ends the command and everything it started. It may not have begun yet, or
// not have noted who it is.
func (j *job) stop(ctx context.Context, p *process) {
	for n := 1; ; n++ {
		if exit, err := j.kill(ctx); err == nil && exit == 0 {
			return
		}
		state, err := route(ctx, j.router, "stop command", j.TaskExecPoll, &wire.TaskExecPollRequest{TaskId: j.task, ExecId: p.id}, policy{attempts: 2})
		if err == nil && state.GetExitStatus() != nil || err != nil && n >= 5 {
			return
		}
		if rest.Sleep(ctx, 200*time.Millisecond) != nil {
			return
		}
	}
}

// Kill ends the command with that ID, whoever started it.
func (b *box) Kill(ctx context.Context, id string) error {
	if err := posix.CheckID(id); err != nil {
		return err
	}
	_, err := (&job{box: b, id: id}).kill(ctx)
	return err
}

// kill ends the command. The status is 1 if there is none.
func (j *job) kill(ctx context.Context) (int, error) {
	script := posix.KillScript
	if !j.setsid {
		script = treeScript
	}
	_, exit, err := j.shell(ctx, script, j.file("p"))
	return exit, err
}

// treeScript is posix.KillScript where the command leads no group: it ends the
// process named in the file $1 and its descendants.
const treeScript = `p=$(cat "$1" 2>/dev/null) && [ "$p" -gt 1 ] && kill -0 "$p" 2>/dev/null || exit 1
tree() {
	echo "$1"
	for c in $(sed -n 's/^\([0-9]*\) .*) [^ ]* '"$1"' .*/\1/p' /proc/[0-9]*/stat 2>/dev/null); do tree "$c"; done
}
all=$(tree "$p")
kill -TERM $all 2>/dev/null
i=0
while kill -0 "$p" 2>/dev/null && [ $i -lt 9 ]; do
	sleep 0.1 2>/dev/null || { sleep 1; i=$((i+9)); }
	i=$((i+1))
done
kill -KILL $all $(tree "$p") 2>/dev/null
exit 0`

// shell runs a short script of talkops's own and returns what it prints.
func (b *box) shell(ctx context.Context, script string, args ...string) (out string, exit int, err error) {
	var text posix.Text
	p := &process{
		router: b.router, id: uuid.NewString(),
		args:   []string{"/bin/sh", "-c", posix.Script(script, args...) + " </dev/null 2>&1"},
		stdout: &stream{w: &text},
	}
	limited, cancel := context.WithTimeoutCause(ctx, scriptMost, errLate)
	defer cancel()
	exit, err = p.follow(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "run script", Msg: fmt.Sprintf("not done after %v", scriptMost)}
	}
	return text.String(), exit, err
}

// A process is one exec of the router.
type process struct {
	*router
	unheard func(since, until time.Time) // see sandbox.Cmd; may be nil
	id      string                       // the exec's
	args    []string
	input   io.Reader    // nil is none
	bulk    bool         // input need not arrive as it comes
	read    atomic.Int64 // bytes of input so far
	stdout  *stream      // nil discards
	stderr  *stream

	// stop, if not nil, ends it from inside.
	stop func(context.Context, *process)
}

// A stream is one output and how much of it has been taken.
type stream struct {
	fd   wire.TaskExecStdioFileDescriptor
	w    io.Writer
	mark []byte // comes behind the output; none if empty
	have uint64 // bytes the router has sent
	held []byte // those that may be the beginning of the mark
	done bool   // the mark has come
}

// take delivers data up to the mark.
func (s *stream) take(data []byte) error {
	s.have += uint64(len(data))
	if len(s.mark) > 0 {
		data = append(s.held, data...)
		if i := bytes.Index(data, s.mark); i >= 0 {
			s.done, s.held, data = true, nil, data[:i]
		} else {
			keep := min(len(s.mark)-1, len(data))
			for keep > 0 && !bytes.HasPrefix(s.mark, data[len(data)-keep:]) {
				keep--
			}
			s.held = bytes.Clone(data[len(data)-keep:])
			data = data[:len(data)-keep]
		}
	}
	return s.write(data)
}

// flush delivers what turned out to be no mark.
func (s *stream) flush() error {
	data := s.held
	s.held = nil
	return s.write(data)
}

func (s *stream) write(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if _, err := s.w.Write(data); err != nil {
		return rest.WriteFailed(err)
	}
	return nil
}

// ended reports whether err is the orderly end of a stream.
func ended(err error) bool { return errors.Is(err, io.EOF) }

// follow starts the process, delivers its output and returns its status. When ctx
// ends or anything fails, it is stopped first.
func (p *process) follow(ctx context.Context) (int, error) {
	if err := p.start(ctx); err != nil {
		err = p.explain(ctx, err)
		switch {
		case ctx.Err() != nil, sandbox.CodeOf(err) == sandbox.CodeUnavailable:
			p.end(ctx) // it may have begun
		case sandbox.CodeOf(err) == sandbox.CodeNotFound:
			// Whoever asks for its kind must not take it for a sandbox that is not there.
			err = &sandbox.Error{Code: sandbox.CodeInternal, Op: "start command", Msg: fmt.Sprintf("the sandbox does not run /bin/sh: %v", err)}
		}
		return 0, err
	}

	// The parts go on for a while when ctx ends: what a command said before it was
	// stopped is delivered.
	parts, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	over, exited := context.WithCancel(context.Background())
	defer exited()
	var exit int
	var wg, output sync.WaitGroup
	failures := make(chan error, 4)
	whole := make(chan struct{})
	for _, s := range []*stream{p.stdout, p.stderr} {
		if s != nil {
			output.Go(func() {
				if err := p.drain(parts, over, s); err != nil {
					failures <- err
				}
			})
		}
	}
	wg.Go(func() { defer close(whole); output.Wait() })
	wg.Go(func() {
		status, err := p.await(parts, whole)
		if err != nil {
			failures <- err
			return
		}
		exit = status
		exited()
	})
	if p.input != nil {
		// A reader that stands still, such as a terminal, is left behind.
		fed := make(chan error, 1)
		go func() { fed <- p.feed(parts, over) }()
		wg.Go(func() {
			select {
			case err := <-fed:
				if err != nil {
					failures <- err
				}
			case <-over.Done():
			case <-parts.Done():
			}
		})
	}
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()

	var err error
	select {
	case <-finished:
		select {
		case err = <-failures:
		default:
			return exit, nil
		}
	case err = <-failures:
	case <-ctx.Done():
		err = rest.Ended(ctx, "run command")
	}
	if !dead(err) {
		p.end(ctx)
	}
	if ctx.Err() != nil {
		select {
		case <-finished:
		case <-time.After(settleAfter / 2):
		}
	}
	cancel()
	<-finished
	return 0, p.explain(ctx, err)
}

// errLost marks a command that the router no longer knows.
var errLost = errors.New("unknown to the router")

// dead reports whether err says that the machine has ended, and all in it.
func dead(err error) bool {
	return sandbox.CodeOf(err) == sandbox.CodeGone && !errors.Is(err, errLost)
}

// end stops the process from inside, under a context of its own.
func (p *process) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if p.stop != nil {
		p.stop(ctx, p)
	}
}

// start starts the process. Modal knows an exec by its id, so that asking twice
// starts it once.
func (p *process) start(ctx context.Context) error {
	q := &wire.TaskExecStartRequest{TaskId: p.task, ExecId: p.id, CommandArgs: p.args}
	if p.dir != "" {
		q.Workdir = &p.dir
	}
	if p.stdout != nil {
		q.StdoutConfig = wire.TaskExecStdoutConfig_TASK_EXEC_STDOUT_CONFIG_PIPE
	}
	if p.stderr != nil {
		q.StderrConfig = wire.TaskExecStderrConfig_TASK_EXEC_STDERR_CONFIG_PIPE
	}
	// Should talkops vanish, Modal ends the process some time after its deadline.
	if end, ok := ctx.Deadline(); ok {
		limit := seconds(max(time.Until(end), 0)+2*stopWithin, 0)
		q.TimeoutSecs = &limit
	}
	_, err := route(ctx, p.router, "start command", p.TaskExecStart, q, policy{within: 20 * time.Second})
	return err
}

// await asks for the status until there is one. Once all output has come, the
// answer is near.
func (p *process) await(ctx context.Context, whole <-chan struct{}) (int, error) {
	const op = "watch command"
	q := &wire.TaskExecWaitRequest{TaskId: p.task, ExecId: p.id}
	contact := rest.NewContact(lostAfter, p.unheard)
	for failures := 0; ; {
		asked, cancel := context.WithTimeout(ctx, watchWithin)
		near := make(chan struct{})
		go func() {
			defer close(near)
			select {
			case <-whole:
				if p.stdout == nil && p.stderr == nil {
					return
				}
				rest.Sleep(asked, settleAfter/2)
				cancel()
			case <-asked.Done():
			}
		}()
		answer, err := route(asked, p.router, op, p.TaskExecWait, q, policy{attempts: 1, within: watchWithin})
		quiet := asked.Err() != nil // nobody has failed
		cancel()
		<-near
		switch {
		case err == nil:
			return exitOf(answer)
		case ctx.Err() != nil:
			return 0, rest.Ended(ctx, op)
		case quiet:
			contact.Heard()
			continue
		case is(err, codes.NotFound):
			if gone := p.explain(ctx, err); sandbox.CodeOf(gone) == sandbox.CodeGone {
				return 0, gone
			}
			return 0, &sandbox.Error{Code: sandbox.CodeGone, Op: op, Msg: "the command was lost before its outcome was known", Err: errLost}
		case !transient(err) && sandbox.CodeOf(err) != sandbox.CodeRateLimited:
			return 0, err
		}
		failures++
		contact.Failed()
		if gone := p.explain(ctx, err); sandbox.CodeOf(gone) == sandbox.CodeGone {
			return 0, gone
		}
		if contact.Lost() {
			return 0, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "contact was lost; the command's outcome is unknown", Err: err}
		}
		if pause(ctx, failures, err) != nil {
			return 0, rest.Ended(ctx, op)
		}
	}
}

// exitOf is the exit status an answer tells of.
func exitOf(answer *wire.TaskExecWaitResponse) (int, error) {
	exit := -1
	switch s := answer.GetExitStatus().(type) {
	case *wire.TaskExecWaitResponse_Code:
		exit = int(s.Code)
	case *wire.TaskExecWaitResponse_Signal:
		exit = 128 + int(s.Signal)
	}
	if exit < 0 || exit > 255 {
		return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "watch command", Msg: "Modal's answer has no status"}
	}
	return exit, nil
}

// drain delivers a stream to its end, over as many connections as that takes. Over
// ends with the process.
func (p *process) drain(ctx, over context.Context, s *stream) error {
	const op = "read output"
	contact := rest.NewContact(lostAfter, p.unheard)
	failures, stalls, renewed := 0, 0, false
	for {
		before, jwt := s.have, ""
		err := p.pull(ctx, over, s, &jwt)
		if s.have > before {
			contact.Heard()
			failures, stalls, renewed = 0, 0, false
		}
		switch {
		case s.done:
			return nil
		case errors.Is(err, rest.ErrWrite):
			return err
		case ctx.Err() != nil:
			s.flush()
			return rest.Ended(ctx, op)
		case ended(err) && len(s.mark) == 0:
			return nil
		case ended(err) && over.Err() != nil:
			// The shell that would write the mark was killed with the command.
			if stalls++; stalls > 1 {
				return s.flush()
			}
			continue
		case ended(err):
			rest.Sleep(over, settleAfter)
			continue
		case errors.Is(err, errStalled):
			if over.Err() == nil {
				contact.Heard()
				continue
			}
			if stalls++; stalls > 4 {
				return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "the command has ended, but not all of its output arrived"}
			}
			continue
		}
		err = p.api.failed(ctx, op, err)
		switch {
		case is(err, codes.Unauthenticated) && !renewed:
			renewed = true
			if rerr := p.renew(ctx, jwt); rerr != nil {
				return err
			}
			continue
		case is(err, codes.NotFound):
			if gone := p.explain(ctx, err); sandbox.CodeOf(gone) == sandbox.CodeGone {
				return gone
			}
			return &sandbox.Error{Code: sandbox.CodeGone, Op: op, Msg: "the command's output was lost", Err: errLost}
		case !transient(err) && sandbox.CodeOf(err) != sandbox.CodeRateLimited:
			return err
		}
		failures++
		contact.Failed()
		if failures > 2 {
			if gone := p.explain(ctx, err); sandbox.CodeOf(gone) == sandbox.CodeGone {
				return gone
			}
		}
		if contact.Lost() {
			return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "contact was lost; the command's outcome is unknown", Err: err}
		}
		if pause(ctx, failures, err) != nil {
			return rest.Ended(ctx, op)
		}
	}
}

var errStalled = errors.New("the stream is silent")

// pull delivers one connection's part of a stream. Its error is never nil.
func (p *process) pull(ctx, over context.Context, s *stream, jwt *string) error {
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	patience := func() time.Duration {
		if over.Err() != nil {
			return settleAfter
		}
		return idleAfter
	}
	idle := time.AfterFunc(patience(), cancel)
	defer idle.Stop()
	defer context.AfterFunc(over, func() { idle.Reset(settleAfter) })()
	signed, used, err := p.signed(watched)
	if err != nil {
		return err
	}
	*jwt = used
	from, err := p.TaskExecStdioRead(signed, &wire.TaskExecStdioReadRequest{
		TaskId: p.task, ExecId: p.id, Offset: s.have, FileDescriptor: s.fd,
	})
	for err == nil {
		var part *wire.TaskExecStdioReadResponse
		if part, err = from.Recv(); err == nil {
			if err = s.take(part.GetData()); err == nil && s.done {
				return io.EOF
			}
			idle.Reset(patience())
		}
	}
	if ctx.Err() == nil && watched.Err() != nil && !errors.Is(err, rest.ErrWrite) {
		return errStalled
	}
	return err
}

// feed gives the process its input. A process that has ended needs no more.
func (p *process) feed(ctx, over context.Context) error {
	source := &rest.Source{R: p.input}
	buf := make([]byte, pieceMost)
	var offset uint64
	for {
		var n int
		var err error
		if p.bulk {
			n, err = io.ReadFull(source, buf)
		} else {
			n, err = source.Read(buf)
		}
		p.read.Add(int64(n))
		if ctx.Err() != nil || over.Err() != nil {
			return nil
		}
		if source.Err != nil {
			return fmt.Errorf("read input: %w", source.Err)
		}
		last := err != nil
		if n > 0 || last {
			done, err := p.give(ctx, over, offset, buf[:n], last)
			if done || err != nil {
				return err
			}
			offset += uint64(n)
		}
		if last {
			return nil
		}
	}
}

// give writes data, which begins at offset, to the input. It reports whether the
// process takes no more. After a failure Modal is asked how much has arrived.
func (p *process) give(ctx, over context.Context, offset uint64, data []byte, last bool) (done bool, err error) {
	const op = "give input"
	seen := time.Now()
	for failures := 0; ; {
		_, err := route(ctx, p.router, op, p.TaskExecStdinWrite, &wire.TaskExecStdinWriteRequest{
			TaskId: p.task, ExecId: p.id, Offset: offset, Data: data, Eof: last,
		}, policy{attempts: 1, within: 20 * time.Second})
		switch {
		case err == nil:
			return false, nil
		case ctx.Err() != nil || over.Err() != nil, is(err, codes.FailedPrecondition, codes.Aborted, codes.NotFound):
			return true, nil
		case !transient(err) && sandbox.CodeOf(err) != sandbox.CodeRateLimited:
			return false, err
		case is(err, codes.DeadlineExceeded):
			seen = time.Now() // it reads when it likes
		case time.Since(seen) > lostAfter:
			return false, err
		}
		failures++
		if pause(ctx, failures, err) != nil {
			return true, nil
		}
		state, serr := route(ctx, p.router, op, p.TaskExecStdinStatus, &wire.TaskExecStdinStatusRequest{TaskId: p.task, ExecId: p.id}, policy{attempts: 1, within: 10 * time.Second})
		if have := state.GetNumBytesWritten(); serr == nil && have > offset && have <= offset+uint64(len(data)) {
			data, offset = data[have-offset:], have
		}
		if serr == nil && state.GetClosed() {
			return true, nil
		}
	}
}

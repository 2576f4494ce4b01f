package wasm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/hostfuncs"
	"github.com/talkops-ai/talkops/runtime/wasm/helper"
	"github.com/talkops-ai/talkops/sdk/abi"
)

// A process is one running helper. It is taken for hostile: whatever it sends
// that has no place ends it.
type process struct {
	cmd    *exec.Cmd
	out    chan helper.Frame // to the helper
	stderr *head

	mu   sync.Mutex
	ops  map[uint32]*running
	next uint32
	why  error         // it ended
	dead chan struct{} // closed when the process is gone
	kill chan struct{} // closed when it shall be
}

// A running operation waits for host calls and its end.
type running struct {
	calls  chan helper.Frame // at most one is open
	open   bool              // guarded by the process's mu
	done   chan helper.Frame
	served sync.WaitGroup
}

// Times of a helper's life.
const (
	afterHard   = 500 * time.Millisecond // between the hard stop and the kill
	killsWithin = 5 * time.Minute
	mostKills   = 3
)

// errStopped is why operations end that are not to blame.
var errStopped = errors.New("the provider was stopped because another call did not end")

// errCrashed is why a helper ended that nobody killed.
var errCrashed = errors.New("its process ended")

// launch starts a helper in the directory dir and gives it a module. The process
// is ready when the module is compiled.
func launch(ctx context.Context, l helper.Load, module []byte, dir string) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	name := exe
	if runtime.GOOS == "linux" {
		exe = "/proc/self/exe" // the program as it runs, whatever lies at its place now
	}
	p := &process{
		cmd: exec.Command(exe, helper.Arg), out: make(chan helper.Frame, 256), stderr: &head{},
		ops: map[uint32]*running{}, dead: make(chan struct{}), kill: make(chan struct{}),
	}
	p.cmd.Args[0] = name
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = []string{}, dir, p.stderr
	p.cmd.WaitDelay = time.Second
	apart(p.cmd)
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		// The helper ends with the thread that started it, where the system has
		// that: this thread lives as long as it does.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		<-p.kill
		p.cmd.Process.Kill()
		p.cmd.Wait()
		p.mu.Lock()
		if last := helper.LastWords(p.stderr.String()); errors.Is(p.why, errCrashed) && last != "" {
			p.why = fmt.Errorf("%w: %s", p.why, abi.Clean(last, 300))
		}
		p.mu.Unlock()
		close(p.dead)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the process for the module: %w", err)
	}
	go p.write(in)
	first, err := helper.First(l, module)
	if err != nil {
		p.end(err)
		return nil, err
	}
	p.out <- first
	ready := make(chan helper.Frame, 1)
	go p.read(out, ready)
	select {
	case f := <-ready:
		if f.Kind == helper.Ready {
			return p, nil
		}
		err = errors.New(abi.Clean(string(f.Payload), 300))
		p.end(err)
	case <-p.dead:
		err = p.reason()
	case <-ctx.Done():
		err = context.Cause(ctx)
		p.end(err)
	}
	<-p.dead
	return nil, err
}

// end kills the process. The first reason counts.
func (p *process) end(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why == nil {
		p.why = why
		close(p.kill)
	}
}

// reason is why the process ended, or nil.
func (p *process) reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

func (p *process) write(in io.WriteCloser) {
	defer in.Close()
	for {
		select {
		case f := <-p.out:
			if _, err := in.Write(f.Bytes()); err != nil {
				return // its end is noticed where it is read
			}
		case <-p.dead:
			return
		}
	}
}

// send queues a frame. There are never more than a few for each operation.
func (p *process) send(f helper.Frame) {
	select {
	case p.out <- f:
	case <-p.dead:
	}
}

// read takes the helper's frames, until it ends or sends what has no place.
func (p *process) read(out io.Reader, ready chan<- helper.Frame) {
	r := bufio.NewReaderSize(out, 64<<10)
	loaded := false
	for {
		f, err := helper.Read(r, helper.MaxFrame)
		if err == nil {
			if !loaded && (f.Kind == helper.Ready || f.Kind == helper.Broken) {
				loaded = true
				ready <- f
				continue
			}
			err = p.take(f)
		} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) {
			err = errCrashed
		}
		if err != nil {
			p.end(err)
			return
		}
	}
}

// take gives a frame to the operation it belongs to.
func (p *process) take(f helper.Frame) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.ops[f.Op]
	switch {
	case r == nil:
		return fmt.Errorf("its process spoke of an operation that does not run (frame of kind %d)", f.Kind)
	case f.Kind == helper.Host && r.open:
		return errors.New("its process made a second host call while one was open")
	case f.Kind == helper.Host:
		r.open = true
		r.calls <- f
	case f.Kind == helper.Done:
		delete(p.ops, f.Op)
		r.done <- f
	default:
		return fmt.Errorf("its process sent a frame of kind %d", f.Kind)
	}
	return nil
}

// call runs one export. Stop tells the module to end, ctx makes it.
func (p *process) call(ctx context.Context, call *hostfuncs.Call, stop <-chan struct{}, export string, input []byte) ([]byte, error) {
	r := &running{calls: make(chan helper.Frame, 1), done: make(chan helper.Frame, 1)}
	p.mu.Lock()
	p.next++
	id := p.next
	p.ops[id] = r
	p.mu.Unlock()
	over := make(chan struct{})
	r.served.Go(func() { p.serve(r, id, call, over) })
	defer func() {
		close(over)
		r.served.Wait()
	}()
	p.send(helper.Frame{Kind: helper.Start, Op: id, Payload: append(append([]byte(export), 0), input...)})
	ended := ctx.Done()
	for {
		select {
		case f := <-r.done:
			return outcome(ctx, f)
		case <-p.dead:
			call.Abort() // nobody waits for its answer
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, p.reason()
		case <-stop:
			stop = nil
			p.send(helper.Frame{Kind: helper.Soft, Op: id})
		case <-ended:
			ended, stop = nil, nil
			defer time.AfterFunc(afterHard, func() { p.end(errStopped) }).Stop()
			p.send(helper.Frame{Kind: helper.Hard, Op: id})
		}
	}
}

// serve answers the operation's host calls.
func (p *process) serve(r *running, id uint32, call *hostfuncs.Call, over <-chan struct{}) {
	for {
		select {
		case f := <-r.calls:
			c, err := helper.ReadHostCall(f.Payload)
			if err != nil {
				p.end(err)
				return
			}
			n, block := call.Invoke(c.Function.Name, c.Ints, c.Block)
			if len(block) > abi.MaxMessage {
				n, block = abi.StatusFailed, nil
			}
			p.mu.Lock()
			r.open = false
			p.mu.Unlock()
			p.send(helper.Frame{Kind: helper.Answer, Op: id, Seq: f.Seq, Payload: helper.EncodeAnswer(n, block)})
		case <-over:
			return
		}
	}
}

func outcome(ctx context.Context, f helper.Frame) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if len(f.Payload) == 0 {
		return nil, errors.New("its process told no outcome")
	}
	if text := f.Payload[1:]; helper.Outcome(f.Payload[0]) == helper.Returned {
		return text, nil
	} else {
		return nil, errors.New(abi.Clean(string(text), 500))
	}
}

// A head keeps the beginning of what a helper writes to its standard error.
type head struct {
	mu   sync.Mutex
	data []byte
}

func (h *head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// The first words of a crash say what it is; stacks follow.
	if room := 8<<10 - len(h.data); room > 0 {
		h.data = append(h.data, b[:min(room, len(b))]...)
	}
	return len(b), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.data)
}

// directory makes the place for a module's native code, which only the user can
// write.
func directory(cache, sha256 string) (string, error) {
	dir := filepath.Join(cache, sha256)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := private(dir); err != nil {
		return "", err
	}
	now := time.Now()
	return dir, os.Chtimes(dir, now, now) // used now
}

// Package hostfuncs is everything a WebAssembly provider can do to the world:
// requests to the hosts it was granted, with secrets it never sees, files in
// folders it was granted, a clock, sleep, random bytes, and a few words to the
// user. What is not here is denied.
package hostfuncs

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Functions is the host's side of one module. It keeps no more than idle
// connections between operations and is safe for concurrent use.
type Functions struct {
	grant  Grant
	client *http.Client
	log    func(Record)
	roots  map[string]*os.Root
}

// New returns the host functions of a module with that grant. Log takes what an
// operation did, from any goroutine; nil discards. Close lets go of connections and
// folders.
func New(grant Grant, log func(Record)) (*Functions, error) {
	f := &Functions{grant: grant, log: log, roots: map[string]*os.Root{}}
	if log == nil {
		f.log = func(Record) {}
	}
	for _, folder := range grant.Folders {
		root, err := os.OpenRoot(folder.Path)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("folder %s: %w", folder.Name, err)
		}
		f.roots[folder.Name] = root
	}
	f.client = &http.Client{
		Transport: &http.Transport{
			DialContext:            f.dial,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    16,
			IdleConnTimeout:        90 * time.Second,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f, nil
}

// Close lets go of connections and folders.
func (f *Functions) Close() {
	if f.client != nil {
		f.client.CloseIdleConnections()
	}
	for _, root := range f.roots {
		root.Close()
	}
}

// dial connects only to addresses that may be reached, judged when they are known.
func (f *Functions) dial(ctx context.Context, network, address string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: 10 * time.Second, ControlContext: func(_ context.Context, _, reached string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(reached)
		if err != nil || !f.grant.mayDial(name, at.Addr()) {
			return &abi.Error{Kind: string(sandbox.CodePermissionDenied), Message: fmt.Sprintf("%s leads to the private address %s", name, at.Addr())}
		}
		return nil
	}}
	return d.DialContext(ctx, network, address)
}

// An Op is one operation of a module.
type Op struct {
	Provider string // for the log, with Name and ID
	Name     string
	ID       string
	Stop     <-chan struct{}   // closed when the operation shall end; nil: never
	Deadline time.Time         // zero: none
	Secrets  map[string]Secret // by the key of the setting
	Settings map[string]string // values that are no secret

	Stdout, Stderr io.Writer // where emit goes; nil discards

	Created  func(abi.Opened) // nil: no machine can be made in this operation
	Progress func(string)

	Pure bool // nothing but log is allowed: describe
}

// A Call is the host's side of one operation. Its methods are called by one
// goroutine.
type Call struct {
	f     *Functions
	op    Op
	began time.Time
	hide  func() *strings.Replacer // secrets
	ctx   context.Context          // ends everything that was begun in the operation
	end   context.CancelFunc
	wg    sync.WaitGroup

	handles map[int32]any
	open    int // of the handles, those that the module opened itself
	words   int // of progress told so far
	word    string
	last    *abi.Error
	told    bool // the module knows that it shall stop
	outMu   sync.Mutex
	outErr  error // of the caller's writers
	logLeft int   // bytes
	macs    int   // made so far
	emitted int64
}

// Over tells the log that the operation has ended, and how.
func (c *Call) Over(err error) {
	r := Record{Event: "operation"}
	if err != nil {
		r.Error = err.Error()
	}
	c.record(r, c.began)
}

// Begin begins an operation. What it starts is over when Close returns.
func (f *Functions) Begin(ctx context.Context, op Op) *Call {
	ctx, end := context.WithCancel(ctx)
	hide := sync.OnceValue(func() *strings.Replacer { return hider(op.Secrets) })
	return &Call{f: f, op: op, hide: hide, began: time.Now(), ctx: ctx, end: end, handles: map[int32]any{}, logLeft: cmp.Or(f.grant.LogBytes, 64<<10)}
}

// Close ends everything that the operation began and keeps nothing of it.
func (c *Call) Close() {
	c.end()
	for _, h := range c.handles {
		if x, ok := h.(io.Closer); ok {
			x.Close()
		}
	}
	c.wg.Wait()
}

// Abort ends what the operation waits for. It may be called at any time.
func (c *Call) Abort() { c.end() }

// OutputError is the failure of a writer that output was emitted to, or nil.
func (c *Call) OutputError() error {
	c.outMu.Lock()
	defer c.outMu.Unlock()
	return c.outErr
}

// mostOpen is how many requests and files a module may have open in one operation,
// and mostWords how often it may say what it waits for.
const (
	mostOpen  = 64
	mostWords = 100
)

// full says that the module may open nothing more before it lets go of something,
// or is nil.
func (c *Call) full() *abi.Error {
	if c.open < mostOpen {
		return nil
	}
	return &abi.Error{Kind: string(sandbox.CodePermissionDenied), Message: fmt.Sprintf("%d requests and files are open; close one first", mostOpen)}
}

// opened is a handle of what the module opened itself.
func (c *Call) opened(x io.Closer) int32 {
	c.open++
	return c.add(x)
}

func (c *Call) add(x any) int32 {
	n := int32(len(c.handles) + 1)
	c.handles[n] = x
	return n
}

// fail records why a function failed.
func (c *Call) fail(code sandbox.Code, format string, args ...any) int64 {
	return c.failed(&abi.Error{Kind: string(code), Message: fmt.Sprintf(format, args...)})
}

func (c *Call) failed(err *abi.Error) int64 {
	c.last = err
	return abi.StatusFailed
}

// stopping reports, once, that the module has to be told to stop.
func (c *Call) stopping() bool {
	if c.told || c.op.Stop == nil {
		return false
	}
	select {
	case <-c.op.Stop:
		c.told = true
		return true
	default:
		return false
	}
}

// stop is the channel that ends a wait, nil once the module has been told.
func (c *Call) stop() <-chan struct{} {
	if c.told {
		return nil
	}
	return c.op.Stop
}

// Invoke runs one host function: ints are its plain parameters in order, block
// the content of its block. It returns a number, or what a block shall hold.
func (c *Call) Invoke(name string, ints []int64, block []byte) (n int64, out []byte) {
	began, in := time.Now(), len(block)
	defer func() {
		if p := recover(); p != nil {
			n, out = c.fail(sandbox.CodeInternal, "talkops failed in %s", name), nil
		}
		r := Record{Event: "call", Function: name, Result: n, In: in, Out: len(out)}
		if n == abi.StatusFailed && c.last != nil {
			r.Error = c.last.Error()
		}
		if n != abi.StatusWait { // it is asked again
			c.record(r, began)
		}
	}()
	arg := func(i int) int32 { return int32(ints[i]) }
	if c.op.Pure && name != "log" && name != "now" && name != "last_error" && name != "random" {
		return c.fail(sandbox.CodePermissionDenied, "%s is not for describe", name), nil
	}
	switch name {
	case "http":
		return 0, encode(c.http(block))
	case "http_start":
		return c.start(block), nil
	case "http_wait":
		return c.wait(arg(0), arg(1))
	case "stream_next":
		return c.next(arg(0), arg(1))
	case "stream_send":
		return c.send(arg(0), block), nil
	case "stream_finish":
		return c.finish(arg(0)), nil
	case "stream_close":
		return c.closeHandle(arg(0)), nil
	case "emit":
		return c.emit(arg(0), block), nil
	case "ref_read":
		return c.refRead(arg(0), arg(1), arg(2))
	case "ref_write":
		return c.refWrite(arg(0), block), nil
	case "fs":
		return 0, encode(c.file(block))
	case "created":
		return c.created(block), nil
	case "progress":
		c.progress(abi.Clean(string(block), 200))
		return 0, nil
	case "log":
		c.logLine(arg(0), string(block))
		return 0, nil
	case "sleep":
		return c.sleep(time.Duration(arg(0)) * time.Millisecond), nil
	case "now":
		return time.Now().UnixMilli(), nil
	case "remaining":
		if c.op.Deadline.IsZero() {
			return int64(24 * time.Hour / time.Millisecond), nil
		}
		return max(0, time.Until(c.op.Deadline).Milliseconds()), nil
	case "stopped":
		if c.stopping() || c.told {
			return 1, nil
		}
		return 0, nil
	case "random":
		b := make([]byte, min(max(int(arg(0)), 1), 4096))
		crand.Read(b)
		return 0, b
	case "last_error":
		if c.last == nil {
			return 0, encode(&abi.Error{Kind: string(sandbox.CodeInternal), Message: "nothing has failed"})
		}
		return 0, encode(c.last)
	case "stream_info":
		return 0, encode(c.info(arg(0)))
	case "mac":
		return 0, encode(c.mac(block))
	case "state":
		return 0, encode(c.state(block))
	case "ext":
		return 0, encode(map[string]any{"error": &abi.Error{Kind: string(sandbox.CodeUnsupported), Message: "this talkops has no such function"}})
	}
	return c.fail(sandbox.CodeUnsupported, "there is no host function %q", name), nil
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"error":{"kind":"internal"}}`)
	}
	return data
}

// sleep waits, until the operation shall end.
func (c *Call) sleep(d time.Duration) int64 {
	t := time.NewTimer(min(max(d, 0), time.Minute))
	defer t.Stop()
	select {
	case <-t.C:
		return 0
	case <-c.stop():
		c.told = true
		return abi.StatusStop
	case <-c.ctx.Done():
		return abi.StatusStop
	}
}

// Nanosleep is sleep for the clock of the module's own runtime, which learns of
// a stop by other means.
func (c *Call) Nanosleep(ns int64) {
	t := time.NewTimer(time.Duration(ns))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.stop():
	case <-c.ctx.Done():
	}
}

// logLine takes a bounded number of bytes, and says so when it takes no more.
func (c *Call) logLine(level int32, text string) {
	const line = 2000
	left := c.logLeft
	if c.logLeft -= min(len(text), line) + 1; left <= 0 {
		return
	}
	if c.logLeft <= 0 {
		level, text = 2, "it logs too much; the rest is dropped"
	}
	word := [...]string{"debug", "info", "warning", "error"}[min(max(level, 0), 3)]
	c.record(Record{Event: "log", Level: word, Text: abi.Clean(text, line)}, time.Now())
}

// progress tells what is waited for, not twice the same and not without end.
func (c *Call) progress(word string) {
	if c.op.Progress == nil || word == c.word || c.words >= mostWords {
		return
	}
	c.words, c.word = c.words+1, word
	c.op.Progress(word)
}

// created tells the caller of a new machine.
func (c *Call) created(block []byte) int64 {
	var o abi.Opened
	if err := json.Unmarshal(block, &o); err != nil || o.ID == "" {
		return c.fail(sandbox.CodeInvalidArgument, "created needs an id")
	}
	if c.op.Created == nil {
		return c.fail(sandbox.CodePermissionDenied, "no machine is to be made now")
	}
	c.op.Created(o)
	return 0
}

// emit delivers output of the running command.
func (c *Call) emit(stream int32, block []byte) int64 {
	if len(block) == 0 || len(block) > abi.MaxBlock {
		return c.fail(sandbox.CodeInvalidArgument, "emit takes 1 to %d bytes, not %d", abi.MaxBlock, len(block))
	}
	w, err := c.output(stream)
	if err != nil {
		return c.failed(err)
	}
	if c.ctx.Err() != nil {
		return abi.StatusStop
	}
	if _, err := w.Write(block); err != nil {
		return 1
	}
	return 0
}

// output is the caller's writer for a stream of the running command.
func (c *Call) output(stream int32) (io.Writer, *abi.Error) {
	switch stream {
	case 1:
		return &guarded{c, c.op.Stdout}, nil
	case 2:
		return &guarded{c, c.op.Stderr}, nil
	}
	return nil, &abi.Error{Kind: string(sandbox.CodeInvalidArgument), Message: "a stream is 1 for stdout or 2 for stderr"}
}

// A guarded writer is used by one goroutine at a time and remembers its failure.
type guarded struct {
	c *Call
	w io.Writer
}

func (g *guarded) Write(p []byte) (int, error) {
	g.c.outMu.Lock()
	defer g.c.outMu.Unlock()
	if g.c.outErr != nil {
		return 0, g.c.outErr
	}
	if g.w == nil {
		return len(p), nil
	}
	n, err := g.w.Write(p)
	if err != nil {
		g.c.outErr = err
	}
	g.c.emitted += int64(n)
	return n, err
}

package wasm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/hostfuncs"
	"github.com/talkops-ai/talkops/runtime/wasm/helper"
	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// An engine runs a module's operations in a helper, which it starts when one is
// needed.
type engine struct {
	*Module
	name    string // of the provider
	data    []byte
	cache   string
	limits  Limits
	waiting func(string)
	slots   chan struct{}
	execs   chan struct{} // fewer, so that files can be read while commands run

	mu      sync.Mutex
	process *process
	start   *startup // under way
	kills   []time.Time
	lastWhy error
	closed  bool
}

// A startup is a helper that several operations wait for.
type startup struct {
	done chan struct{}
	p    *process
	err  error
	end  context.CancelCauseFunc
}

func newEngine(m *Module, data []byte, c Config) (*engine, error) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return nil, fmt.Errorf("WebAssembly providers are not supported on %s: %w", runtime.GOARCH, errors.ErrUnsupported)
	}
	if m.MinPages > c.Limits.MemoryMB<<4 {
		return nil, bad("%s needs at least %d MiB of memory; its limit is %d (memory_mb).", m.Name, (m.MinPages+15)>>4, c.Limits.MemoryMB)
	}
	return &engine{
		Module: m, name: c.Name, data: data, cache: c.Cache, limits: c.Limits, waiting: c.Waiting,
		slots: make(chan struct{}, c.Limits.AtOnce), execs: make(chan struct{}, max(1, c.Limits.AtOnce-2)),
	}, nil
}

// close ends the helper; no operation may run.
func (e *engine) close() {
	e.mu.Lock()
	e.closed = true
	p, s := e.process, e.start
	e.mu.Unlock()
	if s != nil {
		s.end(errClosed)
		<-s.done
		p = s.p
	}
	if p != nil {
		p.end(errClosed)
		<-p.dead
	}
}

var errClosed = errors.New("the provider was closed")

// ready is the helper, started if there is none. It waits for the module to be
// compiled or ctx to end.
func (e *engine) ready(ctx context.Context) (*process, error) {
	e.mu.Lock()
	if e.process != nil && e.process.reason() != nil {
		e.lost(e.process.reason())
	}
	switch {
	case e.closed:
		e.mu.Unlock()
		return nil, errClosed
	case e.process != nil:
		defer e.mu.Unlock()
		return e.process, nil
	case len(e.kills) >= mostKills:
		defer e.mu.Unlock()
		return nil, fmt.Errorf("it is out of use for this session: it had to be stopped %d times (%w)", len(e.kills), e.lastWhy)
	}
	s := e.start
	if s == nil {
		s = &startup{done: make(chan struct{})}
		// Whoever waits no longer leaves it to the others.
		var within context.Context
		within, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
		e.start = s
		go e.launch(within, s)
	}
	e.mu.Unlock()
	select {
	case <-s.done:
		return s.p, s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lost forgets a helper that ended, and counts it.
func (e *engine) lost(why error) {
	e.process, e.lastWhy = nil, why
	recent := e.kills[:0]
	for _, t := range e.kills {
		if time.Since(t) < killsWithin {
			recent = append(recent, t)
		}
	}
	e.kills = append(recent, time.Now())
}

func (e *engine) launch(ctx context.Context, s *startup) {
	defer s.end(nil)
	limited, cancel := context.WithTimeout(ctx, e.limits.Compile)
	defer cancel()
	if e.waiting != nil {
		t := time.AfterFunc(300*time.Millisecond, func() { e.waiting("preparing provider " + e.name + " …") })
		defer t.Stop()
	}
	load := helper.Load{Build: helper.Build(), SHA256: e.SHA256, Pages: uint32(e.limits.MemoryMB << 4), WASI: e.WASI, Alias: e.Alias, AtOnce: e.limits.AtOnce}
	dir, err := directory(e.cache, e.SHA256)
	if err == nil {
		s.p, err = launch(limited, load, e.data, dir)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case limited.Err() != nil:
		err = bad("%s took longer than %v to compile and was stopped.", e.Name, e.limits.Compile)
	default:
		err = bad("%s cannot be compiled: %s.", e.Name, abi.Clean(err.Error(), 300))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.err, e.start, e.process = err, nil, s.p
	close(s.done)
}

// errNotBegun ends an operation that waited for its turn.
var errNotBegun = errors.New("the operation has not begun")

// run calls one export in a fresh instance and returns its output. Stop tells the
// module to end, ctx makes it.
func (e *engine) run(ctx context.Context, call *hostfuncs.Call, stop <-chan struct{}, export string, input []byte) ([]byte, error) {
	if len(input) > abi.MaxMessage {
		return nil, &sandbox.Error{Code: sandbox.CodeTooLarge, Msg: fmt.Sprintf("a request of %d bytes is too large for a module", len(input))}
	}
	queues := []chan struct{}{e.slots}
	if export == abi.Exec {
		queues = []chan struct{}{e.execs, e.slots}
	}
	for _, q := range queues {
		select {
		case q <- struct{}{}:
			defer func() { <-q }()
		case <-stop:
			return nil, errNotBegun
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	p, err := e.ready(ctx)
	if err != nil {
		return nil, err
	}
	return p.call(ctx, call, stop, export, input)
}

// Prune removes the native code of modules that were not used for that long, and
// of those used longest ago until no more than so many bytes are left.
func Prune(cache string, unused time.Duration, most int64) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return nil
	}
	type code struct {
		dir  string
		used time.Time
		size int64
	}
	var kept []code
	var sum int64
	for _, d := range entries {
		info, err := d.Info()
		if err != nil || !d.IsDir() || len(d.Name()) != 64 {
			continue
		}
		c := code{dir: filepath.Join(cache, d.Name()), used: info.ModTime()}
		if time.Since(c.used) > unused {
			if err := os.RemoveAll(c.dir); err != nil {
				return err
			}
			continue
		}
		filepath.WalkDir(c.dir, func(_ string, f os.DirEntry, err error) error {
			if err == nil && f.Type().IsRegular() {
				if info, err := f.Info(); err == nil {
					c.size += info.Size()
				}
			}
			return nil
		})
		kept, sum = append(kept, c), sum+c.size
	}
	for sum > most && len(kept) > 1 {
		oldest := 0
		for i, c := range kept {
			if c.used.Before(kept[oldest].used) {
				oldest = i
			}
		}
		if err := os.RemoveAll(kept[oldest].dir); err != nil {
			return err
		}
		sum -= kept[oldest].size
		kept = append(kept[:oldest], kept[oldest+1:]...)
	}
	return nil
}

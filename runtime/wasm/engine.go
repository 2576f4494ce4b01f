package wasm

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/talkops-ai/talkops/hostfuncs"
	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// An engine is one compiled module.
type engine struct {
	*Module
	plugin *extism.CompiledPlugin
	cache  wazero.CompilationCache
	slots  chan struct{}
}

// callKey finds the operation's host side in the context that wazero passes on
// to host functions, which are shared by all instances of a module.
type callKey struct{}

// compile makes a module ready, with native code kept in the directory cache.
func compile(ctx context.Context, m *Module, data []byte, cache string, memoryMB, atOnce int) (*engine, error) {
	if goruntime.GOARCH != "amd64" && goruntime.GOARCH != "arm64" {
		return nil, fmt.Errorf("WebAssembly providers are not supported on %s: %w", goruntime.GOARCH, errors.ErrUnsupported)
	}
	pages := uint32(memoryMB << 4)
	if m.MinPages > int(pages) {
		return nil, bad("%s needs at least %d MiB of memory; its limit is %d (memory_mb).", m.Name, (m.MinPages+15)>>4, memoryMB)
	}
	dir := filepath.Join(cache, m.SHA256)
	e, err := compileIn(ctx, m, data, dir, pages, atOnce)
	if err != nil && ctx.Err() == nil {
		// An entry that was cut or changed is made again; a module that cannot be
		// compiled fails twice.
		if rerr := os.RemoveAll(dir); rerr != nil {
			return nil, rerr
		}
		e, err = compileIn(ctx, m, data, dir, pages, atOnce)
	}
	if err != nil && ctx.Err() == nil {
		return nil, bad("%s cannot be compiled: %s.", m.Name, abi.Clean(err.Error(), 300))
	}
	return e, err
}

func compileIn(ctx context.Context, m *Module, data []byte, dir string, pages uint32, atOnce int) (*engine, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, err
	}
	e := &engine{Module: m, cache: cache, slots: make(chan struct{}, atOnce)}
	config := wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(true).WithCompilationCache(cache)
	manifest := extism.Manifest{
		Wasm:   []extism.Wasm{extism.WasmData{Data: data, Hash: m.SHA256}},
		Memory: &extism.ManifestMemory{MaxPages: pages},
	}
	// A call that never loops is noticed at its calls.
	ctx = experimental.WithFunctionListenerFactory(ctx, listeners{})
	e.plugin, err = extism.NewCompiledPlugin(ctx, manifest, extism.PluginConfig{RuntimeConfig: config, EnableWasi: m.WASI}, functions(m))
	if err != nil {
		cache.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return e, nil
}

func (e *engine) close(ctx context.Context) {
	e.plugin.Close(ctx)
	e.cache.Close(ctx)
}

// listeners end modules that only call and never loop, which the runtime's own
// check does not see.
type listeners struct{}

func (listeners) NewFunctionListener(api.FunctionDefinition) experimental.FunctionListener {
	return listener{}
}

type listener struct{}

func (listener) Before(_ context.Context, mod api.Module, _ api.FunctionDefinition, _ []uint64, _ experimental.StackIterator) {
	if mod.IsClosed() {
		panic(errStopped)
	}
}
func (listener) After(context.Context, api.Module, api.FunctionDefinition, []uint64) {}
func (listener) Abort(context.Context, api.Module, api.FunctionDefinition, error)    {}

var errStopped = errors.New("the module was stopped")

// functions binds the host functions to the operation that is running.
func functions(m *Module) []extism.HostFunction {
	var list []extism.HostFunction
	types := map[byte]api.ValueType{'i': api.ValueTypeI32, 'I': api.ValueTypeI64, 'b': api.ValueTypeI64}
	for _, f := range abi.Functions() {
		var params, results []api.ValueType
		for _, t := range []byte(f.Params) {
			params = append(params, types[t])
		}
		if f.Result != "" {
			results = append(results, types[f.Result[0]])
		}
		bound := extism.NewHostFunctionWithStack(f.Name, bind(f), params, results)
		bound.SetNamespace(abi.Namespace)
		list = append(list, bound)
		if m.Alias {
			bound.SetNamespace(abi.UserNamespace)
			list = append(list, bound)
		}
	}
	return list
}

func bind(f abi.Function) extism.HostFunctionStackCallback {
	return func(ctx context.Context, p *extism.CurrentPlugin, stack []uint64) {
		call, _ := ctx.Value(callKey{}).(*hostfuncs.Call)
		n, out := int64(abi.StatusFailed), []byte(nil)
		if ints, block, ok := arguments(p, f, stack); ok && call != nil {
			n, out = call.Invoke(f.Name, ints, block)
		}
		switch f.Result {
		case "b":
			if n < 0 {
				stack[0] = uint64(n)
				return
			}
			at, err := p.WriteBytes(out)
			if err != nil || len(out) == 0 {
				n := int64(abi.StatusFailed)
				stack[0] = uint64(n)
				return
			}
			stack[0] = at
		case "i":
			stack[0] = uint64(uint32(int32(n)))
		case "I":
			stack[0] = uint64(n)
		}
	}
}

// arguments reads a host function's parameters. The upper half of an i32's slot
// holds whatever it likes.
func arguments(p *extism.CurrentPlugin, f abi.Function, stack []uint64) (ints []int64, block []byte, ok bool) {
	for i, t := range []byte(f.Params) {
		switch t {
		case 'i':
			ints = append(ints, int64(int32(stack[i])))
		case 'I':
			ints = append(ints, int64(stack[i]))
		case 'b':
			n, err := p.Length(stack[i])
			if err != nil || n > abi.MaxMessage || stack[i] > 1<<32-1 {
				return nil, nil, false
			}
			view, good := p.Memory().Read(uint32(stack[i]), uint32(n))
			if !good {
				return nil, nil, false
			}
			block = append([]byte(nil), view...)
		}
	}
	return ints, block, true
}

// run calls one export in a fresh instance and returns its output. Ctx ends it
// at once.
func (e *engine) run(ctx context.Context, call *hostfuncs.Call, export string, input []byte) ([]byte, error) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if len(input) > abi.MaxMessage {
		return nil, &sandbox.Error{Code: sandbox.CodeTooLarge, Msg: fmt.Sprintf("a request of %d bytes is too large for a module", len(input))}
	}
	stderr := &ring{}
	config := wazero.NewModuleConfig().WithRandSource(crand.Reader).WithSysWalltime().WithSysNanotime().
		WithNanosleep(call.Nanosleep).WithStderr(stderr)
	ctx = context.WithValue(ctx, callKey{}, call)
	plugin, err := e.plugin.Instance(ctx, extism.PluginInstanceConfig{ModuleConfig: config})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, trap(err, stderr)
	}
	defer plugin.Close(context.WithoutCancel(ctx))
	plugin.SetLogger(func(extism.LogLevel, string) {})
	rc, out, err := plugin.CallWithContext(ctx, export, input)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, trap(err, stderr)
	case rc != 0:
		return nil, fmt.Errorf("%s ended with %d", export, rc)
	}
	return out, nil
}

// trap is why a module broke: its own last words, else the machine's.
func trap(err error, stderr *ring) error {
	text := err.Error()
	if first, _, ok := strings.Cut(text, "\nwasm stack trace"); ok {
		text = first
	}
	text = strings.TrimPrefix(text, "wasm error: ")
	switch {
	case strings.Contains(text, "stack overflow"):
		text = "it called itself too deeply"
	case strings.Contains(text, "module closed with exit_code"), strings.Contains(text, errStopped.Error()):
		text = "it ended itself"
	}
	if last := stderr.last(); last != "" {
		text = last
	}
	return errors.New(abi.Clean(strings.TrimSpace(text), 500))
}

// A ring keeps the end of what a module writes to its standard error.
type ring struct {
	mu   sync.Mutex
	data []byte
}

func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const most = 8 << 10
	r.data = append(r.data, p[max(0, len(p)-most):]...)
	if over := len(r.data) - most; over > 0 {
		r.data = append(r.data[:0], r.data[over:]...)
	}
	return len(p), nil
}

// last is the line that tells most: the one that begins a panic, else the last.
func (r *ring) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := ""
	for line := range strings.Lines(string(r.data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
		if line != "" {
			last = line
		}
	}
	return last
}

// Prune removes the native code of modules that were not used for that long.
func Prune(cache string, unused time.Duration) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return nil
	}
	for _, d := range entries {
		info, err := d.Info()
		if err == nil && d.IsDir() && len(d.Name()) == 64 && time.Since(info.ModTime()) > unused {
			err = os.RemoveAll(filepath.Join(cache, d.Name()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

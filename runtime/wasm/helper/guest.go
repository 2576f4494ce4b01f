package helper

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// A guest is the compiled module and its running operations.
type guest struct {
	load     Load
	plugin   *extism.CompiledPlugin
	memory   experimental.MemoryAllocator // nil: the runtime's own
	out      *Writer
	prepared chan *instance // made beforehand, for the next operation
	making   atomic.Bool    // one is being made

	mu  sync.Mutex
	ops map[uint32]*operation
}

// An operation is one call of an export.
type operation struct {
	g       *guest
	id      uint32
	ctx     context.Context // ended by Hard
	seq     uint32
	answers chan Frame
	soft    chan struct{}      // closed when it shall end
	end     context.CancelFunc // of ctx
}

// opKey finds the running operation in the context that reaches host functions,
// which are shared by all instances of a module.
type opKey struct{}

// newGuest compiles the module, with native code kept in the working directory.
// An entry that was cut or changed is made again; a module that cannot be compiled
// fails twice.
func newGuest(l Load, module []byte, out *Writer) (*guest, error) {
	g := &guest{load: l, memory: allocator(), out: out, prepared: make(chan *instance, 1), ops: map[uint32]*operation{}}
	module = join(module)
	err := g.compile(module)
	if err != nil {
		entries, rerr := os.ReadDir(".")
		for _, e := range entries {
			rerr = errors.Join(rerr, os.RemoveAll(e.Name()))
		}
		if rerr != nil {
			return nil, rerr
		}
		err = g.compile(module)
	}
	if err != nil {
		return nil, err
	}
	go func() {
		debug.FreeOSMemory() // what compiling took
		g.prepare()
	}()
	return g, nil
}

func (g *guest) compile(module []byte) error {
	ctx := context.Background()
	cache, err := wazero.NewCompilationCacheWithDir(".")
	if err != nil {
		return err
	}
	// Without the check of the context an endless loop would keep the collector,
	// and with it every other operation of the module, from going on.
	config := wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(true).WithCompilationCache(cache)
	manifest := extism.Manifest{
		Wasm:   []extism.Wasm{extism.WasmData{Data: module}},
		Memory: &extism.ManifestMemory{MaxPages: g.load.Pages},
	}
	g.plugin, err = extism.NewCompiledPlugin(ctx, manifest, extism.PluginConfig{RuntimeConfig: config, EnableWasi: g.load.WASI}, g.functions())
	if err != nil {
		cache.Close(ctx)
	}
	return err
}

// functions are stubs that ask the parent.
func (g *guest) functions() []extism.HostFunction {
	var list []extism.HostFunction
	types := map[byte]api.ValueType{'i': api.ValueTypeI32, 'I': api.ValueTypeI64, 'b': api.ValueTypeI64}
	for i, f := range abi.Functions() {
		var params, results []api.ValueType
		for _, t := range []byte(f.Params) {
			params = append(params, types[t])
		}
		if f.Result != "" {
			results = append(results, types[f.Result[0]])
		}
		bound := extism.NewHostFunctionWithStack(f.Name, stub(i, f), params, results)
		bound.SetNamespace(abi.Namespace)
		list = append(list, bound)
		if g.load.Alias {
			bound.SetNamespace(abi.UserNamespace)
			list = append(list, bound)
		}
	}
	return list
}

func stub(index int, f abi.Function) extism.HostFunctionStackCallback {
	return func(ctx context.Context, p *extism.CurrentPlugin, stack []uint64) {
		n, block := int64(abi.StatusFailed), []byte(nil)
		if o, ok := ctx.Value(opKey{}).(*operation); ok {
			if c, ok := parameters(p, f, stack); ok {
				n, block = o.ask(ctx, index, c)
			}
		}
		switch f.Result {
		case "b":
			if n >= 0 {
				n = abi.StatusFailed
				if at, err := p.WriteBytes(block); err == nil && len(block) > 0 {
					n = int64(at)
				}
			}
			stack[0] = uint64(n)
		case "i":
			stack[0] = uint64(uint32(int32(n)))
		case "I":
			stack[0] = uint64(n)
		}
	}
}

// parameters reads a host function's parameters. The upper half of an i32's slot
// holds whatever it likes.
func parameters(p *extism.CurrentPlugin, f abi.Function, stack []uint64) (c HostCall, ok bool) {
	for i, t := range []byte(f.Params) {
		switch t {
		case 'i':
			c.Ints = append(c.Ints, int64(int32(stack[i])))
		case 'I':
			c.Ints = append(c.Ints, int64(stack[i]))
		case 'b':
			n, err := p.Length(stack[i])
			if err != nil || n > abi.MaxMessage || stack[i] > 1<<32-1 {
				return c, false
			}
			if c.Block, ok = p.Memory().Read(uint32(stack[i]), uint32(n)); !ok {
				return c, false
			}
		}
	}
	return c, true
}

// ask makes one host call. After the end of the operation, whose last one may still
// be open, there are none.
func (o *operation) ask(ctx context.Context, index int, c HostCall) (int64, []byte) {
	if ctx.Err() != nil {
		return abi.StatusStop, nil
	}
	if abi.Functions()[index].Name == "stopped" {
		select {
		case <-o.soft:
		default:
			return 0, nil // asked for often, and known here
		}
	}
	o.seq++
	seq := o.seq
	if o.g.out.Write(Frame{Kind: Host, Op: o.id, Seq: seq, Payload: c.encode(index)}) != nil {
		os.Exit(1)
	}
	for {
		select {
		case f := <-o.answers:
			if f.Seq != seq {
				continue
			}
			n, block, err := readAnswer(f.Payload)
			if err != nil {
				return abi.StatusFailed, nil
			}
			return n, block
		case <-ctx.Done():
			return abi.StatusStop, nil
		}
	}
}

// take does what a frame of the parent says.
func (g *guest) take(f Frame) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.ops[f.Op]
	switch f.Kind {
	case Start:
		export, input, ok := bytes.Cut(f.Payload, []byte{0})
		if !ok || o != nil {
			return errors.New("an operation cannot be started")
		}
		ctx, end := context.WithCancel(context.Background())
		o = &operation{g: g, id: f.Op, ctx: ctx, answers: make(chan Frame, 1), soft: make(chan struct{}), end: end}
		g.ops[f.Op] = o
		go o.run(string(export), input)
	case Answer:
		if o != nil {
			select {
			case o.answers <- f:
			default: // of a call that is over
			}
		}
	case Soft:
		if o != nil {
			close(o.soft)
		}
	case Hard:
		if o != nil {
			o.end()
		}
	default:
		return fmt.Errorf("a frame of kind %d", f.Kind)
	}
	return nil
}

// run runs the operation and tells the outcome.
func (o *operation) run(export string, input []byte) {
	defer o.end()
	outcome, text := o.call(o.ctx, export, input)
	o.g.mu.Lock()
	delete(o.g.ops, o.id)
	o.g.mu.Unlock()
	if o.g.out.Write(Frame{Kind: Done, Op: o.id, Payload: append([]byte{byte(outcome)}, text...)}) != nil {
		os.Exit(1)
	}
}

func (o *operation) call(ctx context.Context, export string, input []byte) (Outcome, []byte) {
	in, err := o.g.instance(ctx)
	if err == nil {
		defer in.close()
		in.op.Store(o)
		o.g.prepare() // the next, while this one works
		var rc uint32
		var out []byte
		rc, out, err = in.plugin.CallWithContext(context.WithValue(ctx, opKey{}, o), export, input)
		if err == nil && ctx.Err() == nil {
			switch {
			case rc != 0:
				return Failed, fmt.Appendf(nil, "%s ended with %d", export, rc)
			case len(out) > abi.MaxMessage:
				return Failed, fmt.Appendf(nil, "an answer of %d bytes; the limit is %d", len(out), abi.MaxMessage)
			}
			return Returned, out
		}
	}
	if ctx.Err() != nil {
		return Ended, nil
	}
	return Failed, []byte(trap(err, in))
}

// An instance has run no operation yet. It is used for one.
type instance struct {
	plugin *extism.Plugin
	stderr ring
	op     atomic.Pointer[operation]
	ctx    context.Context // of its making
}

// instance is one that was prepared, else a new one.
func (g *guest) instance(ctx context.Context) (*instance, error) {
	select {
	case in := <-g.prepared:
		return in, nil
	default:
		return g.make(ctx)
	}
}

// prepare makes an instance for the operation after this one.
func (g *guest) prepare() {
	if len(g.prepared) > 0 || !g.making.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer g.making.Store(false)
		// One that does not begin in time is made again, and fails, where an
		// operation waits for it.
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if in, err := g.make(ctx); err == nil {
			select {
			case g.prepared <- in:
			default:
				in.close()
			}
		}
	}()
}

// make makes an instance and runs what the module runs at its start, which has no
// operation and thus no host functions.
func (g *guest) make(ctx context.Context) (in *instance, err error) {
	in = &instance{ctx: ctx}
	defer func() {
		if p := recover(); p != nil { // memory that cannot be had
			err = fmt.Errorf("it cannot begin: %v", p)
		}
	}()
	config := wazero.NewModuleConfig().WithRandSource(crand.Reader).WithSysWalltime().WithSysNanotime().
		WithNanosleep(in.sleep).WithStderr(&in.stderr)
	in.plugin, err = g.plugin.Instance(experimental.WithMemoryAllocator(ctx, g.memory), extism.PluginInstanceConfig{ModuleConfig: config})
	if err != nil {
		return in, err
	}
	in.plugin.SetLogger(func(extism.LogLevel, string) {})
	if in.plugin.FunctionExists("_initialize") {
		// The first call of an export initialises the module; the marker is the one
		// that does nothing.
		if _, _, err = in.plugin.CallWithContext(ctx, abi.Marker, nil); err != nil {
			in.close()
		}
	}
	return in, err
}

func (in *instance) close() { in.plugin.Close(context.Background()) }

// sleep is the clock of the module's own runtime. It wakes when the operation
// shall end.
func (in *instance) sleep(ns int64) {
	soft, ended := (chan struct{})(nil), in.ctx.Done()
	if o := in.op.Load(); o != nil {
		soft, ended = o.soft, o.ctx.Done()
		select {
		case <-soft: // it knows
			soft = nil
		default:
		}
	}
	t := time.NewTimer(time.Duration(ns))
	defer t.Stop()
	select {
	case <-t.C:
	case <-soft:
	case <-ended:
	}
}

// trap is why a module broke: its own last words, else the machine's.
func trap(err error, in *instance) string {
	text := err.Error()
	if first, _, ok := strings.Cut(text, "\nwasm stack trace"); ok {
		text = first
	}
	text = strings.TrimPrefix(text, "wasm error: ")
	switch {
	case strings.Contains(text, "stack overflow"):
		text = "it called itself too deeply"
	case strings.Contains(text, "module closed with exit_code"):
		text = "it ended itself"
	}
	if in != nil {
		if last := in.stderr.last(); last != "" {
			text = last
		}
	}
	return abi.Clean(strings.TrimSpace(text), 500)
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

func (r *ring) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return LastWords(string(r.data))
}

// LastWords is the line of a dying program that tells most: the one that begins a
// panic, else the last.
func LastWords(text string) string {
	last := ""
	for line := range strings.Lines(text) {
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

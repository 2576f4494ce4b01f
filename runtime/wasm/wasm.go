// Package wasm makes a sandbox.Provider of one WebAssembly module. The module lives
// in a process of its own (see runtime/wasm/helper), which has its memory and
// nothing else and is killed when it does not end: whatever the module does to the
// world is a host function, which this side carries out. Every operation runs in a
// fresh instance.
//
// A program that uses this package hands its process over to helper.Main when
// helper.Is says so.
package wasm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/talkops-ai/talkops/hostfuncs"
	"github.com/talkops-ai/talkops/runtime/wasm/helper"
	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Config says which module is loaded and what it may do.
type Config struct {
	Name    string // of the provider, as in --sandbox NAME
	File    string // the module
	SHA256  string // what its bytes must be; empty: anything
	Grant   hostfuncs.Grant
	Env     []string // variables that settings may be taken from
	Limits  Limits
	Cache   string // a directory for native code, the user's own
	Log     func(hostfuncs.Record)
	Waiting func(string) // is told when loading takes long
}

// Limits bound a module. Zero is what is said here.
type Limits struct {
	MemoryMB int           // of one instance: 64
	AtOnce   int           // operations: 16, of which two are for anything but commands
	Compile  time.Duration // one minute
	LogKB    int           // of log lines, an operation: 64
	InlineKB int           // of an answer that a module reads as text: 512
}

func (l Limits) filled() Limits {
	return Limits{
		MemoryMB: cmp.Or(l.MemoryMB, 64), AtOnce: cmp.Or(l.AtOnce, 16), Compile: cmp.Or(l.Compile, time.Minute),
		LogKB: cmp.Or(l.LogKB, 64), InlineKB: cmp.Or(l.InlineKB, 512),
	}
}

const (
	describeWithin = 5 * time.Second
	graceExec      = 6 * time.Second
	graceOther     = 3 * time.Second
	killWithin     = 8 * time.Second
	destroyWithin  = 30 * time.Second
	mostToken      = 8 << 10
	mostPages      = 1000
	mostListed     = 5000 // sandboxes
)

// A Provider is one loaded module.
type Provider struct {
	name   string
	about  abi.Description
	env    []string
	engine *engine
	funcs  *hostfuncs.Functions
	calls  atomic.Int64
}

// A lister is a Provider whose module lists.
type lister struct{ *Provider }

// A remover is a Provider whose module removes snapshots.
type remover struct {
	Loaded
	p *Provider
}

// A Loaded is a module in use, until it is closed.
type Loaded interface {
	sandbox.Provider
	io.Closer
}

// ChangedError says that a module is not the one that was agreed to.
type ChangedError struct{ File, Want, Got string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s does not match the recorded sha256. Its code changed since you approved it. To accept the new one: talkops provider add %s", filepath.Base(e.File), e.File)
}

// Read reads and inspects the module in file.
func Read(file string) (*Module, []byte, error) {
	data, err := readFile(file)
	if err != nil {
		return nil, nil, err
	}
	m, err := Inspect(filepath.Base(file), data)
	return m, data, err
}

// readFile reads a module's bytes, once.
func readFile(file string) ([]byte, error) {
	// To open a pipe would wait for its other end.
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, bad("%s is not a file.", file)
	}
	f, err := os.Open(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, bad("%s was not found.", file)
		}
		return nil, bad("%s cannot be read: %v.", file, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, bad("%s is not a file.", file)
	} else if info.Size() > MaxModule {
		return nil, bad("%s has %d MB; the limit is %d MiB. Strip debug information (Go: -ldflags=\"-s -w\").", filepath.Base(file), info.Size()/1e6, MaxModule>>20)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxModule+1))
	if err != nil {
		return nil, bad("%s cannot be read: %v.", file, err)
	}
	return data, nil
}

// Load reads and checks a module and asks it what it is, which it is asked once:
// the answer is kept beside its native code. The result is a sandbox.Lister and a
// sandbox.SnapshotRemover, for sandbox.As, if the module is. Its process begins when it is needed and ends with Close. An
// error that is a *BadModule or *ChangedError is for the user as it stands.
func Load(ctx context.Context, c Config) (Loaded, error) {
	data, err := readFile(c.File)
	if err != nil {
		return nil, err
	}
	// What was not agreed to is not looked at any closer.
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); c.SHA256 != "" && !strings.EqualFold(c.SHA256, got) {
		return nil, &ChangedError{c.File, c.SHA256, got}
	}
	m, err := Inspect(filepath.Base(c.File), data)
	if err != nil {
		return nil, err
	}
	c.Limits = c.Limits.filled()
	c.Grant.LogBytes, c.Grant.InlineBytes = c.Limits.LogKB<<10, int64(c.Limits.InlineKB)<<10
	e, err := newEngine(m, data, c)
	if err != nil {
		return nil, err
	}
	p := &Provider{name: c.Name, env: c.Env, engine: e}
	if p.funcs, err = hostfuncs.New(c.Grant, c.Log); err != nil {
		return nil, bad("%s: %v.", c.Name, err)
	}
	if err := p.describe(ctx, c.Cache); err != nil {
		p.Close()
		return nil, err
	}
	var l Loaded = p
	if p.can(abi.List, nil) {
		l = lister{p}
	}
	if p.can(abi.RemoveSnapshot, nil) {
		l = remover{l, p}
	}
	return l, nil
}

// Close lets go of the module.
func (p *Provider) Close() error {
	p.funcs.Close()
	p.engine.close()
	return nil
}

// describe learns what the module is: from what it said when it was asked first,
// else from itself.
func (p *Provider) describe(ctx context.Context, cache string) error {
	input, err := json.Marshal(abi.DescribeRequest{ABI: version(), Host: abi.Host{Name: "talkops", Features: HostFeatures()}})
	if err != nil {
		return err
	}
	// The question is part of the name: another host gets another answer.
	sum := sha256.Sum256(append(input, helper.Build()...))
	kept := filepath.Join(cache, p.engine.SHA256, "describe-"+hex.EncodeToString(sum[:8]))
	if out, err := os.ReadFile(kept); err == nil && private(filepath.Dir(kept)) == nil && abi.ReadReply(out, &p.about) == nil && p.checkAbout() == nil {
		return nil
	}
	p.about = abi.Description{}
	file := p.engine.Name
	if _, err := p.engine.ready(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	call := p.funcs.Begin(ctx, hostfuncs.Op{Provider: p.name, Name: "describe", Pure: true})
	defer call.Close()
	out, err := p.engine.run(ctx, call, nil, abi.Describe, input)
	if err == nil {
		err = abi.ReadReply(out, &p.about)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("nothing within %v", describeWithin)
	}
	call.Over(err)
	if err != nil {
		return bad("%s answered describe with: %s. This is a fault of the module; tell its author.", file, abi.Clean(err.Error(), 300))
	}
	if err := p.checkAbout(); err != nil {
		return err
	}
	// Without it the module is asked again.
	_ = os.WriteFile(kept, out, 0o600)
	return nil
}

// checkAbout holds a description against the module and this host.
func (p *Provider) checkAbout() error {
	file := p.engine.Name
	for _, need := range p.about.Needs {
		if !slices.Contains(HostFeatures(), need) {
			return bad("%s needs %q, which this talkops does not have. Update talkops.", file, abi.Clean(need, 60))
		}
	}
	for _, e := range p.about.Can {
		if !p.engine.Has(e) {
			return bad("%s says that it can %s but does not export it. This is a fault of the module; tell its author.", file, abi.Clean(e, 60))
		}
	}
	if len(p.about.Dir) > 4095 || strings.ContainsFunc(p.about.Dir, unicode.IsControl) {
		return bad("%s declares a directory that is too long or holds a control character. This is a fault of the module; tell its author.", file)
	}
	for _, s := range p.about.Settings {
		if s.Key == "" || strings.ContainsAny(s.Key, "{}: ") {
			return bad("%s declares a setting whose key is %q. This is a fault of the module; tell its author.", file, abi.Clean(s.Key, 60))
		}
	}
	return nil
}

// HostFeatures lists what this host can do beyond the ABI's first words.
func HostFeatures() []string {
	return []string{"http.stream", "stream.route", "http.start", "http.ws", "http.parts", "stream.envelope", "sign.sigv4", "mac", "state"}
}

func version() [2]int { return [2]int{abi.Major, abi.Minor} }

// About is what the module says of itself, and what its bytes tell.
func (p *Provider) About() (abi.Description, *Module) { return p.about, p.engine.Module }

// can reports whether an optional export exists and is declared; more is the
// declaration of one sandbox.
func (p *Provider) can(export string, more []string) bool {
	declared := p.about.Can
	if more != nil {
		declared = more
	}
	return p.engine.Has(export) && (declared == nil || slices.Contains(declared, export))
}

// Describe says what the module is. Settings come from no variable that the user
// has not listed.
func (p *Provider) Describe() sandbox.Description {
	a := p.about
	d := sandbox.Description{
		Name: p.name, Title: abi.Clean(a.Title, 60), Dir: a.Dir, SignIn: abi.Clean(a.SignIn, 200),
		Features: sandbox.Features{
			Attach: a.Features.Attach, Snapshot: a.Features.Snapshot, Image: a.Features.Image,
			Lifetime: a.Features.Lifetime, Idle: a.Features.Idle, Labels: a.Features.Labels,
		},
	}
	if d.Title == "" {
		d.Title = p.name
	}
	var locked []string
	for _, s := range a.Settings {
		var env []string
		for _, name := range s.Env {
			if slices.Contains(p.env, name) {
				env = append(env, name)
			}
		}
		if len(env) == 0 && len(s.Env) > 0 && inLogin(a.Logins, s.Key) {
			locked = append(locked, s.Env[0])
		}
		d.Settings = append(d.Settings, sandbox.Setting{
			Key: s.Key, Env: env, Help: abi.Clean(s.Help, 200), Secret: s.Secret, URL: s.URL, Default: s.Default,
		})
	}
	for _, l := range a.Logins {
		d.Logins = append(d.Logins, sandbox.Login(l))
	}
	if len(locked) > 0 {
		d.SignIn = fmt.Sprintf("it asks for %s, which it was not given. Allow it in your own config.toml: sandboxes.providers.%s.env = [%q]", locked[0], p.name, locked[0])
	}
	return d
}

func inLogin(logins [][]string, key string) bool {
	return slices.ContainsFunc(logins, func(l []string) bool { return slices.Contains(l, key) })
}

// Open starts a sandbox, or attaches to spec.ID.
func (p *Provider) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	mode := "start"
	if spec.ID != "" {
		mode = "attach"
	}
	req := &abi.OpenRequest{Mode: mode, Spec: abi.Spec{
		ID: spec.ID, Token: spec.Token, Name: spec.Name, Snapshot: spec.Snapshot, Image: spec.Image, Dir: abi.Text(spec.Dir),
		Env: texts(spec.Env), Labels: spec.Labels, LifetimeMS: spec.Lifetime.Milliseconds(), IdleMS: spec.Idle.Milliseconds(),
	}}
	var mu sync.Mutex
	made, token := "", ""
	op := operation{export: abi.Open, op: mode, spec: spec, grace: graceOther, progress: spec.Progress}
	if mode == "start" {
		op.created = func(o abi.Opened) {
			mu.Lock()
			defer mu.Unlock()
			if made != "" || checkID(o.ID) != nil {
				return
			}
			made = o.ID
			if len(o.Token) <= mostToken {
				token = o.Token
			}
			if spec.Created != nil {
				spec.Created(sandbox.Info{Provider: p.name, ID: o.ID, Token: token, Expires: moment(o.ExpiresAtMS)})
			}
		}
	}
	var opened abi.Opened
	err := p.do(ctx, op, &req.Common, req, &opened)
	if err == nil {
		err = p.checkOpened(opened)
	}
	mu.Lock()
	if err == nil && made != "" && made != opened.ID {
		err = p.fault(abi.Open, errors.New("an answer with another id than the machine it told of"))
	}
	mu.Unlock()
	if err != nil {
		mu.Lock()
		defer mu.Unlock()
		if made != "" {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyWithin)
			defer cancel()
			gone := spec
			gone.ID, gone.Token = made, token
			if derr := p.Destroy(clean, gone); derr != nil {
				return nil, fmt.Errorf("%w; sandbox %s could not be ended: %w", err, made, derr)
			}
		}
		return nil, err
	}
	b := &box{p: p, spec: spec, info: sandbox.Info{
		Provider: p.name, ID: opened.ID, Dir: string(opened.Dir), Token: opened.Token, Expires: moment(opened.ExpiresAtMS),
	}}
	b.spec.ID, b.spec.Token = opened.ID, opened.Token
	return b.with(opened.Can), nil
}

// checkOpened holds an answer of open to what it must be.
func (p *Provider) checkOpened(o abi.Opened) error {
	wrong := ""
	switch {
	case checkID(o.ID) != nil:
		wrong = "no valid id"
	case !strings.HasPrefix(string(o.Dir), "/"):
		wrong = "a directory that is not absolute"
	case checkName("open", string(o.Dir)) != nil || strings.ContainsFunc(string(o.Dir), unicode.IsControl):
		wrong = "a directory that is too long or holds a control character"
	case len(o.Token) > mostToken:
		wrong = "a token that is too long"
	}
	if wrong != "" {
		return p.fault(abi.Open, errors.New("an answer with "+wrong))
	}
	return nil
}

func checkID(id string) error {
	if id == "" || len(id) > 256 || strings.IndexFunc(id, func(r rune) bool { return r < 33 || r > 126 }) >= 0 {
		return errors.New("not an id")
	}
	return nil
}

// Destroy ends the machine spec.ID.
func (p *Provider) Destroy(ctx context.Context, spec sandbox.Spec) error {
	if spec.ID == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "destroy: no sandbox id given")
	}
	req := &abi.Plain{}
	req.Sandbox = &abi.Sandbox{ID: spec.ID, Dir: abi.Text(spec.Dir), Token: spec.Token}
	return p.do(ctx, operation{export: abi.Destroy, op: "destroy", spec: spec, grace: graceOther}, &req.Common, req, &abi.Done{})
}

// List returns the machines that carry spec.Labels.
func (p lister) List(ctx context.Context, spec sandbox.Spec) ([]sandbox.Listed, error) {
	req := &abi.ListRequest{Labels: spec.Labels}
	var found []sandbox.Listed
	pages := 0
	for {
		var page abi.Listing
		if err := p.do(ctx, operation{export: abi.List, op: "list", spec: spec, grace: graceOther}, &req.Common, req, &page); err != nil {
			return nil, err
		}
		for _, l := range page.Sandboxes {
			if checkID(l.ID) != nil {
				return nil, p.fault(abi.List, errors.New("an answer with an invalid id"))
			}
			found = append(found, sandbox.Listed{
				ID: l.ID, Name: abi.Clean(l.Name, 256), State: abi.Clean(l.State, 60), Labels: l.Labels,
				Created: moment(l.CreatedAtMS), Expires: moment(l.ExpiresAtMS),
			})
		}
		if page.Next == "" || page.Next == req.Cursor {
			return found, nil
		}
		if pages++; pages == mostPages || len(found) > mostListed {
			return nil, p.fault(abi.List, errors.New("a list without end"))
		}
		req.Cursor = page.Next
	}
}

// RemoveSnapshot removes the snapshot spec.Snapshot.
func (r remover) RemoveSnapshot(ctx context.Context, spec sandbox.Spec) error {
	if spec.Snapshot == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "remove snapshot: no name given")
	}
	req := &abi.NameRequest{Name: spec.Snapshot}
	err := r.p.do(ctx, operation{export: abi.RemoveSnapshot, op: "remove_snapshot", spec: spec, grace: graceOther}, &req.Common, req, &abi.Done{})
	return inOp("remove snapshot "+spec.Snapshot, err)
}

// Unwrap shows the provider below.
func (r remover) Unwrap() sandbox.Provider { return r.Loaded }

// Unwrap shows the provider below.
func (p lister) Unwrap() sandbox.Provider { return p.Provider }

func moment(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func texts(m map[string]string) map[string]abi.Text {
	if m == nil {
		return nil
	}
	out := make(map[string]abi.Text, len(m))
	for k, v := range m {
		out[k] = abi.Text(v)
	}
	return out
}

// fault is the error of a module that does not do what it must.
func (p *Provider) fault(export string, err error) error {
	return &sandbox.Error{Code: sandbox.CodeInternal, Msg: fmt.Sprintf("the provider %s failed in %s: %s", p.name, export, abi.Clean(err.Error(), 500))}
}

// An operation is one call of an export.
type operation struct {
	export   string
	op       string // for logs
	spec     sandbox.Spec
	grace    time.Duration
	stdout   io.Writer
	stderr   io.Writer
	created  func(abi.Opened)
	progress func(string)
	bind     func(*hostfuncs.Call) // gives handles, before the request is written
	after    func(*hostfuncs.Call) // looks at them when the call is over
}

// do runs an operation: it writes req, whose common part is common, and reads
// the answer into ok.
func (p *Provider) do(ctx context.Context, o operation, common *abi.Common, req, ok any) error {
	if ctx.Err() != nil {
		return ended(ctx, o.op)
	}
	hard, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	stop := make(chan struct{})
	var grace *time.Timer
	var mu sync.Mutex
	unwatch := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		close(stop)
		grace = time.AfterFunc(o.grace, func() { end(errHard) })
	})
	defer func() {
		unwatch()
		mu.Lock()
		defer mu.Unlock()
		if grace != nil {
			grace.Stop()
		}
	}()

	common.ABI, common.GraceMS = version(), o.grace.Milliseconds()
	common.Call = fmt.Sprintf("%d-%d", time.Now().UnixNano(), p.calls.Add(1))
	deadline, bounded := ctx.Deadline()
	if common.DeadlineMS = (24 * time.Hour).Milliseconds(); bounded {
		common.DeadlineMS = max(1, time.Until(deadline).Milliseconds())
	}
	common.Settings, common.Options = map[string]string{}, o.spec.Options
	secrets, plain := map[string]hostfuncs.Secret{}, map[string]string{}
	for _, s := range p.about.Settings {
		v := o.spec.Settings[s.Key]
		if v == "" {
			continue
		}
		if s.Secret {
			secrets[s.Key] = hostfuncs.Secret{Value: v, Hosts: s.Hosts}
			v = "{{secret:" + s.Key + "}}"
		} else {
			plain[s.Key] = v
		}
		common.Settings[s.Key] = v
	}
	call := p.funcs.Begin(hard, hostfuncs.Op{
		Provider: p.name, Name: o.op, ID: common.Call, Stop: stop, Deadline: deadline, Secrets: secrets, Settings: plain,
		Stdout: o.stdout, Stderr: o.stderr, Created: o.created, Progress: o.progress,
	})
	if o.bind != nil {
		o.bind(call)
	}
	input, err := json.Marshal(req)
	if err != nil {
		call.Close()
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "the request cannot be written: %v", err)
	}
	out, err := p.engine.run(hard, call, stop, o.export, input)
	call.Close()
	if o.after != nil {
		o.after(call)
	}
	if err == nil {
		err = abi.ReadReply(out, ok)
	}
	call.Over(err)
	said, reported := errors.AsType[*abi.Error](err)
	_, ours := errors.AsType[*sandbox.Error](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		ends := []sandbox.Code{sandbox.CodeTimeout, sandbox.CodeCancelled} // what a module says that has cleaned up
		return &endedError{ended(ctx, o.op), !errors.Is(err, errNotBegun) && !(reported && slices.Contains(ends, said.Sandbox().Code))}
	case errors.Is(err, errStopped):
		return &stoppedError{p.fault(o.export, err)}
	case ours:
		return err
	case reported:
		e := said.Sandbox()
		if e.Code == sandbox.CodeTimeout || e.Code == sandbox.CodeCancelled {
			e.Code = sandbox.CodeInternal // nobody's time was up
		}
		return e
	}
	return p.fault(o.export, err)
}

var errHard = errors.New("the module did not end when it was told to")

// An endedError ends an operation whose context is done. Hard says that the
// module had no say in it, or says that something else went wrong, and may have left
// something running.
type endedError struct {
	error
	hard bool
}

func (e *endedError) Unwrap() error { return e.error }

// A stoppedError ends an operation whose process ended for another one's fault. It
// may have left something running.
type stoppedError struct{ error }

func (e *stoppedError) Unwrap() error { return e.error }

func ended(ctx context.Context, op string) error {
	code := sandbox.CodeCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = sandbox.CodeTimeout
	}
	return &sandbox.Error{Code: code, Op: op, Err: context.Cause(ctx)}
}

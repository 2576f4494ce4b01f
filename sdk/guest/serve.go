//go:build wasip1

package guest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strconv"
	"time"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// served is the module's provider. An export has no parameters, so it is found
// here.
var served sandbox.Provider

// A call is the operation that this instance was made for.
type call struct {
	ctx  context.Context
	stop context.CancelFunc
}

var current = call{ctx: context.Background(), stop: func() {}}

// Serve makes p the module's provider. It is called once, by a variable's
// initial value.
func Serve(p sandbox.Provider) bool {
	served = p
	return true
}

// A Resumer is a Provider that gives an open sandbox back from what its Info told:
// spec holds the ID, Token, Dir, Env, settings and options. It asks the vendor
// nothing. Without it every operation attaches anew.
type Resumer interface {
	Resume(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error)
}

// Sandboxes is what the sandboxes of a provider can do, for a provider that
// knows it before one is open.
type Sandboxes interface {
	// Can lists optional exports of sdk/abi.
	Can() []string
}

//go:wasmexport talkops_provider_abi_1
func marker() int32 { return 0 }

//go:wasmexport provider_describe
func describe() int32 {
	return serve(func(_ context.Context, _ *abi.DescribeRequest) (any, error) {
		d := served.Describe()
		out := abi.Description{
			ABI: [2]int{abi.Major, abi.Minor}, Name: d.Name, Title: d.Title, Dir: d.Dir, SignIn: d.SignIn,
			Features: abi.Features{
				Attach: d.Features.Attach, Snapshot: d.Features.Snapshot, Image: d.Features.Image,
				Lifetime: d.Features.Lifetime, Idle: d.Features.Idle, Labels: d.Features.Labels,
			},
			Can: []string{abi.Kill, abi.Snapshot, abi.Unpack, abi.Pack, abi.Extend}, // each sandbox says more
		}
		for _, s := range d.Settings {
			out.Settings = append(out.Settings, abi.Setting{Key: s.Key, Env: s.Env, Help: s.Help, Secret: s.Secret, URL: s.URL, Default: s.Default})
		}
		for _, l := range d.Logins {
			out.Logins = append(out.Logins, l)
		}
		if _, ok := sandbox.As[sandbox.Lister](served); ok {
			out.Can = append(out.Can, abi.List)
		}
		if _, ok := sandbox.As[sandbox.SnapshotRemover](served); ok {
			out.Can = append(out.Can, abi.RemoveSnapshot)
		}
		if h, ok := served.(interface{ Hosts() []string }); ok {
			out.Hosts = h.Hosts()
		}
		return out, nil
	})
}

//go:wasmexport provider_open
func open() int32 {
	return serve(func(ctx context.Context, r *abi.OpenRequest) (any, error) {
		spec := sandbox.Spec{
			ID: r.Spec.ID, Token: r.Spec.Token, Name: r.Spec.Name, Snapshot: r.Spec.Snapshot, Image: r.Spec.Image, Dir: string(r.Spec.Dir),
			Env: plain(r.Spec.Env), Labels: r.Spec.Labels, Settings: r.Settings, Options: r.Options,
			Lifetime: time.Duration(r.Spec.LifetimeMS) * time.Millisecond, Idle: time.Duration(r.Spec.IdleMS) * time.Millisecond,
			Created: func(i sandbox.Info) {
				data, _ := encode(opened(i))
				with(data, func(at uint64) int32 { return hostCreated(at) })
			},
			Progress: func(text string) {
				with([]byte(text), func(at uint64) int32 { return hostProgress(at) })
			},
		}
		sb, err := served.Open(ctx, spec)
		if err != nil {
			return nil, err
		}
		o := opened(sb.Info())
		o.Can = []string{}
		for export, has := range map[string]bool{
			abi.Kill: is[sandbox.Killer](sb), abi.Snapshot: is[sandbox.Snapshotter](sb), abi.Unpack: is[sandbox.Unpacker](sb),
			abi.Pack: is[sandbox.Packer](sb), abi.Extend: is[sandbox.Extender](sb),
		} {
			if has {
				o.Can = append(o.Can, export)
			}
		}
		return o, nil
	})
}

func is[T any](sb sandbox.Sandbox) bool { _, ok := sandbox.As[T](sb); return ok }

func opened(i sandbox.Info) abi.Opened {
	o := abi.Opened{ID: i.ID, Dir: abi.Text(i.Dir), Token: i.Token}
	if !i.Expires.IsZero() {
		o.ExpiresAtMS = i.Expires.UnixMilli()
	}
	return o
}

//go:wasmexport provider_list
func list() int32 {
	return serve(func(ctx context.Context, r *abi.ListRequest) (any, error) {
		found, err := sandbox.List(ctx, served, sandbox.Spec{Labels: r.Labels, Settings: r.Settings, Options: r.Options})
		if err != nil {
			return nil, err
		}
		out := abi.Listing{Sandboxes: []abi.Listed{}}
		for _, l := range found {
			one := abi.Listed{ID: l.ID, Name: l.Name, State: l.State, Labels: l.Labels}
			if !l.Created.IsZero() {
				one.CreatedAtMS = l.Created.UnixMilli()
			}
			if !l.Expires.IsZero() {
				one.ExpiresAtMS = l.Expires.UnixMilli()
			}
			out.Sandboxes = append(out.Sandboxes, one)
		}
		return out, nil
	})
}

//go:wasmexport provider_remove_snapshot
func removeSnapshot() int32 {
	return serve(func(ctx context.Context, r *abi.NameRequest) (any, error) {
		return abi.Done{}, sandbox.RemoveSnapshot(ctx, served, sandbox.Spec{Snapshot: r.Name, Settings: r.Settings, Options: r.Options})
	})
}

//go:wasmexport sandbox_destroy
func destroy() int32 {
	return serve(func(ctx context.Context, r *abi.Plain) (any, error) {
		spec, err := known(&r.Common)
		if err != nil {
			return nil, err
		}
		return abi.Done{}, served.Destroy(ctx, spec)
	})
}

// known is the spec of the sandbox that a request names.
func known(c *abi.Common) (sandbox.Spec, error) {
	if c.Sandbox == nil {
		return sandbox.Spec{}, sandbox.Errorf(sandbox.CodeInvalidArgument, "the request names no sandbox")
	}
	return sandbox.Spec{
		ID: c.Sandbox.ID, Token: c.Sandbox.Token, Dir: string(c.Sandbox.Dir), Env: plain(c.Sandbox.Env),
		Settings: c.Settings, Options: c.Options,
	}, nil
}

// again is the open sandbox that a request names.
func again(ctx context.Context, c *abi.Common) (sandbox.Sandbox, error) {
	spec, err := known(c)
	if err != nil {
		return nil, err
	}
	if r, ok := served.(Resumer); ok {
		return r.Resume(ctx, spec)
	}
	return served.Open(ctx, spec)
}

//go:wasmexport sandbox_exec
func exec() int32 {
	return serve(func(ctx context.Context, r *abi.ExecRequest) (any, error) {
		sb, err := again(ctx, &r.Common)
		if err != nil {
			return nil, err
		}
		cmd := sandbox.Cmd{ID: r.Cmd.ID, Dir: string(r.Cmd.Dir), Env: plain(r.Cmd.Env)}
		for _, a := range r.Cmd.Args {
			cmd.Args = append(cmd.Args, string(a))
		}
		if r.Cmd.Stdin != 0 {
			cmd.Stdin = &source{r.Cmd.Stdin}
		}
		if r.Cmd.Stdout {
			cmd.Stdout = &sink{stream: 1}
		}
		if r.Cmd.Stderr {
			cmd.Stderr = &sink{stream: 2}
		}
		exit, err := sb.Exec(ctx, cmd)
		if err != nil {
			return nil, err
		}
		return abi.Exited{Exit: &exit}, nil
	})
}

//go:wasmexport sandbox_read_file
func readFile() int32 {
	return serve(func(ctx context.Context, r *abi.FileRequest) (any, error) {
		sb, err := again(ctx, &r.Common)
		if err != nil {
			return nil, err
		}
		return abi.Done{}, sb.ReadFile(ctx, string(r.Path), &sink{handle: r.Dst})
	})
}

//go:wasmexport sandbox_write_file
func writeFile() int32 {
	return serve(func(ctx context.Context, r *abi.FileRequest) (any, error) {
		sb, err := again(ctx, &r.Common)
		if err != nil {
			return nil, err
		}
		mode, err := strconv.ParseUint(r.Mode, 8, 9)
		if err != nil {
			return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "the mode %q is not octal", r.Mode)
		}
		return abi.Done{}, sb.WriteFile(ctx, string(r.Path), &source{r.Src}, fs.FileMode(mode))
	})
}

//go:wasmexport sandbox_kill
func kill() int32 {
	return serve(func(ctx context.Context, r *abi.NameRequest) (any, error) {
		sb, err := again(ctx, &r.Common)
		if err != nil {
			return nil, err
		}
		return abi.Done{}, sandbox.Kill(ctx, sb, r.Name)
	})
}

//go:wasmexport sandbox_snapshot
func snapshot() int32 {
	return serve(func(ctx context.Context, r *abi.NameRequest) (any, error) {
		sb, err := again(ctx, &r.Common)
		if err != nil {
			return nil, err
		}
		return abi.Done{}, sandbox.Snapshot(ctx, sb, r.Name)
	})
}

//go:wasmexport sandbox_unpack
func unpack() int32 {
	return serve(func(ctx context.Context, r *abi.TreeRequest) (any, error) {
		sb, err := again(ctx, &r.Common)
		if err != nil {
			return nil, err
		}
		u, ok := sandbox.As[sandbox.Unpacker](sb)
		if !ok {
			return nil, errors.ErrUnsupported
		}
		return abi.Done{}, u.Unpack(ctx, string(r.Dir), &source{r.Src})
	})
}

//go:wasmexport sandbox_pack
func pack() int32 {
	return serve(func(ctx context.Context, r *abi.TreeRequest) (any, error) {
		sb, err := again(ctx, &r.Common)
		if err != nil {
			return nil, err
		}
		p, ok := sandbox.As[sandbox.Packer](sb)
		if !ok {
			return nil, errors.ErrUnsupported
		}
		var names []string
		for _, n := range r.Names {
			names = append(names, string(n))
		}
		return abi.Done{}, p.Pack(ctx, string(r.Dir), names, &sink{handle: r.Dst})
	})
}

//go:wasmexport sandbox_extend
func extend() int32 {
	return serve(func(ctx context.Context, r *abi.ExtendRequest) (any, error) {
		sb, err := again(ctx, &r.Common)
		if err != nil {
			return nil, err
		}
		until, err := sandbox.Extend(ctx, sb, time.UnixMilli(r.UntilMS))
		return abi.Extended{UntilMS: until.UnixMilli()}, err
	})
}

func plain(m map[string]abi.Text) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}

// serve runs one operation: the request is decoded, f gets a context that ends
// when the host says so, and the outcome becomes the reply.
func serve[R any](f func(context.Context, *R) (any, error)) int32 {
	answer, err := func() (answer any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		data := input()
		var req R
		if err := decode(data, &req); err != nil {
			return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "the request is not of the form of this ABI: %v", err)
		}
		if served == nil {
			return nil, errors.New("the module serves no provider: var _ = guest.Serve(…)")
		}
		limit := time.Minute
		if c := reflect.ValueOf(&req).Elem().FieldByName("DeadlineMS"); c.IsValid() && c.Int() > 0 {
			limit = time.Duration(c.Int()) * time.Millisecond
		}
		// The host's own deadline decides; this one is for what the vendor is told.
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		current = call{ctx, cancel}
		go watch(ctx, cancel)
		return f(ctx, &req)
	}()
	reply := map[string]any{}
	if err != nil {
		reply["error"] = abi.FromError(err)
	} else {
		reply["ok"] = answer
	}
	data, err := encode(reply)
	if err != nil {
		return 1
	}
	at := put(data)
	kernelOutput(at, uint64(len(data)))
	return 0
}

// watch ends the operation's context when the host wants it to end.
func watch(ctx context.Context, cancel context.CancelFunc) {
	for ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		if ctx.Err() == nil && hostStopped() == 1 {
			cancel()
		}
	}
}

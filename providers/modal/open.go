package modal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/providers/modal/internal/wire"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	// Modal ends a sandbox after five minutes if it is not told otherwise, and
	// after a day at the latest.
	defaultIdle     = 2 * time.Hour
	defaultLifetime = 24 * time.Hour
	longestLifetime = 24 * time.Hour

	// Without a reservation a sandbox gets an eighth of a core.
	milliCPU = 1000
	memoryMB = 2048

	createWithin = 10 * time.Minute // Modal answers when there is a computer for it
	startWithin  = 5 * time.Minute
	readyWithin  = time.Minute
	buildWithin  = 20 * time.Minute
)

// create makes a new sandbox and waits until it answers commands.
func (a *api) create(ctx context.Context, spec sandbox.Spec) (*box, error) {
	switch {
	case spec.Snapshot != "" && spec.Image != "":
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "a sandbox starts from a snapshot or from an image, not both")
	case strings.ContainsAny(spec.Image, " \t\r\n"):
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "%q is no image name", spec.Image)
	case spec.Name != "" && !nameable(spec.Name):
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "%q is no name for a sandbox: Modal takes up to 64 letters, digits, '-', '_' and '.'", spec.Name)
	case ctx.Err() != nil:
		return nil, rest.Ended(ctx, "create sandbox")
	}
	app, err := a.app(ctx, true)
	if err != nil {
		return nil, err
	}
	image, err := a.image(ctx, spec, app)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	maps.Copy(labels, spec.Labels)
	labels[opening.Label] = rest.Random()
	name := cmp.Or(spec.Name, "talkops-"+rest.Random())
	idle := seconds(spec.Idle, defaultIdle)
	want := &wire.SandboxCreateV2Request{
		AppId: app,
		Tags:  tag(labels),
		Definition: &wire.Sandbox{
			Name:            &name,
			ImageId:         image,
			EntrypointArgs:  []string{"sleep", "86400"}, // not every sleep knows infinity
			TimeoutSecs:     min(seconds(spec.Lifetime, defaultLifetime), uint32(longestLifetime/time.Second)),
			IdleTimeoutSecs: &idle,
			Resources:       &wire.Resources{MilliCpu: milliCPU, MemoryMb: memoryMB},
		},
	}
	began := time.Now()
	expires := began.Add(time.Duration(want.Definition.TimeoutSecs) * time.Second)
	return opening.Create(ctx, opening.Creation[*wire.SandboxCreateV2Response]{
		Send:   func(ctx context.Context) (*wire.SandboxCreateV2Response, error) { return a.post(ctx, want) },
		Unsure: func(err error) bool { return transient(err) || sandbox.CodeOf(err) == sandbox.CodeInternal },
		Taken:  func(err error) bool { return is(err, codes.AlreadyExists) },
		Name:   name,
		// The name is the caller's or random, and the opening label is unique.
		Made: func(ctx context.Context) ([]*wire.SandboxCreateV2Response, error) {
			if id, err := a.named(ctx, name, labels[opening.Label]); err == nil {
				return []*wire.SandboxCreateV2Response{{SandboxId: id}}, nil
			}
			return nil, nil
		},
		ID:  (*wire.SandboxCreateV2Response).GetSandboxId,
		End: a.destroy,
	}, func(ctx context.Context, made *wire.SandboxCreateV2Response) (*box, error) {
		b, err := a.ready(ctx, spec, made, expires)
		if sandbox.CodeOf(err) == sandbox.CodeGone {
			err = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "start sandbox " + made.GetSandboxId(), Msg: "it ended before it was ready: " + err.Error()}
		}
		return b, err
	})
}

func nameable(name string) bool {
	return len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// ready brings the new machine to where commands run in it.
func (a *api) ready(ctx context.Context, spec sandbox.Spec, made *wire.SandboxCreateV2Response, expires time.Time) (*box, error) {
	id := made.GetSandboxId()
	if spec.Created != nil {
		spec.Created(sandbox.Info{Provider: "modal", ID: id, Expires: expires})
	}
	task := made.GetTaskId()
	if task == "" {
		var err error
		if task, err = a.await(ctx, spec, id); err != nil {
			return nil, err
		}
	}
	return a.enter(ctx, spec, id, task, made.GetCommandRouterAccess(), expires)
}

// image returns the id of the image that the sandbox starts from.
func (a *api) image(ctx context.Context, spec sandbox.Spec, app string) (string, error) {
	if spec.Snapshot != "" {
		return a.snapshot(ctx, spec.Snapshot)
	}
	name := cmp.Or(spec.Image, defaultImage)
	op := "build image " + name
	version := a.ImageBuilderVersion
	if version == "" {
		env, err := call(ctx, a, "find environment", a.EnvironmentGetOrCreate, &wire.EnvironmentGetOrCreateRequest{DeploymentName: a.Environment}, policy{})
		if err != nil {
			return "", err
		}
		version = env.GetMetadata().GetSettings().GetImageBuilderVersion()
	}
	// An entrypoint of the image's own would be given our command as arguments.
	made, err := call(ctx, a, op, a.ImageGetOrCreate, &wire.ImageGetOrCreateRequest{
		AppId:          app,
		BuilderVersion: version,
		Image:          &wire.Image{DockerfileCommands: []string{"FROM " + name, "ENTRYPOINT []"}},
	}, policy{})
	if err != nil {
		return "", err
	}
	result := made.GetResult()
	if result.GetStatus() == wire.GenericResult_GENERIC_STATUS_UNSPECIFIED {
		if spec.Progress != nil {
			spec.Progress("building the image " + rest.Clean(name))
		}
		if result, err = a.built(ctx, op, made.GetImageId()); err != nil {
			return "", err
		}
	}
	if result.GetStatus() != wire.GenericResult_GENERIC_STATUS_SUCCESS || made.GetImageId() == "" {
		return "", &sandbox.Error{Code: sandbox.CodeInvalidArgument, Op: op, Msg: "Modal could not build it: " + cmp.Or(a.clean(result.GetException()), "no reason given")}
	}
	return made.GetImageId(), nil
}

// built waits until the image has been built or not.
func (a *api) built(ctx context.Context, op, id string) (*wire.GenericResult, error) {
	limited, cancel := context.WithTimeoutCause(ctx, buildWithin, errLate)
	defer cancel()
	last := ""
	for failures := 0; ; {
		result, err := a.join(limited, id, &last)
		switch {
		case result != nil:
			return result, nil
		case ctx.Err() != nil:
			return nil, rest.Ended(ctx, op)
		case limited.Err() != nil:
			return nil, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("not built after %v", buildWithin)}
		case err == nil:
			failures = 0
		default:
			failures++
			if err = a.failed(ctx, op, err); !transient(err) || failures >= attempts {
				return nil, err
			}
		}
		if pause(limited, failures+1, err) != nil {
			continue // the switch says why
		}
	}
}

// join follows a build for a while. It returns nil if that goes on.
func (a *api) join(ctx context.Context, id string, last *string) (*wire.GenericResult, error) {
	ctx, cancel := context.WithTimeout(a.signed(ctx), 70*time.Second)
	defer cancel()
	stream, err := a.ImageJoinStreaming(ctx, &wire.ImageJoinStreamingRequest{ImageId: id, Timeout: 55, LastEntryId: *last})
	for err == nil {
		var item *wire.ImageJoinStreamingResponse
		if item, err = stream.Recv(); err == nil {
			*last = cmp.Or(item.GetEntryId(), *last)
			if item.GetResult().GetStatus() != wire.GenericResult_GENERIC_STATUS_UNSPECIFIED {
				return item.GetResult(), nil
			}
		}
	}
	if ended(err) {
		err = nil
	}
	return nil, err
}

// post sends the creation.
func (a *api) post(ctx context.Context, want *wire.SandboxCreateV2Request) (*wire.SandboxCreateV2Response, error) {
	const op = "create sandbox"
	made, err := call(ctx, a, op, a.SandboxCreateV2, want, policy{within: createWithin})
	if err == nil && made.GetSandboxId() == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "Modal's answer has no id"}
	}
	return made, err
}

// attach opens the machine spec.ID.
func (a *api) attach(ctx context.Context, spec sandbox.Spec) (*box, error) {
	task, err := a.await(ctx, spec, spec.ID)
	if is(err, codes.InvalidArgument) {
		err = &sandbox.Error{Code: sandbox.CodeNotFound, Op: "sandbox " + spec.ID, Err: err}
	}
	if err != nil {
		return nil, err
	}
	return a.enter(ctx, spec, spec.ID, task, nil, a.expiry(ctx, spec.ID))
}

// expiry returns when the sandbox will be ended; zero if that cannot be learnt.
func (a *api) expiry(ctx context.Context, id string) time.Time {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	all, _ := a.list(ctx, nil)
	for _, l := range all {
		if l.ID == id {
			return l.Expires
		}
	}
	return time.Time{}
}

// await returns the task that the sandbox runs as, once it has one. A machine
// that has ended is an error at once.
func (a *api) await(ctx context.Context, spec sandbox.Spec, id string) (string, error) {
	op := "start sandbox " + id
	limited, cancel := context.WithTimeoutCause(ctx, startWithin, errLate)
	defer cancel()
	for n := 0; ; n++ {
		task, result, err := a.task(limited, id)
		switch {
		case ctx.Err() != nil:
			return "", rest.Ended(ctx, op)
		case limited.Err() != nil:
			return "", &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("not started after %v, last seen queued", startWithin)}
		case err != nil:
			return "", err
		case task != "":
			return task, nil
		case result != nil:
			return "", &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + id, Msg: a.obituary(result)}
		}
		if spec.Progress != nil && n == 0 {
			spec.Progress("sandbox is queued")
		}
		rest.Sleep(limited, 500*time.Millisecond)
	}
}

var errLate = errors.New("it took too long")

// enter makes a Sandbox of the machine: it checks that commands run, and finds
// the working directory and a private one for its own files.
func (a *api) enter(ctx context.Context, spec sandbox.Spec, id, task string, access *wire.CommandRouterAccess, expires time.Time) (_ *box, err error) {
	r, err := a.reach(ctx, id, task, access)
	if err != nil {
		return nil, err
	}
	b := &box{router: r, env: maps.Clone(spec.Env), expires: expires}
	defer func() {
		if err != nil {
			r.close()
		}
	}()

	// The command that enters the directory is the probe too.
	limited, cancel := context.WithTimeoutCause(ctx, readyWithin, errLate)
	defer cancel()
	for n := 1; ; n++ {
		out, exit, err := b.shell(limited, posix.EnterScript, cmp.Or(spec.Dir, defaultDir), ".")
		if err == nil {
			if b.run, b.setsid, b.dir, err = posix.Entered(out, exit); err == nil {
				r.dir = "/"
				break
			}
			return nil, err
		}
		if sandbox.CodeOf(err) != sandbox.CodeUnavailable && sandbox.CodeOf(err) != sandbox.CodeRateLimited || rest.Sleep(limited, min(time.Duration(n)*200*time.Millisecond, 2*time.Second)) != nil {
			switch {
			case ctx.Err() != nil:
				return nil, rest.Ended(ctx, "probe sandbox")
			case limited.Err() != nil:
				return nil, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "probe sandbox", Msg: fmt.Sprintf("no command runs in it after %v", readyWithin)}
			}
			return nil, err
		}
	}
	opening.TellDir(spec, b.dir)
	return b, nil
}

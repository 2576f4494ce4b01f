package daytona

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	defaultIdle     = 2 * time.Hour
	defaultLifetime = 24 * time.Hour
	deleteAfter     = time.Hour // after it has been stopped

	startWithin = 3 * time.Minute
	buildWithin = 20 * time.Minute
)

// create makes a new sandbox and waits until it answers commands.
func (a *api) create(ctx context.Context, spec sandbox.Spec) (*box, error) {
	if spec.Snapshot != "" && spec.Image != "" {
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "a sandbox starts from a snapshot or from an image, not both")
	}
	if ctx.Err() != nil {
		return nil, rest.Ended(ctx, "create sandbox")
	}
	want := creation{
		Name:     spec.Name,
		Snapshot: spec.Snapshot,
		Labels:   map[string]string{},
		Target:   a.target,
		AutoStop: minutes(spec.Idle, defaultIdle),
		AutoDel:  minutes(0, deleteAfter),
		TTL:      minutes(spec.Lifetime, defaultLifetime),
	}
	if want.Name == "" {
		want.Name = "talkops-" + rest.Random()
	}
	if spec.Image != "" {
		if strings.ContainsAny(spec.Image, " \t\r\n") {
			return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "%q is no image name", spec.Image)
		}
		want.Build = &build{Dockerfile: "FROM " + spec.Image + "\n"}
	}
	maps.Copy(want.Labels, spec.Labels)
	want.Labels[opening.Label] = rest.Random()

	return opening.Create(ctx, opening.Creation[machine]{
		Send:   func(ctx context.Context) (machine, error) { return a.post(ctx, want) },
		Unsure: opening.Lost,
		Taken:  opening.Conflict,
		Name:   want.Name,
		Made:   func(ctx context.Context) ([]machine, error) { return a.made(ctx, want), nil },
		ID:     func(m machine) string { return m.ID },
		End:    a.destroy,
	}, func(ctx context.Context, m machine) (*box, error) { return a.ready(ctx, spec, m, want.TTL) })
}

// ready brings the new machine m to where commands run in it.
func (a *api) ready(ctx context.Context, spec sandbox.Spec, m machine, ttl int) (*box, error) {
	if m.AutoDestroyAt.IsZero() && !m.CreatedAt.IsZero() {
		m.AutoDestroyAt = m.CreatedAt.Add(time.Duration(ttl) * time.Minute)
	}
	expires := m.AutoDestroyAt
	if spec.Created != nil {
		spec.Created(sandbox.Info{Provider: "daytona", ID: m.ID, Expires: expires})
	}
	within := startWithin
	if spec.Image != "" {
		within = buildWithin
	}
	m, err := a.await(ctx, spec, m, within, false)
	if err != nil {
		return nil, err
	}
	if m.AutoDestroyAt.IsZero() {
		m.AutoDestroyAt = expires
	}
	return a.enter(ctx, spec, m)
}

// post sends the creation.
func (a *api) post(ctx context.Context, want creation) (m machine, err error) {
	err = a.JSON(ctx, rest.Request{Op: "create sandbox", Method: "POST", Path: "/sandbox", JSON: want, Retry: rest.Always}, &m)
	if err == nil && m.ID == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: "create sandbox", Msg: "Daytona's answer has no id"}
	}
	return m, err
}

// made returns the machine that the creation has made, if there is one: it has its
// name, which is the caller's or random, and its opening label, which is unique.
func (a *api) made(ctx context.Context, want creation) []machine {
	m, err := a.get(ctx, want.Name)
	if err != nil || m.Labels[opening.Label] != want.Labels[opening.Label] || ending(m.State) {
		return nil
	}
	return []machine{m}
}

// attach opens the machine spec.ID, starting it if it is stopped.
func (a *api) attach(ctx context.Context, spec sandbox.Spec) (*box, error) {
	m, err := a.get(ctx, spec.ID)
	if err != nil {
		return nil, err
	}
	if m, err = a.await(ctx, spec, m, startWithin, true); err != nil {
		return nil, err
	}
	return a.enter(ctx, spec, m)
}

// await polls m until it is started. A machine that has failed or ended is an
// error at once; one that is stopped is started if start is set.
func (a *api) await(ctx context.Context, spec sandbox.Spec, m machine, within time.Duration, start bool) (machine, error) {
	op := "start sandbox " + m.ID
	limited, cancel := context.WithTimeoutCause(ctx, within, errLate)
	defer cancel()
	told := ""
	delay := 100 * time.Millisecond
	for begin := time.Now(); ; {
		switch {
		case m.State == "started":
			return m, nil
		case ending(m.State) && start:
			return m, &sandbox.Error{Code: sandbox.CodeNotFound, Op: op, Msg: "the sandbox has been deleted"}
		case failed(m.State):
			reason := a.Show(m.ErrorReason)
			if reason == "" {
				reason = "no reason given"
			}
			return m, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("Daytona reports %s: %s", m.State, reason)}
		case stopped(m.State) && start:
			err := a.JSON(limited, rest.Request{Op: op, Method: "POST", Path: a.path(m.ID, "start"), Retry: rest.Always}, nil)
			if code := rest.Status(err); err != nil && (code != http.StatusConflict && code != http.StatusBadRequest || rest.Quota(err.Error())) {
				return m, err
			}
		case ending(m.State), stopped(m.State):
			return m, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "the sandbox is " + m.State + " before it was ready"}
		}
		if spec.Progress != nil && m.State != told && m.State != "" {
			told = m.State
			spec.Progress("sandbox is " + strings.ReplaceAll(a.Show(m.State), "_", " "))
		}
		err := rest.Sleep(limited, delay)
		if err == nil {
			if time.Since(begin) > 5*time.Second {
				delay = min(delay*11/10, time.Second)
			}
			var next machine
			if next, err = a.get(limited, m.ID); err == nil {
				m = next
				continue
			}
		}
		switch {
		case ctx.Err() != nil:
			ended := rest.Ended(ctx, op)
			return m, fmt.Errorf("waiting for state started, last seen %s: %w", a.Show(m.State), ended)
		case limited.Err() != nil:
			return m, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("not started after %v, last seen %s", within, a.Show(m.State))}
		}
		return m, err
	}
}

var errLate = errors.New("the sandbox took too long to start")

// enter makes a Sandbox of the started machine m: it checks that commands run,
// and finds the working directory and a private one for its own files.
func (a *api) enter(ctx context.Context, spec sandbox.Spec, m machine) (*box, error) {
	tools, err := a.toolbox(ctx, m)
	if err != nil {
		return nil, err
	}
	b := &box{api: a, tools: tools, id: m.ID, env: maps.Clone(spec.Env), expires: m.AutoDestroyAt}

	// The toolbox answers a little later than the state says.
	limited, cancel := context.WithTimeoutCause(ctx, startWithin, errLate)
	defer cancel()
	for n := 1; ; n++ {
		out, exit, err := b.shell(limited, true, "echo ready")
		if err == nil && exit == 0 && strings.TrimSpace(out) == "ready" {
			break
		}
		if err == nil {
			err = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "probe sandbox", Msg: fmt.Sprintf("echo ready ended with %d", exit)}
		}
		switch sandbox.CodeOf(err) {
		case sandbox.CodeUnauthenticated, sandbox.CodeGone:
			return nil, err
		}
		if rest.Sleep(limited, min(time.Duration(n)*200*time.Millisecond, 2*time.Second)) != nil {
			if ctx.Err() != nil {
				return nil, rest.Ended(ctx, "probe sandbox")
			}
			return nil, err
		}
	}

	var own struct {
		Dir string `json:"dir"`
	}
	if err := tools.JSON(ctx, rest.Request{Op: "find working directory", Method: "GET", Path: "/work-dir"}, &own); err != nil {
		return nil, b.explain(ctx, err)
	}
	want := spec.Dir
	if want == "" {
		want = defaultDir
	}
	out, exit, err := b.shell(ctx, true, posix.EnterScript, want, own.Dir)
	if err != nil {
		return nil, err
	}
	if b.run, b.setsid, b.dir, err = posix.Entered(out, exit); err != nil {
		return nil, err
	}
	opening.TellDir(spec, b.dir)
	return b, nil
}

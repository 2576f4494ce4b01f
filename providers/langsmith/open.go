package langsmith

import (
	"cmp"
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
	defaultIdle = 2 * time.Hour
	deleteAfter = time.Hour // after it has been stopped

	startWithin = 3 * time.Minute
	buildWithin = 20 * time.Minute
)

// create makes a new sandbox and waits until it answers commands.
func (a *api) create(ctx context.Context, spec sandbox.Spec) (*box, error) {
	if ctx.Err() != nil {
		return nil, rest.Ended(ctx, "create sandbox")
	}
	if strings.ContainsAny(spec.Image, " \t\r\n") {
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "%q is no image name", spec.Image)
	}
	from, err := a.source(ctx, spec)
	if err != nil {
		return nil, err
	}
	want := creation{
		Name:     cmp.Or(spec.Name, "talkops-"+rest.Random()),
		Snapshot: from,
		Labels:   map[string]string{},
		Idle:     minutes(spec.Idle, defaultIdle),
		Delete:   minutes(0, deleteAfter),
	}
	maps.Copy(want.Labels, spec.Labels)
	want.Labels[opening.Label] = rest.Random()

	return opening.Create(ctx, opening.Creation[machine]{
		Send:   func(ctx context.Context) (machine, error) { return a.ask(ctx, want) },
		Unsure: func(err error) bool { return opening.Lost(err) || rest.Status(err) == http.StatusRequestTimeout },
		Taken:  opening.Conflict,
		Name:   want.Name,
		Made:   func(ctx context.Context) ([]machine, error) { return a.made(ctx, want), nil },
		ID:     func(m machine) string { return m.Name },
		End:    a.destroy,
	}, func(ctx context.Context, m machine) (*box, error) { return a.ready(ctx, spec, m) })
}

// ready brings the new machine m to where commands run in it.
func (a *api) ready(ctx context.Context, spec sandbox.Spec, m machine) (*box, error) {
	if spec.Created != nil {
		spec.Created(sandbox.Info{Provider: "langsmith", ID: m.Name})
	}
	m, err := a.await(ctx, spec, m, false)
	if err != nil {
		return nil, err
	}
	return a.enter(ctx, spec, m)
}

// made returns the machine that the creation has made, if there is one: it has its
// name, which is the caller's or random, and its opening label, which is unique.
func (a *api) made(ctx context.Context, want creation) []machine {
	m, err := a.get(ctx, want.Name)
	if err != nil || m.Labels[opening.Label] != want.Labels[opening.Label] || ending(m.Status) {
		return nil
	}
	return []machine{m}
}

// ask sends the creation until it is answered. What the account may not have is
// not asked for again.
func (a *api) ask(ctx context.Context, want creation) (machine, error) {
	for n := 1; ; n++ {
		var m machine
		err := a.JSON(ctx, rest.Request{Op: "create sandbox", Method: "POST", Path: "/boxes", JSON: want, Retry: rest.Never}, &m)
		if err == nil && m.Name == "" {
			err = &sandbox.Error{Code: sandbox.CodeInternal, Op: "create sandbox", Msg: "LangSmith's answer has no name"}
		}
		code, failed := sandbox.CodeOf(err), rest.Status(err)
		again := code == sandbox.CodeRateLimited || code == sandbox.CodeUnavailable && (failed == 0 || failed >= 500)
		if err == nil || !again || n >= 4 || rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return m, err
		}
	}
}

// attach opens the machine spec.ID, starting it if it is stopped.
func (a *api) attach(ctx context.Context, spec sandbox.Spec) (*box, error) {
	m, err := a.get(ctx, spec.ID)
	if err != nil {
		return nil, err
	}
	if m, err = a.await(ctx, spec, m, true); err != nil {
		return nil, err
	}
	return a.enter(ctx, spec, m)
}

// await polls m until it is ready. A machine that has failed or ended is an error
// at once; one that is stopped is started if start is set.
func (a *api) await(ctx context.Context, spec sandbox.Spec, m machine, start bool) (machine, error) {
	op := "start sandbox " + m.Name
	limited, cancel := context.WithTimeoutCause(ctx, startWithin, errLate)
	defer cancel()
	told := ""
	delay := 100 * time.Millisecond
	for begin := time.Now(); ; {
		switch {
		case m.Status == "ready":
			return m, nil
		case ending(m.Status) && start:
			return m, &sandbox.Error{Code: sandbox.CodeNotFound, Op: op, Msg: "the sandbox is being deleted"}
		case m.Status == "failed":
			return m, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "LangSmith reports failed: " + cmp.Or(a.Show(m.Message), "no reason given")}
		case m.Status == "stopped" && start:
			if spec.Progress != nil {
				spec.Progress("sandbox was stopped: its processes and what was in /tmp are gone")
			}
			// It may be starting already.
			err := a.JSON(limited, rest.Request{Op: op, Method: "POST", Path: a.path(m.Name, "start"), Retry: rest.Always, JSON: struct{}{}}, nil)
			if code := rest.Status(err); err != nil && (code != http.StatusConflict && code != http.StatusBadRequest || rest.Quota(err.Error())) {
				return m, err
			}
		case ending(m.Status), m.Status == "stopped":
			return m, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "the sandbox is " + m.Status + " before it was ready"}
		}
		if spec.Progress != nil && m.Status != told && m.Status != "" {
			told = m.Status
			spec.Progress("sandbox is " + a.Show(m.Status))
		}
		err := rest.Sleep(limited, delay)
		if err == nil {
			if time.Since(begin) > 5*time.Second {
				delay = min(delay*11/10, time.Second)
			}
			var next machine
			if next, err = a.get(limited, m.Name); err == nil {
				m = next
				continue
			}
		}
		switch {
		case ctx.Err() != nil:
			return m, fmt.Errorf("waiting for state ready, last seen %s: %w", a.Show(m.Status), rest.Ended(ctx, op))
		case limited.Err() != nil:
			return m, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("not ready after %v, last seen %s", startWithin, a.Show(m.Status))}
		}
		return m, err
	}
}

var errLate = errors.New("it took too long")

// probeScript says that commands run, and where the home directory is.
const probeScript = `echo ready; cd 2>/dev/null; pwd -P`

// enterScript keeps the private directory out of /tmp, which is memory at
// LangSmith and lost when the sandbox stops.
const enterScript = `[ -n "$TMPDIR" ] || [ ! -w /var/tmp ] || TMPDIR=/var/tmp
` + posix.EnterScript

// enter makes a Sandbox of the ready machine m: it checks that commands run, and
// finds the working directory and a private one for its own files.
func (a *api) enter(ctx context.Context, spec sandbox.Spec, m machine) (*box, error) {
	data, err := a.dataplane(m)
	if err != nil {
		return nil, err
	}
	b := &box{api: a, data: data, id: m.Name, env: maps.Clone(spec.Env)}

	// The dataplane answers a little later than the status says.
	limited, cancel := context.WithTimeoutCause(ctx, startWithin, errLate)
	defer cancel()
	home := ""
	for n := 1; home == ""; n++ {
		out, exit, err := b.shell(limited, true, probeScript)
		first, second, _ := strings.Cut(strings.TrimSuffix(out, "\n"), "\n")
		if err == nil && exit == 0 && first == "ready" {
			home = cmp.Or(second, "/")
			break
		}
		if err == nil {
			err = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "probe sandbox", Msg: fmt.Sprintf("echo ready ended with %d", exit)}
		}
		switch sandbox.CodeOf(err) {
		case sandbox.CodeUnauthenticated, sandbox.CodePermissionDenied, sandbox.CodeGone:
			return nil, err
		}
		if rest.Sleep(limited, min(time.Duration(n)*200*time.Millisecond, 2*time.Second)) != nil {
			if ctx.Err() != nil {
				return nil, rest.Ended(ctx, "probe sandbox")
			}
			return nil, err
		}
	}
	out, exit, err := b.shell(ctx, true, enterScript, cmp.Or(spec.Dir, defaultDir), home)
	if err != nil {
		return nil, err
	}
	if b.run, _, b.dir, err = posix.Entered(out, exit); err != nil {
		return nil, err
	}
	opening.TellDir(spec, b.dir)
	return b, nil
}

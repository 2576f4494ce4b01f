package runloop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	defaultLifetime = 4 * time.Hour
	mostLifetime    = 48 * time.Hour

	startWithin = 3 * time.Minute
	buildWithin = 20 * time.Minute
	holdFor     = 20 // seconds a wait call is held
)

// create makes a new devbox and waits until it answers commands.
func (a *api) create(ctx context.Context, spec sandbox.Spec) (*box, error) {
	if strings.ContainsAny(spec.Image, " \t\r\n") {
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "%q is no image name", spec.Image)
	}
	if ctx.Err() != nil {
		return nil, rest.Ended(ctx, "create devbox")
	}
	want := creation{Name: spec.Name, Metadata: map[string]string{}}
	if want.Name == "" {
		want.Name = "talkops-" + rest.Random()
	}
	switch {
	case spec.Lifetime > 0:
		want.Launch.KeepAlive = seconds(min(spec.Lifetime, mostLifetime))
	case spec.Idle > 0:
		want.Launch.Lifecycle = &lifecycle{&afterIdle{seconds(spec.Idle), "shutdown"}}
	default:
		want.Launch.KeepAlive = seconds(defaultLifetime)
	}
	maps.Copy(want.Metadata, spec.Labels)
	want.Metadata[opening.Label] = rest.Random()
	if err := a.from(ctx, spec, &want); err != nil {
		return nil, err
	}

	begin := time.Now()
	return opening.Create(ctx, opening.Creation[machine]{
		Noun:  "devbox",
		Send:  func(ctx context.Context) (machine, error) { return a.send(ctx, want) },
		Made:  func(ctx context.Context) ([]machine, error) { return a.find(ctx, want), nil },
		ID:    func(m machine) string { return m.ID },
		End:   a.destroy,
		Every: time.Second,
	}, func(ctx context.Context, m machine) (*box, error) {
		if m.Created <= 0 {
			m.Created = begin.UnixMilli()
		}
		m.Launch = want.Launch
		if spec.Created != nil {
			spec.Created(sandbox.Info{Provider: "runloop", ID: m.ID, Expires: m.expires()})
		}
		return a.ready(ctx, spec, m, false)
	})
}

// seconds rounds d up to whole seconds.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// ready brings the devbox m to where commands run in it.
func (a *api) ready(ctx context.Context, spec sandbox.Spec, m machine, resume bool) (*box, error) {
	status, err := a.await(ctx, spec, m, resume)
	if err != nil {
		return nil, err
	}
	m.Status = status
	return a.enter(ctx, spec, m)
}

// send sends the creation until it is answered. Its request id makes Runloop do it
// once, and a devbox whose answer was lost is taken; no second one is left.
func (a *api) send(ctx context.Context, want creation) (machine, error) {
	r := rest.Request{Op: "create devbox", Method: "POST", Path: "/v1/devboxes", JSON: want, Header: once(), Retry: rest.Never}
	for n := 1; ; n++ {
		m, err := a.machine(ctx, r)
		if err == nil && n == 1 {
			return m, nil
		}
		code := rest.Status(err)
		if err != nil && code != 0 && code != http.StatusConflict && code != http.StatusTooManyRequests && code < 500 {
			return machine{}, err
		}
		if code != http.StatusTooManyRequests {
			made := a.find(ctx, want)
			if err != nil && len(made) > 0 {
				m, err = made[0], nil
			}
			for _, other := range made {
				if err == nil && other.ID != m.ID {
					a.destroy(ctx, other.ID)
				}
			}
		}
		switch {
		case err == nil:
			return m, nil
		case n >= 4 || ctx.Err() != nil || sandbox.CodeOf(err) == sandbox.CodeQuota || code == http.StatusConflict:
			return machine{}, err
		case rest.Sleep(ctx, rest.Backoff(n, err)) != nil:
			return machine{}, rest.Ended(ctx, "create devbox")
		}
	}
}

// find returns the devboxes that the creation has made: its opening label is unique.
func (a *api) find(ctx context.Context, want creation) []machine {
	var made []machine
	for _, status := range []string{"queued", "provisioning", "initializing", "running", "failure"} {
		each(ctx, a, "find devbox", "/v1/devboxes", "devboxes", url.Values{"status": {status}}, func(m machine) {
			known := slices.ContainsFunc(made, func(x machine) bool { return x.ID == m.ID })
			if !known && m.Metadata[opening.Label] == want.Metadata[opening.Label] {
				made = append(made, m)
			}
		})
	}
	return made
}

// attach opens the devbox spec.ID, resuming it if it is suspended.
func (a *api) attach(ctx context.Context, spec sandbox.Spec) (*box, error) {
	m, err := a.get(ctx, spec.ID)
	if err != nil {
		return nil, err
	}
	if m.Status == "shutdown" {
		return nil, &sandbox.Error{Code: sandbox.CodeNotFound, Op: "devbox " + m.ID, Msg: "the devbox has been shut down: " + a.reason(m)}
	}
	return a.ready(ctx, spec, m, true)
}

// await waits until m is running. A devbox that has failed or ended is an error
// at once; one that is suspended is resumed if resume is set.
func (a *api) await(ctx context.Context, spec sandbox.Spec, m machine, resume bool) (string, error) {
	op := "start devbox " + m.ID
	limited, cancel := context.WithTimeoutCause(ctx, startWithin, errLate)
	defer cancel()
	told := ""
	for n := 0; ; {
		// A wait for running alone never ends while the devbox is suspended.
		next := []string{"running", "failure", "shutdown", "suspended"}
		var err error
		switch m.Status {
		case "running":
			return m.Status, nil
		case "failure", "shutdown":
			code := sandbox.CodeUnavailable
			if resume {
				code = sandbox.CodeGone
			}
			return m.Status, &sandbox.Error{Code: code, Op: op, Msg: fmt.Sprintf("Runloop reports %s: %s", m.Status, a.reason(m))}
		case "suspended":
			if !resume {
				return m.Status, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "the devbox is suspended before it was ready"}
			}
			var resumed machine
			resumed, err = a.machine(limited, rest.Request{Op: op, Method: "POST", Path: a.path(m.ID, "resume"), Header: once(), Retry: rest.Always})
			if code := rest.Status(err); code == http.StatusConflict || code == http.StatusBadRequest && !rest.Quota(err.Error()) {
				resumed, err = m, nil // it is on its way already
			}
			if err == nil {
				m.Status = resumed.Status
				next = next[:3]
			}
		}
		if spec.Progress != nil && m.Status != told {
			told = m.Status
			spec.Progress("devbox is " + strings.ReplaceAll(a.Show(m.Status), "_", " "))
		}
		if err == nil {
			var seen machine
			seen, err = a.machine(limited, rest.Request{
				Op: op, Method: "POST", Path: a.path(m.ID, "wait_for_status"), Retry: rest.Always,
				JSON: map[string]any{"statuses": next, "timeout_seconds": holdFor},
			})
			switch {
			case err == nil:
				m.Status, m.FailureReason, m.ShutdownReason = seen.Status, seen.FailureReason, seen.ShutdownReason
			case rest.Status(err) == http.StatusRequestTimeout:
				if m.Status == "suspended" {
					m.Status = "resuming"
				}
				err = nil
			}
			if err == nil {
				// A service that answers at once must not be asked without pause.
				n++
				err = rest.Sleep(limited, min(time.Duration(n)*5*time.Millisecond, time.Second))
			}
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return m.Status, fmt.Errorf("waiting for status running, last seen %s: %w", a.Show(m.Status), rest.Ended(ctx, op))
		case limited.Err() != nil:
			return m.Status, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("not running after %v, last seen %s", startWithin, a.Show(m.Status))}
		default:
			return m.Status, err
		}
	}
}

var errLate = errors.New("the devbox took too long to start")

// enter makes a Sandbox of the running devbox m: it checks that commands run, and
// finds the working directory and a private one for its own files.
func (a *api) enter(ctx context.Context, spec sandbox.Spec, m machine) (*box, error) {
	b := &box{api: a, id: m.ID, env: maps.Clone(spec.Env), expires: m.expires(), idle: m.Launch.idle()}
	want := spec.Dir
	if want == "" {
		want = defaultDir
	}
	limited, cancel := context.WithTimeoutCause(ctx, startWithin, errLate)
	defer cancel()
	for n := 1; ; n++ {
		// Commands begin in the home directory.
		out, exit, err := b.shell(limited, posix.EnterScript, want, ".")
		if err == nil {
			b.run, b.setsid, b.dir, err = posix.Entered(out, exit)
			if err != nil {
				return nil, err
			}
			break
		}
		if ctx.Err() != nil {
			return nil, rest.Ended(ctx, "probe devbox")
		}
		if n >= 4 || sandbox.CodeOf(err) != sandbox.CodeUnavailable || rest.Sleep(limited, rest.Backoff(n, err)) != nil {
			return nil, err
		}
	}
	opening.TellDir(spec, b.dir)
	return b, nil
}

package vercel

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
	everyPlan    = 45 * time.Minute // what every plan allows a session, and the default
	mostLifetime = 24 * time.Hour   // what the best plan allows

	mostTags = 5

	startWithin = 3 * time.Minute
	buildWithin = 20 * time.Minute
	cleanWithin = 30 * time.Second
)

// create makes a new sandbox and waits until it answers commands.
func (a *api) create(ctx context.Context, spec sandbox.Spec) (*box, error) {
	switch {
	case spec.Snapshot != "" && spec.Image != "":
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "a sandbox starts from a snapshot or from an image, not both")
	case strings.ContainsAny(spec.Image, " \t\r\n"):
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "%q is no image name", spec.Image)
	case len(spec.Labels) >= mostTags:
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "Vercel keeps %d tags, of which talkops needs one: %d labels are too many", mostTags, len(spec.Labels))
	case ctx.Err() != nil:
		return nil, rest.Ended(ctx, "create sandbox")
	}
	lifetime := everyPlan
	if spec.Lifetime > 0 {
		lifetime = max(time.Second, min(spec.Lifetime, mostLifetime))
	}
	want := creation{
		Project: a.project,
		Name:    spec.Name,
		Ports:   []int{},
		Timeout: (lifetime + time.Millisecond - 1).Milliseconds(),
		Tags:    map[string]string{},
		Image:   spec.Image,
	}
	if want.Name == "" {
		want.Name = "talkops-" + rest.Random()
	}
	maps.Copy(want.Tags, spec.Labels)
	want.Tags[opening.Label] = rest.Random()
	if spec.Snapshot != "" {
		id, err := a.snapshot(ctx, spec.Snapshot)
		if err != nil {
			return nil, err
		}
		want.Source = &source{"snapshot", id}
	}

	return opening.Create(ctx, opening.Creation[machine]{
		Send: func(ctx context.Context) (machine, error) { return a.send(ctx, spec, want) },
		Made: func(ctx context.Context) ([]machine, error) {
			if m, ok := a.ours(ctx, want); ok {
				return []machine{m}, nil
			}
			return nil, nil
		},
		ID:  func(m machine) string { return m.Sandbox.Name },
		End: a.destroy,
	}, func(ctx context.Context, m machine) (*box, error) { return a.ready(ctx, spec, m) })
}

// ready brings the new machine m to where commands run in it.
func (a *api) ready(ctx context.Context, spec sandbox.Spec, m machine) (*box, error) {
	if spec.Created != nil {
		spec.Created(sandbox.Info{Provider: "vercel", ID: m.Sandbox.Name, Expires: m.Session.expires()})
	}
	m, err := a.await(ctx, spec, m, false)
	if err != nil {
		return nil, err
	}
	return a.enter(ctx, spec, m)
}

// ours returns the machine that the creation has made, if it has: its name is unique
// to the project, and its opening label to the creation.
func (a *api) ours(ctx context.Context, want creation) (machine, bool) {
	m, err := a.get(ctx, want.Name, false)
	return m, err == nil && m.Sandbox.Tags[opening.Label] == want.Tags[opening.Label]
}

// send sends the creation until it is answered. The machine whose answer was lost
// is taken. A lifetime that the plan does not allow gives way to one that every
// plan does.
func (a *api) send(ctx context.Context, spec sandbox.Spec, want creation) (machine, error) {
	const op = "create sandbox"
	tell := func(what string) {
		if spec.Progress != nil {
			spec.Progress(what)
		}
	}
	begin := time.Now()
	for n := 1; ; n++ {
		var m machine
		err := a.json(ctx, rest.Request{Op: op, Method: "POST", Path: "/v3/sandboxes", JSON: want, Retry: rest.Always}, &m)
		if err = whole(op, m, err); err == nil {
			return m, nil
		}
		e, answered := statusOf(err)
		text := ""
		if answered {
			text = strings.ToLower(e.Message)
		}
		switch code := rest.Status(err); {
		case refusal(err) == "image_not_ready" && time.Since(begin) < buildWithin:
			if n == 1 {
				tell("image is being prepared")
			}
			if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
				return machine{}, rest.Ended(ctx, op)
			}
			continue
		case code == http.StatusBadRequest && strings.Contains(text, "timeout") && want.Timeout > everyPlan.Milliseconds():
			want.Timeout = everyPlan.Milliseconds()
			tell(fmt.Sprintf("the plan allows no lifetime of %v; the sandbox ends after %v", spec.Lifetime, everyPlan))
			continue
		case refusal(err) == "snapshot_not_found":
			return machine{}, &sandbox.Error{Code: sandbox.CodeNotFound, Op: op, Msg: fmt.Sprintf("there is no snapshot %s", spec.Snapshot), Err: err}
		case strings.Contains(text, "already exists"), code == http.StatusConflict, code == 0, code >= 500,
			code == http.StatusBadRequest && refusal(err) == "": // whose answer did not come whole
			find, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
			defer cancel()
			if m, ok := a.ours(find, want); ok {
				return m, nil
			}
			if strings.Contains(text, "already exists") || code == http.StatusConflict {
				return machine{}, &sandbox.Error{Code: sandbox.CodeInvalidArgument, Op: op, Msg: fmt.Sprintf("the name %s is taken", want.Name), Err: err}
			}
		}
		return machine{}, err
	}
}

func statusOf(err error) (*rest.StatusError, bool) { return errors.AsType[*rest.StatusError](err) }

// attach opens the sandbox spec.ID, resuming it if it is stopped.
func (a *api) attach(ctx context.Context, spec sandbox.Spec) (*box, error) {
	name, err := a.name(ctx, spec.ID)
	if err != nil {
		return nil, err
	}
	m, err := a.get(ctx, name, false)
	if err != nil {
		return nil, err
	}
	if m, err = a.await(ctx, spec, m, true); err != nil {
		return nil, err
	}
	return a.enter(ctx, spec, m)
}

// await polls m until its session runs. A session that has ended is an error at
// once, or followed by a new one if resume is set.
func (a *api) await(ctx context.Context, spec sandbox.Spec, m machine, resume bool) (machine, error) {
	name := m.Sandbox.Name
	op := "start sandbox " + name
	limited, cancel := context.WithTimeoutCause(ctx, startWithin, errLate)
	defer cancel()
	told := ""
	tell := func(what string) {
		if spec.Progress != nil && what != told {
			told = what
			spec.Progress(what)
		}
	}
	delay := 100 * time.Millisecond
	for tries := 0; ; {
		var err error
		switch status := m.Session.Status; {
		case status == "running":
			return m, nil
		case over(status) && !resume, status == "failed" && tries > 0, tries > 2:
			return m, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "Vercel reports " + a.Show(status) + " before it was ready"}
		case over(status):
			tell("sandbox is " + status + "; it is resumed in a new session, without its processes")
			var next machine
			switch next, err = a.get(limited, name, true); {
			case refusal(err) == "snapshot_not_found":
				return m, &sandbox.Error{Code: sandbox.CodeGone, Op: op, Msg: "the sandbox is " + status + " and nothing of it was kept; create a new one", Err: err}
			case err == nil:
				tries++
				m = next
				continue
			case rest.Status(err) == http.StatusUnprocessableEntity:
				err = nil // it is still stopping
			}
		default:
			tell("sandbox is " + a.Show(status))
		}
		if err == nil {
			if err = rest.Sleep(limited, delay); err == nil {
				delay = min(delay*5/4, 500*time.Millisecond)
				var next machine
				if next, err = a.get(limited, name, false); err == nil {
					m = next
					continue
				}
			}
		}
		switch {
		case ctx.Err() != nil:
			return m, fmt.Errorf("waiting for status running, last seen %s: %w", a.Show(m.Session.Status), rest.Ended(ctx, op))
		case limited.Err() != nil:
			return m, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("not running after %v, last seen %s", startWithin, a.Show(m.Session.Status))}
		}
		return m, err
	}
}

var errLate = errors.New("the sandbox took too long to start")

// enterScript says in its first line whether there is tar.
const enterScript = `command -v tar >/dev/null 2>&1 && echo tar || echo none
` + posix.EnterScript

// enter makes a Sandbox of the running machine m: it checks that commands run, and
// finds the working directory and a private one for its own files.
func (a *api) enter(ctx context.Context, spec sandbox.Spec, m machine) (*box, error) {
	b := &box{api: a, name: m.Sandbox.Name, env: maps.Clone(spec.Env), now: m.Session}
	want := spec.Dir
	if want == "" {
		want = defaultDir
	}
	limited, cancel := context.WithTimeoutCause(ctx, startWithin, errLate)
	defer cancel()
	for n := 1; ; n++ {
		out, exit, err := b.shell(limited, true, enterScript, want, m.Session.Dir)
		if err == nil {
			tar, rest, _ := strings.Cut(out, "\n")
			if b.run, b.setsid, b.dir, err = posix.Entered(rest, exit); err != nil {
				return nil, err
			}
			b.tar = tar == "tar"
			break
		}
		if ctx.Err() != nil {
			return nil, rest.Ended(ctx, "probe sandbox")
		}
		if n >= 4 || sandbox.CodeOf(err) != sandbox.CodeUnavailable || rest.Sleep(limited, rest.Backoff(n, err)) != nil {
			return nil, err
		}
	}
	if spec.Progress != nil && b.dir != strings.TrimSuffix(want, "/") {
		spec.Progress("working directory is " + rest.Clean(b.dir) + ", not " + rest.Clean(want))
	}
	a.warn(spec, b.Info().Expires)
	return b, nil
}

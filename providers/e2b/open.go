package e2b

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
	// nameLabel holds the caller's name: E2B's sandboxes have none.
	nameLabel = "talkops-name"

	defaultLifetime = time.Hour // the most that E2B gives every account

	startWithin = 3 * time.Minute
	cleanWithin = 30 * time.Second
)

// create makes a new sandbox and waits until it answers commands.
func (a *api) create(ctx context.Context, spec sandbox.Spec) (*box, error) {
	if ctx.Err() != nil {
		return nil, rest.Ended(ctx, "create sandbox")
	}
	want := creation{Template: a.template, Timeout: seconds(spec.Lifetime), Metadata: map[string]string{}}
	maps.Copy(want.Metadata, spec.Labels)
	want.Metadata[opening.Label] = rest.Random()
	if spec.Name != "" {
		want.Metadata[nameLabel] = spec.Name
	}
	if spec.Snapshot != "" {
		id, err := a.snapshot(ctx, "", spec.Snapshot)
		if err != nil {
			return nil, err
		}
		want.Template = spec.Snapshot // it may be known by its id
		if id != "" {
			want.Template = id
		}
	}
	return opening.Create(ctx, opening.Creation[machine]{
		Send: func(ctx context.Context) (machine, error) { return a.post(ctx, want) },
		Made: func(ctx context.Context) ([]machine, error) { return a.made(ctx, want) },
		ID:   func(m machine) string { return m.ID },
		End:  a.destroy,
	}, func(ctx context.Context, m machine) (*box, error) { return a.ready(ctx, spec, m, want) })
}

// ready brings the new machine m to where commands run in it.
func (a *api) ready(ctx context.Context, spec sandbox.Spec, m machine, want creation) (*box, error) {
	if spec.Created != nil {
		spec.Created(sandbox.Info{Provider: "e2b", ID: m.ID, Expires: time.Now().Add(time.Duration(want.Timeout) * time.Second)})
	}
	// When it ends is told only here, and may be sooner than was asked for.
	seen, err := a.get(ctx, m.ID)
	switch {
	case err != nil:
		return nil, err
	case m.Access == "":
		m = seen // it was found after its answer was lost
	default:
		m.Ends = seen.Ends
	}
	return a.enter(ctx, spec, m)
}

// seconds rounds a lifetime up, with a default for 0.
func seconds(d time.Duration) int64 {
	if d <= 0 {
		d = defaultLifetime
	}
	return int64((d + time.Second - 1) / time.Second)
}

// ask sends the creation by the call of today's clients, or by the older one where
// the service does not know that. If the account may not have a sandbox for so
// long it asks for as long as it may.
func (a *api) ask(ctx context.Context, want creation) (machine, error) {
	r := rest.Request{Op: "create sandbox", Method: "POST", Path: "/v2/sandboxes", JSON: want, Retry: rest.Refused}
	for {
		m, err := a.machine(ctx, r)
		status, _ := errors.AsType[*rest.StatusError](err)
		switch {
		case err == nil && m.Access == "":
			// Everybody who knows the id could use it.
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
			defer cancel()
			err = &sandbox.Error{Code: sandbox.CodeInternal, Op: r.Op, Msg: "E2B gave no access token for it"}
			return machine{}, errors.Join(err, a.destroy(clean, m.ID))
		case status == nil:
			return m, err
		case r.Path == "/v2/sandboxes" && (status.Status == http.StatusNotFound || status.Status == http.StatusMethodNotAllowed):
			want.Secure = true
			r.Path = "/sandboxes"
		case status.Status == http.StatusBadRequest && hours(status.Message) > 0 && hours(status.Message)*3600 < want.Timeout:
			want.Timeout = hours(status.Message) * 3600
		default:
			return m, err
		}
		r.JSON = want
	}
}

// hours is the N of "Timeout cannot be greater than N hours", or 0.
func hours(message string) int64 {
	_, rest, _ := strings.Cut(strings.ToLower(message), "cannot be greater than ")
	var n int64
	if _, err := fmt.Sscanf(rest, "%d hour", &n); err != nil || n > 24*365 {
		return 0
	}
	return n
}

// post sends the creation until it is answered. A machine whose answer was lost is
// taken, and no second one is left.
func (a *api) post(ctx context.Context, want creation) (machine, error) {
	m, unsure, err := a.try(ctx, want)
	if !unsure {
		return m, err
	}
	// A request that seemed lost may have been carried out later.
	if made, ferr := a.made(ctx, want); ferr == nil {
		for _, other := range made {
			if other.ID != m.ID || err != nil {
				err = errors.Join(err, a.destroy(ctx, other.ID))
			}
		}
	}
	return m, err
}

// try is post that may leave a machine, and says so.
func (a *api) try(ctx context.Context, want creation) (m machine, unsure bool, err error) {
	for n := 1; ; n++ {
		m, err := a.ask(ctx, want)
		if code := rest.Status(err); err == nil || code != 0 && code < 500 || code == 0 && sandbox.CodeOf(err) != sandbox.CodeUnavailable && sandbox.CodeOf(err) != sandbox.CodeInternal {
			return m, n > 1, err
		}
		// It may have been made: it is looked for before it is asked for again.
		made, ferr := a.made(ctx, want)
		if ferr == nil && len(made) > 0 {
			return made[0], true, nil
		}
		if n >= 3 || ferr != nil || rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return m, true, err
		}
	}
}

// made returns the machines that one creation has made: its opening label is unique.
func (a *api) made(ctx context.Context, want creation) ([]machine, error) {
	var made []machine
	err := a.find(ctx, map[string]string{opening.Label: want.Metadata[opening.Label]}, func(m machine) { made = append(made, m) })
	return made, err
}

// attach opens the machine spec.ID, resuming it if it is paused. It is never
// given a shorter life.
func (a *api) attach(ctx context.Context, spec sandbox.Spec) (*box, error) {
	m, err := a.get(ctx, spec.ID)
	if err != nil {
		return nil, err
	}
	if m.State == "paused" || m.Access == "" {
		if spec.Progress != nil {
			spec.Progress("sandbox is " + a.Show(m.State))
		}
		// Of a sandbox that runs it can only move the end further away.
		woken, err := a.machine(ctx, rest.Request{
			Op: "resume sandbox " + m.ID, Method: "POST", Path: a.path(m.ID, "connect"), Retry: rest.Always,
			JSON: map[string]int64{"timeout": seconds(spec.Lifetime)},
		})
		if err != nil {
			return nil, err
		}
		if m, err = a.get(ctx, spec.ID); err != nil {
			return nil, err
		}
		if m.Access == "" {
			m.Access = woken.Access
		}
	}
	return a.enter(ctx, spec, m)
}

var errLate = errors.New("the sandbox took too long to start")

// enter makes a Sandbox of the running machine m: it checks that commands run, and
// finds the working directory and a private one for its own files.
func (a *api) enter(ctx context.Context, spec sandbox.Spec, m machine) (*box, error) {
	t, err := a.tools(m)
	if err != nil {
		return nil, err
	}
	b := &box{api: a, tools: t, id: m.ID, env: maps.Clone(spec.Env), expires: m.Ends.Time}
	want := spec.Dir
	if want == "" {
		want = defaultDir
	}
	limited, cancel := context.WithTimeoutCause(ctx, startWithin, errLate)
	defer cancel()
	// Commands begin in the directory of the template.
	out, exit, err := b.shell(limited, true, posix.EnterScript, want, ".")
	if ctx.Err() != nil {
		return nil, rest.Ended(ctx, "probe sandbox")
	}
	if err != nil {
		return nil, err
	}
	if b.run, b.setsid, b.dir, err = posix.Entered(out, exit); err != nil {
		return nil, err
	}
	opening.TellDir(spec, b.dir)
	return b, nil
}

// destroyed reports whether a call for a sandbox failed because there is none.
func destroyed(err error) bool {
	code := rest.Status(err)
	return code == http.StatusNotFound || code == http.StatusGone
}

package e2b

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	// E2B's sandboxes have no names: labels of talkops's own hold the caller's name
	// and tell the machine of one Open from all others.
	nameLabel    = "talkops-name"
	openingLabel = "talkops-opening"

	defaultLifetime = time.Hour // the most that E2B gives every account

	startWithin = 3 * time.Minute
	cleanWithin = 30 * time.Second
	lateWithin  = 10 * time.Second
)

// create makes a new sandbox and waits until it answers commands.
func (a *api) create(ctx context.Context, spec sandbox.Spec) (*box, error) {
	if ctx.Err() != nil {
		return nil, rest.Ended(ctx, "create sandbox")
	}
	want := creation{Template: a.template, Timeout: seconds(spec.Lifetime), Metadata: map[string]string{}}
	maps.Copy(want.Metadata, spec.Labels)
	want.Metadata[openingLabel] = rest.Random()
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
	m, err := a.post(ctx, want)
	if err != nil {
		return nil, err
	}
	b, err := a.ready(ctx, spec, m, want)
	if err == nil {
		return b, nil
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	if derr := a.destroy(clean, m.ID); derr != nil {
		return nil, fmt.Errorf("%w; sandbox %s could not be deleted: %w", err, m.ID, derr)
	}
	return nil, err
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

// post sends the creation. The opening label is unique, so after a lost answer the
// machine is found by it. If post fails or ctx ends, no machine is left.
func (a *api) post(ctx context.Context, want creation) (machine, error) {
	type answer struct {
		m      machine
		err    error
		unsure bool // an answer was lost
	}
	req, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan answer, 1)
	finished := make(chan struct{})
	defer func() { stop(); <-finished }()
	go func() {
		defer close(finished)
		for n := 1; ; n++ {
			m, err := a.ask(req, want)
			if code := rest.Status(err); err == nil || code != 0 && code < 500 || code == 0 && sandbox.CodeOf(err) != sandbox.CodeUnavailable && sandbox.CodeOf(err) != sandbox.CodeInternal {
				done <- answer{m, err, n > 1}
				return
			}
			// It may have been made: it is looked for before it is asked for again.
			made, ferr := a.made(req, want)
			if ferr == nil && len(made) > 0 {
				done <- answer{made[0], nil, true}
				return
			}
			if n >= 3 || ferr != nil || rest.Sleep(req, rest.Backoff(n, err)) != nil {
				done <- answer{m, err, true}
				return
			}
		}
	}()

	select {
	case got := <-done:
		if !got.unsure {
			return got.m, got.err
		}
		// A request that seemed lost may have been carried out later.
		if made, err := a.made(req, want); err == nil {
			for _, other := range made {
				if other.ID != got.m.ID || got.err != nil {
					got.err = errors.Join(got.err, a.destroy(req, other.ID))
				}
			}
		}
		return got.m, got.err
	case <-ctx.Done():
	}

	// The machine may come into being after all: it is awaited a while, and deleted.
	ended := rest.Ended(ctx, "create sandbox")
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	limit := time.NewTimer(lateWithin)
	defer limit.Stop()
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		case <-look.C:
			made, err := a.made(late, want)
			waiting = err != nil || len(made) == 0
		case <-limit.C:
			waiting = false
		}
	}
	stop()
	<-finished
	made, err := a.made(late, want)
	for _, m := range made {
		if derr := a.destroy(late, m.ID); derr != nil {
			err = fmt.Errorf("sandbox %s could not be deleted: %w", m.ID, derr)
		}
	}
	if err != nil {
		return machine{}, fmt.Errorf("%w; %w", ended, err)
	}
	return machine{}, ended
}

// made returns the machines that one creation has made.
func (a *api) made(ctx context.Context, want creation) ([]machine, error) {
	var made []machine
	err := a.find(ctx, map[string]string{openingLabel: want.Metadata[openingLabel]}, func(m machine) { made = append(made, m) })
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
	if spec.Dir != "" && spec.Progress != nil && !strings.HasSuffix(b.dir, strings.TrimSuffix(spec.Dir, "/")) {
		spec.Progress("working directory is " + rest.Clean(b.dir))
	}
	return b, nil
}

// destroyed reports whether a call for a sandbox failed because there is none.
func destroyed(err error) bool {
	code := rest.Status(err)
	return code == http.StatusNotFound || code == http.StatusGone
}

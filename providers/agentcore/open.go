package agentcore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	defaultLifetime = 8 * time.Hour // which is also the most
	leastLifetime   = time.Minute

	startWithin = 3 * time.Minute
)

// create starts a new session and waits until it answers commands.
func (a *api) create(ctx context.Context, spec sandbox.Spec) (*box, error) {
	if ctx.Err() != nil {
		return nil, rest.Ended(ctx, "create sandbox")
	}
	lifetime := spec.Lifetime
	if lifetime <= 0 {
		lifetime = defaultLifetime
	}
	lifetime = min(max(lifetime, leastLifetime), defaultLifetime)
	name := spec.Name
	if name == "" {
		name = "talkops-" + rest.Random()
	}
	labels := maps.Clone(spec.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[opening.Label] = rest.Random()
	name, err := compose(name, labels)
	if err != nil {
		return nil, err
	}
	want := creation{
		Name:    name,
		Timeout: int((lifetime + time.Second - 1) / time.Second),
		Token:   rest.Random() + rest.Random() + "-talkops", // at least 33 characters
	}
	return opening.Create(ctx, opening.Creation[session]{
		Send:   func(ctx context.Context) (session, error) { return a.post(ctx, want) },
		Unsure: opening.Lost,
		Made: func(ctx context.Context) ([]session, error) {
			if id, err := a.named(ctx, want.Name); err == nil && id != "" {
				return []session{{ID: id}}, nil
			}
			return nil, nil
		},
		ID:  func(s session) string { return s.ID },
		End: a.stop,
	}, func(ctx context.Context, s session) (*box, error) { return a.ready(ctx, spec, s) })
}

// ready brings the new session s to where commands run in it. If s was found after
// its answer was lost, only its id is known.
func (a *api) ready(ctx context.Context, spec sandbox.Spec, s session) (*box, error) {
	if s.Timeout == 0 {
		if whole, err := a.get(ctx, s.ID); err == nil {
			s = whole
		}
	}
	if spec.Created != nil {
		spec.Created(sandbox.Info{Provider: "agentcore", ID: a.interpreter + "/" + s.ID, Expires: s.expires()})
	}
	return a.enter(ctx, spec, s)
}

// post sends the creation. Its token makes asking again harmless, and its name is
// unique.
func (a *api) post(ctx context.Context, want creation) (s session, err error) {
	err = a.JSON(ctx, rest.Request{Op: "create sandbox", Method: "PUT", Path: "/sessions/start", JSON: want}, &s)
	if err == nil && !isSession.MatchString(s.ID) {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: "create sandbox", Msg: "AgentCore's answer has no id"}
	}
	s.Timeout = want.Timeout
	return s, err
}

// attach opens the session spec.ID. One that has ended cannot be started again.
func (a *api) attach(ctx context.Context, spec sandbox.Spec) (*box, error) {
	op := "attach to sandbox " + spec.ID
	if a.session == "" {
		return nil, &sandbox.Error{Code: sandbox.CodeNotFound, Op: op, Msg: "no session has such an id"}
	}
	s, err := a.get(ctx, a.session)
	if err != nil {
		return nil, err
	}
	if s.Status == terminated {
		return nil, &sandbox.Error{Code: sandbox.CodeNotFound, Op: op, Msg: "the session has ended"}
	}
	return a.enter(ctx, spec, s)
}

// enterScript prints "tar" or "none" for whether a tree can be unpacked, the
// session's own directory, which file calls are relative to, and then what
// posix.EnterScript does for a private directory below it. The working directory
// is $1 if it can be made, else one below the session's own.
const enterScript = `TMPDIR=$(pwd -P) || exit 3
command -v tar >/dev/null 2>&1 && command -v gzip >/dev/null 2>&1 && echo tar || echo none
echo "$TMPDIR"
mkdir -p "$TMPDIR/workspace"
set -- "$1" "$TMPDIR/workspace"
` + posix.EnterScript

// enter makes a Sandbox of the session s: it waits until commands run, and finds
// the working directory and a private one for its own files.
func (a *api) enter(ctx context.Context, spec sandbox.Spec, s session) (*box, error) {
	b := &box{
		api: a, id: s.ID, env: maps.Clone(spec.Env), expires: s.expires(),
		calls: make(chan struct{}, callsMost), watches: make(chan struct{}, watchesMost),
	}
	want := spec.Dir
	if want == "" {
		want = defaultDir
	}
	var out string
	var exit int
	limited, cancel := context.WithTimeoutCause(ctx, startWithin, errLate)
	defer cancel()
	for n := 1; ; n++ {
		var err error
		out, exit, err = b.shell(limited, b.calls, rest.Refused, enterScript, want)
		if err == nil {
			break
		}
		switch sandbox.CodeOf(err) {
		case sandbox.CodeUnavailable, sandbox.CodeRateLimited:
		case sandbox.CodeTimeout, sandbox.CodeCancelled:
		default:
			return nil, err
		}
		if spec.Progress != nil && n == 1 {
			spec.Progress("waiting for the session to answer")
		}
		if limited.Err() != nil || rest.Sleep(limited, min(time.Duration(n)*200*time.Millisecond, 2*time.Second)) != nil {
			if ctx.Err() != nil {
				return nil, rest.Ended(ctx, "probe sandbox")
			}
			return nil, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "probe sandbox", Msg: fmt.Sprintf("no answer after %v", startWithin), Err: err}
		}
	}
	tar, out, _ := strings.Cut(out, "\n")
	root, out, _ := strings.Cut(out, "\n")
	b.tar = tar == "tar"
	var err error
	if b.run, b.setsid, b.dir, err = posix.Entered(out, exit); err != nil {
		return nil, err
	}
	if !path.IsAbs(root) || path.Dir(b.run) != path.Clean(root) {
		return nil, &sandbox.Error{Code: sandbox.CodeInternal, Op: "find working directory", Msg: "the session's own directory cannot be used"}
	}
	if spec.Progress != nil && b.dir != path.Clean(want) {
		spec.Progress("working directory is " + rest.Clean(b.dir))
	}
	return b, nil
}

var errLate = errors.New("the sandbox took too long to start")

// explain looks whether the session still runs when a tool fails in a way that
// may mean it does not.
func (b *box) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	gone := &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + b.id, Msg: "the session has ended", Err: err}
	switch sandbox.CodeOf(err) {
	case sandbox.CodeNotFound:
		return gone
	case sandbox.CodeUnavailable:
	default:
		return err
	}
	look := *b.api
	look.Attempts = 2
	look.Timeout = 10 * time.Second
	s, gerr := look.get(ctx, b.id)
	if rest.Status(gerr) == http.StatusNotFound || gerr == nil && s.Status == terminated {
		return gone
	}
	return err
}

package modal

import (
	"context"
	"net/url"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/providers/modal/internal/wire"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A router is the command router of one sandbox.
type router struct {
	wire.TaskCommandRouterClient
	api  *api
	conn *grpc.ClientConn
	id   string // of the sandbox
	task string
	dir  string // where processes start; empty is the image's own, which may be removed

	sign chan struct{} // held by who reads or renews jwt
	jwt  string
}

// reach returns the router of the sandbox's task. Its address is asked for if
// access is nil.
func (a *api) reach(ctx context.Context, id, task string, access *wire.CommandRouterAccess) (*router, error) {
	if access.GetUrl() == "" || access.GetJwt() == "" {
		var err error
		if access, err = a.access(ctx, id, task); err != nil {
			return nil, a.explain(ctx, id, err)
		}
	}
	bad := &sandbox.Error{Code: sandbox.CodeInternal, Op: "find router", Msg: "Modal gave an address that is not https: " + a.clean(access.GetUrl())}
	u, err := url.Parse(access.GetUrl())
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return nil, bad
	}
	// A Modal on this computer has no certificate.
	conn, err := open(u, a.local && loopback(u.Hostname()))
	if err != nil {
		return nil, bad
	}
	return &router{
		TaskCommandRouterClient: wire.NewTaskCommandRouterClient(conn),
		api:                     a, conn: conn, id: id, task: task,
		sign: make(chan struct{}, 1), jwt: access.GetJwt(),
	}, nil
}

// access asks for the router's address and a token for it.
func (a *api) access(ctx context.Context, id, task string) (*wire.CommandRouterAccess, error) {
	if old(id) {
		answer, err := call(ctx, a, "find router", a.TaskGetCommandRouterAccess, &wire.TaskGetCommandRouterAccessRequest{TaskId: task}, policy{})
		return &wire.CommandRouterAccess{Jwt: answer.GetJwt(), Url: answer.GetUrl()}, err
	}
	answer, err := call(ctx, a, "find router", a.SandboxGetCommandRouterAccess, &wire.SandboxGetCommandRouterAccessRequest{
		Target: &wire.SandboxGetCommandRouterAccessRequest_SandboxId{SandboxId: id},
	}, policy{})
	return &wire.CommandRouterAccess{Jwt: answer.GetJwt(), Url: answer.GetUrl()}, err
}

func (r *router) close() { r.conn.Close() }

// signed is ctx with what every call of the router carries.
func (r *router) signed(ctx context.Context) (context.Context, string, error) {
	select {
	case r.sign <- struct{}{}:
		defer func() { <-r.sign }()
		return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+r.jwt), r.jwt, nil
	case <-ctx.Done():
		return ctx, "", rest.Ended(ctx, "sign in")
	}
}

// renew gets another token in place of the one that was refused.
func (r *router) renew(ctx context.Context, refused string) error {
	select {
	case r.sign <- struct{}{}:
		defer func() { <-r.sign }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.jwt != refused {
		return nil
	}
	access, err := r.api.access(ctx, r.id, r.task)
	if err == nil && access.GetJwt() != "" {
		r.jwt = access.GetJwt()
	}
	return err
}

// route calls the router.
func route[Q, A any](ctx context.Context, r *router, op string, f method[Q, A], q *Q, p policy) (*A, error) {
	var answer *A
	var jwt string
	renew := func(ctx context.Context) error { return r.renew(ctx, jwt) }
	err := r.api.repeat(ctx, op, p, renew, func(ctx context.Context, _ int) error {
		var err error
		if ctx, jwt, err = r.signed(ctx); err != nil {
			return err
		}
		answer, err = f(ctx, q)
		return err
	})
	return answer, err
}

// explain looks whether the sandbox still runs when its router fails in a way
// that may mean it does not.
func (r *router) explain(ctx context.Context, err error) error { return r.api.explain(ctx, r.id, err) }

func (a *api) explain(ctx context.Context, id string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	switch sandbox.CodeOf(err) {
	case sandbox.CodeUnavailable, sandbox.CodeNotFound, sandbox.CodeInvalidArgument:
	default:
		return err
	}
	result, rerr := a.result(ctx, id, policy{attempts: 2, within: 10 * time.Second})
	switch {
	case is(rerr, codes.NotFound):
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + id, Msg: "the sandbox no longer exists", Err: err}
	case rerr == nil && result != nil:
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + id, Msg: a.obituary(result), Err: err}
	}
	return err
}

// obituary words how a sandbox ended.
func (a *api) obituary(result *wire.GenericResult) string {
	text := "the sandbox has ended"
	switch result.GetStatus() {
	case wire.GenericResult_GENERIC_STATUS_TERMINATED:
		text = "the sandbox was ended"
	case wire.GenericResult_GENERIC_STATUS_TIMEOUT:
		text = "the sandbox's lifetime is over"
	case wire.GenericResult_GENERIC_STATUS_IDLE_TIMEOUT:
		text = "the sandbox was ended because it was not used"
	case wire.GenericResult_GENERIC_STATUS_MEMORY_MANAGER_EVICTION:
		text = "the sandbox was ended because memory ran out"
	case wire.GenericResult_GENERIC_STATUS_INIT_FAILURE:
		text = "the sandbox could not be started"
	}
	if e := a.clean(result.GetException()); e != "" {
		text += ": " + e
	}
	return text
}

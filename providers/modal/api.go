package modal

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/providers/modal/internal/wire"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	attempts      = 4           // of a call that may be repeated
	callWithin    = time.Minute // one attempt
	tokenWithin   = 5 * time.Second
	throttleMost  = time.Minute // how long a throttled call is repeated
	tokenLifetime = 20 * time.Minute
)

// api is the control plane.
type api struct {
	profile
	wire.ModalClientClient
	conn  *grpc.ClientConn
	host  string
	local bool // it runs on this computer

	sign  chan struct{} // held by who reads or renews token
	token string
	renew time.Time // when a new token is due
}

// dial returns a client for p. It connects when it is first used.
func dial(p profile) (*api, error) {
	u, err := url.Parse(p.ServerURL)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "server_url is no address")
	}
	a := &api{profile: p, host: u.Hostname(), local: loopback(u.Hostname()), sign: make(chan struct{}, 1)}
	if a.conn, err = open(u, u.Scheme == "http"); err != nil {
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "server_url is no address that can be used")
	}
	a.ModalClientClient = wire.NewModalClientClient(a.conn)
	return a, nil
}

// open returns a connection that is made when it is used and let go when it is not.
func open(u *url.URL, plain bool) (*grpc.ClientConn, error) {
	port := u.Port()
	if port == "" {
		port = map[bool]string{true: "80", false: "443"}[plain]
	}
	secure := credentials.NewTLS(nil)
	if plain {
		secure = insecure.NewCredentials()
	}
	const (
		most   = 100 << 20
		window = 4 << 20
	)
	target := net.JoinHostPort(u.Hostname(), port)
	return grpc.NewClient(target,
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			traced(ctx, target)
			return call(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			traced(ctx, target)
			return stream(ctx, desc, cc, method, opts...)
		}),
		grpc.WithTransportCredentials(secure),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(30*time.Second),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(most), grpc.MaxCallSendMsgSize(most)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 10 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}),
	)
}

// traced tells whoever traces the requests of ctx of the host, as net/http does.
func traced(ctx context.Context, target string) {
	if t := httptrace.ContextClientTrace(ctx); t != nil && t.GetConn != nil {
		t.GetConn(target)
	}
}

func (a *api) close() { a.conn.Close() }

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// A refusal is a call that Modal did not answer with what was asked for.
type refusal struct {
	code    codes.Code
	message string
	after   time.Duration // how long Modal asks to wait; negative if it does not
}

func (r *refusal) Error() string { return r.message + " (" + r.code.String() + ")" }

// is reports whether err is a refusal with one of those codes.
func is(err error, any ...codes.Code) bool {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return false
	}
	for _, code := range any {
		if r.code == code {
			return true
		}
	}
	return false
}

// transient reports whether the call that failed with err may have been done, or
// may work when it is made again.
func transient(err error) bool {
	return is(err, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Unknown, codes.Aborted, codes.DataLoss)
}

// failed gives err its code and says what was being done.
func (a *api) failed(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return rest.Ended(ctx, op)
	}
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		return e
	}
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	r := &refusal{code: st.Code(), message: a.clean(st.Message()), after: -1}
	for _, detail := range st.Details() {
		if policy, ok := detail.(*wire.RPCRetryPolicy); ok {
			r.after = max(time.Duration(float64(policy.GetRetryAfterSecs())*float64(time.Second)), 0)
		}
	}
	code, msg := codeOf(r), "Modal: "+r.Error()
	switch {
	case r.code == codes.DeadlineExceeded:
		msg = "Modal does not answer"
	case code == sandbox.CodeUnavailable && strings.Contains(r.message, "connect"):
		msg = "Modal cannot be reached: " + r.message
	}
	return &sandbox.Error{Code: code, Op: op, Msg: msg, Err: r}
}

func codeOf(r *refusal) sandbox.Code {
	switch r.code {
	case codes.Unauthenticated, codes.PermissionDenied:
		return sandbox.CodeUnauthenticated
	case codes.NotFound:
		return sandbox.CodeNotFound
	case codes.InvalidArgument, codes.AlreadyExists, codes.OutOfRange, codes.FailedPrecondition:
		return sandbox.CodeInvalidArgument
	case codes.ResourceExhausted:
		text := strings.ToLower(r.message)
		if r.after >= 0 || strings.Contains(text, "rate limit") || strings.Contains(text, "too many requests") {
			return sandbox.CodeRateLimited
		}
		return sandbox.CodeQuota
	case codes.Unimplemented:
		return sandbox.CodeUnsupported
	}
	return sandbox.CodeUnavailable
}

// tokens finds what Modal gives out for calls: the header of such a token is JSON.
var tokens = regexp.MustCompile(`eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_.-]*`)

// clean makes Modal's text safe to show.
func (a *api) clean(s string) string {
	// A secret is hidden before the text is cut, which could leave a part of it.
	for _, secret := range []string{a.TokenSecret, a.TokenID} {
		if len(secret) >= 6 {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	return rest.Clean(tokens.ReplaceAllString(s, "***"))
}

// A policy says how often a call is sent and how long one attempt may take. The
// zero value is that of a call that may be repeated.
type policy struct {
	attempts int           // 0 is 4
	within   time.Duration // 0 is a minute
}

// repeat calls f until it succeeds, fails for good or has been tried often
// enough. When f has no right, renew may make it one, once.
func (a *api) repeat(ctx context.Context, op string, p policy, renew func(context.Context) error, f func(ctx context.Context, n int) error) error {
	begin, renewed := time.Now(), false
	for n := 1; ; n++ {
		attempt, cancel := context.WithTimeout(ctx, cmp.Or(p.within, callWithin))
		err := f(attempt, n)
		cancel()
		if err == nil {
			return nil
		}
		err = a.failed(ctx, op, err)
		switch {
		case ctx.Err() != nil:
			return err
		case is(err, codes.Unauthenticated) && !renewed:
			renewed = true
			if renew(ctx) != nil {
				return err
			}
			continue
		case sandbox.CodeOf(err) == sandbox.CodeRateLimited && p.attempts != 1 && time.Since(begin) < throttleMost:
		case !transient(err) || n >= cmp.Or(p.attempts, attempts):
			return err
		}
		if pause(ctx, n, err) != nil {
			return rest.Ended(ctx, op)
		}
	}
}

// pause sleeps after the n-th failure of a call, as long as Modal asks.
func pause(ctx context.Context, n int, err error) error {
	d := rest.Backoff(n, nil)
	if r, ok := errors.AsType[*refusal](err); ok && r.after > 0 {
		d = min(r.after, throttleMost) + 10*time.Millisecond
	}
	return rest.Sleep(ctx, d)
}

// A method is one call of a generated client.
type method[Q, A any] func(context.Context, *Q, ...grpc.CallOption) (*A, error)

// call calls the control plane. All attempts carry one idempotency key.
func call[Q, A any](ctx context.Context, a *api, op string, f method[Q, A], q *Q, p policy) (*A, error) {
	key := uuid.NewString()
	var answer *A
	err := a.repeat(ctx, op, p, a.forget, func(ctx context.Context, n int) error {
		token, err := a.auth(ctx)
		if err != nil {
			return err
		}
		ctx = metadata.AppendToOutgoingContext(a.signed(ctx),
			"x-modal-auth-token", token, "x-idempotency-key", key, "x-retry-attempt", strconv.Itoa(n-1))
		answer, err = f(ctx, q)
		return err
	})
	return answer, err
}

// signed is ctx with what every call of the control plane carries.
func (a *api) signed(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx,
		"x-modal-client-type", "9", "x-modal-client-version", "1.0.0",
		"x-modal-libmodal-version", "modal-go/"+clientVersion, "x-modal-host", a.host,
		"x-modal-token-id", a.TokenID, "x-modal-token-secret", a.TokenSecret)
}

// auth returns a token for one call, which it gets if there is none that is fresh.
func (a *api) auth(ctx context.Context) (string, error) {
	const op = "sign in"
	select {
	case a.sign <- struct{}{}:
		defer func() { <-a.sign }()
	case <-ctx.Done():
		return "", rest.Ended(ctx, op)
	}
	if a.token != "" && time.Now().Before(a.renew) {
		return a.token, nil
	}
	none := func(context.Context) error { return errors.ErrUnsupported }
	err := a.repeat(ctx, op, policy{attempts: 3, within: tokenWithin}, none, func(ctx context.Context, _ int) error {
		answer, err := a.AuthTokenGet(a.signed(ctx), &wire.AuthTokenGetRequest{})
		if err == nil {
			a.token, a.renew = answer.GetToken(), time.Now().Add(lifetime(answer.GetToken())/2)
		}
		return err
	})
	if err == nil && a.token == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "Modal's answer has no token"}
	}
	return a.token, err
}

// forget makes auth get a new token.
func (a *api) forget(ctx context.Context) error {
	select {
	case a.sign <- struct{}{}:
		a.token = ""
		<-a.sign
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lifetime reads from a token how long it will be accepted.
func lifetime(token string) time.Duration {
	parts := strings.Split(token, ".")
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if len(parts) == 3 {
		if data, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "=")); err == nil && json.Unmarshal(data, &claims) == nil && claims.Expires > 0 && claims.Expires < 1e11 {
			return max(time.Until(time.Unix(int64(claims.Expires), 0)), 0)
		}
	}
	return tokenLifetime
}

// old reports whether the sandbox with that id belongs to Modal's older backend.
func old(id string) bool {
	text, ok := strings.CutPrefix(id, "sb-")
	return ok && len(text) == 22 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// app returns the id of the app that holds the sandboxes.
func (a *api) app(ctx context.Context, create bool) (string, error) {
	q := &wire.AppGetOrCreateRequest{AppName: appName, EnvironmentName: a.Environment}
	if create {
		q.ObjectCreationType = wire.ObjectCreationType_OBJECT_CREATION_TYPE_CREATE_IF_MISSING
	}
	answer, err := call(ctx, a, "find app "+appName, a.AppGetOrCreate, q, policy{})
	return answer.GetAppId(), err
}

// task returns the id of the task that the sandbox runs as, empty while it is
// queued, and its result once it has ended.
func (a *api) task(ctx context.Context, id string) (string, *wire.GenericResult, error) {
	f := a.SandboxGetTaskIdV2
	if old(id) {
		f = a.SandboxGetTaskId
	}
	answer, err := call(ctx, a, "sandbox "+id, f, &wire.SandboxGetTaskIdRequest{SandboxId: id}, policy{})
	return answer.GetTaskId(), answer.GetTaskResult(), err
}

// result returns how the sandbox ended; nil while it runs.
func (a *api) result(ctx context.Context, id string, p policy) (*wire.GenericResult, error) {
	f := a.SandboxWaitV2
	if old(id) {
		f = a.SandboxWait
	}
	answer, err := call(ctx, a, "sandbox "+id, f, &wire.SandboxWaitRequest{SandboxId: id}, p)
	if r := answer.GetResult(); r.GetStatus() != wire.GenericResult_GENERIC_STATUS_UNSPECIFIED {
		return r, err
	}
	return nil, err
}

// destroy ends the sandbox.
func (a *api) destroy(ctx context.Context, id string) error {
	f := a.SandboxTerminateV2
	if old(id) {
		f = a.SandboxTerminate
	}
	_, err := call(ctx, a, "end sandbox "+id, f, &wire.SandboxTerminateRequest{SandboxId: id}, policy{attempts: 8, within: 15 * time.Second})
	if is(err, codes.NotFound, codes.FailedPrecondition) {
		return nil
	}
	return err
}

// named returns the id of the running sandbox of that name, if its opening label is
// this.
func (a *api) named(ctx context.Context, name, label string) (string, error) {
	found, err := call(ctx, a, "find sandbox "+name, a.SandboxGetFromNameV2, &wire.SandboxGetFromNameRequest{
		SandboxName: name, EnvironmentName: a.Environment, AppName: appName,
	}, policy{})
	if err != nil {
		return "", err
	}
	tags, err := call(ctx, a, "find sandbox "+name, a.SandboxTagsGetV2, &wire.SandboxTagsGetRequest{SandboxId: found.GetSandboxId()}, policy{})
	if err != nil {
		return "", err
	}
	if untag(tags.GetTags())[opening.Label] != label {
		return "", &sandbox.Error{Code: sandbox.CodeNotFound, Op: "find sandbox " + name, Msg: "it is another's"}
	}
	return found.GetSandboxId(), nil
}

// list returns the running sandboxes with those labels.
func (a *api) list(ctx context.Context, labels map[string]string) ([]sandbox.Listed, error) {
	app, err := a.app(ctx, false)
	if is(err, codes.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []sandbox.Listed
	q := &wire.SandboxListRequest{AppId: app, Tags: tag(labels)}
	var pages rest.Pages
	for {
		page, err := call(ctx, a, "list sandboxes", a.SandboxListV2, q, policy{})
		if err != nil {
			return nil, err
		}
		last := q.BeforeTimestamp
		for _, info := range page.GetSandboxes() {
			q.BeforeTimestamp = info.GetCreatedAt()
			if have := untag(info.GetTags()); carries(have, labels) && info.GetId() != "" && info.GetTaskInfo().GetResult() == nil {
				found = append(found, listed(info, have))
			}
		}
		if len(page.GetSandboxes()) == 0 || last != 0 && q.BeforeTimestamp >= last {
			return found, nil
		}
		if err := pages.Next("list sandboxes", "Modal", fmt.Sprint(q.BeforeTimestamp)); err != nil {
			return nil, err
		}
	}
}

func listed(info *wire.SandboxInfo, labels map[string]string) sandbox.Listed {
	l := sandbox.Listed{ID: info.GetId(), Name: info.GetName(), State: "running", Labels: labels}
	if at := info.GetCreatedAt(); at > 0 && at < 1e11 {
		l.Created = time.UnixMicro(int64(at * 1e6))
		if s := info.GetTimeoutSecs(); s > 0 {
			l.Expires = l.Created.Add(time.Duration(s) * time.Second)
		}
	}
	return l
}

func tag(labels map[string]string) []*wire.SandboxTag {
	var tags []*wire.SandboxTag
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		tags = append(tags, &wire.SandboxTag{TagName: name, TagValue: labels[name]})
	}
	return tags
}

func untag(tags []*wire.SandboxTag) map[string]string {
	labels := make(map[string]string)
	for _, t := range tags {
		labels[t.GetTagName()] = t.GetTagValue()
	}
	return labels
}

func carries(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

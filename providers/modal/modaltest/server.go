// Package modaltest is Modal in one process: its control plane and the command
// router over gRPC on one port, with a private directory and real processes for
// every sandbox. Sandboxes report their true directories, so commands and file
// calls agree.
//
// A fault's Op is the name of the gRPC method: SandboxCreateV2, TaskExecStart and
// so on. Its Status is an HTTP status, answered as the code that Modal has for
// it, and its Body the message; the header Retry-After, in seconds, becomes
// Modal's retry policy.
package modaltest

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/modal/internal/wire"
	"github.com/talkops-ai/talkops/sdk/machine"
)

// A Config sets up a Server. The zero value is useful.
type Config struct {
	TokenID     string           // accepted; empty is "ak-test"
	TokenSecret string           // accepted; empty is "as-test-secret"
	StartDelay  time.Duration    // how long creating a sandbox takes
	PageSize    int              // of lists; 0 is 100
	Old         bool             // sandboxes belong to the older backend, as their ids say
	Now         func() time.Time // the clock of lifetimes; nil is time.Now
}

// A Server is the emulated service. It is safe for concurrent use.
type Server struct {
	emulate.Log
	emulate.Mood[Behaviour]
	cfg      Config
	listener net.Listener
	grpc     *grpc.Server

	mu      sync.Mutex
	boxes   []*box
	images  map[string]*image
	names   map[string]string // image ids by name and tag
	apps    map[string]string // app ids by name
	created map[string]string // sandbox ids by idempotency key
	last    int
	stamp   time.Time // of the sandbox created last
}

// A Behaviour is what is wrong with the whole service. The zero value is health.
type Behaviour struct {
	ExitsAtOnce     bool          // sandboxes end as soon as they exist
	NeverReady      bool          // sandboxes are queued for ever
	BuildFails      string        // images fail to build, with this text
	SlowBuild       time.Duration // images take so long to build
	ExpiredKey      bool          // the token pair is refused
	NoIdempotency   bool          // repeated creations are not known by their key
	NoRouterAccess  bool          // creations answer without the router's address
	NoExitStatus    bool          // commands end without a status
	OpenStreams     bool          // output streams do not end with their command
	LateOutput      time.Duration // output is held back so long after the command's end
	RouterURL       string        // what is given out instead of the router's address
	ForgetfulRouter bool          // TaskExecStart is answered and nothing is started
}

// Request, Fault: see package emulate.
type (
	Request = emulate.Request
	Fault   = emulate.Fault
)

// Start starts a server on a loopback port. Close ends it.
func Start(cfg Config) (*Server, error) {
	cfg.TokenID = cmp.Or(cfg.TokenID, "ak-test")
	cfg.TokenSecret = cmp.Or(cfg.TokenSecret, "as-test-secret")
	cfg.PageSize = cmp.Or(cfg.PageSize, 100)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, listener: listener,
		images: map[string]*image{}, names: map[string]string{}, apps: map[string]string{}, created: map[string]string{},
	}
	const most = 100 << 20
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(most), grpc.MaxSendMsgSize(most),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream),
	)
	wire.RegisterModalClientServer(s.grpc, &control{Server: s})
	wire.RegisterTaskCommandRouterServer(s.grpc, &router{Server: s})
	go s.grpc.Serve(s.Wire(listener))
	return s, nil
}

// New starts a server that ends with the test. At most one Config may be given.
func New(tb testing.TB, cfg ...Config) *Server {
	tb.Helper()
	return emulate.New(tb, Start, cfg...)
}

// Close ends every sandbox and the server.
func (s *Server) Close() {
	if !s.Shut() {
		return
	}
	s.mu.Lock()
	boxes := slices.Clone(s.boxes)
	s.mu.Unlock()
	emulate.EndAll(boxes, (*box).halt)
	s.grpc.Stop()
	for _, i := range s.images {
		if i.tree != nil {
			i.tree.Close()
		}
	}
}

// URL returns the address of the control plane, for the setting server_url.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Settings returns what a Spec needs to reach the server. No profile file is read.
func (s *Server) Settings() map[string]string {
	return map[string]string{
		"token_id":     s.cfg.TokenID,
		"token_secret": s.cfg.TokenSecret,
		"server_url":   s.URL(),
		"config_path":  "/nonexistent/modal.toml",
	}
}

// Heal takes back all faults and makes the service healthy.
func (s *Server) Heal() {
	s.Log.Heal()
	s.Behave(Behaviour{})
}

// Boxes returns the ids of the sandboxes that have not ended.
func (s *Server) Boxes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, b := range s.boxes {
		if s.settle(b); b.ended == nil {
			ids = append(ids, b.id)
		}
	}
	return ids
}

// Running returns how many sandboxes cost money.
func (s *Server) Running() int { return len(s.Boxes()) }

// Sandbox tells what a sandbox was created with, as JSON fields of Modal's
// definition beside "tags", "app" and "state".
func (s *Server) Sandbox(id string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.find(id)
	if b == nil {
		return nil
	}
	fields := map[string]any{}
	if data, err := protojson.Marshal(b.asked.GetDefinition()); err == nil {
		json.Unmarshal(data, &fields)
	}
	tags := map[string]string{}
	for _, t := range b.tags {
		tags[t.GetTagName()] = t.GetTagValue()
	}
	fields["tags"], fields["app"], fields["state"] = tags, b.app, "running"
	if b.ended != nil {
		fields["state"] = strings.ToLower(strings.TrimPrefix(b.ended.GetStatus().String(), "GENERIC_STATUS_"))
	}
	return fields
}

// SetState ends a sandbox as "terminated", "timeout", "idle_timeout", "failure"
// or "memory_manager_eviction".
func (s *Server) SetState(id, state string) {
	s.mu.Lock()
	b := s.find(id)
	if b != nil {
		s.finish(b, wire.GenericResult_GenericStatus(wire.GenericResult_GenericStatus_value["GENERIC_STATUS_"+strings.ToUpper(state)]))
	}
	s.mu.Unlock()
	if b != nil {
		b.halt()
	}
}

// Vanish removes a sandbox as if it had never been.
func (s *Server) Vanish(id string) {
	s.mu.Lock()
	b := s.find(id)
	s.boxes = slices.DeleteFunc(s.boxes, func(x *box) bool { return x == b })
	s.mu.Unlock()
	if b != nil {
		b.halt()
	}
}

// LoseCommands makes the router of a sandbox forget its commands, which end.
func (s *Server) LoseCommands(id string) {
	s.mu.Lock()
	b := s.find(id)
	s.mu.Unlock()
	if b != nil {
		b.forget()
	}
}

// ExpireRouter makes the router of a sandbox refuse the tokens given out so far.
func (s *Server) ExpireRouter(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.find(id); b != nil {
		b.token++
	}
}

// token makes something that is read as a JWT.
func token(claims map[string]any) string {
	part := func(v any) string {
		data, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(data)
	}
	return part(map[string]string{"alg": "none"}) + "." + part(claims) + ".c2ln"
}

// admit checks that a request has the right to be answered.
func (s *Server) admit(ctx context.Context, method string) error {
	md, _ := metadata.FromIncomingContext(ctx)
	first := func(key string) string { return append(md.Get(key), "")[0] }
	if strings.HasPrefix(method, "/modal.task_command_router.") {
		claims := strings.Split(strings.TrimPrefix(first("authorization"), "Bearer "), ".")
		if len(claims) != 3 {
			return status.Error(codes.Unauthenticated, "Missing or malformed token")
		}
		var c struct {
			Task  string `json:"task"`
			Token int    `json:"n"`
		}
		data, _ := base64.RawURLEncoding.DecodeString(claims[1])
		if json.Unmarshal(data, &c) != nil {
			return status.Error(codes.Unauthenticated, "Malformed token")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, b := range s.boxes {
			if b.task == c.Task && b.token != c.Token {
				return status.Error(codes.Unauthenticated, "Token has expired")
			}
		}
		return nil
	}
	if s.Behaviour().ExpiredKey || first("x-modal-token-id") != s.cfg.TokenID || first("x-modal-token-secret") != s.cfg.TokenSecret {
		return status.Error(codes.Unauthenticated, "Token missing or invalid")
	}
	if op := path.Base(method); op != "AuthTokenGet" && op != "ImageJoinStreaming" && first("x-modal-auth-token") == "" {
		return status.Error(codes.Unauthenticated, "Auth token missing")
	}
	return nil
}

// begin logs a request and returns the fault that meets it.
func (s *Server) begin(ctx context.Context, method string, req any) (*Fault, func(error)) {
	entry := Request{Op: path.Base(method), Method: "POST", Path: method, Header: http.Header{}}
	md, _ := metadata.FromIncomingContext(ctx)
	for key, values := range md {
		entry.Header[http.CanonicalHeaderKey(key)] = values
	}
	if m, ok := req.(proto.Message); ok && entry.Op != "TaskExecStdinWrite" {
		data, _ := protojson.Marshal(m)
		entry.Body = string(data)
	}
	fault, end := s.Begin(entry)
	return fault, func(err error) { end(httpStatus(status.Code(err))) }
}

func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
	fault, end := s.begin(ctx, info.FullMethod, req)
	defer func() { end(err) }()
	if err := s.admit(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	switch {
	case fault == nil:
		return handle(ctx, req)
	case fault.Status != 0:
		return nil, refusal(fault)
	case fault.Hang:
		s.hang(ctx)
	default:
		// What is cut off within a message is no message.
		handle(ctx, req)
		if fault.Hold {
			s.hang(ctx)
		}
	}
	return nil, broken
}

var broken = status.Error(codes.Unavailable, "error reading from server: connection reset by peer")

func (s *Server) hang(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.Done():
	}
}

func (s *Server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	fault, end := s.begin(ss.Context(), info.FullMethod, nil)
	defer func() { end(err) }()
	if err := s.admit(ss.Context(), info.FullMethod); err != nil {
		return err
	}
	switch {
	case fault == nil:
		return handle(srv, ss)
	case fault.Status != 0:
		return refusal(fault)
	case fault.Hang, fault.Hold && info.IsServerStream:
		s.hang(ss.Context())
	case fault.Late && info.IsServerStream:
	case fault.Cut > 0:
		return handle(srv, &cutStream{ServerStream: ss, left: fault.Cut})
	default:
		handle(srv, ss)
		if fault.Hold {
			s.hang(ss.Context())
		}
	}
	return broken
}

// A cutStream breaks off after so many bytes of data.
type cutStream struct {
	grpc.ServerStream
	left int64
}

func (c *cutStream) SendMsg(m any) error {
	if r, ok := m.(*wire.TaskExecStdioReadResponse); ok {
		if int64(len(r.Data)) >= c.left {
			c.ServerStream.SendMsg(&wire.TaskExecStdioReadResponse{Data: r.Data[:c.left]})
			return broken
		}
		c.left -= int64(len(r.Data))
	}
	return c.ServerStream.SendMsg(m)
}

func (c *cutStream) RecvMsg(m any) error {
	if err := c.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if r, ok := m.(*wire.TaskExecStdinWriteStreamRequest); ok {
		if c.left -= int64(len(r.GetData())); c.left <= 0 {
			return broken
		}
	}
	return nil
}

// statuses pairs HTTP statuses with the codes Modal has for them.
var statuses = []struct {
	http int
	code codes.Code
}{
	{200, codes.OK},
	{400, codes.InvalidArgument},
	{401, codes.Unauthenticated},
	{403, codes.PermissionDenied},
	{404, codes.NotFound},
	{408, codes.DeadlineExceeded},
	{504, codes.DeadlineExceeded},
	{409, codes.AlreadyExists},
	{412, codes.FailedPrecondition},
	{410, codes.FailedPrecondition},
	{429, codes.ResourceExhausted},
	{499, codes.Canceled},
	{500, codes.Internal},
	{501, codes.Unimplemented},
	{503, codes.Unavailable},
	{502, codes.Unavailable},
	{520, codes.Unknown},
}

func httpStatus(code codes.Code) int {
	for _, row := range statuses {
		if row.code == code {
			return row.http
		}
	}
	return 500
}

// refusal is the error that f asks for.
func refusal(f *Fault) error {
	code := codes.Unknown
	for _, row := range statuses {
		if row.http == f.Status && row.code != codes.OK {
			code = row.code
		}
	}
	var body struct {
		Message string `json:"message"`
	}
	text := f.Body
	if json.Unmarshal([]byte(text), &body) == nil && body.Message != "" {
		text = body.Message
	}
	st := status.New(code, cmp.Or(text, strings.ToLower(http.StatusText(f.Status)), "refused"))
	for key, value := range f.Header {
		if seconds, err := strconv.ParseFloat(value, 32); err == nil && strings.EqualFold(key, "Retry-After") {
			if with, err := st.WithDetails(&wire.RPCRetryPolicy{RetryAfterSecs: float32(seconds)}); err == nil {
				st = with
			}
		}
	}
	return st.Err()
}

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// number makes the next identity of n characters. The caller holds mu.
func (s *Server) number(prefix string, n int) string {
	s.last++
	text := []byte(strings.Repeat("0", n))
	for i, k := n-1, s.last+1000; i >= 0 && k > 0; i, k = i-1, k/len(alphabet) {
		text[i] = alphabet[k%len(alphabet)]
	}
	return prefix + string(text)
}

func copyHome(from, to *machine.Machine) error {
	run, err := to.Start(machine.Process{Args: []string{"cp", "-a", from.Dir() + "/.", to.Dir()}})
	if err != nil {
		return err
	}
	if exit, err := run.Wait(); exit != 0 || err != nil {
		return errors.Join(errors.New("cp failed"), err)
	}
	return nil
}

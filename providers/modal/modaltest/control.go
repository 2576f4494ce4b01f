package modaltest

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/talkops-ai/talkops/providers/modal/internal/wire"
	"github.com/talkops-ai/talkops/sdk/machine"
)

// control is the control plane.
type control struct {
	wire.UnimplementedModalClientServer
	*Server
}

// A box is one sandbox. Its fields are guarded by Server.mu, the commands by mu.
type box struct {
	id, task string
	app      string
	asked    *wire.SandboxCreateV2Request
	tags     []*wire.SandboxTag
	created  time.Time
	active   time.Time // when it was last used
	queued   bool
	ended    *wire.GenericResult
	token    int // the number of the router tokens that are accepted
	machine  *machine.Machine
	over     chan struct{} // closed when it has ended
	once     sync.Once

	mu       sync.Mutex
	commands map[string]*command
}

// An image is what sandboxes start from.
type image struct {
	tree  *machine.Machine // of a snapshot
	built time.Time
	fails string
}

func (c *control) AuthTokenGet(context.Context, *wire.AuthTokenGetRequest) (*wire.AuthTokenGetResponse, error) {
	return &wire.AuthTokenGetResponse{Token: token(map[string]any{"exp": time.Now().Add(20 * time.Minute).Unix()})}, nil
}

func (c *control) AppGetOrCreate(_ context.Context, r *wire.AppGetOrCreateRequest) (*wire.AppGetOrCreateResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := r.GetEnvironmentName() + "/" + r.GetAppName()
	if c.apps[key] == "" {
		if r.GetObjectCreationType() != wire.ObjectCreationType_OBJECT_CREATION_TYPE_CREATE_IF_MISSING {
			return nil, status.Errorf(codes.NotFound, "App '%s' not found", r.GetAppName())
		}
		c.apps[key] = c.number("ap-", 22)
	}
	return &wire.AppGetOrCreateResponse{AppId: c.apps[key]}, nil
}

func (c *control) EnvironmentGetOrCreate(_ context.Context, r *wire.EnvironmentGetOrCreateRequest) (*wire.EnvironmentGetOrCreateResponse, error) {
	name := r.GetDeploymentName()
	if name == "" {
		name = "main"
	}
	return &wire.EnvironmentGetOrCreateResponse{
		EnvironmentId: "en-" + name,
		Metadata:      &wire.EnvironmentMetadata{Name: name, Settings: &wire.EnvironmentSettings{ImageBuilderVersion: "2025.06"}},
	}, nil
}

func (c *control) ImageGetOrCreate(_ context.Context, r *wire.ImageGetOrCreateRequest) (*wire.ImageGetOrCreateResponse, error) {
	commands := r.GetImage().GetDockerfileCommands()
	if len(commands) == 0 || !strings.HasPrefix(commands[0], "FROM ") || r.GetBuilderVersion() == "" || r.GetAppId() == "" {
		return nil, status.Error(codes.InvalidArgument, "Image definition is incomplete")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := fnv.New64a()
	fmt.Fprint(h, commands)
	made := &image{fails: c.Behaviour().BuildFails, built: time.Now().Add(c.Behaviour().SlowBuild)}
	for _, base := range r.GetImage().GetBaseImages() {
		below := c.images[base.GetImageId()]
		if below == nil {
			return nil, status.Errorf(codes.NotFound, "Image %s not found", base.GetImageId())
		}
		made.tree = below.tree
		fmt.Fprint(h, base.GetImageId())
	}
	id := fmt.Sprintf("im-%022d", h.Sum64())
	if have := c.images[id]; have != nil && have.fails == "" {
		made = have
	}
	c.images[id] = made
	return &wire.ImageGetOrCreateResponse{ImageId: id, Result: made.result()}, nil
}

// result is nil while the image is being built.
func (i *image) result() *wire.GenericResult {
	switch {
	case time.Now().Before(i.built):
		return nil
	case i.fails != "":
		return &wire.GenericResult{Status: wire.GenericResult_GENERIC_STATUS_FAILURE, Exception: i.fails}
	}
	return &wire.GenericResult{Status: wire.GenericResult_GENERIC_STATUS_SUCCESS}
}

func (c *control) ImageJoinStreaming(r *wire.ImageJoinStreamingRequest, out wire.ModalClient_ImageJoinStreamingServer) error {
	c.mu.Lock()
	i := c.images[r.GetImageId()]
	c.mu.Unlock()
	if i == nil {
		return status.Errorf(codes.NotFound, "Image %s not found", r.GetImageId())
	}
	out.Send(&wire.ImageJoinStreamingResponse{EntryId: "1-0", TaskLogs: []*wire.TaskLogs{{Data: "building\n"}}})
	select {
	case <-time.After(min(time.Until(i.built), time.Duration(r.GetTimeout()*float32(time.Second)))):
	case <-out.Context().Done():
		return status.FromContextError(out.Context().Err()).Err()
	}
	if result := i.result(); result != nil {
		return out.Send(&wire.ImageJoinStreamingResponse{Result: result, EntryId: "2-0"})
	}
	return nil
}

func (c *control) ImageFromId(_ context.Context, r *wire.ImageFromIdRequest) (*wire.ImageFromIdResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.images[r.GetImageId()] == nil {
		return nil, status.Errorf(codes.NotFound, "Image %s not found", r.GetImageId())
	}
	return &wire.ImageFromIdResponse{ImageId: r.GetImageId()}, nil
}

func (c *control) ImageGetByTag(_ context.Context, r *wire.ImageGetByTagRequest) (*wire.ImageGetByTagResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.names[r.GetEnvironmentName()+"|"+r.GetTag()]
	if c.images[id] == nil {
		return nil, status.Errorf(codes.NotFound, "Image '%s' not found", r.GetTag())
	}
	return &wire.ImageGetByTagResponse{ImageId: id}, nil
}

func (c *control) ImagePublish(_ context.Context, r *wire.ImagePublishRequest) (*wire.ImagePublishResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.images[r.GetImageId()] == nil {
		return nil, status.Errorf(codes.NotFound, "Image %s not found", r.GetImageId())
	}
	if !strings.Contains(r.GetTag(), ":") {
		return nil, status.Error(codes.InvalidArgument, "The name has no tag")
	}
	c.names[r.GetEnvironmentName()+"|"+r.GetTag()] = r.GetImageId()
	return &wire.ImagePublishResponse{ImageId: r.GetImageId(), RevisionId: c.number("re-", 22)}, nil
}

func (c *control) ImageDelete(_ context.Context, r *wire.ImageDeleteRequest) (*wire.Empty, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.images[r.GetImageId()] == nil {
		return nil, status.Errorf(codes.NotFound, "Image %s not found", r.GetImageId())
	}
	delete(c.images, r.GetImageId())
	return &wire.Empty{}, nil
}

// SandboxCreateV2 answers when the sandbox has been scheduled. Who goes away
// before that leaves it behind.
func (c *control) SandboxCreateV2(ctx context.Context, r *wire.SandboxCreateV2Request) (*wire.SandboxCreateV2Response, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	key := append(md.Get("x-idempotency-key"), "")[0]
	b, err := c.create(r, key)
	if err != nil {
		return nil, err
	}
	wait := c.cfg.StartDelay
	if c.Behaviour().NeverReady {
		wait = 24 * time.Hour
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-b.over:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	case <-c.Done():
		return nil, broken
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b.queued = c.Behaviour().NeverReady
	answer := &wire.SandboxCreateV2Response{SandboxId: b.id, TaskId: b.task}
	if !c.Behaviour().NoRouterAccess {
		access := c.access(b)
		answer.CommandRouterAccess = &wire.CommandRouterAccess{Jwt: access.Jwt, Url: access.Url}
	}
	return answer, nil
}

func (c *control) create(r *wire.SandboxCreateV2Request, key string) (*box, error) {
	def := r.GetDefinition()
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := c.created[key]; id != "" && key != "" && !c.Behaviour().NoIdempotency {
		if b := c.find(id); b != nil {
			return b, nil
		}
	}
	from := c.images[def.GetImageId()]
	switch {
	case from == nil:
		return nil, status.Errorf(codes.NotFound, "Image '%s' not found", def.GetImageId())
	case r.GetAppId() == "":
		return nil, status.Error(codes.InvalidArgument, "app_id is required")
	case def.GetTimeoutSecs() > 86400:
		return nil, status.Error(codes.InvalidArgument, "Timeout must be at most 24 hours")
	case len(def.GetName()) > 64:
		return nil, status.Error(codes.InvalidArgument, "Name is too long")
	}
	if name := def.GetName(); name != "" {
		for _, b := range c.boxes {
			if c.settle(b); b.ended == nil && b.app == r.GetAppId() && b.asked.GetDefinition().GetName() == name {
				return nil, status.Errorf(codes.AlreadyExists, "Sandbox with name '%s' already exists", name)
			}
		}
	}
	m, err := machine.New("")
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if from.tree != nil {
		if err := copyHome(from.tree, m); err != nil {
			m.Close()
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	if def.TimeoutSecs == 0 {
		def.TimeoutSecs = 300
	}
	now := c.cfg.Now()
	if !now.After(c.stamp) {
		now = c.stamp
	}
	c.stamp = now.Add(10 * time.Microsecond) // lists are cut by time
	b := &box{
		app: r.GetAppId(), asked: r, tags: r.GetTags(), created: now, active: now, queued: true,
		machine: m, over: make(chan struct{}), commands: map[string]*command{},
	}
	b.id, b.task = c.number("sb-", 26), c.number("ta-", 26)
	if c.cfg.Old {
		b.id = c.number("sb-", 22)
	}
	if !c.Behaviour().NeverReady {
		b.queued = c.cfg.StartDelay > 0
	}
	c.boxes = append(c.boxes, b)
	if key != "" {
		c.created[key] = b.id
	}
	if c.Behaviour().ExitsAtOnce {
		c.finish(b, wire.GenericResult_GENERIC_STATUS_FAILURE)
		b.ended.Exitcode = 127
		go b.halt()
	}
	return b, nil
}

// find returns the sandbox with that id. The caller holds mu.
func (s *Server) find(id string) *box {
	for _, b := range s.boxes {
		if b.id == id {
			s.settle(b)
			return b
		}
	}
	return nil
}

// settle lets time pass for b. The caller holds mu.
func (s *Server) settle(b *box) {
	if b.ended != nil {
		return
	}
	now, def := s.cfg.Now(), b.asked.GetDefinition()
	if b.busy() {
		b.active = now
	}
	switch {
	case now.Sub(b.created) >= time.Duration(def.GetTimeoutSecs())*time.Second:
		s.finish(b, wire.GenericResult_GENERIC_STATUS_TIMEOUT)
	case def.GetIdleTimeoutSecs() > 0 && now.Sub(b.active) >= time.Duration(def.GetIdleTimeoutSecs())*time.Second:
		s.finish(b, wire.GenericResult_GENERIC_STATUS_IDLE_TIMEOUT)
	default:
		return
	}
	go b.halt()
}

// finish notes the end of b. The caller holds mu and calls halt later.
func (s *Server) finish(b *box, how wire.GenericResult_GenericStatus) {
	if b.ended == nil {
		b.ended = &wire.GenericResult{Status: how}
	}
}

// halt ends everything in b and removes its tree.
func (b *box) halt() {
	b.once.Do(func() {
		close(b.over)
		b.machine.Close()
		b.forget()
	})
}

// one returns the sandbox that a request of a backend names.
func (c *control) one(id string, old bool) (*box, error) {
	b := c.find(id)
	if b == nil || c.cfg.Old != old {
		return nil, status.Errorf(codes.NotFound, "Sandbox with ID %s not found", id)
	}
	return b, nil
}

func (c *control) SandboxGetTaskIdV2(_ context.Context, r *wire.SandboxGetTaskIdRequest) (*wire.SandboxGetTaskIdResponse, error) {
	return c.taskOf(r, false)
}

func (c *control) SandboxGetTaskId(_ context.Context, r *wire.SandboxGetTaskIdRequest) (*wire.SandboxGetTaskIdResponse, error) {
	return c.taskOf(r, true)
}

func (c *control) taskOf(r *wire.SandboxGetTaskIdRequest, old bool) (*wire.SandboxGetTaskIdResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, err := c.one(r.GetSandboxId(), old)
	switch {
	case err != nil:
		return nil, err
	case b.ended != nil:
		return &wire.SandboxGetTaskIdResponse{TaskResult: b.ended}, nil
	case b.queued:
		return &wire.SandboxGetTaskIdResponse{}, nil
	}
	return &wire.SandboxGetTaskIdResponse{TaskId: &b.task}, nil
}

func (c *control) SandboxGetCommandRouterAccess(_ context.Context, r *wire.SandboxGetCommandRouterAccessRequest) (*wire.SandboxGetCommandRouterAccessResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, err := c.one(r.GetSandboxId(), false)
	if err != nil {
		return nil, err
	}
	if b.ended != nil {
		return nil, status.Error(codes.FailedPrecondition, "Sandbox has already finished")
	}
	return c.access(b), nil
}

func (c *control) TaskGetCommandRouterAccess(_ context.Context, r *wire.TaskGetCommandRouterAccessRequest) (*wire.TaskGetCommandRouterAccessResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.boxes {
		if b.task == r.GetTaskId() && b.ended == nil && c.cfg.Old {
			access := c.access(b)
			return &wire.TaskGetCommandRouterAccessResponse{Jwt: access.Jwt, Url: access.Url}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "Task %s not found", r.GetTaskId())
}

// access is what opens the router of b. The caller holds mu.
func (s *Server) access(b *box) *wire.SandboxGetCommandRouterAccessResponse {
	url := s.Behaviour().RouterURL
	if url == "" {
		// Modal's clients want https and speak in the clear to this computer.
		url = "https://" + s.listener.Addr().String()
	}
	return &wire.SandboxGetCommandRouterAccessResponse{Jwt: token(map[string]any{"task": b.task, "n": b.token}), Url: url}
}

func (c *control) SandboxWaitV2(ctx context.Context, r *wire.SandboxWaitRequest) (*wire.SandboxWaitResponse, error) {
	return c.wait(ctx, r, false)
}

func (c *control) SandboxWait(ctx context.Context, r *wire.SandboxWaitRequest) (*wire.SandboxWaitResponse, error) {
	return c.wait(ctx, r, true)
}

func (c *control) wait(ctx context.Context, r *wire.SandboxWaitRequest, old bool) (*wire.SandboxWaitResponse, error) {
	end := time.Now().Add(time.Duration(r.GetTimeout() * float32(time.Second)))
	for {
		c.mu.Lock()
		b, err := c.one(r.GetSandboxId(), old)
		answer := &wire.SandboxWaitResponse{}
		if err == nil {
			answer.Result, answer.Metadata = b.ended, &wire.SandboxHandleMetadata{AppId: b.app}
		}
		c.mu.Unlock()
		if err != nil {
			return nil, err
		}
		left := time.Until(end)
		if answer.Result != nil || left <= 0 {
			return answer, nil
		}
		select {
		case <-b.over:
		case <-time.After(min(left, 100*time.Millisecond)):
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

func (c *control) SandboxTerminateV2(_ context.Context, r *wire.SandboxTerminateRequest) (*wire.SandboxTerminateResponse, error) {
	return c.terminate(r, false)
}

func (c *control) SandboxTerminate(_ context.Context, r *wire.SandboxTerminateRequest) (*wire.SandboxTerminateResponse, error) {
	return c.terminate(r, true)
}

func (c *control) terminate(r *wire.SandboxTerminateRequest, old bool) (*wire.SandboxTerminateResponse, error) {
	c.mu.Lock()
	b, err := c.one(r.GetSandboxId(), old)
	if err != nil {
		c.mu.Unlock()
		return nil, err
	}
	before := b.ended
	c.finish(b, wire.GenericResult_GENERIC_STATUS_TERMINATED)
	c.mu.Unlock()
	b.halt()
	return &wire.SandboxTerminateResponse{ExistingResult: before}, nil
}

// SandboxListV2 lists the newest first.
func (c *control) SandboxListV2(_ context.Context, r *wire.SandboxListRequest) (*wire.SandboxListResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := &wire.SandboxListResponse{}
	for _, b := range slices.Backward(c.boxes) {
		created := float64(b.created.UnixNano()) / 1e9
		switch c.settle(b); {
		case b.ended != nil && !r.GetIncludeFinished(),
			r.GetAppId() != "" && b.app != r.GetAppId(),
			r.GetBeforeTimestamp() > 0 && created >= r.GetBeforeTimestamp(),
			!carries(b.tags, r.GetTags()):
			continue
		}
		if len(answer.Sandboxes) == c.cfg.PageSize {
			break
		}
		def := b.asked.GetDefinition()
		answer.Sandboxes = append(answer.Sandboxes, &wire.SandboxInfo{
			Id: b.id, CreatedAt: created, AppId: b.app, Tags: b.tags, Name: def.GetName(), ImageId: def.GetImageId(),
			TimeoutSecs: def.GetTimeoutSecs(), IdleTimeoutSecs: def.IdleTimeoutSecs,
			TaskInfo: &wire.TaskInfo{Id: b.task, StartedAt: created, Result: b.ended},
		})
	}
	return answer, nil
}

func carries(have, want []*wire.SandboxTag) bool {
	for _, w := range want {
		if !slices.ContainsFunc(have, func(h *wire.SandboxTag) bool {
			return h.GetTagName() == w.GetTagName() && h.GetTagValue() == w.GetTagValue()
		}) {
			return false
		}
	}
	return true
}

func (c *control) SandboxGetFromNameV2(_ context.Context, r *wire.SandboxGetFromNameRequest) (*wire.SandboxGetFromNameResponse, error) {
	return c.named(r, false)
}

func (c *control) SandboxGetFromName(_ context.Context, r *wire.SandboxGetFromNameRequest) (*wire.SandboxGetFromNameResponse, error) {
	return c.named(r, true)
}

func (c *control) named(r *wire.SandboxGetFromNameRequest, old bool) (*wire.SandboxGetFromNameResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	app := c.apps[r.GetEnvironmentName()+"/"+r.GetAppName()]
	for _, b := range c.boxes {
		if c.settle(b); b.app == app && b.ended == nil && b.asked.GetDefinition().GetName() == r.GetSandboxName() && c.cfg.Old == old {
			return &wire.SandboxGetFromNameResponse{SandboxId: b.id}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "Sandbox with name '%s' not found", r.GetSandboxName())
}

func (c *control) SandboxTagsSetV2(_ context.Context, r *wire.SandboxTagsSetRequest) (*wire.Empty, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.find(r.GetSandboxId())
	if b == nil {
		return nil, status.Errorf(codes.NotFound, "Sandbox with ID %s not found", r.GetSandboxId())
	}
	b.tags = r.GetTags()
	return &wire.Empty{}, nil
}

func (c *control) SandboxTagsGetV2(_ context.Context, r *wire.SandboxTagsGetRequest) (*wire.SandboxTagsGetResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.find(r.GetSandboxId())
	if b == nil {
		return nil, status.Errorf(codes.NotFound, "Sandbox with ID %s not found", r.GetSandboxId())
	}
	return &wire.SandboxTagsGetResponse{Tags: b.tags}, nil
}

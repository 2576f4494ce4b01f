package runloop

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// api is Runloop's one plane.
type api struct {
	rest.Client
	blueprintID   string
	blueprintName string
}

// A machine is a devbox as Runloop shows it. Only ID and Status are sure to be there.
type machine struct {
	ID             string            `json:"id"`
	Name           string            `json:"name"`
	Status         string            `json:"status"`
	Metadata       map[string]string `json:"metadata"`
	Created        int64             `json:"create_time_ms"`
	FailureReason  string            `json:"failure_reason"`
	ShutdownReason string            `json:"shutdown_reason"`
	Launch         launch            `json:"launch_parameters"`
}

// A creation asks for a devbox.
type creation struct {
	Name        string            `json:"name,omitempty"`
	BlueprintID string            `json:"blueprint_id,omitempty"`
	SnapshotID  string            `json:"snapshot_id,omitempty"`
	Metadata    map[string]string `json:"metadata"`
	Launch      launch            `json:"launch_parameters"`
}

// launch says how long a devbox lives: KeepAlive seconds, or until it is idle.
type launch struct {
	KeepAlive int64      `json:"keep_alive_time_seconds,omitempty"`
	Lifecycle *lifecycle `json:"lifecycle,omitempty"`
}

type lifecycle struct {
	AfterIdle *afterIdle `json:"after_idle,omitempty"`
}

type afterIdle struct {
	Seconds int64  `json:"idle_time_seconds"`
	OnIdle  string `json:"on_idle"`
}

// idle reports whether the devbox ends when it is idle, which makes Runloop
// forget its lifetime.
func (l launch) idle() bool { return l.Lifecycle != nil && l.Lifecycle.AfterIdle != nil }

// created and expires are zero where they are not known.
func (m machine) created() time.Time {
	if m.Created <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(m.Created)
}

func (m machine) expires() time.Time {
	if m.Created <= 0 || m.Launch.KeepAlive <= 0 || m.Launch.idle() {
		return time.Time{}
	}
	return m.created().Add(time.Duration(m.Launch.KeepAlive) * time.Second)
}

// reason is why the devbox has ended, as Runloop gives it.
func (a *api) reason(m machine) string {
	reason := m.ShutdownReason
	if m.Status == "failure" || reason == "" {
		reason = m.FailureReason
	}
	if reason = strings.ReplaceAll(a.Show(reason), "_", " "); reason == "" {
		return "no reason given"
	}
	return reason
}

func classify(e *rest.StatusError) sandbox.Code {
	text := strings.ToLower(e.Message)
	switch {
	case e.Status == http.StatusTooManyRequests && rest.Quota(e.Message) && !strings.Contains(text, "rate"):
		return sandbox.CodeQuota
	case strings.Contains(text, "no space left"):
		return sandbox.CodeNoSpace
	}
	return ""
}

func (a *api) path(id string, rest ...string) string {
	return strings.Join(append([]string{"/v1/devboxes", url.PathEscape(id)}, rest...), "/")
}

// once names one call, so that Runloop does it once however often it is sent.
func once() http.Header { return http.Header{"X-Request-Id": {uuid()}} }

// uuid returns a UUID of version 7.
func uuid() string {
	var b [16]byte
	rand.Read(b[:])
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16|uint64(b[6])<<8|uint64(b[7]))
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	s := hex.EncodeToString(b[:])
	return strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-")
}

// machine sends r, whose answer is a devbox.
func (a *api) machine(ctx context.Context, r rest.Request) (machine, error) {
	var m machine
	err := a.JSON(ctx, r, &m)
	if err == nil && (m.ID == "" || m.Status == "") {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: r.Op, Msg: "Runloop's answer has no id or status"}
	}
	return m, err
}

// get returns the devbox with that id.
func (a *api) get(ctx context.Context, id string) (machine, error) {
	return a.machine(ctx, rest.Request{Op: "devbox " + id, Method: "GET", Path: a.path(id)})
}

// destroy shuts the devbox down. Runloop refuses that while it takes a snapshot;
// after a while it is told not to.
func (a *api) destroy(ctx context.Context, id string) error {
	return opening.End(ctx, func(n int) error {
		r := rest.Request{Op: "shut down devbox " + id, Method: "POST", Path: a.path(id, "shutdown"), Header: once(), Retry: rest.Always}
		if n > 3 {
			r.Query = url.Values{"force": {"true"}}
		}
		return a.JSON(ctx, r, nil)
	}, func() bool {
		m, err := a.get(ctx, id)
		return rest.Status(err) == http.StatusNotFound || err == nil && m.Status == "shutdown"
	}, http.StatusConflict, http.StatusBadRequest)
}

// statuses are those of devboxes that are not shut down, in the order they go
// through them.
var statuses = [...]string{"queued", "provisioning", "initializing", "running", "suspending", "suspended", "resuming", "failure"}

// list returns the devboxes with those labels that are not shut down. Runloop
// cannot filter by metadata.
func (a *api) list(ctx context.Context, labels map[string]string) ([]sandbox.Listed, error) {
	var found []sandbox.Listed
	for _, status := range statuses {
		err := each(ctx, a, "list devboxes", "/v1/devboxes", "devboxes", url.Values{"status": {status}}, func(m machine) {
			known := slices.ContainsFunc(found, func(l sandbox.Listed) bool { return l.ID == m.ID })
			if known || m.ID == "" || m.Status == "shutdown" || !carries(m.Metadata, labels) {
				return
			}
			found = append(found, sandbox.Listed{
				ID: m.ID, Name: m.Name, State: m.Status, Labels: m.Metadata, Created: m.created(), Expires: m.expires(),
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// each calls f with every item of a list that comes in pages under key.
func each[T interface{ identity() string }](ctx context.Context, a *api, op, path, key string, query url.Values, f func(T)) error {
	query.Set("limit", "100")
	query.Set("include_total_count", "false")
	var pages rest.Pages
	for {
		var page map[string]json.RawMessage
		if err := a.JSON(ctx, rest.Request{Op: op, Method: "GET", Path: path, Query: query}, &page); err != nil {
			return err
		}
		var items []T
		var more bool
		if json.Unmarshal(page[key], &items) != nil {
			return &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "Runloop answered with something that is no list"}
		}
		for _, item := range items {
			f(item)
		}
		if json.Unmarshal(page["has_more"], &more); !more || len(items) == 0 {
			return nil
		}
		last := items[len(items)-1].identity()
		if err := pages.Next(op, a.Vendor, last); err != nil {
			return err
		}
		query.Set("starting_after", last)
	}
}

func (m machine) identity() string { return m.ID }

func carries(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

package langsmith

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// api is the control plane.
type api struct {
	rest.Client
}

// A machine is a sandbox as the control plane shows it. Its name is its identity.
type machine struct {
	Name      string            `json:"name"`
	Status    string            `json:"status"`
	Message   string            `json:"status_message"`
	Dataplane string            `json:"dataplane_url"`
	Labels    map[string]string `json:"labels"`
	Created   string            `json:"created_at"`
}

// A creation asks for a sandbox. The durations are seconds, whole minutes.
type creation struct {
	Name     string            `json:"name"`
	Snapshot string            `json:"snapshot_id"`
	Labels   map[string]string `json:"labels"`
	Idle     int               `json:"idle_ttl_seconds"`
	Delete   int               `json:"delete_after_stop_seconds"` // after it has been stopped
	Wait     bool              `json:"wait_for_ready"`
}

// classify reads the control plane's refusals.
func classify(e *rest.StatusError) sandbox.Code {
	text := strings.ToLower(e.Message)
	switch {
	case e.Status == http.StatusForbidden:
		return sandbox.CodeUnauthenticated
	case e.Status == http.StatusTooManyRequests && e.RetryAfter == 0 && !strings.Contains(text, "rate limit"):
		// Without a hint when to come back it is the account's limit.
		for _, thing := range []string{"quota", "sandbox", "cpu", "memory", "storage"} {
			if strings.Contains(text, thing) {
				return sandbox.CodeQuota
			}
		}
	case e.Status == http.StatusUnprocessableEntity && e.Code != "" && !strings.HasSuffix(e.Code, "_error"):
		return sandbox.CodeUnavailable // the image or the start failed, not the request
	}
	return ""
}

// classifyData reads the refusals of a dataplane.
func classifyData(e *rest.StatusError) sandbox.Code {
	switch {
	case strings.Contains(strings.ToLower(e.Message), "no space left"):
		return sandbox.CodeNoSpace
	case e.Code == "NotReady":
		return sandbox.CodeUnavailable
	case e.Code == "WriteError", e.Code == "ReadError", e.Code == "CommandError":
		return sandbox.CodeInternal
	}
	return ""
}

// asleep reports whether a dataplane refused a request, without doing anything,
// because its sandbox is starting or has just been woken.
func asleep(err error) bool {
	e, ok := errors.AsType[*rest.StatusError](err)
	return ok && (e.Code == "NotReady" || e.Code == "ServiceUnavailable")
}

func (a *api) path(name string, rest ...string) string {
	return strings.Join(append([]string{"/boxes", url.PathEscape(name)}, rest...), "/")
}

// get returns the sandbox with that name or id.
func (a *api) get(ctx context.Context, name string) (machine, error) {
	var m machine
	err := a.JSON(ctx, rest.Request{Op: "sandbox " + name, Method: "GET", Path: a.path(name)}, &m)
	if err == nil && m.Name == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: "sandbox " + name, Msg: "LangSmith's answer has no name"}
	}
	return m, err
}

// destroy deletes the sandbox, which may be refused while it changes state: then
// it is asked again until ctx is done.
func (a *api) destroy(ctx context.Context, name string) error {
	return opening.End(ctx, func(int) error {
		return a.JSON(ctx, rest.Request{Op: "delete sandbox " + name, Method: "DELETE", Path: a.path(name)}, nil)
	}, func() bool {
		m, err := a.get(ctx, name)
		return rest.Status(err) == http.StatusNotFound || err == nil && ending(m.Status)
	}, http.StatusConflict, http.StatusBadRequest)
}

// list returns the sandboxes with those labels that are not already ending.
func (a *api) list(ctx context.Context, labels map[string]string) ([]sandbox.Listed, error) {
	query := url.Values{"page_size": {"100"}}
	for k, v := range labels {
		query.Add("label", k+"="+v)
	}
	var found []sandbox.Listed
	var pages rest.Pages
	for {
		var page struct {
			Items []machine `json:"items"`
			Next  string    `json:"next_cursor"`
		}
		if err := a.JSON(ctx, rest.Request{Op: "list sandboxes", Method: "GET", Path: "/boxes", Query: query}, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Items {
			if m.Name == "" || ending(m.Status) || !carries(m.Labels, labels) {
				continue
			}
			created, _ := time.Parse(time.RFC3339, m.Created)
			found = append(found, sandbox.Listed{ID: m.Name, Name: m.Name, State: m.Status, Labels: m.Labels, Created: created})
		}
		if page.Next == "" {
			return found, nil
		}
		if err := pages.Next("list sandboxes", a.Vendor, page.Next); err != nil {
			return nil, err
		}
		query.Set("cursor", page.Next)
	}
}

// dataplane returns a client for the plane of one sandbox.
func (a *api) dataplane(m machine) (*rest.Client, error) {
	// Only a service on this computer may name an address on this computer.
	if !rest.Trusted(m.Dataplane) || !strings.HasPrefix(m.Dataplane, "https:") && strings.HasPrefix(a.Base, "https:") {
		return nil, &sandbox.Error{Code: sandbox.CodeInternal, Op: "find dataplane", Msg: fmt.Sprintf("LangSmith gave an address that is not https: %q", a.Show(m.Dataplane))}
	}
	c := a.Client
	c.Base = strings.TrimSuffix(m.Dataplane, "/")
	c.Classify = classifyData
	c.Timeout = 40 * time.Second
	return &c, nil
}

func ending(status string) bool { return status == "deleting" }

func carries(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

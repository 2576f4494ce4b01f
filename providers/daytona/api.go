package daytona

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// api is the control plane.
type api struct {
	rest.Client
	key    string
	target string
}

// A machine is a sandbox as the control plane shows it.
type machine struct {
	ID              string            `json:"id"`
	Name            string            `json:"name"`
	State           string            `json:"state"`
	ErrorReason     string            `json:"errorReason"`
	Labels          map[string]string `json:"labels"`
	ToolboxProxyURL string            `json:"toolboxProxyUrl"`
	CreatedAt       time.Time         `json:"createdAt"`
	AutoDestroyAt   time.Time         `json:"autoDestroyAt"`
}

// UnmarshalJSON reads a sandbox; times that cannot be read are unknown.
func (m *machine) UnmarshalJSON(data []byte) error {
	type plain machine
	var wire struct {
		plain
		CreatedAt     string `json:"createdAt"`
		AutoDestroyAt string `json:"autoDestroyAt"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*m = machine(wire.plain)
	m.CreatedAt, _ = time.Parse(time.RFC3339, wire.CreatedAt)
	m.AutoDestroyAt, _ = time.Parse(time.RFC3339, wire.AutoDestroyAt)
	return nil
}

// A creation asks for a sandbox.
type creation struct {
	Name     string            `json:"name"`
	Snapshot string            `json:"snapshot,omitempty"`
	Build    *build            `json:"buildInfo,omitempty"`
	Labels   map[string]string `json:"labels"`
	Target   string            `json:"target,omitempty"`
	AutoStop int               `json:"autoStopInterval"`
	AutoDel  int               `json:"autoDeleteInterval"`
	TTL      int               `json:"ttlMinutes"`
}

type build struct {
	Dockerfile string `json:"dockerfileContent"`
}

func classify(e *rest.StatusError) sandbox.Code {
	switch {
	case e.Status == http.StatusForbidden && strings.Contains(strings.ToLower(e.Message), "suspended"):
		return sandbox.CodeQuota
	case e.Code == "FILE_NOT_FOUND":
		return sandbox.CodeFileNotFound
	case e.Code == "FILE_ACCESS_DENIED":
		return sandbox.CodePermissionDenied
	case strings.Contains(strings.ToLower(e.Message), "no space left"):
		return sandbox.CodeNoSpace
	case strings.HasPrefix(e.Message, "fork/exec ") && strings.HasSuffix(e.Message, ": no such file or directory"):
		return sandbox.CodeFileNotFound // the directory in which the toolbox starts shells
	}
	return ""
}

func (a *api) path(id string, rest ...string) string {
	return strings.Join(append([]string{"/sandbox", url.PathEscape(id)}, rest...), "/")
}

// get returns the sandbox with that id or name.
func (a *api) get(ctx context.Context, id string) (machine, error) {
	var m machine
	err := a.JSON(ctx, rest.Request{Op: "sandbox " + id, Method: "GET", Path: a.path(id)}, &m)
	if err == nil && m.ID == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: "sandbox " + id, Msg: "Daytona's answer has no id"}
	}
	return m, err
}

// destroy deletes the sandbox. Daytona refuses that while it changes state, so
// it is asked again until ctx is done.
func (a *api) destroy(ctx context.Context, id string) error {
	quick := a.Client // an answer that does not come is asked for again
	quick.Timeout = 8 * time.Second
	return opening.End(ctx, func(int) error {
		return quick.JSON(ctx, rest.Request{Op: "delete sandbox " + id, Method: "DELETE", Path: a.path(id)}, nil)
	}, func() bool {
		m, err := a.get(ctx, id)
		return rest.Status(err) == http.StatusNotFound || err == nil && ending(m.State)
	}, http.StatusConflict, http.StatusBadRequest)
}

// list returns the sandboxes with those labels that are not already ending.
func (a *api) list(ctx context.Context, labels map[string]string) ([]sandbox.Listed, error) {
	query := url.Values{"limit": {"200"}}
	if len(labels) > 0 {
		text, err := json.Marshal(labels)
		if err != nil {
			return nil, err
		}
		query.Set("labels", string(text))
	}
	var found []sandbox.Listed
	var pages rest.Pages
	for {
		var page struct {
			Items []machine `json:"items"`
			Next  string    `json:"nextCursor"`
		}
		if err := a.JSON(ctx, rest.Request{Op: "list sandboxes", Method: "GET", Path: "/sandbox", Query: query}, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Items {
			if m.ID == "" || ending(m.State) || !carries(m.Labels, labels) {
				continue
			}
			found = append(found, sandbox.Listed{
				ID: m.ID, Name: m.Name, State: m.State, Labels: m.Labels, Created: m.CreatedAt, Expires: m.AutoDestroyAt,
			})
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

// toolbox returns a client for the plane inside the sandbox.
func (a *api) toolbox(ctx context.Context, m machine) (*rest.Client, error) {
	base := m.ToolboxProxyURL
	if base == "" {
		var answer struct {
			URL string `json:"url"`
		}
		if err := a.JSON(ctx, rest.Request{Op: "find toolbox", Method: "GET", Path: a.path(m.ID, "toolbox-proxy-url")}, &answer); err != nil {
			return nil, err
		}
		base = answer.URL
	}
	// Only a service on this computer may name an address on this computer.
	if !rest.Trusted(base) || !strings.HasPrefix(base, "https:") && strings.HasPrefix(a.Base, "https:") {
		return nil, &sandbox.Error{Code: sandbox.CodeInternal, Op: "find toolbox", Msg: fmt.Sprintf("Daytona gave an address that is not https: %q", a.Show(base))}
	}
	c := a.Client
	c.Base = strings.TrimSuffix(base, "/") + "/" + url.PathEscape(m.ID)
	c.Timeout = 30 * time.Second
	return &c, nil
}

func ending(state string) bool { return state == "destroyed" || state == "destroying" }

// stopped reports whether a sandbox in that state runs nothing and stays so.
func stopped(state string) bool {
	return slices.Contains([]string{"stopped", "archived", "paused"}, state)
}

func failed(state string) bool { return state == "error" || state == "build_failed" }

func carries(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

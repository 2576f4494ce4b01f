package e2b

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// api is the control plane.
type api struct {
	rest.Client
	domain   string
	boxes    string // the address of all sandboxes; empty: by their domain
	template string
}

// A machine is a sandbox as the control plane shows it. Lists leave out what is
// needed to reach it.
type machine struct {
	ID       string            `json:"sandboxID"`
	State    string            `json:"state"` // "running" or "paused"
	Metadata map[string]string `json:"metadata"`
	Started  moment            `json:"startedAt"`
	Ends     moment            `json:"endAt"`

	Version string `json:"envdVersion"`
	Access  string `json:"envdAccessToken"`
	Traffic string `json:"trafficAccessToken"`
	Domain  string `json:"domain"`
}

// A moment is a time; one that cannot be read is unknown.
type moment struct{ time.Time }

// UnmarshalJSON reads a time.
func (m *moment) UnmarshalJSON(data []byte) error {
	var text string
	json.Unmarshal(data, &text)
	m.Time, _ = time.Parse(time.RFC3339, text)
	return nil
}

// A creation asks for a sandbox. Without an end of its own E2B's is seconds away.
type creation struct {
	Template string            `json:"templateID"`
	Timeout  int64             `json:"timeout"` // seconds
	Metadata map[string]string `json:"metadata"`
	Secure   bool              `json:"secure,omitempty"` // of the older call alone
}

func classify(e *rest.StatusError) sandbox.Code {
	text := strings.ToLower(e.Message)
	switch {
	case e.Status == http.StatusTooManyRequests && strings.Contains(text, "maximum number"):
		return sandbox.CodeQuota
	case e.Status == http.StatusConflict:
		return sandbox.CodeUnavailable // it changes state
	case strings.Contains(text, "no space left"):
		return sandbox.CodeNoSpace
	}
	return ""
}

func (a *api) path(id string, rest ...string) string {
	return strings.Join(append([]string{"/sandboxes", url.PathEscape(id)}, rest...), "/")
}

// machine sends r, whose answer is a sandbox.
func (a *api) machine(ctx context.Context, r rest.Request) (machine, error) {
	var m machine
	err := a.JSON(ctx, r, &m)
	if err == nil && m.ID == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: r.Op, Msg: "E2B's answer has no id"}
	}
	return m, err
}

// get returns the sandbox with that id.
func (a *api) get(ctx context.Context, id string) (machine, error) {
	return a.machine(ctx, rest.Request{Op: "sandbox " + id, Method: "GET", Path: a.path(id)})
}

// destroy deletes the sandbox. E2B refuses that while it changes state, so it is
// asked again until ctx is done.
func (a *api) destroy(ctx context.Context, id string) error {
	quick := a.Client // an answer that does not come is asked for again
	quick.Timeout = 8 * time.Second
	return opening.End(ctx, func(int) error {
		return quick.JSON(ctx, rest.Request{Op: "delete sandbox " + id, Method: "DELETE", Path: a.path(id)}, nil)
	}, func() bool {
		_, err := a.get(ctx, id)
		return rest.Status(err) == http.StatusNotFound
	}, http.StatusConflict)
}

// each calls f with every item of a list that comes in pages.
func each[T any](ctx context.Context, a *api, op, path string, query url.Values, f func(T)) error {
	query.Set("limit", "100")
	var pages rest.Pages
	for {
		var items []T
		next, err := a.page(ctx, rest.Request{Op: op, Method: "GET", Path: path, Query: query}, &items)
		if err != nil {
			return err
		}
		for _, item := range items {
			f(item)
		}
		if next == "" {
			return nil
		}
		if err := pages.Next(op, a.Vendor, next); err != nil {
			return err
		}
		query.Set("nextToken", next)
	}
}

// page reads one page of a list, whose cursor is in a header.
func (a *api) page(ctx context.Context, r rest.Request, items any) (next string, err error) {
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for n := 1; ; n++ {
		next, err = a.read(limited, r, items)
		if err == nil || n >= 3 || sandbox.CodeOf(err) != sandbox.CodeUnavailable || rest.Status(err) != 0 {
			break
		}
		if rest.Sleep(limited, rest.Backoff(n, err)) != nil {
			break
		}
	}
	if ctx.Err() != nil {
		err = rest.Ended(ctx, r.Op)
	}
	return next, err
}

func (a *api) read(ctx context.Context, r rest.Request, items any) (next string, err error) {
	resp, err := a.Stream(ctx, r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if rest.IsPage(resp) {
		return "", &sandbox.Error{Code: sandbox.CodeUnavailable, Op: r.Op, Msg: "E2B answered with a web page"}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return "", &sandbox.Error{Code: sandbox.CodeUnavailable, Op: r.Op, Msg: "E2B's answer broke off"}
	}
	if json.Unmarshal(body, items) != nil {
		return "", &sandbox.Error{Code: sandbox.CodeInternal, Op: r.Op, Msg: "E2B answered with something that is no list"}
	}
	return resp.Header.Get("X-Next-Token"), nil
}

// find calls f with the sandboxes that carry those labels.
func (a *api) find(ctx context.Context, labels map[string]string, f func(machine)) error {
	query := url.Values{"state": {"running,paused"}}
	var filter []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		// What E2B would read in another way is compared here alone.
		if isPlain(k) && isPlain(labels[k]) {
			filter = append(filter, k+"="+labels[k])
		}
	}
	if len(filter) > 0 {
		query.Set("metadata", strings.Join(filter, "&"))
	}
	return each(ctx, a, "list sandboxes", "/v2/sandboxes", query, func(m machine) {
		if m.ID == "" {
			return
		}
		for k, v := range labels {
			if m.Metadata[k] != v {
				return
			}
		}
		f(m)
	})
}

func isPlain(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

func (a *api) list(ctx context.Context, labels map[string]string) ([]sandbox.Listed, error) {
	var found []sandbox.Listed
	err := a.find(ctx, labels, func(m machine) {
		found = append(found, sandbox.Listed{
			ID: m.ID, Name: m.Metadata[nameLabel], State: m.State, Labels: m.Metadata, Created: m.Started.Time, Expires: m.Ends.Time,
		})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// tools returns the way into the sandbox m.
func (a *api) tools(m machine) (*tools, error) {
	op := "reach sandbox " + m.ID
	if m.Access == "" {
		// Without a token everybody who knows the id could use it.
		return nil, &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "E2B gave no access token for it"}
	}
	t := &tools{Access: m.Access, Traffic: m.Traffic, Old: olderThan(m.Version, 0, 4, 0), Forms: olderThan(m.Version, 0, 5, 7)}
	domain := m.Domain
	if domain == "" {
		domain = a.domain
	}
	switch {
	case a.boxes != "":
		t.Base = a.boxes
	case !isDomain(domain):
		return nil, &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: fmt.Sprintf("E2B gave the domain %q", a.Show(domain))}
	case shared(domain):
		t.Base = "https://sandbox." + domain
	case !isPlain(m.ID):
		return nil, &sandbox.Error{Code: sandbox.CodeInvalidArgument, Op: op, Msg: "the id cannot be part of a host name"}
	default:
		t.Base = fmt.Sprintf("https://%d-%s.%s", port, m.ID, domain)
	}
	return t, nil
}

// olderThan reports whether version, "0.5.7", is before another. One that cannot
// be read is not.
func olderThan(version string, than ...int) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	for i, want := range than {
		if i >= len(parts) {
			return false
		}
		digits, _, _ := strings.Cut(parts[i], "-")
		n, err := strconv.Atoi(digits)
		if err != nil || n > want {
			return false
		}
		if n < want {
			return true
		}
	}
	return false
}

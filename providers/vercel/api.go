package vercel

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// api is Vercel's one plane.
type api struct {
	rest.Client
	team    string
	project string
	expires time.Time // when the token does; zero if that is not known
}

// A machine is a sandbox, which is a named record, and its current session, which
// is a running computer.
type machine struct {
	Sandbox record  `json:"sandbox"`
	Session session `json:"session"`
}

// A record is what stays of a sandbox from session to session.
type record struct {
	Name       string            `json:"name"`
	Status     string            `json:"status"`
	Persistent bool              `json:"persistent"`
	Tags       map[string]string `json:"tags"`
	Created    int64             `json:"createdAt"`
	Expires    int64             `json:"expiresAt"`
	Snapshot   string            `json:"currentSnapshotId"`
}

// A session is one computer. Timeout is in milliseconds from its start.
type session struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Dir     string `json:"cwd"`
	Timeout int64  `json:"timeout"`
	Created int64  `json:"createdAt"`
	Started int64  `json:"startedAt"`
	Name    string `json:"sourceSandboxName"`
}

// A creation asks for a sandbox.
type creation struct {
	Project    string            `json:"projectId"`
	Name       string            `json:"name"`
	Persistent bool              `json:"persistent"`
	Ports      []int             `json:"ports"`
	Timeout    int64             `json:"timeout"` // milliseconds
	Tags       map[string]string `json:"tags"`
	Image      string            `json:"image,omitempty"`
	Source     *source           `json:"source,omitempty"`
}

type source struct {
	Type     string `json:"type"`
	Snapshot string `json:"snapshotId"`
}

// moment is the time of a timestamp in milliseconds; zero if there is none.
func moment(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// expires is when the session ends; zero if that is not known.
func (x session) expires() time.Time {
	begin := cmp.Or(x.Started, x.Created)
	if begin <= 0 || x.Timeout <= 0 {
		return time.Time{}
	}
	return moment(begin + x.Timeout)
}

// over reports whether a session of that status has ended.
func over(status string) bool {
	return status == "stopped" || status == "failed" || status == "aborted"
}

func classify(e *rest.StatusError) sandbox.Code {
	text := strings.ToLower(e.Message)
	switch {
	case e.Code == "resource_limit_exceeded", strings.Contains(text, "concurrency limit"):
		return sandbox.CodeQuota
	case e.Code == "snapshot_not_found", e.Code == "sandbox_stopped", e.Code == "sandbox_stopping", e.Code == "sandbox_snapshotting":
		return sandbox.CodeGone
	case e.Code == "image_not_ready":
		return sandbox.CodeUnavailable
	case strings.Contains(text, "no space left"):
		return sandbox.CodeNoSpace
	case e.Status == http.StatusForbidden && !rest.Quota(e.Message) && !strings.Contains(text, "exceeded"):
		return sandbox.CodeUnauthenticated
	case e.Status == http.StatusForbidden:
		return sandbox.CodeQuota
	}
	return ""
}

// refusal returns Vercel's own code of the refusal that err tells of, or "".
func refusal(err error) string {
	if e, ok := statusOf(err); ok {
		return e.Code
	}
	return ""
}

// in is r for the team.
func (a *api) in(r rest.Request) rest.Request {
	query := url.Values{"teamId": {a.team}}
	maps.Copy(query, r.Query)
	r.Query = query
	return r
}

// json sends r and decodes the answer into out, which may be nil.
func (a *api) json(ctx context.Context, r rest.Request, out any) error {
	return a.JSON(ctx, a.in(r), out)
}

// flow sends r once; see rest.Client.Flow.
func (a *api) flow(ctx context.Context, r rest.Request, first, idle time.Duration) (*rest.Flow, error) {
	return a.Flow(ctx, a.in(r), first, idle)
}

// named is the path of the sandbox with that name.
func named(name string) string { return "/v2/sandboxes/" + url.PathEscape(name) }

// running is the path of a part of the session with that id.
func running(id string, rest ...string) string {
	return strings.Join(append([]string{"/v2/sandboxes/sessions", url.PathEscape(id)}, rest...), "/")
}

// get returns the sandbox with that name, resuming it if resume is set.
func (a *api) get(ctx context.Context, name string, resume bool) (machine, error) {
	query := url.Values{"projectId": {a.project}}
	op := "sandbox " + name
	if resume {
		query.Set("resume", "true")
		op = "resume sandbox " + name
	}
	var m machine
	err := a.json(ctx, rest.Request{Op: op, Method: "GET", Path: named(name), Query: query}, &m)
	return m, whole(op, m, err)
}

// whole is err, or the error of an answer that is no sandbox.
func whole(op string, m machine, err error) error {
	if err == nil && (m.Sandbox.Name == "" || m.Session.ID == "" || m.Session.Status == "") {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "Vercel's answer has no name, session or status"}
	}
	return err
}

// session returns the session with that id.
func (a *api) session(ctx context.Context, id string) (session, error) {
	var answer struct {
		Session session `json:"session"`
	}
	op := "session " + id
	err := a.json(ctx, rest.Request{Op: op, Method: "GET", Path: running(id)}, &answer)
	if err == nil && (answer.Session.ID == "" || answer.Session.Status == "") {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "Vercel's answer has no id or status"}
	}
	return answer.Session, err
}

// name returns the name of the sandbox that id means: id itself, or that of the
// sandbox whose session it is.
func (a *api) name(ctx context.Context, id string) (string, error) {
	if !strings.HasPrefix(id, "sbx_") {
		return id, nil
	}
	x, err := a.session(ctx, id)
	if err == nil && x.Name == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: "session " + id, Msg: "Vercel does not say whose session it is"}
	}
	return x.Name, err
}

// destroy deletes the sandbox, which may be refused while it stops. Snapshots stay:
// a sandbox that talkops has made has none but those that were asked for.
func (a *api) destroy(ctx context.Context, id string) error {
	name, err := a.name(ctx, id)
	for n := 1; ; n++ {
		if err == nil {
			err = a.json(ctx, rest.Request{
				Op: "delete sandbox " + name, Method: "DELETE", Path: named(name), Query: url.Values{"projectId": {a.project}},
			}, nil)
		}
		switch code := rest.Status(err); {
		case err == nil || code == http.StatusNotFound:
			return nil
		case code != http.StatusConflict && code != http.StatusUnprocessableEntity && code != http.StatusGone:
			return err
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return err
		}
		err = nil
	}
}

// list returns the sandboxes with those labels that run or can be resumed. Vercel
// filters by one tag.
func (a *api) list(ctx context.Context, labels map[string]string) ([]sandbox.Listed, error) {
	query := url.Values{"project": {a.project}}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !strings.Contains(key, ":") {
			query.Set("tags", key+":"+labels[key])
			break
		}
	}
	var found []sandbox.Listed
	err := each(ctx, a, "list sandboxes", "/v2/sandboxes", query, func(page answerPage) {
		for _, m := range page.Sandboxes {
			known := slices.ContainsFunc(found, func(l sandbox.Listed) bool { return l.ID == m.Name })
			lost := over(m.Status) && !m.Persistent && m.Snapshot == ""
			if m.Name == "" || known || lost || !carries(m.Tags, labels) {
				continue
			}
			l := sandbox.Listed{ID: m.Name, Name: m.Name, State: m.Status, Labels: m.Tags, Created: moment(m.Created)}
			if !over(m.Status) {
				l.Expires = moment(m.Expires)
			}
			found = append(found, l)
		}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// An answerPage is a part of a list.
type answerPage struct {
	Sandboxes  []record `json:"sandboxes"`
	Snapshots  []disk   `json:"snapshots"`
	Pagination *struct {
		Next string `json:"next"`
	} `json:"pagination"`
}

// each calls f with every page of a list.
func each(ctx context.Context, a *api, op, path string, query url.Values, f func(answerPage)) error {
	var pages rest.Pages
	for {
		var page answerPage
		if err := a.json(ctx, rest.Request{Op: op, Method: "GET", Path: path, Query: query}, &page); err != nil {
			return err
		}
		if page.Pagination == nil {
			return &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "Vercel answered with something that is no list"}
		}
		f(page)
		next := page.Pagination.Next
		if next == "" {
			return nil
		}
		if err := pages.Next(op, a.Vendor, next); err != nil {
			return err
		}
		query.Set("cursor", next)
	}
}

func carries(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

package vercel

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A disk is a snapshot as Vercel lists it.
type disk struct {
	ID      string `json:"id"`
	Session string `json:"sourceSessionId"`
	Status  string `json:"status"`
	Created int64  `json:"createdAt"`
}

// snapshot returns the id of the snapshot that name means: an id, or the newest of
// the sandbox with that name. Vercel's snapshots have no names of their own.
func (a *api) snapshot(ctx context.Context, name string) (string, error) {
	if strings.HasPrefix(name, "snap_") {
		return name, nil
	}
	return a.newest(ctx, name, func(disk) bool { return true })
}

// newest returns the id of the newest snapshot of the sandbox with that name that
// may be it.
func (a *api) newest(ctx context.Context, name string, may func(disk) bool) (string, error) {
	var newest disk
	op := "find snapshot " + name
	query := url.Values{"project": {a.project}, "name": {name}}
	err := each(ctx, a, op, "/v2/sandboxes/snapshots", query, func(page answerPage) {
		for _, k := range page.Snapshots {
			if k.Status == "created" && k.Created > newest.Created && may(k) {
				newest = k
			}
		}
	})
	if err == nil && newest.ID == "" {
		err = &sandbox.Error{Code: sandbox.CodeNotFound, Op: op, Msg: "there is no snapshot of a sandbox with that name, and it is no id (snap_...)"}
	}
	return newest.ID, err
}

// Snapshot keeps the disk of the sandbox under the sandbox's own name, the only one
// Vercel has for it. That stops the session: commands that run are lost, and the
// sandbox is resumed in a new one. If it cannot be, the error is CodeGone and tells
// the snapshot, which is kept. Vercel keeps it for 30 days.
func (b *box) Snapshot(ctx context.Context, name string) error {
	op := "snapshot " + name
	if name != b.name {
		return &sandbox.Error{Code: sandbox.CodeInvalidArgument, Op: op, Msg: fmt.Sprintf("Vercel keeps a snapshot under the name of its sandbox alone, which is %s", b.name)}
	}
	var answer struct {
		Snapshot disk `json:"snapshot"`
	}
	long := *b.api
	long.Timeout = startWithin
	from := b.session().ID
	err := long.json(ctx, rest.Request{Op: op, Method: "POST", Path: running(from, "snapshot"), Retry: rest.Refused}, &answer)
	if err == nil && answer.Snapshot.ID == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "Vercel's answer names no snapshot"}
	}
	if err == nil && answer.Snapshot.Status == "failed" {
		err = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "Vercel reports that the snapshot failed"}
	}
	if code := rest.Status(err); err != nil && ctx.Err() == nil && (code == 0 || code >= 500) {
		// It may have been taken although the answer was lost.
		if id, ferr := b.api.newest(ctx, b.name, func(k disk) bool { return k.Session == from }); ferr == nil {
			answer.Snapshot.ID, err = id, nil
		}
	}
	if err != nil {
		return posix.InOp(op, b.explain(ctx, err))
	}
	m, err := b.api.get(ctx, b.name, false)
	if err == nil {
		m, err = b.api.await(ctx, sandbox.Spec{}, m, true)
	}
	if err == nil {
		b.mu.Lock()
		b.now = m.Session
		b.mu.Unlock()
		b.stale.Forget()
		_, _, err = b.shell(ctx, true, `mkdir -p -m 700 "$1"`, b.run)
	}
	if err != nil {
		return &sandbox.Error{Code: sandbox.CodeOf(err), Op: op, Msg: fmt.Sprintf("it was taken as %s, but the sandbox could not be resumed: %v", answer.Snapshot.ID, err), Err: err}
	}
	return nil
}

// Extend makes Vercel keep the session at least until t. What the plan does not
// allow is refused.
func (b *box) Extend(ctx context.Context, t time.Time) (time.Time, error) {
	op := "extend sandbox " + b.name
	var answer struct {
		Session session `json:"session"`
	}
	for n := 1; ; n++ {
		// A lost answer may have been an extension: the session says how long it has.
		x, err := b.api.session(ctx, b.session().ID)
		if err == nil && over(x.Status) {
			err = &sandbox.Error{Code: sandbox.CodeGone, Msg: "the sandbox is " + x.Status}
		}
		if err != nil {
			return time.Time{}, posix.InOp(op, b.explain(ctx, err))
		}
		b.mu.Lock()
		b.now.Timeout, b.now.Started, b.now.Created = x.Timeout, x.Started, x.Created
		b.mu.Unlock()
		end := x.expires()
		if end.IsZero() {
			return time.Time{}, &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "Vercel does not say when the session ends"}
		}
		if !end.Before(t) {
			return end, nil
		}
		more := max(t.Sub(end), time.Second)
		err = b.api.json(ctx, rest.Request{
			Op: op, Method: "POST", Path: running(x.ID, "extend-timeout"), Retry: rest.Refused,
			JSON: map[string]int64{"duration": (more + time.Millisecond - 1).Milliseconds()},
		}, &answer)
		if code := rest.Status(err); err != nil && code != 0 && code < 500 || n >= 4 || ctx.Err() != nil {
			return time.Time{}, posix.InOp(op, b.explain(ctx, err))
		}
		if err != nil && rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return time.Time{}, rest.Ended(ctx, op)
		}
	}
}

// RemoveSnapshot removes the snapshot spec.Snapshot: an id, or the name of a
// sandbox, whose snapshots are all removed.
func (Provider) RemoveSnapshot(ctx context.Context, spec sandbox.Spec) error {
	a, err := connect(spec)
	if err != nil {
		return err
	}
	if spec.Snapshot == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "remove snapshot: no name given")
	}
	op := "remove snapshot " + spec.Snapshot
	var found []string
	if strings.HasPrefix(spec.Snapshot, "snap_") {
		found = append(found, spec.Snapshot)
	} else {
		query := url.Values{"project": {a.project}, "name": {spec.Snapshot}}
		err = each(ctx, a, op, "/v2/sandboxes/snapshots", query, func(page answerPage) {
			for _, k := range page.Snapshots {
				if k.Status != "deleted" {
					found = append(found, k.ID)
				}
			}
		})
	}
	for _, id := range found {
		err := a.json(ctx, rest.Request{Op: op, Method: "DELETE", Path: "/v2/sandboxes/snapshots/" + url.PathEscape(id)}, nil)
		if code := rest.Status(err); err != nil && code != http.StatusNotFound && code != http.StatusGone {
			return err
		}
	}
	return err
}

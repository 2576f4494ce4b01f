package e2b

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A kept is a snapshot as E2B lists it.
type kept struct {
	ID    string   `json:"snapshotID"`
	Names []string `json:"names"`
}

// called reports whether a snapshot has that name, which E2B may show with the
// account before it and a tag after it.
func (k kept) called(name string) bool {
	return k.ID == name || slices.ContainsFunc(k.Names, func(n string) bool {
		n = n[strings.LastIndexByte(n, '/')+1:]
		plain, _, _ := strings.Cut(n, ":")
		return n == name || plain == name
	})
}

// Snapshot keeps the state of the sandbox under name. It returns when a sandbox
// can be opened from it.
func (b *box) Snapshot(ctx context.Context, name string) error {
	op := "snapshot " + name
	if name == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "a snapshot needs a name")
	}
	if id, err := b.api.snapshot(ctx, "", name); err != nil {
		return posix.InOp(op, err)
	} else if id != "" {
		return &sandbox.Error{Code: sandbox.CodeInvalidArgument, Op: op, Msg: "there is a snapshot of that name"}
	}
	slow := b.api.Client
	slow.Timeout = startWithin
	var made kept
	err := slow.JSON(ctx, rest.Request{
		Op: op, Method: "POST", Path: b.api.path(b.id, "snapshots"), Retry: rest.Refused,
		JSON: map[string]string{"name": name},
	}, &made)
	if err == nil {
		return nil
	}
	if code := rest.Status(err); ctx.Err() == nil && (code == 0 || code >= 500) {
		// The answer may have been lost.
		if id, ferr := b.api.snapshot(ctx, b.id, name); ferr == nil && id != "" {
			return nil
		}
	}
	return posix.InOp(op, b.explain(ctx, err))
}

// snapshot returns the id of the snapshot with that name, of one sandbox if that
// is given, or "".
func (a *api) snapshot(ctx context.Context, of, name string) (string, error) {
	ids, err := a.snapshots(ctx, of, name)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}

// snapshots returns the ids of all of them.
func (a *api) snapshots(ctx context.Context, of, name string) (ids []string, err error) {
	query := url.Values{}
	if of != "" {
		query.Set("sandboxID", of)
	}
	err = each(ctx, a, "find snapshot", "/snapshots", query, func(k kept) {
		if k.called(name) {
			ids = append(ids, k.ID)
		}
	})
	if rest.Status(err) == http.StatusNotFound {
		err = nil // a service without snapshots
	}
	return ids, err
}

// RemoveSnapshot removes the snapshot spec.Snapshot; of several of one name, all.
func (Provider) RemoveSnapshot(ctx context.Context, spec sandbox.Spec) error {
	a, err := connect(spec)
	if err != nil {
		return err
	}
	if spec.Snapshot == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "remove snapshot: no name given")
	}
	op := "remove snapshot " + spec.Snapshot
	ids, err := a.snapshots(ctx, "", spec.Snapshot)
	for _, id := range ids {
		if err == nil {
			err = a.JSON(ctx, rest.Request{Op: op, Method: "DELETE", Path: "/templates/" + url.PathEscape(id)}, nil)
		}
		if destroyed(err) {
			err = nil
		}
	}
	return posix.InOp(op, err)
}

// Extend makes E2B keep the sandbox at least until t.
func (b *box) Extend(ctx context.Context, t time.Time) (time.Time, error) {
	op := "extend sandbox " + b.id
	m, err := b.api.get(ctx, b.id)
	if err != nil || !m.Ends.Before(t) {
		return m.Ends.Time, posix.InOp(op, b.explain(ctx, err))
	}
	// Only what is longer is asked for: the call could also make it shorter.
	want := seconds(time.Until(t))
	for {
		err = b.api.JSON(ctx, rest.Request{
			Op: op, Method: "POST", Path: b.api.path(b.id, "timeout"), Retry: rest.Always, JSON: map[string]int64{"timeout": want},
		}, nil)
		most := int64(0)
		if rest.Status(err) == http.StatusBadRequest {
			most = hours(err.Error()) * 3600
		}
		if most <= 0 || most >= want || !m.Ends.Before(time.Now().Add(time.Duration(most)*time.Second)) {
			break
		}
		want = most
	}
	if err == nil {
		m, err = b.api.get(ctx, b.id)
	}
	return m.Ends.Time, posix.InOp(op, b.explain(ctx, err))
}

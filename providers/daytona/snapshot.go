package daytona

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Snapshot keeps the state of the sandbox under name, which must be new. It
// returns when a sandbox can be opened from it.
func (b *box) Snapshot(ctx context.Context, name string) error {
	op := "snapshot " + name
	if name == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "a snapshot needs a name")
	}
	err := b.api.JSON(ctx, rest.Request{
		Op: op, Method: "POST", Path: b.api.path(b.id, "snapshot"), Retry: rest.Refused,
		JSON: map[string]string{"name": name},
	}, nil)
	if err != nil {
		return posix.InOp(op, b.explain(ctx, err))
	}
	delay := 200 * time.Millisecond
	for {
		m, err := b.api.get(ctx, b.id)
		if err != nil {
			return posix.InOp(op, err)
		}
		if failed(m.State) {
			return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("Daytona reports %s: %s", m.State, b.api.Show(m.ErrorReason))}
		}
		if m.State != "snapshotting" {
			item, err := b.api.snapshot(ctx, name)
			switch {
			case err != nil:
				return posix.InOp(op, err)
			case item.State == "active":
				return nil
			case failed(item.State), item.State == "removing":
				return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("Daytona reports %s: %s", item.State, b.api.Show(item.Reason))}
			}
		}
		if rest.Sleep(ctx, delay) != nil {
			return rest.Ended(ctx, op)
		}
		delay = min(delay*5/4, 2*time.Second)
	}
}

// A kept is a snapshot as Daytona lists it.
type kept struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	State  string `json:"state"`
	Reason string `json:"errorReason"`
}

// snapshot returns the snapshot with that name; the zero value while it is not
// listed.
func (a *api) snapshot(ctx context.Context, name string) (kept, error) {
	var page struct {
		Items []kept `json:"items"`
	}
	err := a.JSON(ctx, rest.Request{Op: "find snapshot", Method: "GET", Path: "/snapshots", Query: url.Values{"name": {name}, "limit": {"100"}}}, &page)
	for _, item := range page.Items {
		if item.Name == name {
			return item, err
		}
	}
	return kept{}, err
}

// RemoveSnapshot removes the snapshot spec.Snapshot.
func (Provider) RemoveSnapshot(ctx context.Context, spec sandbox.Spec) error {
	a, err := connect(spec)
	if err != nil {
		return err
	}
	if spec.Snapshot == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "remove snapshot: no name given")
	}
	op := "remove snapshot " + spec.Snapshot
	item, err := a.snapshot(ctx, spec.Snapshot)
	if err != nil || item.ID == "" || item.State == "removing" {
		return posix.InOp(op, err)
	}
	err = a.JSON(ctx, rest.Request{Op: op, Method: "DELETE", Path: "/snapshots/" + url.PathEscape(item.ID)}, nil)
	if rest.Status(err) == http.StatusNotFound {
		return nil
	}
	return err
}

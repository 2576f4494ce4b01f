package daytona

import (
	"context"
	"fmt"
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
			state, reason, err := b.api.snapshot(ctx, name)
			switch {
			case err != nil:
				return posix.InOp(op, err)
			case state == "active":
				return nil
			case failed(state), state == "removing":
				return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("Daytona reports %s: %s", state, b.api.Show(reason))}
			}
		}
		if rest.Sleep(ctx, delay) != nil {
			return rest.Ended(ctx, op)
		}
		delay = min(delay*5/4, 2*time.Second)
	}
}

// snapshot returns the state of the snapshot with that name, empty while it is
// not listed, and the reason if it has failed.
func (a *api) snapshot(ctx context.Context, name string) (state, reason string, err error) {
	var page struct {
		Items []struct {
			Name   string `json:"name"`
			State  string `json:"state"`
			Reason string `json:"errorReason"`
		} `json:"items"`
	}
	err = a.JSON(ctx, rest.Request{Op: "find snapshot", Method: "GET", Path: "/snapshots", Query: url.Values{"name": {name}, "limit": {"100"}}}, &page)
	for _, item := range page.Items {
		if item.Name == name {
			return item.State, item.Reason, err
		}
	}
	return "", "", err
}

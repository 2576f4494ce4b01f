package runloop

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const pollEvery = time.Second

// Snapshot keeps the disk of the devbox under name; of several snapshots of one
// name the newest counts. It returns when a devbox can be opened from it.
func (b *box) Snapshot(ctx context.Context, name string) error {
	op := "snapshot " + name
	if name == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "a snapshot needs a name")
	}
	var taken disk
	err := b.api.JSON(ctx, rest.Request{
		Op: op, Method: "POST", Path: b.api.path(b.id, "snapshot_disk_async"), Header: once(), Retry: rest.Always,
		JSON: map[string]any{"name": name},
	}, &taken)
	if err == nil && taken.ID == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Msg: "Runloop's answer has no id"}
	}
	if err != nil {
		return posix.InOp(op, b.explain(ctx, err))
	}
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, pollEvery) {
		var state struct {
			Status string `json:"status"`
			Error  string `json:"error_message"`
		}
		err := b.api.JSON(ctx, rest.Request{Op: op, Method: "GET", Path: "/v1/devboxes/disk_snapshots/" + url.PathEscape(taken.ID) + "/status"}, &state)
		switch {
		case err != nil:
			return posix.InOp(op, err)
		case state.Status == "complete":
			return nil
		case state.Status == "error", state.Status == "deleted":
			return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "Runloop reports " + state.Status + ": " + b.api.Show(state.Error)}
		}
		if rest.Sleep(ctx, delay) != nil {
			return rest.Ended(ctx, op)
		}
	}
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
	var found []string
	if strings.HasPrefix(spec.Snapshot, "snp_") {
		found = append(found, spec.Snapshot)
	} else {
		err = each(ctx, a, op, "/v1/devboxes/disk_snapshots", "snapshots", url.Values{}, func(d disk) {
			if d.Name == spec.Snapshot {
				found = append(found, d.ID)
			}
		})
	}
	for _, id := range found {
		err := a.JSON(ctx, rest.Request{Op: op, Method: "POST", Path: "/v1/devboxes/disk_snapshots/" + url.PathEscape(id) + "/delete", Retry: rest.Always}, nil)
		if err != nil && rest.Status(err) != http.StatusNotFound {
			return err
		}
	}
	return err
}

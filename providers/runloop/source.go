package runloop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A blueprint is one build of an image. Names are not unique: the newest
// complete build of a name counts.
type blueprint struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Created int64  `json:"create_time_ms"`
	Reason  string `json:"failure_reason"`
}

func (p blueprint) identity() string { return p.ID }

// A disk is a disk snapshot.
type disk struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Created int64  `json:"create_time_ms"`
}

func (d disk) identity() string { return d.ID }

// from says in want what the devbox starts from: the blueprint or snapshot the
// user named, a blueprint built from spec.Image, or Runloop's default.
func (a *api) from(ctx context.Context, spec sandbox.Spec, want *creation) (err error) {
	name := spec.Snapshot
	if name == "" {
		name = a.blueprintName
	}
	switch {
	case a.blueprintID != "":
		want.BlueprintID = a.blueprintID
	case strings.HasPrefix(name, "snp_"):
		want.SnapshotID = name
	case strings.HasPrefix(name, "bpt_"):
		want.BlueprintID = name
	case name == "" && spec.Image == "":
	case name == "":
		sum := sha256.Sum256([]byte(spec.Image))
		want.BlueprintID, _, err = a.named(ctx, spec, "talkops-image-"+hex.EncodeToString(sum[:6]))
	default:
		want.BlueprintID, want.SnapshotID, err = a.named(ctx, spec, name)
	}
	return err
}

// named finds the blueprint or else the snapshot of that name. If there is
// neither, it is built from spec.Image.
func (a *api) named(ctx context.Context, spec sandbox.Spec, name string) (blueprintID, snapshotID string, err error) {
	op := "find blueprint " + name
	var best blueprint
	err = each(ctx, a, op, "/v1/blueprints", "blueprints", url.Values{"name": {name}}, func(p blueprint) {
		if p.Name == name && (best.ID == "" || rank(p) > rank(best) || rank(p) == rank(best) && p.Created > best.Created) {
			best = p
		}
	})
	if err != nil {
		return "", "", err
	}
	if best.ID == "" {
		var kept disk
		err = each(ctx, a, op, "/v1/devboxes/disk_snapshots", "snapshots", url.Values{}, func(d disk) {
			if d.Name == name && (kept.ID == "" || d.Created > kept.Created) {
				kept = d
			}
		})
		if err != nil || kept.ID != "" {
			return "", kept.ID, err
		}
		if spec.Image == "" {
			return "", "", &sandbox.Error{Code: sandbox.CodeNotFound, Op: op, Msg: "Runloop has neither a blueprint nor a snapshot of that name"}
		}
		err = a.JSON(ctx, rest.Request{
			Op: "build blueprint " + name, Method: "POST", Path: "/v1/blueprints", Header: once(), Retry: rest.Always,
			JSON: map[string]any{"name": name, "dockerfile": "FROM " + spec.Image + "\n", "metadata": spec.Labels},
		}, &best)
		if err != nil {
			return "", "", err
		}
	}
	return best.ID, "", a.built(ctx, spec, best)
}

// rank orders the builds of one name: complete, going on, failed.
func rank(p blueprint) int {
	switch p.Status {
	case "build_complete":
		return 2
	case "failed", "build_failed":
		return 0
	}
	return 1
}

// built waits until p is complete.
func (a *api) built(ctx context.Context, spec sandbox.Spec, p blueprint) error {
	op := "build blueprint " + p.Name
	limited, cancel := context.WithTimeoutCause(ctx, buildWithin, errLate)
	defer cancel()
	told := ""
	for {
		switch rank(p) {
		case 2:
			return nil
		case 0:
			return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "Runloop reports " + a.buildLog(ctx, p)}
		}
		if spec.Progress != nil && p.Status != told && p.Status != "" {
			told = p.Status
			spec.Progress("blueprint is " + strings.ReplaceAll(a.Show(p.Status), "_", " "))
		}
		err := rest.Sleep(limited, pollEvery)
		if err == nil {
			var next blueprint
			if err = a.JSON(limited, rest.Request{Op: op, Method: "GET", Path: "/v1/blueprints/" + url.PathEscape(p.ID)}, &next); err == nil {
				p.Status, p.Reason = next.Status, next.Reason
				continue
			}
		}
		switch {
		case ctx.Err() != nil:
			return rest.Ended(ctx, op)
		case limited.Err() != nil:
			return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("not built after %v, last seen %s", buildWithin, a.Show(p.Status))}
		}
		return err
	}
}

// buildLog is why a build failed, and the end of its log.
func (a *api) buildLog(ctx context.Context, p blueprint) string {
	text := "failed"
	if p.Reason != "" {
		text += ": " + a.Show(p.Reason)
	}
	var answer struct {
		Logs []struct {
			Message string `json:"message"`
		} `json:"logs"`
	}
	quick := a.Client
	quick.Attempts = 1
	err := quick.JSON(ctx, rest.Request{Op: "read log", Method: "GET", Path: "/v1/blueprints/" + url.PathEscape(p.ID) + "/logs"}, &answer)
	if n := len(answer.Logs); err == nil && n > 0 {
		var lines []string
		for _, l := range answer.Logs[max(0, n-5):] {
			lines = append(lines, a.Show(l.Message))
		}
		text += "; its log ends: " + rest.Clean(strings.Join(lines, " / "))
	}
	return text
}

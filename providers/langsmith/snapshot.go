package langsmith

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// buildSize is the size of the file system of a snapshot that is built.
const buildSize = 16 << 30

// A snapshot is one as the control plane shows it.
type snapshot struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Status  string   `json:"status"`
	Message string   `json:"status_message"`
	Image   string   `json:"docker_image"`
	Tags    []string `json:"tags"`
}

// Snapshot keeps the state of the sandbox under name; the newest of a name
// counts. It returns when a sandbox can be opened from it.
func (b *box) Snapshot(ctx context.Context, name string) error {
	op := "snapshot " + name
	name, tag, _ := strings.Cut(name, ":")
	if name == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "a snapshot needs a name")
	}
	ask := map[string]string{"name": name}
	if tag != "" {
		ask["tag"] = tag
	}
	var s snapshot
	err := b.api.JSON(ctx, rest.Request{
		Op: op, Method: "POST", Path: b.api.path(b.id, "snapshot"), Retry: rest.Refused, JSON: ask,
	}, &s)
	if err == nil && s.ID == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Msg: "LangSmith's answer has no id"}
	}
	if err != nil {
		return posix.InOp(op, b.explain(ctx, err))
	}
	_, err = b.api.built(ctx, s, nil)
	return posix.InOp(op, err)
}

// source returns the id of the snapshot a new sandbox starts from. One that does
// not exist is built.
func (a *api) source(ctx context.Context, spec sandbox.Spec) (string, error) {
	name := cmp.Or(spec.Snapshot, defaultSnapshot)
	image := cmp.Or(spec.Image, defaultImage)
	s, err := a.findSnapshot(ctx, name)
	switch {
	case sandbox.CodeOf(err) == sandbox.CodeNotFound:
		if strings.HasPrefix(name, "system/") {
			return "", err // nobody can build there
		}
		if spec.Progress != nil {
			spec.Progress(fmt.Sprintf("building snapshot %s from %s", rest.Clean(name), rest.Clean(image)))
		}
		s, err = a.build(ctx, name, image)
	case err == nil && spec.Image != "" && s.Image != spec.Image && spec.Progress != nil:
		spec.Progress(fmt.Sprintf("snapshot %s exists and is used as it is, not built from %s", rest.Clean(name), rest.Clean(spec.Image)))
	}
	if err != nil {
		return "", err
	}
	s, err = a.built(ctx, s, spec.Progress)
	return s.ID, err
}

// findSnapshot returns the snapshot with that id or name: the one the service
// means by it, else one that is building, else one that failed.
func (a *api) findSnapshot(ctx context.Context, ref string) (snapshot, error) {
	op := "find snapshot " + ref
	var s snapshot
	err := a.JSON(ctx, rest.Request{Op: op, Method: "GET", Path: "/snapshots/" + url.PathEscape(ref)}, &s)
	if err == nil && s.ID == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "LangSmith's answer has no id"}
	}
	if rest.Status(err) != http.StatusNotFound {
		return s, err
	}
	// A name alone means a snapshot that is ready.
	missing := err
	name, tag, _ := strings.Cut(ref, ":")
	query := url.Values{"name_contains": {name}, "page_size": {"100"}}
	for {
		var page struct {
			Items []snapshot `json:"items"`
			Next  string     `json:"next_cursor"`
		}
		if err := a.JSON(ctx, rest.Request{Op: op, Method: "GET", Path: "/snapshots", Query: query}, &page); err != nil {
			return snapshot{}, err
		}
		for _, item := range page.Items {
			if item.Name != name || tag != "" && !contains(item.Tags, tag) {
				continue
			}
			switch {
			case item.Status == "ready":
				return item, nil
			case item.Status == "building", item.Status == "failed" && s.ID == "":
				s = item
			}
		}
		if page.Next == "" || page.Next == query.Get("cursor") {
			break
		}
		query.Set("cursor", page.Next)
	}
	if s.ID == "" {
		return s, missing
	}
	return s, nil
}

func contains(list []string, want string) bool {
	for _, s := range list {
		if s == want {
			return true
		}
	}
	return false
}

// build begins a snapshot of image, once: after a lost answer it is looked for.
func (a *api) build(ctx context.Context, ref, image string) (snapshot, error) {
	op := "build snapshot " + ref
	name, tag, _ := strings.Cut(ref, ":")
	ask := map[string]any{"name": name, "docker_image": image, "fs_capacity_bytes": buildSize}
	if tag != "" {
		ask["tag"] = tag
	}
	var s snapshot
	err := a.JSON(ctx, rest.Request{Op: op, Method: "POST", Path: "/snapshots", Retry: rest.Refused, JSON: ask}, &s)
	if err == nil && s.ID == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "LangSmith's answer has no id"}
	}
	if code := rest.Status(err); err != nil && ctx.Err() == nil && (code == 0 || code == http.StatusConflict || code >= 500) {
		if found, ferr := a.findSnapshot(ctx, ref); ferr == nil {
			return found, nil
		}
	}
	return s, err
}

// built waits for a snapshot that is building.
func (a *api) built(ctx context.Context, s snapshot, progress func(string)) (snapshot, error) {
	op := "build snapshot " + cmp.Or(s.Name, s.ID)
	limited, cancel := context.WithTimeoutCause(ctx, buildWithin, errLate)
	defer cancel()
	if s.Status != "ready" && progress != nil {
		progress("snapshot " + a.Show(cmp.Or(s.Name, s.ID)) + " is " + a.Show(s.Status))
	}
	delay := 200 * time.Millisecond
	for {
		switch s.Status {
		case "ready":
			return s, nil
		case "failed", "deleting":
			return s, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("LangSmith reports %s: %s; delete the snapshot or choose another name",
				s.Status, cmp.Or(a.Show(s.Message), "no reason given"))}
		}
		err := rest.Sleep(limited, delay)
		if err == nil {
			delay = min(delay*3/2, 2*time.Second)
			var next snapshot
			err = a.JSON(limited, rest.Request{Op: op, Method: "GET", Path: "/snapshots/" + url.PathEscape(s.ID)}, &next)
			if err == nil {
				s.Status, s.Message = next.Status, next.Message
				continue
			}
		}
		switch {
		case ctx.Err() != nil:
			return s, fmt.Errorf("the build goes on at LangSmith: %w", rest.Ended(ctx, op))
		case errors.Is(context.Cause(limited), errLate):
			return s, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("not ready after %v; the build goes on at LangSmith", buildWithin)}
		}
		return s, err
	}
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
	for range 100 {
		// A name may have several, of which one is found at a time.
		s, err := a.findSnapshot(ctx, spec.Snapshot)
		if err == nil && s.Status == "deleting" {
			return nil
		}
		if err == nil {
			err = a.JSON(ctx, rest.Request{Op: op, Method: "DELETE", Path: "/snapshots/" + url.PathEscape(s.ID)}, nil)
		}
		switch code := sandbox.CodeOf(err); {
		case code == sandbox.CodeNotFound:
			return nil
		case err != nil:
			return err
		}
	}
	return &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "LangSmith still has one of that name"}
}

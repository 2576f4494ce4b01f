package emulate

import (
	"context"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Snapshots checks that what a provider keeps outlives its machine, can be opened, and
// is gone when it has been removed, also twice and although an answer is lost.
// remove is the operation that removes one.
func Snapshots(t *testing.T, s Subject, remove string) {
	t.Helper()
	service, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ctx := t.Context()
	spec := sandbox.Spec{Settings: service.Settings(), Name: "kept-box"}
	open := func(spec sandbox.Spec) (content string, err error) {
		sb, err := s.Provider.Open(ctx, spec)
		if err != nil {
			return "", err
		}
		defer func() {
			sb.Close()
			spec.ID = sb.Info().ID
			if err := s.Provider.Destroy(context.WithoutCancel(ctx), spec); err != nil {
				t.Errorf("destroy: %v", err)
			}
		}()
		if spec.Snapshot == "" {
			if err := sb.WriteFile(ctx, sb.Info().Dir+"/f", strings.NewReader("kept"), 0o644); err != nil {
				t.Fatal(err)
			}
			return "", sandbox.Snapshot(ctx, sb, spec.Name)
		}
		var b strings.Builder
		err = sb.ReadFile(ctx, sb.Info().Dir+"/f", &b)
		return b.String(), err
	}
	if _, err := open(spec); err != nil {
		t.Fatalf("take a snapshot: %v", err)
	}
	from := sandbox.Spec{Settings: spec.Settings, Name: "next-box", Snapshot: spec.Name}
	if got, err := open(from); err != nil || got != "kept" {
		t.Errorf("opened from the snapshot, the file holds %q (%v)", got, err)
	}
	service.Inject(Fault{Op: remove, Late: true})
	for range 2 {
		if err := sandbox.RemoveSnapshot(ctx, s.Provider, from); err != nil {
			t.Errorf("remove: %v", err)
		}
	}
	if n := len(service.Requests(remove)); n == 0 {
		t.Errorf("nobody asked for %s", remove)
	}
	if got, err := open(from); err == nil || got != "" {
		t.Errorf("opened from what was removed, the file holds %q (%v)", got, err)
	}
	none := from
	none.Snapshot = ""
	if code := sandbox.CodeOf(sandbox.RemoveSnapshot(ctx, s.Provider, none)); code != sandbox.CodeInvalidArgument {
		t.Errorf("without a name: code %q", code)
	}
}

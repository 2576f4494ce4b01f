package modal

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/modal/internal/wire"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Snapshot keeps the files of the sandbox as an image that is published under
// name, which must be new.
func (b *box) Snapshot(ctx context.Context, name string) error {
	op := "snapshot " + name
	full, err := tagged(name)
	if err != nil {
		return err
	}
	a := b.api
	_, err = call(ctx, a, op, a.ImageGetByTag, &wire.ImageGetByTagRequest{Tag: full, EnvironmentName: a.Environment}, policy{})
	switch {
	case err == nil:
		return &sandbox.Error{Code: sandbox.CodeInvalidArgument, Op: op, Msg: "there is a snapshot of that name"}
	case !is(err, codes.NotFound):
		return err
	}
	forever := int64(-1)
	made, err := route(ctx, b.router, op, b.TaskSnapshotFilesystem, &wire.TaskSnapshotFilesystemRequest{
		TaskId: b.task, SnapshotId: uuid.NewString(), TtlSeconds: &forever,
	}, policy{within: 10 * time.Minute})
	if err != nil {
		return posix.InOp(op, b.explain(ctx, err))
	}
	_, err = call(ctx, a, op, a.ImagePublish, &wire.ImagePublishRequest{ImageId: made.GetImageId(), Tag: full, EnvironmentName: a.Environment}, policy{})
	return err
}

// snapshot returns the id of the image that is kept as name.
func (a *api) snapshot(ctx context.Context, name string) (string, error) {
	op := "find snapshot " + name
	if strings.HasPrefix(name, "im-") {
		found, err := call(ctx, a, op, a.ImageFromId, &wire.ImageFromIdRequest{ImageId: name}, policy{})
		return found.GetImageId(), err
	}
	full, err := tagged(name)
	if err != nil {
		return "", err
	}
	found, err := call(ctx, a, op, a.ImageGetByTag, &wire.ImageGetByTagRequest{Tag: full, EnvironmentName: a.Environment}, policy{})
	return found.GetImageId(), err
}

// tagged is name with the tag that Modal's names have.
func tagged(name string) (string, error) {
	base, version, ok := strings.Cut(name, ":")
	if !ok {
		version = "latest"
	}
	if base == "" || version == "" || strings.HasPrefix(base, "im-") || !nameable(base) || !nameable(version) {
		return "", sandbox.Errorf(sandbox.CodeInvalidArgument, "%q is no name for a snapshot: Modal takes up to 64 letters, digits, '-', '_' and '.'", name)
	}
	return base + ":" + version, nil
}

// RemoveSnapshot removes the snapshot spec.Snapshot and its name.
func (Provider) RemoveSnapshot(ctx context.Context, spec sandbox.Spec) error {
	a, err := connect(spec)
	if err != nil {
		return err
	}
	defer a.close()
	if spec.Snapshot == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "remove snapshot: no name given")
	}
	op := "remove snapshot " + spec.Snapshot
	id, err := a.snapshot(ctx, spec.Snapshot)
	if err == nil {
		_, err = call(ctx, a, op, a.ImageDelete, &wire.ImageDeleteRequest{ImageId: id}, policy{})
	}
	if is(err, codes.NotFound) {
		return nil
	}
	return err
}

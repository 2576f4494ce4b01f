package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func ExampleCodeOf() {
	err := fmt.Errorf("upload: %w", &sandbox.Error{Code: sandbox.CodeIsDirectory, Op: "write /workspace"})
	fmt.Println(err, sandbox.CodeOf(err), errors.Is(err, sandbox.ErrInvalid))
	// Output: upload: write /workspace: is directory is_directory true
}

func TestEveryCodeKeepsItsMeaningThroughItsKind(t *testing.T) {
	for code, kind := range map[sandbox.Code]error{
		sandbox.CodeFileNotFound: fs.ErrNotExist, sandbox.CodePermissionDenied: fs.ErrPermission,
		sandbox.CodeTimeout: context.DeadlineExceeded, sandbox.CodeCancelled: context.Canceled,
		sandbox.CodeGone: sandbox.ErrGone, sandbox.CodeNotFound: sandbox.ErrNotFound,
		sandbox.CodeUnauthenticated: sandbox.ErrUnauthenticated, sandbox.CodeQuota: sandbox.ErrQuota,
		sandbox.CodeUnavailable: sandbox.ErrUnavailable, sandbox.CodeUnsupported: errors.ErrUnsupported,
	} {
		if err := error(&sandbox.Error{Code: code}); !errors.Is(err, kind) {
			t.Errorf("an error with code %s is not %v", code, kind)
		}
		if got := sandbox.CodeOf(fmt.Errorf("x: %w", kind)); got != code {
			t.Errorf("code of %v is %s, want %s", kind, got, code)
		}
	}
	if sandbox.CodeOf(nil) != "" || sandbox.CodeOf(errors.New("x")) != sandbox.CodeInternal {
		t.Error("codes of nil and of an unknown error")
	}
}

package session

import (
	"context"
	"fmt"
	"time"

	"github.com/talkops-ai/talkops/runtime/workspace"
)

// A quietError says that nothing came home for too long.
type quietError struct{ d time.Duration }

func (e *quietError) Error() string { return fmt.Sprintf("nothing arrived for %v", e.d) }

// whileArriving calls do with a context that ends when nothing has arrived at h for
// so long, however long all of it takes. Then the error is a *quietError.
func whileArriving(ctx context.Context, h *workspace.Home, d time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := &quietError{d}
	timer := time.AfterFunc(d, func() { cancel(over) })
	defer timer.Stop()
	before := h.Heard
	h.Heard = func(_ int64, busy time.Duration) { timer.Reset(d + busy) }
	defer func() { h.Heard = before }()
	err := do(ctx)
	if err != nil && context.Cause(ctx) == over {
		return over
	}
	return err
}

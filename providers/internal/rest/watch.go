package rest

import (
	"context"
	"io"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Watch is for an upload of any length: it returns ctx and r such that the
// context ends, with an error of code unavailable as its cause, once nothing more
// of r has been asked for during after, be it that the service takes no more or
// that it does not answer. Time that r itself needs does not count. The function
// it returns ends the watch.
func Watch(ctx context.Context, r io.Reader, op, vendor string, after time.Duration) (context.Context, io.Reader, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(after, func() {
		cancel(&sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: vendor + " does not answer"})
	})
	return ctx, &watched{r, timer, after}, func() { timer.Stop(); cancel(nil) }
}

type watched struct {
	r     io.Reader
	timer *time.Timer
	after time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	if w.timer.Stop() {
		defer w.timer.Reset(w.after)
	}
	return w.r.Read(p)
}

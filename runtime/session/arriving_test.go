package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talkops-ai/talkops/runtime/workspace"
)

func TestWhatArrivesIsWaitedForAndSilenceIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &workspace.Home{}
		err := whileArriving(t.Context(), h, time.Minute, func(ctx context.Context) error {
			for range 100 {
				time.Sleep(50 * time.Second)
				h.Heard(1, 0)
			}
			h.Heard(0, time.Hour) // it reads
			time.Sleep(50 * time.Minute)
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("while something arrived: %v", err)
		}
		began := time.Now()
		err = whileArriving(t.Context(), h, time.Minute, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		if _, quiet := errors.AsType[*quietError](err); !quiet || time.Since(began) != time.Minute {
			t.Errorf("while nothing did: %v after %v", err, time.Since(began))
		}
	})
}

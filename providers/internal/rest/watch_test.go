package rest

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A slowReader takes its time for every byte.
type slowReader struct{ r io.Reader }

func (s slowReader) Read(p []byte) (int, error) {
	time.Sleep(time.Hour)
	return s.r.Read(p[:min(1, len(p))])
}

func TestWatchEndsWhatStandsStill(t *testing.T) {
	for _, row := range []struct {
		name  string
		pause time.Duration // between two reads
		ends  bool
	}{
		{"a slow source is waited for", 0, false},
		{"a service that goes on slowly is waited for", 50 * time.Second, false},
		{"a service that takes no more is not", 70 * time.Second, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, r, stop := Watch(t.Context(), slowReader{strings.NewReader("abc")}, "upload", "Acme", time.Minute)
				defer stop()
				for {
					if _, err := r.Read(make([]byte, 10)); err != nil {
						break
					}
					time.Sleep(row.pause)
				}
				if ended := ctx.Err() != nil; ended != row.ends {
					t.Errorf("ended: %v, want %v", ended, row.ends)
				}
				time.Sleep(time.Minute + time.Second) // the answer does not come
				if err := context.Cause(ctx); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
					t.Errorf("without an answer: %v", err)
				}
			})
		})
	}
}

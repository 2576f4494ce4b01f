package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestVendorThatCannotBeReachedIsWaitedFor(t *testing.T) {
	storm := &sandbox.Error{Code: sandbox.CodeUnavailable, Msg: "bad gateway"}
	other := errors.New("no space left")
	never := time.Hour
	for _, row := range []struct {
		name      string
		back      time.Duration // the vendor is there again
		hangs     bool          // and answers nothing before; else it refuses
		interrupt time.Duration // of the user; negative: before the end began
		fails     error         // when it is back
		took      time.Duration
		want      error
	}{
		{"it is there", 0, false, never, nil, 0, nil},
		{"a storm of three minutes", 3 * time.Minute, false, never, nil, 3 * time.Minute, nil},
		{"no network for four minutes", 4 * time.Minute, true, never, nil, 4 * time.Minute, nil},
		{"a storm without end", never, false, never, nil, mostPatience, storm},
		{"no network without end", never, true, never, nil, mostPatience, context.DeadlineExceeded},
		{"the user has waited long enough", never, false, 20 * time.Second, nil, 20 * time.Second, storm},
		{"or for an answer", never, true, 20 * time.Second, nil, 20 * time.Second, context.Canceled},
		{"the user wanted an end before", 3 * time.Minute, false, -1, nil, leastPatience, storm},
		{"and the vendor is back in time", 30 * time.Second, false, -1, nil, 30 * time.Second, nil},
		{"an interrupt does not cut short what goes well", 10 * time.Second, true, time.Second, nil, 10 * time.Second, nil},
		{"another failure is not waited out", 7 * time.Second, false, never, other, 7 * time.Second, other},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.interrupt < 0 {
					cancel()
				} else {
					stop := time.AfterFunc(row.interrupt, cancel)
					defer stop.Stop()
				}
				began := time.Now()
				var said []string
				p := patience{"Acme", func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
				err := p.try(ctx, func(ctx context.Context, _ heard) error {
					left := row.back - time.Since(began)
					switch {
					case left <= 0:
						return row.fails
					case !row.hangs:
						return storm
					}
					select {
					case <-time.After(left):
						return row.fails
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				if !errors.Is(err, row.want) || row.want == nil && err != nil {
					t.Errorf("it ended with %v, want %v", err, row.want)
				}
				took := time.Since(began)
				if took < row.took || took > row.took+5*time.Second {
					t.Errorf("it took %v, want %v", took, row.took)
				}
				if want := int(took / sayEvery); len(said) < want-1 || len(said) > want+1 {
					t.Errorf("%d lines in %v", len(said), took)
				}
				if took > 10*time.Second && !strings.Contains(said[1], "waiting for the changes from Acme, 10s so far, ") {
					t.Errorf("it said %q", said[1])
				}
			})
		})
	}
}

// What comes slowly is waited for as long as it comes.
func TestWhatArrivesBeginsThePatienceAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		p := patience{"Acme", func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
		began := time.Now()
		err := p.try(t.Context(), func(ctx context.Context, heard heard) error {
			for range 10 {
				time.Sleep(4 * time.Minute)
				heard(1<<30, 0)
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 45*time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
		if last := said[len(said)-1]; !strings.Contains(last, "10.0 GiB came") {
			t.Errorf("said at last: %s", last)
		}
	})
}

// Each attempt tells what it is about to read, which is no sign of the vendor.
func TestAnAttemptIsNoArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		storm := &sandbox.Error{Code: sandbox.CodeUnavailable, Msg: "bad gateway"}
		err := patience{"Acme", func(string, ...any) {}}.try(t.Context(), func(_ context.Context, heard heard) error {
			if time.Since(began) > time.Hour {
				return nil
			}
			heard(0, 0)
			return storm
		})
		if took := time.Since(began); !errors.Is(err, storm) || took < mostPatience || took > mostPatience+10*time.Second {
			t.Errorf("it took %v: %v", took, err)
		}
	})
}

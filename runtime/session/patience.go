package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	// mostPatience bounds how long a vendor that cannot be reached is waited for when the
	// work is over.
	mostPatience = 5 * time.Minute

	// leastPatience is that after the user wanted an end.
	leastPatience = time.Minute

	// sayEvery is how often a wait is told of.
	sayEvery = 5 * time.Second
)

// A heard function is told as content arrives, like workspace.Home's Heard.
type heard = func(arrived int64, busy time.Duration)

// A patience is with a vendor that cannot be reached when the changes are to come home.
type patience struct {
	title string // of the provider
	note  func(format string, args ...any)
}

// try does something until it succeeds, fails for another reason than that the vendor
// is unavailable, or took too long: it has mostPatience, or leastPatience if ctx was
// cancelled before, and no more than ctx has. If ctx ends later, a wait that was told
// of is over at once. The
// context that do gets is not ctx, and ends with the wait. When do tells heard that
// something arrives, the time begins anew; that something is tried once more, or what the
// sandbox has to read first, is no arrival. The error is the last that tells why.
func (p patience) try(ctx context.Context, do func(ctx context.Context, heard heard) error) error {
	most := mostPatience
	if errors.Is(ctx.Err(), context.Canceled) {
		most = leastPatience
	}
	if end, ok := ctx.Deadline(); ok && ctx.Err() == nil {
		most = min(most, time.Until(end).Round(time.Second))
	}
	work, cancelFor := context.WithCancelCause(context.WithoutCancel(ctx))
	cancel := func() { cancelFor(nil) }
	silence := time.AfterFunc(most, func() { cancelFor(context.DeadlineExceeded) })
	defer silence.Stop()
	var mu sync.Mutex
	var last error
	came, since := int64(0), time.Now()
	heard := func(arrived int64, busy time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		came += arrived
		if arrived > 0 {
			since = time.Now()
		}
		silence.Reset(max(time.Until(since.Add(most+busy)), 0))
	}
	over, watched := make(chan struct{}), make(chan struct{})
	defer func() { cancel(); close(over); <-watched }()
	interrupted := ctx.Done()
	if ctx.Err() != nil {
		interrupted = nil
	}
	began := time.Now()
	say := func() {
		mu.Lock()
		why, came := last, came
		mu.Unlock()
		waited := time.Since(began).Round(time.Second)
		text := fmt.Sprintf("waiting for the changes from %s, %s so far, %s at most", p.title, waited, most)
		if came > 0 {
			text = fmt.Sprintf("waiting for the changes from %s, %s so far: %s came", p.title, waited, workspace.Size(came))
		}
		if why != nil {
			text += fmt.Sprintf(" (%v)", why)
		}
		p.note("%s; Ctrl+C leaves the sandbox running with them", text)
	}
	go func() {
		defer close(watched)
		t := time.NewTicker(sayEvery)
		defer t.Stop()
		told := false
		for {
			select {
			case <-over:
				return
			case <-t.C:
				told = true
				say()
			case <-interrupted:
				interrupted = nil
				if told {
					cancel()
					return
				}
				// It goes well so far: it is given the time it takes anyway.
				stop := time.AfterFunc(leastPatience, cancel)
				defer stop.Stop()
			}
		}
	}()
	for n := 1; ; n++ {
		err := do(work, heard)
		if err != nil && work.Err() != nil && last != nil {
			return last // which tells more than that the time was over
		}
		if err != nil && work.Err() != nil {
			return &sandbox.Error{Code: sandbox.CodeUnavailable, Msg: fmt.Sprintf("no answer from %s in %s", p.title, time.Since(began).Round(time.Second)), Err: context.Cause(work)}
		}
		if !errors.Is(err, sandbox.ErrUnavailable) {
			return err
		}
		mu.Lock()
		last = err
		mu.Unlock()
		select {
		case <-time.After(time.Duration(min(n, 5)) * time.Second):
		case <-work.Done():
			return last
		}
	}
}

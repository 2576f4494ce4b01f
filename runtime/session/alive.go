package session

import (
	"context"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// aliveFor is how long a machine in use is kept alive after the last sign of work: a
// question that nobody answers does not keep it for ever.
const aliveFor = time.Hour

// A heart beats while a machine is in use, so that its vendor does not take a long
// answer of a model, or a question to the user, for idleness.
type heart struct {
	every time.Duration
	beat  func(ctx context.Context)

	mu      sync.Mutex
	working int
	signed  time.Time // the last sign of work
	ends    time.Time // when the machine does; zero: that is not known
}

// sign notes a sign of work.
func (h *heart) sign() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.signed = time.Now()
}

func (h *heart) work(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.working += n
	h.signed = time.Now()
}

func (h *heart) inUse() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.working > 0 && time.Since(h.signed) < aliveFor
}

// end notes when the machine ends.
func (h *heart) end(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends = t
}

// nearEnd returns how long there is of a life that began then, if that is less than a
// tenth.
func (h *heart) nearEnd(began time.Time) (left time.Duration, near bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left = max(time.Until(h.ends), 0)
	return left, !h.ends.IsZero() && left < h.ends.Sub(began)/10
}

// run beats until ctx ends.
func (h *heart) run(ctx context.Context) {
	t := time.NewTicker(h.every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if h.inUse() {
				h.beat(ctx)
			}
		}
	}
}

// Working says that the machine is in use until the function it returns is called.
// One of ours is kept alive as long, while Active tells of signs of work, and never
// beyond its lifetime.
func (s *Session) Working() (done func()) {
	s.heart.work(1)
	return func() { s.heart.work(-1) }
}

// Active tells of a sign of work.
func (s *Session) Active() { s.heart.sign() }

// keepAlive begins to keep a machine of ours alive whose vendor has an idle limit, and
// to warn of its end. What it returns goes on with that until ctx ends.
func (s *Session) keepAlive() (run func(ctx context.Context)) {
	s.heart.every = time.Minute
	idle := time.Duration(0)
	if s.opts.Provider.Describe().Features.Idle {
		idle = s.lease.Idle
	}
	if idle > 0 {
		s.heart.every = min(s.heart.every, idle/3)
	}
	id, began, last, warned := s.lease.ID, s.lease.Created, time.Now(), false
	s.heart.end(s.lease.Expires)
	s.heart.beat = func(ctx context.Context) {
		if left, near := s.heart.nearEnd(began); near && !warned {
			warned = true
			s.opts.Warn("sandbox %s ends in %s, at the end of its lifetime (sandboxes.max_lifetime)", id, left.Round(time.Second))
		}
		if idle == 0 || time.Since(last) < idle/3 {
			return
		}
		last = time.Now()
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		s.Sandbox.Exec(ctx, sandbox.Cmd{Args: []string{"true"}, Dir: "/"}) // it tells the vendor that the machine is in use
	}
	return s.heart.run
}

package session

import (
	"context"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// unheardEvery is how often it is told that a vendor is not heard.
const unheardEvery = 15 * time.Second

// A listened is a Sandbox that tells when, while a command runs, its vendor is not
// heard.
type listened struct {
	sandbox.Sandbox
	title string // of the provider
	note  func(format string, args ...any)
}

// Unwrap shows what else the sandbox can do.
func (l *listened) Unwrap() sandbox.Sandbox { return l.Sandbox }

// Exec implements sandbox.Sandbox.
func (l *listened) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	s := &silence{title: l.title, note: l.note, next: cmd.Unheard, over: make(chan struct{})}
	cmd.Unheard = s.unheard
	defer s.end()
	exit, err := l.Sandbox.Exec(ctx, cmd)
	if err == nil {
		s.heard()
	}
	return exit, err
}

// A silence is one of a vendor while a command runs. It is told of when it begins, from
// time to time, and when it is over.
type silence struct {
	title string
	note  func(format string, args ...any)
	next  func(since, until time.Time) // of the caller; may be nil
	over  chan struct{}
	done  sync.WaitGroup

	mu           sync.Mutex
	since, until time.Time // zero: it is heard
	telling      bool
}

// unheard fits sandbox.Cmd.Unheard.
func (s *silence) unheard(since, until time.Time) {
	if s.next != nil {
		s.next(since, until)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if since.IsZero() {
		s.again()
		return
	}
	fresh := s.since.IsZero()
	if fresh || since.Before(s.since) {
		s.since, s.until = since, until
	}
	if fresh {
		s.say()
	}
	if !s.telling {
		s.telling = true
		s.done.Go(s.tell)
	}
}

func (s *silence) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again()
}

// again says that a silence is over, if there was one.
func (s *silence) again() {
	if !s.since.IsZero() {
		s.note("  %s is heard again, after %s", s.title, time.Since(s.since).Round(time.Second))
	}
	s.since = time.Time{}
}

// tell goes on until the command's end.
func (s *silence) tell() {
	t := time.NewTicker(unheardEvery)
	defer t.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-t.C:
			s.mu.Lock()
			if !s.since.IsZero() {
				s.say()
			}
			s.mu.Unlock()
		}
	}
}

func (s *silence) say() {
	if left := time.Until(s.until).Round(time.Second); left > 0 {
		s.note("  nothing heard from %s for %s; the command may still run; giving up in %s", s.title, time.Since(s.since).Round(time.Second), left)
		return
	}
	s.note("  nothing heard from %s for %s; giving up", s.title, time.Since(s.since).Round(time.Second))
}

func (s *silence) end() {
	close(s.over)
	s.done.Wait()
}

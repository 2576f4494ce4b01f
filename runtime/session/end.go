package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// destroy ends the machine under a context of its own and forgets the lease if
// that went well.
func (s *Session) destroy() error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	d, spec := s.opts.Provider.Describe(), s.spec
	spec.ID, spec.Token = s.lease.ID, s.lease.Token
	if err := End(ctx, s.opts.Provider, spec); err != nil {
		s.opts.Leases.Put(s.lease)
		s.problem("the %s sandbox %s could not be ended: %v; it ends by itself %s, or with: talkops sandbox rm %s", d.Title, s.lease.ID, err, s.lease.Ends(), s.lease.ID)
		return err
	}
	s.over()
	saved := ""
	if s.home != nil && !s.home.Empty() && !s.lease.Unsaved {
		saved = "; its work is saved"
	}
	s.opts.Note("%s %s is ended%s", d.Title, s.lease.ID, saved)
	return s.opts.Leases.Remove(s.lease.Run)
}

// End destroys a machine, trying again while the vendor is only unavailable.
func End(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) error {
	for try := 1; ; try++ {
		err := p.Destroy(ctx, spec)
		if err == nil || errors.Is(err, sandbox.ErrNotFound) || errors.Is(err, sandbox.ErrGone) {
			return nil
		}
		if !errors.Is(err, sandbox.ErrUnavailable) || try == 3 {
			return err
		}
		select {
		case <-time.After(time.Duration(try) * time.Second):
		case <-ctx.Done():
			return err
		}
	}
}

// EndLease destroys the machine of a lease. One whose id never became known, since
// the run was killed before the vendor's answer came, is found by its label.
func EndLease(ctx context.Context, p sandbox.Provider, lease Lease, settings map[string]string) error {
	spec := sandbox.Spec{ID: lease.ID, Token: lease.Token, Settings: settings}
	if lease.ID != "" {
		return End(ctx, p, spec)
	}
	found, err := sandbox.List(ctx, p, sandbox.Spec{Settings: settings, Labels: map[string]string{"run": lease.Run}})
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	for _, m := range found {
		spec.ID = m.ID
		if err := End(ctx, p, spec); err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return nil
	}
	// Some vendors list a machine late but know its name at once.
	spec.ID = lease.Name
	if err := End(ctx, p, spec); err != nil && !errors.Is(err, sandbox.ErrInvalid) {
		return err
	}
	return nil
}

// An UnsavedError says that work could not be brought home, so that the machine
// was left for it.
type UnsavedError struct {
	ID  string
	Err error
}

func (e *UnsavedError) Error() string {
	return fmt.Sprintf("the changes made in sandbox %s could not be fetched: %v", e.ID, e.Err)
}

func (e *UnsavedError) Unwrap() error { return e.Err }

// End brings changes home and ends a fresh machine, whatever happened before. It
// does so also if ctx has ended; if that ends meanwhile, a vendor that cannot be
// reached is waited for no longer. The error is an *UnsavedError if work stays behind.
func (s *Session) End(ctx context.Context) error {
	defer s.Sandbox.Close()
	if s.opts.Provider.Describe().Features.Host {
		return nil
	}
	err := s.bringHome(ctx)
	if gone := errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrNotFound); err != nil && !gone && s.Fresh {
		s.problem("sandbox %s keeps your work and ends by itself %s", s.lease.ID, s.lease.Ends())
		option := ""
		if lost, is := errors.AsType[*workspace.LostError](err); is {
			for i, l := range lost.Left {
				if i == 5 {
					s.opts.Warn("and %d more", len(lost.Left)-i)
					break
				}
				s.opts.Warn("%q did not come home: %s", l.Name, l.Why)
			}
			if slices.ContainsFunc(lost.Left, func(l workspace.Left) bool { return l.Over }) {
				option = " --no-limit"
			}
		}
		s.opts.Warn("fetch it: talkops sandbox rescue%s %s", option, s.lease.Run)
		s.opts.Warn("end it: talkops sandbox rm --discard %s", s.lease.ID)
		return &UnsavedError{s.lease.ID, err}
	}
	s.lease.Unsaved = err != nil
	switch {
	case !s.Fresh:
		if err != nil {
			return &UnsavedError{s.Sandbox.Info().ID, err}
		}
		return nil
	case s.opts.Keep:
		s.lease.Kept = true
		s.opts.Note("%s %s is kept; it ends by itself %s, or with: talkops sandbox rm %s",
			s.opts.Provider.Describe().Title, s.lease.ID, s.lease.Ends(), s.lease.ID)
		return s.opts.Leases.Put(s.lease)
	}
	if err == nil && s.home != nil {
		if err := s.home.Settle(); err != nil {
			s.problem("what came home may not outlive a loss of power: %v", err)
		}
	}
	// Ending it takes a while, and may be broken off.
	s.opts.Leases.Put(s.lease)
	s.destroy()
	if err != nil {
		return &UnsavedError{s.lease.ID, err}
	}
	return nil
}

// Changed says that a call may have changed files in the sandbox, so that they
// are brought home soon. It does not wait.
func (s *Session) Changed() {
	select {
	case s.changed <- struct{}{}:
	default: // that is known already, or there is nothing to bring home
	}
}

// watch brings changes home after calls, one time after the other, until the
// session ends. What fails here is done again at the end.
func (s *Session) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	s.changed, s.watching, s.unwatch = make(chan struct{}, 1), make(chan struct{}), cancel
	var alive sync.WaitGroup
	if s.Fresh {
		run := s.keepAlive()
		alive.Go(func() { run(ctx) })
	}
	go func() {
		defer close(s.watching)
		defer alive.Wait()
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.changed:
				s.bringing.Lock()
				s.home.Bring(ctx, s.Sandbox, false)
				s.bringing.Unlock()
			}
		}
	}()
}

// Home is where the work of the session is kept on this computer; nil if it needs
// no bringing home.
func (s *Session) Home() *workspace.Home { return s.home }

// Told says that the user was shown the sum of changes as Home has it now, so that End
// says it only if it has become another one.
func (s *Session) Told() {
	if s.home != nil {
		s.told = s.home.String()
	}
}

// keepBaseline drops a home that holds no work. What was sent stays on record only
// where somebody may attach to the machine again.
func (s *Session) keepBaseline() error {
	if s.Fresh && !s.opts.Keep || s.opts.Plan == nil || len(s.opts.Plan.Records()) == 0 {
		return s.home.Remove()
	}
	for _, h := range Homes(s.opts.WorkDir) { // one of a machine is enough
		r := h.Run
		if r.ID != s.home.Run.ID && r.Sandbox == s.home.Run.Sandbox && r.Provider == s.home.Run.Provider && r.Project == s.home.Run.Project && r.Whole && h.Empty() && strings.HasPrefix(r.ID, attached) {
			h.Remove()
		}
	}
	return s.home.Finish()
}

// bringHome brings home what changed in the sandbox since it was set up.
func (s *Session) bringHome(ctx context.Context) error {
	s.unwatch()
	err := patience{s.opts.Provider.Describe().Title, s.opts.Note}.try(ctx, func(ctx context.Context, heard heard) error {
		select {
		case <-s.watching:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.home.Heard = heard
		defer func() { s.home.Heard = nil }()
		for try := 1; ; try++ {
			// What something there made and removed again while it was looked at is
			// not missing the next time.
			err := s.home.Bring(ctx, s.Sandbox, false)
			if _, lost := errors.AsType[*workspace.LostError](err); !lost || try > 2 {
				return err
			}
		}
	})
	if err != nil {
		return err
	}
	// Every file is read once more, in case a clock there does not tell of a
	// change, as long as that can be done in the time there is.
	err = whileArriving(context.WithoutCancel(ctx), s.home, 2*endTimeout, func(ctx context.Context) error { return s.home.Bring(ctx, s.Sandbox, true) })
	if _, quiet := errors.AsType[*quietError](err); err != nil && !quiet {
		return err
	}
	for i, l := range s.home.Left {
		if i == 5 {
			s.opts.Warn("and %d more stayed in the sandbox", len(s.home.Left)-i)
			break
		}
		s.opts.Warn("%q stayed in the sandbox: %s", l.Name, l.Why)
	}
	if s.Fresh {
		// Said before the home says it, or is no more: killed between the two, a run
		// leaves a machine that can be ended and a home that can be looked at again.
		s.lease.Unsaved = false
		if err := s.opts.Leases.Put(s.lease); err != nil {
			return err
		}
	}
	if s.home.Empty() {
		return s.keepBaseline()
	}
	if err := s.home.Finish(); err != nil {
		return err
	}
	if s.home.String() != s.told {
		s.opts.Note("changed in the sandbox (%s), saved in %s", s.home, s.home.Dir)
	}
	return nil
}

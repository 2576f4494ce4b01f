package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// ErrNoBaseline means that a machine is there, but not what it began with, so that
// nobody can tell what was changed in it.
var ErrNoBaseline = errors.New("what the machine began with is not on record")

// Resume goes on with a machine of ours that an earlier session left running. It is
// this session's own from then on: what was changed in it since it was set up comes
// home, and it is ended at the end. Nothing is uploaded and no script runs. If it
// fails, the machine and its lease stay as they are; the error is a *StartError.
func Resume(ctx context.Context, opts Options, lease Lease) (*Session, error) {
	d := opts.Provider.Describe()
	s := &Session{opts: opts, spec: opts.Spec, Fresh: true}
	fail := func(err error) (*Session, error) {
		return nil, &StartError{Step: "attach to", Name: d.Title, Err: err}
	}
	home, err := workspace.OpenHome(filepath.Join(opts.WorkDir, lease.Run))
	if err == nil {
		err = home.Resume()
	}
	if err != nil {
		return fail(fmt.Errorf("%w: %w", ErrNoBaseline, err))
	}
	s.home, home.Most = home, opts.MaxReturn
	s.spec.ID, s.spec.Token = lease.ID, lease.Token
	s.spec.Progress = func(text string) { opts.Note("%s: %s", d.Title, text) }
	openCtx, cancel := ctx, context.CancelFunc(func() {})
	if opts.CreateTimeout > 0 {
		openCtx, cancel = context.WithTimeout(ctx, opts.CreateTimeout)
	}
	defer cancel()
	began := time.Now()
	sb, err := opts.Provider.Open(openCtx, s.spec)
	if err != nil {
		return fail(err)
	}
	s.Sandbox = &listened{sb, d.Title, opts.Note}
	info := sb.Info()
	s.Dir = workspace.Below(info.Dir, opts.Start)
	if exit, err := sb.Exec(ctx, sandbox.Cmd{Args: []string{"mkdir", "-p", "--", s.Dir}}); err != nil || exit != 0 {
		sb.Close()
		return fail(unable("use "+s.Dir, exit, err))
	}
	s.lease, s.from = lease, time.Now()
	s.lease.PID, s.lease.Kept, s.lease.Unsaved = os.Getpid(), false, true
	s.lease.Host, _ = os.Hostname()
	if opts.USDPerHour > 0 {
		s.lease.Price = opts.USDPerHour
	}
	if info.Token != "" {
		s.lease.Token = info.Token
	}
	// A lifetime is set again, and never made shorter.
	if want := time.Now().Add(opts.Spec.Lifetime); d.Features.Lifetime && opts.Spec.Lifetime > 0 && want.After(lease.Expires) {
		if until, err := sandbox.Extend(ctx, sb, want); err == nil {
			s.lease.Expires = until
		}
	}
	if err := opts.Leases.Put(s.lease); err != nil {
		sb.Close()
		return fail(fmt.Errorf("keep a record of the machine: %w", err))
	}
	home.Run.PID, home.Run.Host, home.Run.Whole = s.lease.PID, s.lease.Host, false
	opts.Note("%s %s is there again after %s, working in %s", d.Title, info.ID, time.Since(began).Round(100*time.Millisecond), s.Dir)
	s.watch()
	s.Changed() // what happened there after it was last looked at
	return s, nil
}

// KeepRunning decides whether a fresh machine is left running at the end.
func (s *Session) KeepRunning(yes bool) { s.opts.Keep = yes }

// Keeps reports whether a machine of ours is left running at the end.
func (s *Session) Keeps() bool { return s.opts.Keep }

// Expires is when the vendor ends the machine by itself; zero if that is not known.
func (s *Session) Expires() time.Time {
	if s.Fresh && !s.lease.Expires.IsZero() {
		return s.lease.Expires
	}
	if s.Sandbox == nil {
		return time.Time{}
	}
	return s.Sandbox.Info().Expires
}

// Fetch brings home what changed by now, so that Home can be looked at until the
// next call of Changed. It does nothing if there is nothing to bring home.
func (s *Session) Fetch(ctx context.Context) error {
	if s.home == nil {
		return nil
	}
	s.bringing.Lock()
	defer s.bringing.Unlock()
	select {
	case <-s.changed: // this is that look
	default:
	}
	return s.home.Bring(ctx, s.Sandbox, false)
}

// Extend makes the vendor keep a machine of ours at least until t, and returns what
// it promised.
func (s *Session) Extend(ctx context.Context, t time.Time) (time.Time, error) {
	if !s.Fresh {
		return time.Time{}, errors.New("this machine is not the session's own; its end is left as it is")
	}
	until, err := sandbox.Extend(ctx, s.Sandbox, t)
	if err != nil {
		return time.Time{}, err
	}
	s.lease.Expires = until
	s.heart.end(until)
	return until, s.opts.Leases.Put(s.lease)
}

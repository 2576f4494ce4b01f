package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/workspace"
)

func (a *app) savedDir() string { return filepath.Join(a.home, "saved") }

// surplus are the saved works past a limit, as session.Surplus has them. Work of
// runs that go on, or whose machine is on record, is in use.
func (a *app) surplus(cfg *config.Config) (gone, kept []session.Old, err error) {
	leases, err := a.leases().List()
	list := session.SavedWork(a.savedDir(), func(r workspace.Run) bool {
		_, leased := find(leases, r.ID)
		return leased || !r.Whole && alive(session.Lease{Host: r.Host, PID: r.PID})
	})
	gone, kept = session.Surplus(list, cfg.Saved.MaxAge, cfg.Saved.MaxBytes, time.Now())
	return gone, kept, err
}

// pruneSaved removes saved work past a limit and names it. What nobody took is
// removed only with discard. It returns how many it told of.
func (a *app) pruneSaved(cfg *config.Config, dry, discard bool) (int, error) {
	gone, kept, err := a.surplus(cfg)
	if err != nil {
		return 0, err // a machine that is not known may need any of it
	}
	told := len(gone) + len(kept)
	if discard {
		gone, kept = append(gone, kept...), nil
	}
	for _, o := range kept {
		a.warnf("the work of run %s (%s, %s, of %s) was never applied, exported or pulled, and %s; add --discard to remove it", o.Run.ID, o.Home, workspace.Size(o.Bytes), o.Run.Started.Local().Format("2006-01-02"), past(o))
	}
	var errs []error
	for _, o := range gone {
		if !dry {
			if err := o.Remove(); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		fmt.Fprintln(a.streams.Out, term.Clean(o.Dir))
		word := "removed"
		if dry {
			word = "to be removed"
		}
		a.warnf("%s: the work of run %s (%s, %s): %s", word, o.Run.ID, o.Home, workspace.Size(o.Bytes), past(o))
	}
	if !dry {
		session.Sweep(a.savedDir(), time.Now())
	}
	return told, errors.Join(errs...)
}

func past(o session.Old) string {
	if o.Run.Taken.IsZero() {
		return o.Why
	}
	return "it was taken, and " + o.Why
}

// tidied is touched when saved work was looked through.
const tidied = ".tidied"

// tidySaved removes, once a day, saved work past a limit that was taken, and says
// so; of other such work it says that it is there.
func (a *app) tidySaved(cfg *config.Config) {
	mark := filepath.Join(a.savedDir(), tidied)
	if info, err := os.Stat(mark); err == nil && time.Since(info.ModTime()) < 24*time.Hour {
		return
	}
	if os.WriteFile(mark, nil, 0o600) != nil {
		return // nothing is saved yet
	}
	now := time.Now()
	os.Chtimes(mark, now, now)
	gone, kept, err := a.surplus(cfg)
	if err != nil {
		return
	}
	for _, o := range gone {
		if o.Remove() == nil && len(o.Changes) > 0 {
			a.warnf("removed: the work of run %s (%s): %s", o.Run.ID, o.Home, past(o))
		}
	}
	if len(kept) > 0 {
		a.warnf("the work of %s was never applied, exported or pulled, and is past saved.max_age or saved.max_bytes; see: talkops sandbox prune --dry-run", workspace.Count(len(kept), "run"))
	}
}

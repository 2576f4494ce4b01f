package cmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/registry"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/workspace"
)

func (a *app) snapshots() session.Snapshots {
	return session.Snapshots{Dir: filepath.Join(a.home, "warm")}
}

// warmStarts are the settings' wish to start from what an earlier setup made; nil if
// there is none.
func (a *app) warmStarts(cfg *config.Config) *session.Warm {
	if !cfg.Sandbox.Warm {
		return nil
	}
	w := &session.Warm{Kept: a.snapshots()}
	for _, name := range cfg.Sandbox.Env {
		if v, _ := a.env(name); !public(name) && (telling(name) || !word(v)) {
			w.Secret = append(w.Secret, name)
		}
	}
	return w
}

// word reports whether a value is an ordinary word or number, such as "production",
// that stands in many files and tells nothing.
func word(value string) bool {
	return len(value) < 6 || len(value) < 16 && !strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsLower(r) })
}

// pruneWarm removes the snapshots that no later start will use, or all, and names
// them. It returns how many it told of.
func (a *app) pruneWarm(ctx context.Context, dry, all bool) (int, error) {
	list, err := a.snapshots().List()
	errs := []error{err}
	told, newest := 0, map[string]bool{}
	for _, k := range list {
		why := ""
		switch {
		case !k.Ready && alive(session.Lease{Host: k.Host, PID: k.PID}):
			continue // it is being made
		case !k.Ready:
			why = "it was never finished"
		case time.Since(k.Created) > session.WarmFor:
			why = "it is older than " + session.WarmFor.String()
		case newest[k.Key]:
			why = "there is a newer one"
		case all:
			why = "all go"
		default:
			newest[k.Key] = true
			continue
		}
		told++
		if !dry {
			if err := a.endSnapshot(ctx, k); err != nil {
				errs = append(errs, fmt.Errorf("remove snapshot %s: %w", k.Name, err))
				continue
			}
		}
		fmt.Fprintln(a.streams.Out, term.Clean(k.Name))
		word := "removed"
		if dry {
			word = "to be removed"
		}
		a.warnf("%s: snapshot %s at %s, the state after a setup script: %s", word, term.Clean(k.Name), term.Clean(k.Provider), why)
	}
	return told, errors.Join(errs...)
}

func (a *app) endSnapshot(ctx context.Context, k session.Kept) error {
	if err := a.knowProvider(ctx, k.Provider); err != nil {
		return err
	}
	p := a.providers.Find(k.Provider)
	if p == nil {
		return fmt.Errorf("its provider %q is not known", k.Provider)
	}
	settings, err := registry.Settings(ctx, p, a.env)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return session.EndSnapshot(ctx, p, k, settings, a.snapshots())
}

// noteWarm says that snapshots are kept, which vendors may ask money for.
func (a *app) noteWarm() {
	list, err := a.snapshots().List()
	if err != nil {
		a.warnf("warning: %v", err)
	}
	if len(list) > 0 {
		a.warnf("kept for warm starts: %s; to remove: talkops sandbox prune --warm", workspace.Count(len(list), "snapshot"))
	}
}

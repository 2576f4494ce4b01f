package cmd

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/workspace"
)

// asks reports whether the user is asked at the end what becomes of the work.
func asks(cfg *config.Config) bool { return cfg.Sandbox.Export == "" || cfg.Sandbox.Export == "ask" }

// mostNamed is how many changed files are named at the end.
const mostNamed = 20

// askExport shows what was changed in the sandbox and asks what becomes of it.
// Without an answer it is a patch. A session whose changes cannot be fetched is left
// to its own end, which says so.
func (a *app) askExport(ctx context.Context, s *session.Session, otherwise wish) wish {
	h := s.Home()
	if h == nil {
		return otherwise
	}
	a.warnf("looking what was changed in the sandbox…")
	err := s.Fetch(ctx)
	lost := gone(err)
	if err != nil && !lost || len(h.Changes) == 0 {
		return otherwise
	}
	take, _ := h.Split(true)
	if lost {
		a.warnf("the machine is no more; saved of it: %s", h)
	} else {
		a.warnf("changed in the sandbox: %s", h)
	}
	within := map[string]bool{} // directories that another name says
	for _, c := range take {
		within[path.Dir(c.Name)] = true
	}
	take = slices.DeleteFunc(take, func(c workspace.Change) bool { return within[c.Name] })
	for i, c := range take {
		if i == mostNamed {
			a.warnf("  and %d more", len(take)-i)
			break
		}
		mark := "M"
		switch {
		case c.Now == nil:
			mark = "D"
		case c.Was == nil:
			mark = "A"
		}
		name := quoted(c.Name)
		if c.Now != nil && c.Now.Kind == workspace.Dir {
			name += "/"
		}
		a.warnf("  %s %s", mark, name)
	}
	a.warnf("What becomes of it? Enter alone is a patch.")
	question := "[a]pply to the project, [b]ranch, [p]atch, [d]iscard"
	if s.Fresh && !lost {
		question += ", [k]eep the machine"
	}
	for range 5 {
		answer, err := a.askText(ctx, question+": ")
		if err != nil {
			return otherwise
		}
		word, name, _ := strings.Cut(answer, " ")
		switch strings.ToLower(word) {
		case "", "p", "patch":
			return wish{what: "patch"}
		case "a", "apply":
			return wish{what: "apply"}
		case "b", "branch":
			if name = strings.TrimSpace(name); name == "" {
				name, err = a.askText(ctx, fmt.Sprintf("Name of the branch (talkops/%s): ", h.Run.ID))
				if err != nil {
					return otherwise
				}
			}
			if name == "" {
				name = "talkops/" + h.Run.ID
			}
			if !workspace.BranchName(ctx, name) {
				a.warnf("%s cannot be the name of a branch.", quoted(name))
				continue
			}
			return wish{what: "branch", where: name}
		case "d", "discard":
			a.warnf("Nothing is taken over. Until it is cleared away, it can be had: talkops sandbox apply %s", term.Clean(h.Run.ID))
			return wish{what: "none"}
		case "k", "keep":
			if s.Fresh && !lost {
				s.KeepRunning(true)
				return wish{what: "patch"}
			}
		}
		a.warnf("%s is none of these.", quoted(answer))
	}
	return otherwise
}

package cmd

import (
	"context"
	"errors"
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

// askExport shows what was changed in the sandbox and not applied to the project yet, and
// asks what becomes of it, if there is any. Without an answer it is a patch. A session whose changes cannot be fetched is left
// to its own end, which says so.
func (a *app) askExport(ctx context.Context, s *session.Session, otherwise wish) wish {
	h := s.Home()
	if h == nil {
		return otherwise
	}
	a.warnf("looking at what was changed in the sandbox…")
	err := s.Fetch(ctx)
	lost := gone(err)
	if err != nil && !lost || h.Empty() {
		return otherwise
	}
	applied := h.Applied()
	otherwise.since = applied
	fresh := h.Since()
	if takes, aside := workspace.Split(fresh, false); applied && len(takes) == 0 {
		s.Told()
		a.warnf("%s", allApplied(aside))
		return otherwise
	}
	take, _ := workspace.Split(fresh, true)
	yet := ""
	if applied {
		yet = ", and not applied yet"
	}
	if lost {
		a.warnf("the machine is no more; saved of it%s: %s", yet, workspace.Sum(fresh))
	} else {
		a.warnf("changed in the sandbox%s: %s", yet, workspace.Sum(fresh))
	}
	within := map[string]bool{} // directories that another name says
	for _, c := range take {
		within[path.Dir(c.Name)] = true
	}
	s.Told()
	take = slices.DeleteFunc(take, func(c workspace.Change) bool { return within[c.Name] })
	_, aside := workspace.Split(fresh, false)
	kept := map[string]string{} // what no answer takes over: how that is said
	for _, x := range aside {
		kept[x.Name] = ": " + setAside(x)
	}
	for i, c := range take {
		if i == mostNamed {
			a.warnf("  and %d more%s", len(take)-i, asideOf(take[i:], kept))
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
		a.warnf("  %s %s%s", mark, name, kept[c.Name])
	}
	there := false
	if out, err := h.Apply(ctx, h.Run.Project, take, true); err == nil && len(out.Made)+len(out.Conflicts) == 0 {
		there = true
		a.warnf("All of it is in the project already.")
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
			return wish{what: "patch", there: there, since: applied}
		case "a", "apply":
			return wish{what: "apply"}
		case "b", "branch":
			name, err = a.askBranch(ctx, h, strings.TrimSpace(name))
			switch {
			case err != nil:
				return otherwise
			case name == "":
				continue
			}
			return wish{what: "branch", where: name, since: applied}
		case "d", "discard":
			switch {
			case there:
				a.warnf("What is in the project stays there.")
			case applied:
				a.warnf("What was applied stays in the project; the rest is not taken over. To have it after all, until it is removed: talkops sandbox apply %s", term.Clean(h.Run.ID))
			default:
				a.warnf("Nothing is taken over. To have it after all, until it is removed: talkops sandbox apply %s", term.Clean(h.Run.ID))
			}
			return wish{what: "none"}
		case "k", "keep":
			if s.Fresh && !lost {
				s.KeepRunning(true)
				return wish{what: "patch", there: there, since: applied}
			}
		}
		a.warnf("%s is none of these.", quoted(answer))
	}
	return otherwise
}

// allApplied says that there is nothing more to be made in the project.
func allApplied(aside []workspace.Aside) string {
	but := ""
	if len(aside) > 0 {
		but = ", but for what is set aside"
	}
	return fmt.Sprintf("All that was changed in the sandbox is applied to the project%s.", but)
}

// asideOf says how many of the changes that are not named are set aside.
func asideOf(changes []workspace.Change, kept map[string]string) string {
	n := 0
	for _, c := range changes {
		if kept[c.Name] != "" {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them set aside", n)
}

// askBranch asks for the name of a new branch until it is one that can be made, and
// returns it. It is "" if none can, or the user has thought better of it. A name that is
// given is tried first.
func (a *app) askBranch(ctx context.Context, h *workspace.Home, name string) (string, error) {
	own, first := "talkops/"+h.Run.ID, name == ""
	for {
		if name == "" {
			question := fmt.Sprintf("Name of the branch (Enter alone: %s): ", own)
			if !first {
				question = "Another name (Enter alone: none): "
			}
			typed, err := a.askText(ctx, question)
			if err != nil {
				return "", err
			}
			switch name = typed; {
			case name == "" && first:
				name = own
			case name == "":
				return "", nil
			}
		}
		err := h.Branchable(ctx, name)
		if err == nil {
			return name, nil
		}
		a.warnf("%v", err)
		if errors.Is(err, workspace.ErrNoRepository) {
			return "", nil
		}
		name, first = "", false
	}
}

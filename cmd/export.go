package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/headless"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/runtime/workspace"
)

// An exportError says that the work is kept on this computer, but not where it
// was wanted.
type exportError struct {
	text string
	err  error // may be nil
}

func (e *exportError) Error() string {
	if e.err != nil {
		return e.text + ": " + e.err.Error()
	}
	return e.text
}

func (e *exportError) Unwrap() error { return e.err }

// A wish is what becomes of the work at the end of a run: "patch", "branch",
// "apply" or "none", and where to.
type wish struct {
	what, where string
	there       bool // all of it is in the project already
	since       bool // a patch has what was not applied before; if there is none, there is no patch
	also        bool // what was applied before is in it too, and that is said
}

// wantExport reads the setting, before anything is started.
func (a *app) wantExport(cfg *config.Config) (wish, error) {
	v := cfg.Value("sandbox.export")
	what, where, _ := strings.Cut(cfg.Sandbox.Export, ":")
	w := wish{what: what, where: where}
	switch {
	case what == "" || what == "ask" && where == "":
		return wish{what: "patch"}, nil // there is nobody to ask
	case (what == "apply" || what == "none") && where == "" && !strings.Contains(cfg.Sandbox.Export, ":"):
	case what == "branch" && where != "":
		if !workspace.BranchName(context.Background(), where) {
			return wish{}, &usageError{fmt.Sprintf("sandboxes.export (%s): %q is no name for a branch", v.Origin, where)}
		}
	case what == "patch" && where != "":
		w.where = a.absolute(where)
		if info, err := os.Stat(filepath.Dir(w.where)); err != nil || !info.IsDir() {
			return wish{}, &usageError{fmt.Sprintf("sandboxes.export (%s): there is no directory %s", v.Origin, filepath.Dir(w.where))}
		}
		if info, err := os.Stat(w.where); err == nil && info.IsDir() {
			return wish{}, &usageError{fmt.Sprintf("sandboxes.export (%s): %s is a directory, and no file", v.Origin, w.where)}
		}
	case what == "patch" && !strings.Contains(cfg.Sandbox.Export, ":"):
	default:
		return wish{}, &usageError{fmt.Sprintf("sandboxes.export (%s): %q is none of ask, patch, patch:FILE, branch:NAME, apply, none", v.Origin, cfg.Sandbox.Export)}
	}
	return w, nil
}

// watching tells the session of every call that may have changed files.
func watching(s *session.Session, emit func(agent.Event)) func(agent.Event) {
	writes := map[string]bool{}
	return func(e agent.Event) {
		s.Active()
		switch e := e.(type) {
		case agent.CallStarted:
			writes[e.ID] = e.Effect == tool.Writes || e.Effect == tool.Runs
		case agent.CallDone:
			if writes[e.ID] {
				delete(writes, e.ID)
				s.Changed()
			}
		}
		emit(e)
	}
}

// exportWork does with the work of a session that has ended what was wished. It
// says where the work is, and returns that too; nil if there is none. The error is
// an *exportError.
func (a *app) exportWork(s *session.Session, w wish, note, warn func(string, ...any)) (*headless.Work, error) {
	h := s.Home()
	if h == nil || h.Empty() {
		return nil, nil
	}
	work := &headless.Work{Run: h.Run.ID, Dir: h.Dir, Changed: h.String()}
	if w.what == "none" {
		warn("the work is kept in %s", h.Dir)
		return work, nil
	}
	take, aside := h.Split(false)
	for _, x := range aside {
		work.Aside = append(work.Aside, x.Name)
	}
	told := leaves(aside)
	for i, x := range told {
		switch {
		case i < 5:
			warn("%q is %s; it is kept: talkops sandbox diff --all %s", x.Name, setAside(x), h.Run.ID)
		case i == 5:
			warn("and %d more are set aside", len(told)-i)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch w.what {
	case "branch":
		commit, told, err := h.Branch(ctx, w.where, "Work of talkops run "+h.Run.ID, take)
		if err != nil {
			return work, &exportError{fmt.Sprintf("the work is kept in %s, but branch %s was not made (talkops sandbox export %s --branch NAME)", h.Dir, w.where, h.Run.ID), err}
		}
		work.Branch = w.where
		took(h, aside, sayBranch(told, warn), warn)
		also := ""
		if w.since || w.also {
			also = ", also those that were applied before"
		}
		warn("branch %s holds the changes (%.12s)%s", w.where, commit, also)
		return work, nil
	case "apply":
		out, err := h.Apply(ctx, h.Run.Project, take, false)
		work.Applied = len(out.Made)
		for _, m := range out.Merged {
			work.Merged = append(work.Merged, m.Name)
		}
		for _, c := range out.Conflicts {
			work.Conflicts = append(work.Conflicts, c.Name)
		}
		if err != nil {
			return work, &exportError{fmt.Sprintf("the work is kept in %s, but not all of it was applied", h.Dir), err}
		}
		switch n := said(out.Stands, work.Aside); {
		case n > 0 && len(out.Made)+len(out.Conflicts) == 0:
			warn("All that was changed is in the project already.")
		case n > 0:
			warn("applied to the project: %s; %d there already", workspace.Count(said(out.Made, work.Aside), "change"), n)
		default:
			warn("applied to the project: %s", workspace.Count(said(out.Made, work.Aside), "change"))
		}
		sayMerged(out, warn)
		err = conflicts(h, out, warn)
		if err == nil {
			took(h, aside, nil, warn)
		}
		return work, err
	}
	if w.since {
		if take, _ = workspace.Split(h.Since(), false); len(take) == 0 {
			took(h, aside, nil, warn)
			return work, nil
		}
	}
	file := w.where
	if file == "" {
		file = filepath.Join(h.Dir, "changes.patch")
	}
	var left []workspace.Left
	var err error
	if work.Patch, left, err = writePatch(h, file, take, warn); err != nil {
		return work, &exportError{fmt.Sprintf("the work is kept in %s, but its patch was not written", h.Dir), err}
	}
	if w.where != "" {
		took(h, aside, left, warn)
	}
	for _, file := range work.Patch {
		warn("patch: %s", file)
	}
	if w.also {
		warn("it holds also what was applied before, for another copy of the project")
	}
	if !w.there {
		note("to make the changes here: talkops sandbox apply %s", h.Run.ID)
	}
	return work, nil
}

// said is how many of the made names are told: a directory that another name says, also
// one that is set aside, is not.
func said(made, aside []string) int {
	within := parents(slices.Concat(made, aside))
	return len(slices.DeleteFunc(slices.Clone(made), func(name string) bool { return within[name] }))
}

// leaves are those set aside without the directories that another of their names says.
func leaves(aside []workspace.Aside) []workspace.Aside {
	var names []string
	for _, x := range aside {
		names = append(names, x.Name)
	}
	within := parents(names)
	return slices.DeleteFunc(slices.Clone(aside), func(x workspace.Aside) bool { return within[x.Name] })
}

// setAside words what is so, and why.
func setAside(x workspace.Aside) string { return "set aside, since it " + x.Why }

// parents are the directories that those names say.
func parents(names []string) map[string]bool {
	within := map[string]bool{}
	for _, name := range names {
		within[path.Dir(name)] = true
	}
	return within
}

// took notes that work found its place outside of its home, if that was all of it:
// then its home may go when it is old.
func took(h *workspace.Home, aside []workspace.Aside, left []workspace.Left, warn func(string, ...any)) {
	kept := slices.ContainsFunc(aside, func(x workspace.Aside) bool { return !x.Never })
	if kept || len(left) > 0 || !h.Run.Whole { // what is not whole may be written to
		return
	}
	if err := h.Take(); err != nil {
		warn("warning: %v", err)
	}
}

// sayMerged tells which files of the user's got changes beside their own.
func sayMerged(out *workspace.Outcome, warn func(string, ...any)) {
	for _, m := range out.Merged {
		if m.Before == "" {
			warn("to be merged: %q, which was changed here too", m.Name)
		} else {
			warn("merged: %q was changed here too, and holds the changes of both; yours alone: %s", m.Name, m.Before)
		}
	}
}

// sayBranch tells what there is to know of files of a branch, and returns those that
// are not in it.
func sayBranch(told []workspace.Left, warn func(string, ...any)) (left []workspace.Left) {
	for _, l := range told {
		if l.Lost {
			warn("%q is not in the branch: %s", l.Name, l.Why)
			left = append(left, l)
		} else {
			warn("look at %q: %s", l.Name, l.Why)
		}
	}
	return left
}

// conflicts tells which changes were not made.
func conflicts(h *workspace.Home, out *workspace.Outcome, warn func(string, ...any)) error {
	if len(out.Conflicts) == 0 {
		return nil
	}
	for _, c := range out.Conflicts {
		theirs := ""
		if c.Theirs != "" {
			theirs = "; the sandbox's version: " + c.Theirs
		}
		warn("conflict: %q: %s%s", c.Name, c.Why, theirs)
	}
	return &exportError{text: fmt.Sprintf("not made: %s, where the project has something else in its place, or takes none; see theirs with: talkops sandbox diff %s, or: talkops sandbox pull %s DIR", workspace.Count(len(out.Conflicts), "change"), h.Run.ID, h.Run.ID)}
}

// writePatch writes a patch, whole or not at all, and returns its name. Where git
// takes the changes in two steps only, it is two files, in their order. left is what
// is in none of them.
func writePatch(h *workspace.Home, file string, changes []workspace.Change, warn func(string, ...any)) (files []string, left []workspace.Left, err error) {
	first, then := workspace.Steps(changes)
	if len(first) > 0 {
		ahead := file + ".first"
		if left, err = writeStep(h, ahead, first, warn); err != nil {
			return nil, nil, err
		}
		warn("a directory takes the place of a link, which git does in two steps: apply %s first", ahead)
		files = append(files, ahead)
	}
	more, err := writeStep(h, file, then, warn)
	if err != nil {
		return nil, nil, err
	}
	return append(files, file), append(left, more...), nil
}

func writeStep(h *workspace.Home, file string, changes []workspace.Change, warn func(string, ...any)) ([]workspace.Left, error) {
	f, err := os.CreateTemp(filepath.Dir(file), ".talkops-patch-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	left, err := h.Patch(f, changes)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	for _, l := range left {
		warn("%q is not in the patch: %s; get it with: talkops sandbox pull %s DIR", l.Name, l.Why, h.Run.ID)
	}
	return left, os.Rename(f.Name(), file)
}

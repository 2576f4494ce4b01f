package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/headless"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/thread"
	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// lastThread is the value of --resume without an ID.
const lastThread = "last"

// findThread reads the conversation that is to go on. Without an ID it is the last
// of this project.
func (a *app) findThread(cfg *config.Config, id string) (*thread.Thread, error) {
	if id == lastThread {
		list := a.conversations(cfg.Root)
		if len(list) == 0 {
			return nil, &usageError{"there is no conversation of this project to resume; those of others: talkops threads list --all"}
		}
		id = list[0].ID
	}
	t, err := a.threads().Read(id)
	if err != nil {
		return nil, threadError(err)
	}
	if t.Project != cfg.Root {
		return nil, &usageError{fmt.Sprintf("conversation %s is about %s: change to that directory to resume it", t.ID, t.Project)}
	}
	if a.threads().InUse(t.ID) {
		return nil, &usageError{fmt.Sprintf("%v: %s", thread.ErrInUse, t.ID)}
	}
	return t, nil
}

// placeOf makes a resumed conversation work where it did, unless the command line
// says otherwise. It returns the configuration for that.
func (a *app) placeOf(c *cobra.Command, flags *given, cfg *config.Config, t *thread.Thread) (*config.Config, error) {
	was := t.Machine.Provider
	if was == "" || was == "local" || was == cfg.Sandbox.Provider || a.bare || cfg.Value("sandbox.provider").Origin.Layer == config.LayerFlag && !a.moved {
		return cfg, nil
	}
	if err := c.Flags().Set("sandbox", was); err != nil {
		return nil, err
	}
	a.moved = true
	return a.loadFor(c, flags)
}

// enter opens the sandbox for a conversation: the machine it had if that is there,
// else a new one, into which the work that was saved of the old one is put. t may be
// nil. What a model should know of it is returned as well; it may be empty.
func (a *app) enter(ctx context.Context, box *box, t *thread.Thread, p *headless.Printer) (*session.Session, string, error) {
	if t == nil {
		s, err := session.Start(ctx, box.opts)
		return s, "", err
	}
	name := box.opts.Provider.Describe().Name
	was := t.Machine
	switch {
	case was.Provider == "":
		s, err := session.Start(ctx, box.opts)
		return s, "", err
	case was.Provider != name:
		p.Warn("this conversation worked on %s; it goes on with %s", placeName(was), name)
		s, err := session.Start(ctx, box.opts)
		return s, fmt.Sprintf("The conversation goes on in another place than before: %s. Files may differ from what was said.", name), err
	case box.host:
		s, err := session.Start(ctx, box.opts)
		return s, "", err
	case box.opts.Spec.ID != "" && box.opts.Spec.ID != was.ID:
		p.Warn("this conversation worked on %s; it goes on in %s", placeName(was), box.opts.Spec.ID)
		s, err := session.Start(ctx, box.opts)
		return s, "The conversation goes on in another machine than before. Files may differ from what was said.", err
	}
	if !was.Fresh {
		opts := box.opts
		opts.Spec.ID = was.ID
		if box.opts.Spec.ID == "" {
			opts.Setup = nil
		}
		s, err := session.Start(ctx, opts)
		if !gone(err) {
			return s, "", err
		}
	} else if lease, there, err := a.leaseOf(was); err != nil {
		return nil, "", err
	} else if there {
		s, err := session.Resume(ctx, box.opts, lease)
		switch {
		case err == nil:
			return s, "", nil
		case gone(err):
			a.leases().Remove(lease.Run)
		case errors.Is(err, session.ErrNoBaseline):
			p.Warn("%v; it is left as it is: talkops sandbox list", err)
		default:
			return nil, "", err
		}
	}
	p.Warn("%s is no more", placeName(was))
	return a.replace(ctx, box, was, p)
}

// replace opens a new machine in place of one that a conversation had, and puts what
// was saved of that into it.
func (a *app) replace(ctx context.Context, box *box, was thread.Machine, p *headless.Printer) (*session.Session, string, error) {
	p.Warn("a new machine is opened with what was saved of %s", placeName(was))
	s, err := session.Start(ctx, box.opts)
	if err != nil {
		return nil, "", err
	}
	told, err := a.seed(ctx, s, was.Work, p)
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("put the saved work into the new machine: %w", err), s.End(ctx))
	}
	return s, "The machine of before is not there any more; this is a new one with the project as it is now on the user's computer. " + told +
		" What was installed or started there is not here.", nil
}

func placeName(m thread.Machine) string {
	if m.Provider == "local" {
		return "this computer"
	}
	return strings.TrimSpace(m.Provider + " " + m.ID)
}

// gone reports whether a vendor says that a machine is no more.
func gone(err error) bool {
	return errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrNotFound)
}

// leaseOf finds what is on record of a machine that was opened for a conversation.
func (a *app) leaseOf(m thread.Machine) (session.Lease, bool, error) {
	leases, err := a.leases().List()
	if err != nil {
		a.warnf("warning: %v", err)
	}
	lease, ok := find(leases, m.Run)
	if ok && !lease.Kept && lease.PID != os.Getpid() && alive(lease) {
		return lease, false, &usageError{fmt.Sprintf("sandbox %s is in use by process %d", lease.ID, lease.PID)}
	}
	return lease, ok && lease.ID != "", nil
}

// seed puts the work that was saved of an earlier machine into a new one, and says
// in words for a model what came of it. What the user has changed since is left as
// the user has it.
func (a *app) seed(ctx context.Context, s *session.Session, work string, p *headless.Printer) (string, error) {
	var h *workspace.Home
	for _, x := range a.homes() {
		if x.Run.ID == work {
			h = x
		}
	}
	if h == nil || h.Empty() {
		p.Note("no changes of the earlier machine are saved")
		return "No changes of the earlier machine were saved.", nil
	}
	take, _ := workspace.Split(h.Work(), true)
	out, err := h.Apply(ctx, h.Run.Project, take, true)
	if err != nil {
		return "", err
	}
	newer := map[string]bool{}
	for _, c := range out.Conflicts {
		newer[c.Name] = true
	}
	for _, m := range out.Merged {
		newer[m.Name] = true
	}
	take = slices.DeleteFunc(slices.Clone(take), func(c workspace.Change) bool { return newer[c.Name] })
	dir := s.Sandbox.Info().Dir
	if err := fill(ctx, s.Sandbox, dir, h, take, p); err != nil {
		return "", err
	}
	if err := s.Fetch(ctx); err != nil { // so that it is this session's work too, whatever comes next
		p.Warn("what was put into it is not home yet: %v", err)
		s.Changed()
	}
	p.Note("put into it: %s of run %s", workspace.Count(len(take), "change"), h.Run.ID)
	told := fmt.Sprintf("It holds %s that had been made before.", workspace.Count(len(take), "change"))
	if len(newer) > 0 {
		var names []string
		for name := range newer {
			names = append(names, name)
		}
		slices.Sort(names)
		p.Warn("changed here in the meantime, so your own version is in it: %s; the earlier one: talkops sandbox diff %s", strings.Join(names, ", "), h.Run.ID)
		told += " The user has changed these in the meantime, so that earlier changes to them are not: " + strings.Join(names, ", ") + "."
	}
	return told, nil
}

// fill makes changes in a sandbox.
func fill(ctx context.Context, sb sandbox.Sandbox, dir string, h *workspace.Home, changes []workspace.Change, p *headless.Printer) error {
	if names := workspace.Deleted(changes); len(names) > 0 {
		var list bytes.Buffer
		for _, name := range names {
			list.WriteString("./" + name + "\x00")
		}
		exit, err := sb.Exec(ctx, sandbox.Cmd{Args: []string{"xargs", "-0", "rm", "-rf", "--"}, Dir: dir, Stdin: &list})
		if err != nil || exit != 0 {
			return errors.Join(err, fmt.Errorf("delete what was deleted: exit %d", exit))
		}
	}
	filled, err := h.Send(ctx, sb, dir, changes)
	if err == nil && len(filled) > 0 {
		p.Note("%s", workspace.Filled(filled))
	}
	return err
}

// remembering makes an agent keep its conversation, a new one or t, and make it
// shorter when it has to. moved is what the model should know of its place.
func (a *app) remembering(cfg *config.Config, ag *agent.Agent, t *thread.Thread, moved string, unattended bool, warn func(string, ...any)) (*keeper, error) {
	ag.Shorten = func(ctx context.Context, history []model.Message) ([]model.Message, model.Usage, error) {
		return thread.Compact(ctx, ag.Model, history)
	}
	kept := &keeper{}
	if t == nil {
		kept = a.begin(cfg, ag.Model.Info(), unattended, warn)
	} else {
		var err error
		if kept, t, err = a.openThread(t, warn); err != nil {
			return nil, err
		}
		ag.Forget(t.Messages, t.Usage.Sum())
	}
	ag.Keep = kept.keep
	for _, m := range reminder(moved) {
		ag.Say(m)
	}
	return kept, nil
}

// The marks of what talkops tells the model.
const (
	reminding = "[talkops] "
	reminded  = "I have taken note of it."
)

// reminder is what a resumed conversation says to the model of its place, as a user
// who tells and an assistant who has heard.
func reminder(text string) []model.Message {
	if text == "" {
		return nil
	}
	return []model.Message{{Role: model.RoleUser, Text: reminding + text}, {Role: model.RoleAssistant, Text: reminded}}
}

// openThread takes up a conversation for writing.
func (a *app) openThread(t *thread.Thread, warn func(string, ...any)) (*keeper, *thread.Thread, error) {
	w, again, err := a.threads().Resume(t.ID)
	if err != nil {
		return nil, nil, threadError(err)
	}
	if again.Lost != "" {
		warn("conversation %s: %s", t.ID, again.Lost)
	}
	return &keeper{w: w, warn: warn}, again, nil
}

package cmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/tui"
	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// commands are the slash commands of a conversation.
func commands() []tui.Command {
	return []tui.Command{
		{Name: "config", Help: "your settings: /config show, get KEY, set KEY VALUE, unset KEY"},
		{Name: "sandbox", Help: "where this conversation works; /sandbox keep leaves the machine running at the end, /sandbox extend 2h makes it live longer"},
		{Name: "model", Help: "which model answers"},
		{Name: "context", Help: "how full the model's window is"},
		{Name: "compact", Help: "sum the conversation up, so that the model has room again"},
		{Name: "clear", Help: "begin a new conversation; the old one is kept, files stay as they are"},
		{Name: "resume", Help: "go on with another conversation"},
		{Name: "diff", Help: "what was changed here; in a sandbox, what of it is not applied yet"},
		{Name: "apply", Help: "make the sandbox's changes in your project now"},
		{Name: "export", Help: "/export patch [FILE] or /export branch NAME: the sandbox's changes"},
		{Name: "trust", Help: "which projects' settings you trust"},
		{Name: "doctor", Help: "look whether all is well here"},
	}
}

// Command implements tui.Session.
func (c *conversation) Command(ctx context.Context, name, args string, emit func(agent.Event)) (tui.Reply, error) {
	if slices.Contains([]string{"model", "context", "compact", "clear", "diff", "apply", "doctor"}, name) && strings.TrimSpace(args) != "" {
		return tui.Reply{}, fmt.Errorf("/%s takes nothing behind it; nothing was done", name)
	}
	switch name {
	case "config":
		words := strings.Fields(args)
		if len(words) == 0 {
			words = []string{"show"}
		}
		if words[0] == "set" && len(words) > 3 {
			words = append(words[:2], strings.Join(words[2:], " "))
		}
		if !slices.Contains([]string{"show", "get", "set", "unset", "path"}, words[0]) {
			return tui.Reply{}, errors.New("/config show, get KEY, set KEY VALUE or unset KEY")
		}
		reply, err := c.inner(ctx, append([]string{"config"}, words...))
		if err == nil && strings.TrimSpace(reply.Text) == "" {
			reply.Text = shown(nil) + "\n"
		}
		if err == nil && (words[0] == "show" || words[0] == "get") {
			reply.Text += c.app.redact.Text(c.given(words[1:]))
		}
		return reply, err
	case "sandbox":
		return c.sandbox(ctx, args)
	case "model":
		m := c.Status().Model
		return tui.Reply{Text: m.Provider + ":" + m.Name}, nil
	case "context":
		s := c.Status()
		used := c.agent.Filled()
		if s.Model.Window == 0 {
			return tui.Reply{Text: fmt.Sprintf("%s, about %d tokens; the size of the window is not known", workspace.Count(len(c.agent.History), "message"), used)}, nil
		}
		return tui.Reply{Text: fmt.Sprintf("%s, about %d of %d tokens (%d%%); at 85%% it is summed up", workspace.Count(len(c.agent.History), "message"), used, s.Model.Window, used*100/s.Model.Window)}, nil
	}
	return c.more(ctx, name, args, emit)
}

// more runs the commands that act on the conversation and its work.
func (c *conversation) more(ctx context.Context, name, args string, emit func(agent.Event)) (tui.Reply, error) {
	switch name {
	case "compact":
		c.agent.Emit = emit
		_, cost, _ := c.agent.Compact(ctx)
		c.mu.Lock()
		c.told += cost
		c.cost = c.told
		c.usage = model.Usage{Input: c.agent.Filled()}
		c.mu.Unlock()
		return tui.Reply{}, nil // the events have said it, also a failure
	case "clear":
		before := c.kept.id()
		c.kept.close()
		warn := func(format string, args ...any) { c.window.Note(fmt.Sprintf(format, args...)) }
		c.agent.Forget(nil, 0)
		c.kept = c.app.begin(c.cfg, c.agent.Model.Info(), false, warn)
		c.agent.Keep = c.kept.keep
		c.kept.at(c.box, c.place.Host)
		c.mu.Lock()
		c.usage = model.Usage{}
		c.mu.Unlock()
		text := "A new conversation; files are as they were."
		if before != "" {
			text += " The old one is kept: /resume " + before
		}
		return tui.Reply{Text: text}, nil
	case "resume":
		t, err := c.app.findThread(c.cfg, args)
		if err != nil {
			return tui.Reply{}, err
		}
		c.next = t.ID
		return tui.Reply{Text: "Going on with " + t.ID, Leave: true}, nil
	case "diff":
		return c.diff(ctx)
	case "apply":
		return c.export(ctx, wish{what: "apply"})
	case "export":
		what, where, _ := strings.Cut(args, " ")
		where = strings.TrimSpace(where)
		switch {
		case what == "patch" && where != "":
			where = c.app.absolute(where)
		case what == "patch", what == "branch" && where != "":
		default:
			return tui.Reply{}, errors.New("/export patch [FILE] or /export branch NAME")
		}
		return c.export(ctx, wish{what: what, where: where})
	case "trust":
		words := strings.Fields(args)
		if len(words) == 0 {
			words = []string{"list"}
		}
		if words[0] == "add" {
			return tui.Reply{}, errors.New("a project is trusted from the next start on: leave, and say: talkops trust add")
		}
		return c.inner(ctx, append([]string{"trust"}, words...))
	case "doctor":
		return tui.Reply{Text: c.doctor(ctx)}, nil
	}
	return tui.Reply{Unknown: true}, nil
}

// given says what the command line of this session set, of all settings or of one.
func (c *conversation) given(names []string) string {
	var b strings.Builder
	for _, v := range c.cfg.Values {
		if len(names) > 0 {
			if key, ok := config.Lookup(names[0]); !ok || key.Name != v.Key.Name {
				continue
			}
		}
		if v.Origin.Layer == config.LayerFlag {
			fmt.Fprintf(&b, "this session was started with %s = %s (%s)\n", v.Key.Name, shown(v.Value), v.Origin.Where)
		}
	}
	return b.String()
}

// inner runs a command line of talkops and returns what it says.
func (c *conversation) inner(ctx context.Context, words []string) (tui.Reply, error) {
	var out bytes.Buffer
	inner := *c.app
	inner.streams = &term.Streams{In: strings.NewReader(""), Out: &out, Err: &out, ErrWidth: 80}
	if status := inner.run(ctx, words); status != 0 {
		said := strings.Replace(strings.TrimSpace(out.String()), fmt.Sprintf(" (exit %d)", status), "", 1) // the window stays
		return tui.Reply{}, errors.New(c.app.redact.Text(strings.TrimPrefix(said, "talkops: ")))
	}
	return tui.Reply{Text: c.app.redact.Text(out.String())}, nil
}

// sandbox says where the conversation works, and changes what becomes of the machine.
func (c *conversation) sandbox(ctx context.Context, args string) (tui.Reply, error) {
	s := c.Status()
	verb, rest, _ := strings.Cut(args, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case verb != "" && s.Place.Host:
		return tui.Reply{}, errors.New("tools work on this computer: there is no machine")
	case slices.Contains([]string{lostAgain, lostNew, lostWithout}, verb) && rest == "":
		return c.recover(verb)
	case verb == "keep" && !c.box.Fresh:
		return tui.Reply{Text: "The machine is not this session's own and stays anyway."}, nil
	case verb == "keep" && rest == "off":
		c.box.KeepRunning(false)
		return tui.Reply{Text: "The machine is ended with this session, after its changes were fetched."}, nil
	case verb == "keep" && rest == "":
		c.box.KeepRunning(true)
		return tui.Reply{Text: "The machine is left running at the end. /sandbox keep off takes that back; talkops sandbox rm " + s.Place.ID + " ends it."}, nil
	case verb == "extend":
		d, err := time.ParseDuration(rest)
		if err != nil || d <= 0 {
			return tui.Reply{}, errors.New("/sandbox extend needs a time from now, such as 90m or 2h")
		}
		until, err := c.box.Extend(ctx, time.Now().Add(d))
		if errors.Is(err, errors.ErrUnsupported) && !s.Expires.IsZero() {
			return tui.Reply{}, fmt.Errorf("%s cannot make a machine live longer; this one ends by itself at %s", s.Title, s.Expires.Local().Format("15:04 on 2006-01-02"))
		}
		if err != nil {
			return tui.Reply{}, err
		}
		c.mu.Lock()
		c.expires = until
		c.mu.Unlock()
		return tui.Reply{Text: "It ends by itself at " + until.Local().Format("15:04 on 2006-01-02")}, nil
	case verb != "":
		return tui.Reply{}, errors.New("/sandbox, /sandbox keep [off], /sandbox extend TIME, or, when the machine is lost, /sandbox again, new or without")
	case s.Place.Host:
		return tui.Reply{Text: "Tools work on this computer, in " + c.box.Dir}, nil
	}
	text := fmt.Sprintf("%s %s, in %s", s.Title, s.Place.ID, c.box.Dir)
	if !s.Expires.IsZero() {
		text += "\nit ends by itself at " + s.Expires.Local().Format("15:04 on 2006-01-02")
	}
	switch {
	case c.box.Fresh && c.box.Keeps():
		text += "\nit is this session's own and is left running at its end; /sandbox keep off takes that back"
	case c.box.Fresh:
		text += "\nit is this session's own and is ended with it, after its changes were fetched"
	default:
		text += "\nit is not this session's own and stays"
	}
	return tui.Reply{Text: text}, nil
}

// onlyLooks is the environment of a git that writes nothing and fetches nothing.
var onlyLooks = map[string]string{"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_TERMINAL_PROMPT": "0"}

// mostDiff is how much of a patch is shown in the window.
const mostDiff = 64 << 10

// diff shows what was changed in the sandbox and not applied to the project yet; on this
// computer, what git sees.
func (c *conversation) diff(ctx context.Context) (tui.Reply, error) {
	var patch bytes.Buffer
	more, head, none := "", "", "Nothing was changed."
	if c.place.Host {
		if gitRuns(c.box.Dir) {
			return tui.Reply{}, errors.New("this repository names programs that git would run on this computer; look at its .git/config and hooks, then run git diff HEAD yourself")
		}
		var said bytes.Buffer
		exit, err := c.box.Sandbox.Exec(ctx, sandbox.Cmd{Args: []string{"git", "--no-pager", "-c", "core.fsmonitor=false", "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD"}, Dir: c.box.Dir, Env: onlyLooks, Stdout: &patch, Stderr: &said})
		if err != nil {
			return tui.Reply{}, err
		}
		if exit != 0 {
			return tui.Reply{}, fmt.Errorf("git cannot tell what was changed: %s", strings.TrimSpace(said.String()))
		}
		more = "git diff HEAD"
	} else {
		if err := c.box.Fetch(ctx); err != nil {
			return tui.Reply{}, err
		}
		h := c.box.Home()
		take, aside := workspace.Split(h.Since(), false)
		if h.Applied() {
			head = "not applied yet:\n"
		}
		switch {
		case len(take) == 0 && h.Applied():
			none = allApplied(aside)
		case len(take)+len(aside) > 0:
			none = "Nothing else was changed."
		}
		left, err := h.Patch(&patch, take)
		if err != nil {
			return tui.Reply{}, err
		}
		for _, x := range leaves(aside) {
			c.window.Note(fmt.Sprintf("%q is not shown: it %s", x.Name, x.Why))
		}
		for _, l := range left {
			c.window.Note(fmt.Sprintf("%q is not shown: %s", l.Name, l.Why))
		}
		more = "talkops sandbox diff " + h.Run.ID
	}
	text := c.app.redact.Text(patch.String())
	switch {
	case text == "":
		return tui.Reply{Text: none}, nil
	case len(text) > mostDiff:
		text = text[:strings.LastIndexByte(text[:mostDiff], '\n')+1] + "… there is more: " + more + "\n"
	}
	return tui.Reply{Text: head + text, Patch: true}, nil
}

// export does with the work so far what is wished.
func (c *conversation) export(ctx context.Context, w wish) (tui.Reply, error) {
	if c.place.Host {
		return tui.Reply{}, errors.New("tools work on this computer: the changes are here already")
	}
	if err := c.box.Fetch(ctx); err != nil {
		return tui.Reply{}, err
	}
	here := false // something is still to be made in the project
	if h := c.box.Home(); h != nil && w.what != "apply" {
		take, _ := workspace.Split(h.Since(), false)
		here = len(take) > 0 && w.what == "patch"
		w.also, w.there = h.Applied(), true // /apply is nearer than another program
	}
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	work, err := c.app.exportWork(c.box, w, say, say)
	if err != nil {
		for _, l := range lines {
			c.window.Note(l)
		}
		return tui.Reply{}, err
	}
	if work == nil {
		return tui.Reply{Text: "Nothing was changed."}, nil
	}
	if here {
		lines = append(lines, "to make the changes here: /apply")
	}
	return tui.Reply{Text: strings.Join(lines, "\n")}, nil
}

// doctor looks whether all is well, and says it line by line.
func (c *conversation) doctor(ctx context.Context) string {
	h := &health{}
	m := c.agent.Model.Info()
	h.say(m.Window > 0, "this conversation: window %d tokens, about %d used", m.Window, c.agent.Filled())
	h.say(m.Price.Known(), "the price of %s:%s is %s", m.Provider, m.Name, orNot(m.Price.Known(), "known"))
	began := time.Now()
	exit, err := c.box.Sandbox.Exec(ctx, sandbox.Cmd{Args: []string{"true"}, Dir: c.box.Dir})
	at := "this computer"
	if !c.place.Host {
		at = c.title + " " + c.place.ID
	}
	if err != nil || exit != 0 {
		h.fail("%s does not run a command: exit %d, %v", at, exit, err)
	} else {
		h.say(true, "%s runs a command in %s", at, time.Since(began).Round(time.Millisecond))
	}
	if end := c.box.Expires(); !end.IsZero() && !c.place.Host {
		h.say(time.Until(end) > 10*time.Minute, "it ends by itself in %s", cmp.Or(strings.TrimSuffix(time.Until(end).Round(time.Minute).String(), "0s"), "0m"))
	}
	for _, name := range []string{"git", "tar"} {
		var out bytes.Buffer
		exit, err := c.box.Sandbox.Exec(ctx, sandbox.Cmd{Args: []string{"/bin/sh", "-c", "command -v " + name}, Stdout: &out})
		h.say(err == nil && exit == 0, "%s is %s", name, orNot(err == nil && exit == 0, "there"))
	}
	h.say(c.kept.id() != "", "this conversation is %s", orNot(c.kept.id() != "", strings.TrimSpace("kept as "+c.kept.id())))
	c.app.examine(ctx, c.cfg, h)
	return strings.Join(h.lines, "\n")
}

// orNot is a word, or that it is not so.
func orNot(yes bool, word string) string {
	if yes {
		return word
	}
	return "not " + word
}

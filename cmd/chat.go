package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/headless"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/plan"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/runtime/tui"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// canChat reports whether the terminal can show the chat window.
func (a *app) canChat() bool {
	kind, _ := a.env("TERM")
	return a.streams.InTTY && a.streams.OutTTY && kind != "dumb"
}

// chat is a conversation in the chat window: the same wiring as a headless run,
// with a person to ask.
func (a *app) chat(ctx context.Context, cfg *config.Config, f runFlags) error {
	a.redact = a.redactor(cfg)
	if err := a.demandTrust(cfg); err != nil {
		return err
	}
	mode, err := f.mode(cfg)
	if err != nil {
		return err
	}
	if mode == "" {
		mode = approval.Manual
	}
	if _, err := approval.ParseRules(cfg.Approval.Allow, cfg.Approval.Ask, cfg.Approval.Deny); err != nil {
		return &usageError{err.Error()}
	}
	lookups, hosts, err := a.webTools(cfg)
	if err != nil {
		return err
	}
	a.warn(cfg)
	a.noteOrphans()
	a.tidySaved(cfg)
	printer := &headless.Printer{Out: a.streams.Out, Err: a.streams.Err}
	want, err := a.wantExport(cfg)
	if err != nil {
		return err
	}
	box, err := a.prepare(ctx, cfg)
	if err != nil {
		return err
	}
	f.slip.opening(box)
	a.redact = a.redactor(cfg, box.secrets...)
	printer.Redact = a.redact
	open, closeModels, err := a.models(ctx, cfg, f, printer)
	if err != nil {
		return err
	}
	defer closeModels()
	setup := a.redact.Writer(noteWriter{printer})
	box.opts.Note, box.opts.Warn, box.opts.Output = printer.Note, printer.Warn, setup
	box.tell()
	at := approval.Place{Provider: cfg.Sandbox.Provider}
	aside, err := a.start(ctx, cfg, at, printer.Note, printer.Warn)
	if err != nil {
		return ended(ctx, err)
	}
	defer func() {
		for _, problem := range aside.end(ctx, at) {
			printer.Warn("%v", problem)
		}
	}()
	s, err := session.Start(ctx, box.opts)
	setup.Close()
	if err != nil {
		return ended(ctx, err)
	}
	printer.Stop()
	err = a.converse(ctx, cfg, f, box, s, mode, hosts, lookups, aside, open)
	endErr := s.End()
	work, exportErr := a.exportWork(s, want, printer.Note, printer.Warn)
	f.slip.ended(s, work)
	for _, endErr := range []error{endErr, exportErr} {
		if err == nil {
			err = endErr
		}
	}
	for _, p := range s.Problems {
		printer.Warn("%s", p)
	}
	printer.Stop()
	return ended(ctx, err)
}

// converse shows the window over an open session.
func (a *app) converse(ctx context.Context, cfg *config.Config, f runFlags, box *box, s *session.Session, mode approval.Mode, hosts approval.Hosts,
	lookups []tool.Tool, aside *beside, open func(string) (model.Model, model.Model, error)) error {
	info := s.Sandbox.Info()
	c := &conversation{
		app: a, box: s, expires: info.Expires, title: box.opts.Provider.Describe().Title,
		place: approval.Place{Provider: info.Provider, ID: info.ID, Host: box.host, Disposable: s.Fresh && !cfg.Sandbox.Keep && len(cfg.Sandbox.Env) == 0},
	}
	logs := ""
	if box.host {
		dir, err := os.MkdirTemp("", "talkops-logs-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		logs = dir
	}
	m, _, err := open(s.Dir)
	if err != nil {
		return err
	}
	c.policy = a.policy(cfg, mode, c.place, info.Dir, logs)
	c.policy.Hosts = hosts
	quiet := &headless.Printer{Out: io.Discard, Err: io.Discard} // the window is on the screen
	c.policy.Opinion = a.opinion(ctx, cfg, f, c.place, quiet, func(usd float64) { c.agent.SpendAside(usd) })
	turns := cfg.Run.MaxTurns
	if cfg.Value("run.max_turns").Origin.Layer == config.LayerDefault {
		turns = 0 // a person is there to stop it
	}
	c.window = &tui.Window{
		Session: c, First: f.message, Plain: !a.streams.Color, In: os.Stdin, Out: os.Stdout, Environ: a.environ,
		Commands: []tui.Command{
			{Name: "config", Help: "your settings: /config show, get KEY, set KEY VALUE, unset KEY"},
			{Name: "sandbox", Help: "where this conversation works"},
			{Name: "model", Help: "which model answers"},
			{Name: "context", Help: "how full the model's window is"},
			{Name: "clear", Help: "forget the conversation; files stay as they are"},
		},
	}
	c.agent = &agent.Agent{
		Model: m, Place: c.place,
		Tools: a.redact.Tools(aside.hooks.Tools(slices.Concat(tool.All(s.Sandbox, tool.Options{
			Dir: s.Dir, ExecTimeout: cfg.Tools.ExecTimeout, ExecTimeoutMax: cfg.Tools.ExecTimeoutMax, OutputBytes: cfg.Tools.OutputBytes, LogDir: logs,
			Mask: a.redact.Writer,
		}), lookups, aside.tools), c.place)),
		Approver:  aside.hooks.Approver(&approval.Attended{Policy: c.current, Ask: c.window.Ask, Remember: c.remember}),
		Previewer: &plan.Previewer{Sandbox: s.Sandbox, Place: c.place, Approver: moment(c.current)},
		System: agent.System(agent.Facts{
			Provider: info.Provider, ID: info.ID, Dir: s.Dir, Host: box.host, Disposable: s.Fresh,
			Project: filepath.Base(cfg.Root), Date: time.Now().Format("2006-01-02"), Instructions: a.instructions(cfg),
		}),
		MaxTurns: turns, MaxCostUSD: cfg.Run.MaxCostUSD,
	}
	return c.window.Run(ctx)
}

// A conversation is the session behind the chat window.
type conversation struct {
	app     *app
	agent   *agent.Agent
	box     *session.Session
	window  *tui.Window
	place   approval.Place
	title   string
	expires time.Time

	mu     sync.Mutex
	policy approval.Policy
	usage  model.Usage // of the last step
	cost   float64
	told   float64 // cost of the turns that are done
}

// A moment decides by the policy that holds when it is asked.
type moment func() approval.Policy

// Approve implements approval.Approver.
func (m moment) Approve(ctx context.Context, req approval.Request) (approval.Decision, error) {
	return m().Approve(ctx, req)
}

func (c *conversation) current() approval.Policy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.policy
}

// Mode implements tui.Session.
func (c *conversation) Mode() approval.Mode { return c.current().Mode }

// SetMode implements tui.Session. A call that runs is not affected.
func (c *conversation) SetMode(m approval.Mode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policy.Mode = m
}

// Status implements tui.Session.
func (c *conversation) Status() tui.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return tui.Status{Place: c.place, Title: c.title, Expires: c.expires, Model: c.agent.Model.Info(), Usage: c.usage, CostUSD: c.cost}
}

// Prompt implements tui.Session.
func (c *conversation) Prompt(ctx context.Context, text string, emit func(agent.Event)) (agent.Outcome, error) {
	emit = watching(c.box, emit)
	said := c.app.redact.Stream() // a secret may be cut between two pieces
	rest := func() {
		if held := said.Rest(); len(held) > 0 {
			emit(agent.Text{Text: string(held)})
		}
	}
	c.agent.Emit = func(e agent.Event) {
		if used, ok := e.(agent.Used); ok {
			c.mu.Lock()
			c.usage, c.cost = used.Usage, c.told+used.CostUSD
			c.mu.Unlock()
		}
		switch piece := e.(type) {
		case agent.Text:
			e = agent.Text{Text: string(said.Next([]byte(piece.Text)))}
		case agent.Reset:
			said.Rest()
		case agent.Reasoning, agent.Used:
		default:
			rest()
		}
		emit(e)
	}
	outcome, err := c.agent.Run(ctx, text)
	c.mu.Lock()
	c.told += outcome.CostUSD
	c.cost = c.told
	c.mu.Unlock()
	if errors.Is(err, sandbox.ErrGone) {
		err = fmt.Errorf("%w. The conversation stays; the machine does not come back. Leave with /exit and start again for a new one", err)
	}
	return outcome, err
}

// mostShown is how much of a command's output the model gets to see.
const mostShown = 20_000

// Shell implements tui.Session.
func (c *conversation) Shell(ctx context.Context, command string, emit func(agent.Event)) error {
	emit = watching(c.box, emit)
	id := uuid.NewString()
	emit(agent.CallStarted{ID: id, Tool: "execute", Effect: tool.Runs, Command: command, Provider: c.place.Provider, Machine: c.place.ID})
	var seen bytes.Buffer
	var mu sync.Mutex
	show := c.app.redact.Writer(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if room := mostShown - seen.Len(); room > 0 {
			seen.Write(p[:min(len(p), room)])
		}
		emit(agent.CallOutput{ID: id, Data: string(p)})
		return len(p), nil
	}))
	both := &lockedWriter{w: show}
	began := time.Now()
	exit, err := c.box.Sandbox.Exec(ctx, sandbox.Cmd{ID: id, Args: []string{"/bin/sh", "-c", command}, Dir: c.box.Dir, Stdout: both, Stderr: both})
	show.Close()
	emit(agent.CallDone{ID: id, Tool: "execute", Exit: exit, Code: sandbox.CodeOf(err), Took: time.Since(began)})
	text := fmt.Sprintf("I ran this command myself, where your tools work: %s\nIt ended with %d. Its output:\n%s", command, exit, bytes.ToValidUTF8(seen.Bytes(), []byte("\ufffd")))
	c.agent.History = append(c.agent.History, model.Message{Role: model.RoleUser, Text: text},
		model.Message{Role: model.RoleAssistant, Text: "I have seen it."})
	return err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A lockedWriter may be written by two at once.
type lockedWriter struct {
	mu sync.Mutex
	w  interface{ Write([]byte) (int, error) }
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// Command implements tui.Session.
func (c *conversation) Command(ctx context.Context, name, args string) (string, bool, error) {
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
			return "", true, errors.New("/config show, get KEY, set KEY VALUE or unset KEY")
		}
		var out bytes.Buffer
		inner := *c.app
		inner.streams = &term.Streams{In: strings.NewReader(""), Out: &out, Err: &out, ErrWidth: 80}
		if status := inner.run(ctx, append([]string{"config"}, words...)); status != 0 {
			return "", true, errors.New(strings.TrimSpace(out.String()))
		}
		return c.app.redact.Text(out.String()), true, nil
	case "sandbox":
		s := c.Status()
		if s.Place.Host {
			return "Tools work on this computer, in " + c.box.Dir, true, nil
		}
		text := fmt.Sprintf("%s %s, in %s", s.Title, s.Place.ID, c.box.Dir)
		if !s.Expires.IsZero() {
			text += "\nit ends by itself at " + s.Expires.Local().Format("15:04 on 2006-01-02")
		}
		if c.box.Fresh {
			text += "\nit is this session's own and is ended with it, after its changes were fetched"
		} else {
			text += "\nit is not this session's own and stays"
		}
		return text, true, nil
	case "model":
		m := c.Status().Model
		return m.Provider + ":" + m.Name, true, nil
	case "context":
		s := c.Status()
		used := s.Usage.Input + s.Usage.CacheRead + s.Usage.CacheWrite + s.Usage.Output
		if s.Model.Window == 0 {
			return fmt.Sprintf("%d messages, %d tokens; the size of the window is not known", len(c.agent.History), used), true, nil
		}
		return fmt.Sprintf("%d messages, %d of %d tokens (%d%%)", len(c.agent.History), used, s.Model.Window, used*100/s.Model.Window), true, nil
	case "clear":
		c.agent.History = nil
		c.mu.Lock()
		c.usage = model.Usage{}
		c.mu.Unlock()
		return "The conversation is forgotten; files are as they were.", true, nil
	}
	return "", false, nil
}

// remember adds a rule to the user's own file, and to this session's.
func (c *conversation) remember(rule string) error {
	parsed, err := approval.ParseRule(rule)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.policy.Rules.Allow = append(slices.Clone(c.policy.Rules.Allow), parsed)
	c.mu.Unlock()
	key, _ := config.Lookup("approval.allow")
	cfg, err := c.app.load(nil, 0)
	if err != nil {
		return err
	}
	if slices.Contains(cfg.Approval.Allow, rule) {
		return nil
	}
	if err := config.Set(c.app.userFile(), key, append(slices.Clone(cfg.Approval.Allow), rule)); err != nil {
		return fmt.Errorf("keep the rule: %w", err)
	}
	c.window.Note(fmt.Sprintf("%q is allowed from now on, by your %s", rule, c.app.userFile()))
	return nil
}

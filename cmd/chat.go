package cmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
)

// canChat reports whether the terminal can show the chat window. One that can only
// print lines can show it as lines.
func (a *app) canChat(cfg *config.Config) bool {
	kind, _ := a.env("TERM")
	return a.streams.InTTY && a.streams.OutTTY && (kind != "dumb" || cfg.Value("ui.plain").Value == true)
}

// chat shows conversations in the chat window, one after the other, until the user
// leaves.
func (a *app) chat(ctx context.Context, cfg *config.Config, f runFlags) error {
	for {
		next, want, err := a.chatOnce(ctx, cfg, f)
		if err != nil {
			if err = a.tryAgain(ctx, &f, err); err != nil {
				return err
			}
			// What was wrong may have been mended in a file meanwhile.
			if cfg, err = f.reread(f.thread); err != nil {
				return err
			}
			continue
		}
		if next == "" {
			return nil
		}
		f.message, f.want = "", want
		if f.thread, err = a.findThread(cfg, next); err != nil {
			return err
		}
		if cfg, err = f.again(f.thread); err != nil {
			return err
		}
	}
}

// chatOnce is one conversation in the chat window: the same wiring as a headless
// run, with a person to ask. It returns the id of the conversation to go on with, or
// "", and what is wanted of its machine if that was lost.
func (a *app) chatOnce(ctx context.Context, cfg *config.Config, f runFlags) (string, string, error) {
	a.redact = a.redactor(cfg)
	if err := a.demandTrust(cfg); err != nil {
		return "", "", err
	}
	mode, err := f.mode(cfg)
	if err != nil {
		return "", "", err
	}
	if mode == "" {
		mode = approval.Manual
	}
	if _, err := approval.ParseRules(cfg.Approval.Allow, cfg.Approval.Ask, cfg.Approval.Deny); err != nil {
		return "", "", &usageError{err.Error()}
	}
	lookups, hosts, err := a.webTools(cfg)
	if err != nil {
		return "", "", err
	}
	a.warn(cfg)
	a.noteOrphans(cfg, f.thread)
	a.tidySaved(cfg)
	a.tidyThreads(cfg, f.thread)
	printer := &headless.Printer{Out: a.streams.Out, Err: a.streams.Err}
	defer printer.Stop() // a start that failed is not working any more
	want, err := a.wantExport(cfg)
	if err != nil {
		return "", "", err
	}
	box, err := a.prepare(ctx, cfg)
	if err != nil {
		return "", "", err
	}
	f.slip.opening(box)
	a.redact = a.redactor(cfg, box.secrets...)
	printer.Redact = a.redact
	open, closeModels, err := a.models(ctx, cfg, f, printer)
	if err != nil {
		return "", "", err
	}
	defer closeModels()
	begun := func() {}
	printed := tui.Output{Title: box.opts.SetupName}
	show := func(line string) { printer.Note("| %s", line) }
	setup := a.redact.Writer(writerFunc(func(p []byte) (int, error) {
		text := term.Clean(string(p))
		printed.Add(text)
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			show(line)
		}
		return len(p), nil
	}))
	says := &voice{p: printer}
	if plain := cfg.Value("ui.plain").Value == true; !box.host && !plain && a.streams.ErrTTY {
		on := newOpening(a.streams.Err, a.streams.Width, term.Wraps(a.environ), box.opts.Provider.Describe().Title)
		defer on.Close()
		printer.Err, says.live, box.opts.Progress, show, begun = on, true, on.progress, on.printed, func() { on.Close(); says.live = false }
	}
	box.opts.Note, box.opts.Warn, box.opts.Output = says.note, says.warn, setup
	box.tell()
	at := approval.Place{Provider: cfg.Sandbox.Provider}
	aside, err := a.start(ctx, cfg, at, printer.Note, printer.Warn)
	if err != nil {
		return "", "", ended(ctx, err)
	}
	defer func() {
		for _, problem := range aside.end(ctx, at) {
			printer.Warn("%v", problem)
		}
	}()
	enter := func() (*session.Session, string, error) { return a.enter(ctx, box, f.thread, printer) }
	if f.want == lostNew {
		enter = func() (*session.Session, string, error) { return a.replace(ctx, box, f.thread.Machine, printer) }
	}
	s, moved, err := enter()
	setup.Close()
	begun()
	if err != nil {
		return "", "", ended(ctx, err)
	}
	printer.Stop()
	f.slip.opened(s)
	c, err := a.converse(ctx, cfg, f, box, s, moved, mode, hosts, lookups, aside, open, says, printed)
	if err == nil && c.want != "" {
		a.let(s, c, printer)
		printer.Stop()
		return c.next, c.want, nil
	}
	if asks(cfg) && ctx.Err() == nil {
		want = a.askExport(ctx, s, want)
	}
	endErr := s.End(ctx)
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
	return c.next, "", ended(ctx, err)
}

// converse shows the window over an open session, and returns what it came to.
func (a *app) converse(ctx context.Context, cfg *config.Config, f runFlags, box *box, s *session.Session, moved string, mode approval.Mode, hosts approval.Hosts,
	lookups []tool.Tool, aside *beside, open func(string) (model.Model, model.Model, error), says *voice, printed tui.Output) (*conversation, error) {
	info := s.Sandbox.Info()
	c := &conversation{
		app: a, cfg: cfg, box: s, expires: s.Expires(), title: box.opts.Provider.Describe().Title,
		place: approval.Place{Provider: info.Provider, ID: info.ID, Host: box.host, Disposable: s.Fresh && !cfg.Sandbox.Keep && len(cfg.Sandbox.Env) == 0},
	}
	logs := ""
	if box.host {
		dir, err := os.MkdirTemp("", "talkops-logs-")
		if err != nil {
			return c, err
		}
		defer os.RemoveAll(dir)
		logs = dir
	}
	m, _, err := open(s.Dir)
	if err != nil {
		return c, err
	}
	c.policy = a.policy(cfg, mode, c.place, info.Dir, logs)
	c.policy.Hosts = hosts
	quiet := &headless.Printer{Out: io.Discard, Err: io.Discard} // the window is on the screen
	c.policy.Opinion = a.opinion(ctx, cfg, f, c.place, quiet, func(usd float64) { c.agent.SpendAside(usd) })
	turns := cfg.Run.MaxTurns
	if cfg.Value("run.max_turns").Origin.Layer == config.LayerDefault {
		turns = 0 // a person is there to stop it
	}
	c.window = a.window(cfg)
	c.window.Session, c.window.First, c.window.Commands = c, f.message, commands()
	if printed.Lines() > 0 {
		c.window.Outputs = []tui.Output{printed}
	}
	c.lookups = a.redact.Tools(aside.hooks.Tools(slices.Concat(lookups, aside.tools), c.place))
	c.agent = &agent.Agent{
		Model: m, Place: c.place,
		Tools: a.redact.Tools(aside.hooks.Tools(slices.Concat(tool.All(s.Sandbox, tool.Options{
			Dir: s.Dir, ExecTimeout: cfg.Tools.ExecTimeout, ExecTimeoutMax: cfg.Tools.ExecTimeoutMax, OutputBytes: cfg.Tools.OutputBytes, LogDir: logs,
			Mask: a.redact.Writer, Secret: a.leftOut(c.place),
		}), lookups, aside.tools), c.place)),
		Approver:  aside.hooks.Approver(&approval.Attended{Policy: c.current, Ask: c.asks(aside.hooks.Approver(moment(c.current))), Remember: c.remember}),
		Previewer: &plan.Previewer{Sandbox: s.Sandbox, Place: c.place, Approver: aside.hooks.Approver(moment(c.current))},
		System: agent.System(agent.Facts{
			Provider: info.Provider, ID: info.ID, Dir: s.Dir, Host: box.host, Disposable: s.Fresh,
			Project: filepath.Base(cfg.Root), Date: time.Now().Format("2006-01-02"), Instructions: a.instructions(cfg),
		}),
		MaxTurns: turns, MaxCostUSD: cfg.Run.MaxCostUSD, Machine: s.CostUSD,
	}
	c.kept, err = a.remembering(cfg, c.agent, f.thread, moved, false, func(format string, args ...any) { c.window.Note(fmt.Sprintf(format, args...)) })
	if err != nil {
		return c, err
	}
	defer func() { c.kept.close() }()
	c.kept.at(s, box.host)
	if f.thread != nil {
		c.window.Past, c.usage, c.told = saidIn(c.agent.History), f.thread.Usage, f.thread.CostUSD
		c.cost = c.told
	}
	says.through(c.window)
	err = c.window.Run(ctx)
	says.through(nil)
	if id := c.kept.id(); id != "" && c.spoken() && c.next == "" {
		fmt.Fprintf(a.streams.Err, "this conversation is kept; to go on with it: talkops -r %s\n", id)
	}
	return c, err
}

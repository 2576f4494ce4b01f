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
	"time"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/headless"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/plan"
	"github.com/talkops-ai/talkops/runtime/registry"
	"github.com/talkops-ai/talkops/runtime/rubric"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/thread"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/runtime/web"
	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// afterTimeout is how long a run that is out of time waits for its changes.
const afterTimeout = time.Minute

var errRunTimeout = errors.New("the time limit of the run is reached")

// runFlags are the flags of a headless run that are not settings.
type runFlags struct {
	prompt, message string
	record, replay  string
	rubric, junit   string
	quiet, noStream bool
	smart, yolo     bool
	promptGiven     bool
	rubricGiven     bool
	resume          string // the id of a conversation
	want            string // of the machine of a conversation that was lost
	receipt         string

	slip   *receipt                                       // that is being written; nil: none
	thread *thread.Thread                                 // the conversation that goes on; may be nil
	again  func(t *thread.Thread) (*config.Config, error) // the configuration to go on with another one
	reread func(t *thread.Thread) (*config.Config, error) // the configuration as it is now
}

func (a *app) addRun(root *cobra.Command, flags *given) {
	var f runFlags
	fs := root.Flags()
	fs.StringVarP(&f.prompt, "prompt", "p", "", "do this and exit; text on stdin is put before it, or is the task")
	flags.declare(fs, "model", "max-turns", "timeout", "max-cost-usd", "output")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no progress on stderr")
	fs.BoolVar(&f.noStream, "no-stream", false, "print the answer at the end")
	flags.declare(fs, "approval-mode", "allow", "deny")
	fs.BoolVar(&f.smart, "smart", false, "decide about tool calls by what they do; the same as --approval-mode smart")
	fs.BoolVarP(&f.yolo, "yolo", "y", false, "run every tool call without asking, also on this computer")
	fs.StringVar(&f.record, "record", "", "keep the model's half of this run in a file, without secrets")
	fs.StringVar(&f.replay, "replay", "", "take the model's half from such a file; needs no key")
	fs.StringVar(&f.rubric, "rubric", "", "grade the work by these criteria, or by those in @FILE, and go on until they are met")
	flags.declare(fs, "rubric-max-iterations", "rubric-model")
	fs.StringVarP(&f.resume, "resume", "r", "", "go on with the conversation of that ID, in its machine if that is there; without ID: the last of this project with -p, else choose")
	fs.Lookup("resume").NoOptDefVal = lastThread
	fs.StringVarP(&f.message, "message", "m", "", "open the chat window and say this first")
	fs.StringVar(&f.junit, "junit", "", "also write the result to a file, as JUnit XML")
	fs.StringVar(&f.receipt, "receipt", "", "also write to a file what left this computer, and what came back, as JSON")
	root.RunE = func(c *cobra.Command, _ []string) error {
		f.promptGiven, f.rubricGiven = c.Flags().Changed("prompt"), c.Flags().Changed("rubric")
		for _, name := range []string{"record", "replay", "junit", "receipt"} {
			if c.Flags().Changed(name) && c.Flags().Lookup(name).Value.String() == "" {
				return &usageError{"--" + name + ": the name of the file is empty"}
			}
		}
		if err := f.readRubric(c, a); err != nil {
			return err
		}
		cfg, err := a.loadFor(c, flags)
		if err != nil {
			return err
		}
		if f.message != "" && f.promptGiven {
			return &usageError{"--message opens the chat window and --prompt does without: choose one"}
		}
		f.again = func(t *thread.Thread) (*config.Config, error) { return a.placeOf(c, flags, cfg, t) }
		f.reread = func(t *thread.Thread) (*config.Config, error) {
			now, err := a.loadFor(c, flags)
			if err == nil && t != nil {
				now, err = a.placeOf(c, flags, now, t)
			}
			if err != nil {
				return nil, err
			}
			return a.settleTrust(c, flags, now)
		}
		if f.resume == "" && c.Flags().Changed("resume") {
			return &usageError{"--resume: the ID is empty"}
		}
		chat := !f.promptGiven && a.canChat(cfg)
		if f.resume == lastThread && chat {
			if f.resume, err = a.chooseThread(c.Context(), cfg); err != nil {
				return err
			}
		}
		if f.resume != "" {
			if f.thread, err = a.findThread(cfg, f.resume); err != nil {
				return err
			}
			if cfg, err = f.again(f.thread); err != nil {
				return err
			}
			if local := cfg.Sandbox.Provider == "local"; local && (c.Flags().Changed("keep-sandbox") || c.Flags().Changed("sandbox-export")) {
				return &usageError{"there is no sandbox to keep: this conversation goes on on this computer"}
			}
		}
		if chat {
			if cfg, err = a.settleTrust(c, flags, cfg); err != nil {
				return err
			}
			return a.withReceipt(c.Context(), cfg, f, func(ctx context.Context, f runFlags) error { return a.chat(ctx, cfg, f) })
		}
		if kind, _ := a.env("TERM"); kind == "dumb" && a.streams.InTTY && a.streams.OutTTY && !f.promptGiven && f.message == "" {
			return &usageError{`this terminal (TERM=dumb) cannot show the chat window: give a prompt, as in: talkops -p "Why does the build fail?", or set ui.plain (TALKOPS_PLAIN=true) for a chat of lines`}
		}
		if f.message != "" {
			return &usageError{"--message opens the chat window, which needs a terminal; without one, use -p; in one with TERM=dumb, set ui.plain (TALKOPS_PLAIN=true)"}
		}
		return a.withReceipt(c.Context(), cfg, f, func(ctx context.Context, f runFlags) error { return a.headless(ctx, cfg, f) })
	}
}

// headless is one run from a prompt to an exit status: configuration, trust,
// model, sandbox, agent, and the way back, in order.
func (a *app) headless(ctx context.Context, cfg *config.Config, f runFlags) error {
	a.redact = a.redactor(cfg)
	format, err := headless.ParseFormat(cfg.Run.Output)
	if err != nil {
		return &usageError{err.Error()}
	}
	if err := a.demandTrust(cfg); err != nil {
		return err
	}
	mode, err := f.mode(cfg)
	if err != nil {
		return err
	}
	if _, err := approval.ParseRules(cfg.Approval.Allow, cfg.Approval.Ask, cfg.Approval.Deny); err != nil {
		return &usageError{err.Error()}
	}
	lookups, hosts, err := a.webTools(cfg)
	if err != nil {
		return err
	}
	if !f.quiet {
		a.warn(cfg)
		a.noteOrphans(cfg, f.thread)
		a.tidySaved(cfg)
	}
	whole := ctx // with the end, which the time limit is not of
	if cfg.Run.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, cfg.Run.Timeout, errRunTimeout)
		defer cancel()
	}
	prompt, err := a.readPrompt(ctx, f)
	if err != nil {
		return err
	}
	printer := &headless.Printer{Out: a.streams.Out, Err: a.streams.Err, Format: format, Quiet: f.quiet, NoStream: f.noStream, CI: a.inCI(), Width: a.streams.OutWidth}

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
	if d := mentioned(box.opts.Plan, prompt); d != "" {
		printer.Note("the prompt mentions %s, which is not uploaded; to send it: [sync] include = [%q]", d, d)
	}
	aside, err := a.start(ctx, cfg, approval.Place{Provider: cfg.Sandbox.Provider}, printer.Note, printer.Warn)
	if err != nil {
		return a.finish(printer, f, headless.Result{}, ended(ctx, err))
	}
	s, moved, err := a.enter(ctx, box, f.thread, printer)
	setup.Close()
	if err != nil {
		for _, problem := range aside.end(ctx, approval.Place{Provider: cfg.Sandbox.Provider}) {
			printer.Warn("%v", problem)
		}
		return a.finish(printer, f, headless.Result{}, ended(ctx, err))
	}
	f.slip.opened(s)
	info := s.Sandbox.Info()
	result := headless.Result{Sandbox: &headless.Sandbox{Provider: info.Provider, ID: info.ID, Dir: s.Dir}}
	place := approval.Place{
		Provider: info.Provider, ID: info.ID, Host: box.host,
		// What is kept, or got variables of the user, is not for any use.
		Disposable: s.Fresh && !cfg.Sandbox.Keep && len(cfg.Sandbox.Env) == 0,
	}
	printer.Place = place

	outcome, err := func() (rubric.Outcome, error) {
		defer s.Working()()
		logs := ""
		if box.host { // logs of a disposable machine go with it
			dir, err := os.MkdirTemp("", "talkops-logs-")
			if err != nil {
				return rubric.Outcome{}, err
			}
			defer os.RemoveAll(dir)
			logs = dir
		}
		policy := a.policy(cfg, mode, place, info.Dir, logs)
		policy.Hosts = hosts
		var ag *agent.Agent
		policy.Opinion = a.opinion(ctx, cfg, f, place, printer, func(usd float64) { ag.SpendAside(usd) })
		m, grader, err := open(s.Dir)
		if err != nil {
			return rubric.Outcome{}, err
		}
		a.warnBudget(cfg, box, s, m.Info(), printer)
		ag = &agent.Agent{
			Model: m, Place: place, Emit: watching(s, printer.Event),
			Tools: a.redact.Tools(aside.hooks.Tools(slices.Concat(tool.All(s.Sandbox, tool.Options{
				Dir: s.Dir, ExecTimeout: cfg.Tools.ExecTimeout, ExecTimeoutMax: cfg.Tools.ExecTimeoutMax, OutputBytes: cfg.Tools.OutputBytes, LogDir: logs,
				Mask: a.redact.Writer, Secret: a.leftOut(place),
			}), lookups, aside.tools), place)),
			Approver: aside.hooks.Approver(policy), Previewer: &plan.Previewer{Sandbox: s.Sandbox, Place: place, Approver: aside.hooks.Approver(policy)},
			System: agent.System(agent.Facts{
				Provider: info.Provider, ID: info.ID, Dir: s.Dir, Host: box.host, Disposable: s.Fresh,
				Project: filepath.Base(cfg.Root), Date: time.Now().Format("2006-01-02"), Unattended: true,
				Instructions: a.instructions(cfg),
			}),
			MaxTurns: cfg.Run.MaxTurns, MaxCostUSD: cfg.Run.MaxCostUSD, Machine: s.CostUSD,
		}
		kept, err := a.remembering(cfg, ag, f.thread, moved, true, printer.Warn)
		if err != nil {
			return rubric.Outcome{}, err
		}
		defer kept.close()
		kept.at(s, box.host)
		if result.Thread = kept.id(); result.Thread != "" {
			defer printer.Note("this conversation is kept; to go on with it: talkops -r %s", result.Thread)
		}
		if f.rubric == "" {
			done, err := ag.Run(ctx, prompt)
			return rubric.Outcome{Outcome: done}, err
		}
		loop := &rubric.Loop{
			Rubric: f.rubric, Gradings: cfg.Rubric.MaxIterations, Agent: ag, Grader: grader,
			Tools: ag.Tools, Sandbox: s.Sandbox, Dir: s.Dir, Mask: a.redact.Text, Emit: printer.Event,
		}
		return loop.Run(ctx, prompt)
	}()
	err = ended(ctx, err)
	if cfg.Run.Timeout > 0 && ctx.Err() != nil && whole.Err() == nil {
		// What there is more is for what cannot be done in time only.
		var cancel context.CancelFunc
		whole, cancel = context.WithTimeout(whole, afterTimeout)
		defer cancel()
	}
	endErr := s.End(whole)
	work, exportErr := a.exportWork(s, want, printer.Note, printer.Warn)
	f.slip.ended(s, work)
	for _, endErr := range []error{endErr, exportErr} {
		if endErr == nil {
			continue
		}
		if err == nil {
			err = endErr // which is told as what ended the run
			continue
		}
		result.Errors = append(result.Errors, endErr.Error())
	}
	if sig, ok := errors.AsType[*signalError](context.Cause(ctx)); ok && err == nil {
		err = sig // that came when the answer was there
	}
	result.Errors = append(result.Errors, s.Problems...)
	for _, problem := range aside.end(ctx, place) {
		result.Errors = append(result.Errors, problem.Error())
	}
	done := headless.NewResult(outcome.Outcome)
	result.Sandbox.CostUSD = s.CostUSD()
	done.CostUSD += result.Sandbox.CostUSD
	done.Sandbox, done.Work, done.Thread, done.Errors = result.Sandbox, work, result.Thread, result.Errors
	if outcome.Gradings > 0 {
		done.Rubric = &outcome.Report
		if outcome.Kept > 0 && outcome.Kept < outcome.Gradings {
			done.Errors = append(done.Errors, fmt.Sprintf("the answer is that of grading %d, the best of %d; files are as the last round left them", outcome.Kept, outcome.Gradings))
		}
	} else if err == nil && outcome.NeedsPerson() {
		err = errNeedsPerson
	}
	return a.finish(printer, f, done, err)
}

// errNeedsPerson ends a run whose answer is there, but which was not allowed all
// that it wanted to do.
var errNeedsPerson = errors.New("a tool call needed a person's permission")

// readRubric takes the criteria from the flag or the file it names.
func (f *runFlags) readRubric(c *cobra.Command, a *app) error {
	if !f.rubricGiven {
		for _, name := range []string{"rubric-model", "rubric-max-iterations"} {
			if c.Flags().Changed(name) {
				return &usageError{fmt.Sprintf(`--%s needs --rubric "…"`, name)}
			}
		}
		return nil
	}
	if a.streams.InTTY && !f.promptGiven {
		return &usageError{`--rubric grades a headless run: add -p "…"`}
	}
	if name, ok := strings.CutPrefix(f.rubric, "@"); ok {
		if below, ok := strings.CutPrefix(name, "~/"); ok {
			home, _ := a.env("HOME")
			name = filepath.Join(home, below)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return &usageError{"rubric file not found: " + name}
		}
		f.rubric = string(bytes.ToValidUTF8(data, []byte("\ufffd")))
	}
	if f.rubric = strings.TrimSpace(f.rubric); f.rubric == "" {
		return &usageError{"the rubric is empty"}
	}
	if len(f.rubric) > maxRubric {
		return &usageError{fmt.Sprintf("the rubric is larger than %s", workspace.Size(maxRubric))}
	}
	return nil
}

// maxRubric bounds a rubric.
const maxRubric = 100 << 10

// finish prints the result and turns err into the run's end.
func (a *app) finish(p *headless.Printer, f runFlags, r headless.Result, err error) error {
	r.Code, r.Reason = classify(err)
	if err != nil && err != errNeedsPerson {
		text := err.Error()
		if advice := advise(err); advice != "" {
			text += ". " + advice
		}
		r.Errors = append([]string{text}, r.Errors...)
	}
	f.slip.outcome(r.Code, r.Reason)
	r.Errors = append(r.Errors, a.report(f, r.Redacted(a.redact))...)
	if e, ok := errors.AsType[*session.StartError](err); ok {
		for _, l := range e.Last {
			p.Warn("| %s", l)
		}
	}
	if ferr := p.Finish(r); ferr != nil || err == nil {
		return ferr
	}
	return &exitStatus{r.Code}
}

// report writes the result where CI systems look for it, and says what failed.
func (a *app) report(f runFlags, r headless.Result) (problems []string) {
	write := func(what, name string, flag int, put func(io.Writer) error) {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|flag, 0o644)
		if err == nil {
			err = errors.Join(put(file), file.Close())
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", what, err))
		}
	}
	if f.junit != "" {
		write("--junit", f.junit, os.O_TRUNC, r.JUnit)
	}
	if name, _ := a.env("GITHUB_STEP_SUMMARY"); name != "" {
		write("GITHUB_STEP_SUMMARY", name, os.O_APPEND, r.Summary)
	}
	return problems
}

// ended prefers what ended the run over what that broke.
func ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// maxStdin bounds what is read as a prompt.
const maxStdin = 10 << 20

// readPrompt joins standard input and -p. An input that stays open is waited for
// only when it is the prompt itself.
func (a *app) readPrompt(ctx context.Context, f runFlags) (string, error) {
	if f.promptGiven && strings.TrimSpace(f.prompt) == "" {
		return "", &usageError{"the prompt is empty: give one with -p or on stdin"}
	}
	if a.streams.InTTY {
		if !f.promptGiven {
			return "", &usageError{`no prompt: give one with -p or on stdin, as in: talkops -p "Why does the build fail?"`}
		}
		return f.prompt, nil
	}
	type read struct {
		data []byte
		err  error
	}
	first, all := make(chan bool, 1), make(chan read, 1)
	go func() {
		one := make([]byte, 1)
		n, err := io.ReadFull(a.streams.In, one)
		first <- n > 0
		if n == 0 {
			if err == io.EOF {
				err = nil
			}
			all <- read{nil, err}
			return
		}
		rest, err := io.ReadAll(io.LimitReader(a.streams.In, maxStdin))
		all <- read{append(one, rest...), err}
	}()
	wait := time.NewTimer(3 * time.Second)
	defer wait.Stop()
	waiting := false
	for {
		select {
		case r := <-all:
			switch {
			case r.err != nil:
				return "", &usageError{"read stdin: " + r.err.Error()}
			case len(r.data) > maxStdin:
				return "", &usageError{fmt.Sprintf("stdin is larger than %s: put it in a file of the project and name it in the prompt", workspace.Size(maxStdin))}
			}
			text := strings.TrimSpace(string(bytes.ToValidUTF8(r.data, []byte("\ufffd"))))
			switch {
			case text == "" && !f.promptGiven:
				return "", &usageError{"no prompt: give one with -p or on stdin"}
			case text == "":
				return f.prompt, nil
			case f.promptGiven:
				return text + "\n\n" + f.prompt, nil
			}
			return text, nil
		case some := <-first:
			waiting = some
		case <-wait.C:
			if f.promptGiven && !waiting {
				a.note(f.quiet, "stdin is open but silent; going on without it")
				return f.prompt, nil
			}
			a.note(f.quiet, "waiting for the end of stdin")
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func (a *app) note(quiet bool, text string) {
	if !quiet {
		fmt.Fprintln(a.streams.Err, text)
	}
}

// models chooses the model that works and the one that grades, or opens the
// recording. The function it returns gives both for a working directory.
func (a *app) models(ctx context.Context, cfg *config.Config, f runFlags, p *headless.Printer) (func(dir string) (work, grade model.Model, err error), func(), error) {
	closers := []io.Closer{}
	closeAll := func() {
		for _, c := range closers {
			c.Close()
		}
	}
	if f.record != "" && f.replay != "" {
		return nil, closeAll, &usageError{"--record and --replay: choose one"}
	}
	if f.replay != "" {
		file, err := os.Open(f.replay)
		if err != nil {
			return nil, closeAll, &usageError{"--replay: " + err.Error()}
		}
		closers = append(closers, file)
		return func(dir string) (model.Model, model.Model, error) {
			m, err := model.Replay(file, dir, func(difference string) { p.Note("%s", difference) })
			return m, m, err
		}, closeAll, nil
	}
	endpoints := map[string]model.Endpoint{}
	for name, e := range cfg.Model.Providers {
		endpoints[name] = model.Endpoint{BaseURL: e.BaseURL, APIKeyEnv: e.APIKeyEnv}
	}
	wish := model.Wish{Providers: endpoints, Getenv: a.getenv()}
	if cfg.Model.Explicit {
		wish.Model = cfg.Model.Name
	} else {
		wish.Default = cfg.Model.Name
	}
	work, err := a.open(ctx, wish, p, "model")
	if err != nil {
		return nil, closeAll, err
	}
	grade := work
	if f.rubric != "" && cfg.Rubric.Model != "" {
		wish.Model = cfg.Rubric.Model
		if grade, err = a.open(ctx, wish, p, "graded by"); err != nil {
			return nil, closeAll, err
		}
	}
	if f.record == "" {
		return func(string) (model.Model, model.Model, error) { return work, grade, nil }, closeAll, nil
	}
	if _, err := os.Lstat(f.record); err == nil {
		return nil, closeAll, &usageError{"--record: " + f.record + " exists; name a new file"}
	}
	if info, err := os.Stat(filepath.Dir(f.record)); err != nil || !info.IsDir() {
		return nil, closeAll, &usageError{"--record: there is no directory " + filepath.Dir(f.record)}
	}
	return func(dir string) (model.Model, model.Model, error) {
		file, err := os.OpenFile(f.record, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, &usageError{"--record: " + err.Error()}
		}
		closers = append(closers, file)
		recording := model.NewRecording(file, dir, a.redact)
		return recording.Of(work), recording.Of(grade), nil
	}, closeAll, nil
}

// open opens the model that is wished for and says which it is.
func (a *app) open(ctx context.Context, wish model.Wish, p *headless.Printer, as string) (model.Model, error) {
	chosen, err := model.Choose(ctx, wish)
	if err != nil {
		return nil, err
	}
	chosen.UserAgent = "talkops/" + version
	m, err := model.Open(ctx, chosen)
	if err != nil {
		return nil, err
	}
	p.Note("%s %s:%s", as, chosen.Provider, chosen.Name)
	return m, nil
}

// getenv looks variables up, a TALKOPS_ name before the plain one.
func (a *app) getenv() func(string) string { return registry.Prefixed(a.env) }

// inCI reports whether a CI system reads our output.
func (a *app) inCI() bool {
	for _, name := range []string{"GITHUB_ACTIONS", "TF_BUILD", "CI"} {
		if v, _ := a.env(name); v != "" && v != "false" {
			return true
		}
	}
	return false
}

// A box is a sandbox about to be opened.
type box struct {
	opts    session.Options
	host    bool
	notices []string // about settings that do not count here
	secrets []string // that sign in to the provider
	priced  bool     // it is known what the machine costs
}

// tell says what the settings have to be told about, once there is somebody to
// tell it to.
func (b *box) tell() {
	for _, n := range b.notices {
		b.opts.Note("%s", n)
	}
}

// prepare resolves the provider and plans the upload. It makes no network
// connection.
func (a *app) prepare(ctx context.Context, cfg *config.Config) (*box, error) {
	if err := a.loadProvider(ctx, cfg, cfg.Sandbox.Provider); err != nil {
		return nil, err
	}
	p := a.providers.Find(cfg.Sandbox.Provider)
	if p == nil {
		return nil, config.Unknown(cfg.Sandbox.Provider, a.providers.Names(), cfg.Value("sandbox.provider").Origin.Where, a.home)
	}
	d := p.Describe()
	own := cfg.Providers[d.Name]
	spec := sandbox.Spec{
		ID: cfg.Sandbox.ID, Dir: own.WorkingDir, Options: own.Options,
		Lifetime: cfg.Sandbox.MaxLifetime, Idle: cfg.Sandbox.IdleTimeout,
	}
	b := &box{host: d.Features.Host}
	if b.host {
		spec.Dir, spec.Env = a.dir, withoutKeys(a.hostEnv(), cfg)
	} else {
		if d.Features.Image {
			spec.Image = cfg.Sandbox.Image
		}
		snapshot := cfg.Value("sandbox.snapshot_name")
		switch {
		case d.Features.Snapshot:
			spec.Snapshot = cfg.Sandbox.Snapshot
		case cfg.Sandbox.Snapshot != "" && snapshot.Origin.Layer == config.LayerFlag:
			return nil, &usageError{fmt.Sprintf("%s does not use named snapshots", d.Name)}
		case cfg.Sandbox.Snapshot != "":
			b.notices = append(b.notices, fmt.Sprintf("%s does not use named snapshots; sandbox.snapshot_name (%s) is ignored", d.Name, snapshot.Origin))
		}
		if spec.ID != "" && !d.Features.Attach {
			return nil, &usageError{d.Name + " cannot attach to a running sandbox"}
		}
		spec.Env = map[string]string{}
		for _, name := range cfg.Sandbox.Env {
			if v, set := a.env(name); set {
				spec.Env[name] = v
			}
		}
		settings, err := registry.Settings(ctx, p, a.env)
		if err != nil {
			return nil, err
		}
		spec.Settings, b.secrets = settings, registry.Secrets(d, settings)
		if half := registry.Unused(d, settings); half != "" {
			b.notices = append(b.notices, half)
		}
	}
	usd, known := price(cfg, p, spec)
	b.priced = known || b.host
	b.opts = session.Options{
		USDPerHour: usd,
		Provider:   p, Spec: spec, Leases: a.leases(), WorkDir: a.savedDir(),
		Root: cfg.Root, Start: cfg.Start, Keep: cfg.Sandbox.Keep, MaxReturn: cfg.Sync.MaxReturnBytes,
		CreateTimeout: cfg.Sandbox.CreateTimeout, SetupTimeout: cfg.Sandbox.SetupTimeout,
	}
	if b.host {
		return b, nil
	}
	if spec.ID == "" || cfg.Value("sandbox.setup_script_path").Origin.Layer == config.LayerFlag {
		b.opts.Setup, b.opts.SetupName = cfg.Sandbox.Setup, filepath.Base(cfg.Sandbox.SetupScript)
		b.opts.Warm = a.warmStarts(cfg)
	}
	if !cfg.Sandbox.SyncWorkspace {
		return b, nil
	}
	if cfg.Unbounded {
		return nil, &usageError{fmt.Sprintf("%s is your home directory or above it, not a project: it is not uploaded. Change to a project, or set sync_workspace = false", cfg.Root)}
	}
	var err error
	b.opts.Plan, err = a.planUpload(ctx, cfg)
	return b, err
}

// hostEnv is what commands on this computer see: everything but talkops' own
// keys and what changes how a shell or program starts, or where a name leads.
func (a *app) hostEnv() map[string]string {
	hidden := []string{"BASH_ENV", "ENV", "CDPATH", "SHELLOPTS", "BASHOPTS", "POSIXLY_CORRECT"}
	for _, name := range model.Providers() {
		if name != "bedrock" { // the user's ordinary cloud login stays
			hidden = append(hidden, model.KeyVars(name)...)
		}
	}
	hidden = append(hidden, model.CatalogueKeys()...)
	for _, name := range web.Searchers {
		if key := web.SearchKey(name); key != "" {
			hidden = append(hidden, key)
		}
	}
	for _, p := range a.providers {
		for _, s := range p.Describe().Settings {
			if s.Secret {
				hidden = append(hidden, s.Env...)
			}
		}
	}
	modules, _ := a.locks() // also those that this run does not load
	for _, m := range modules {
		hidden = append(hidden, slices.DeleteFunc(slices.Clone(m.Env), func(name string) bool { return !telling(name) })...)
	}
	env := map[string]string{}
	for _, kv := range a.environ {
		name, value, _ := strings.Cut(kv, "=")
		plain := strings.TrimPrefix(name, "TALKOPS_")
		if name == "" || slices.Contains(hidden, name) || slices.Contains(hidden, plain) || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "BASH_FUNC_") || strings.HasPrefix(name, "LD_") && name != "LD_LIBRARY_PATH" {
			continue
		}
		if name == "LD_LIBRARY_PATH" {
			value = outside(real(a.dir), absolutePath(value))
		}
		if name == "PATH" {
			value = absolutePath(value)
		}
		env[name] = value
	}
	return env
}

// withoutKeys is an environment without the keys of the user's own model servers.
func withoutKeys(env map[string]string, cfg *config.Config) map[string]string {
	for _, e := range cfg.Model.Providers {
		delete(env, e.APIKeyEnv)
		delete(env, "TALKOPS_"+e.APIKeyEnv)
	}
	return env
}

// absolutePath is a list of directories without those that mean another one in each
// project: a program that lies there would be taken for one of the system.
func absolutePath(list string) string {
	dirs := slices.DeleteFunc(filepath.SplitList(list), func(d string) bool { return !filepath.IsAbs(d) })
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// outside is a list of directories without those of the project, which every program would
// load code from.
func outside(root, list string) string {
	dirs := slices.DeleteFunc(filepath.SplitList(list), func(d string) bool {
		at := real(d)
		return at == root || strings.HasPrefix(at, root+string(filepath.Separator))
	})
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// mentioned returns a skipped directory that the prompt names, if any.
func mentioned(p *workspace.Plan, prompt string) string {
	if p == nil {
		return ""
	}
	for _, d := range p.Skipped[workspace.SkipList] {
		name := strings.TrimSuffix(d, "/")
		for word := range strings.FieldsFuncSeq(prompt, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`,;:()", r) }) {
			if strings.HasSuffix(d, "/") && (strings.TrimRight(word, "/.") == name || strings.HasPrefix(word, d)) {
				return d
			}
		}
	}
	return ""
}

// noteWriter shows output of a setup script as it comes, line by line.
type noteWriter struct{ p *headless.Printer }

func (w noteWriter) Write(data []byte) (int, error) {
	for line := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n") {
		w.p.Note("| %s", line)
	}
	return len(data), nil
}

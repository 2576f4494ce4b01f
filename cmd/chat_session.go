package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/runtime/tui"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A conversation is the session behind the chat window.
type conversation struct {
	app    *app
	cfg    *config.Config
	agent  *agent.Agent
	box    *session.Session
	window *tui.Window
	place  approval.Place
	title  string
	kept   *keeper
	next   string // the conversation to go on with; empty: none

	lookups []tool.Tool // those that need no machine
	gone    bool        // the vendor says that the machine is no more
	want    string      // of a machine that was lost; empty: it was not

	mu      sync.Mutex
	policy  approval.Policy
	expires time.Time
	usage   model.Usage // of the last step
	cost    float64
	told    float64 // cost of the turns that are done
}

// A moment decides by the policy that holds when it is asked.
type moment func() approval.Policy

// Approve implements approval.Approver.
func (m moment) Approve(ctx context.Context, req approval.Request) (approval.Decision, error) {
	return m().Approve(ctx, req)
}

// asks returns what asks the user. A change that its file does not fit is not asked about:
// the model is told at once, if looks lets it read the file. What does not fit tells of
// what is in there; so where the model may not look, the user is asked, and told.
func (c *conversation) asks(looks approval.Approver) func(context.Context, approval.Question) (approval.Answer, error) {
	return func(ctx context.Context, q approval.Question) (approval.Answer, error) {
		if q.Shown != nil || q.Edit == nil {
			return c.window.Ask(ctx, q)
		}
		_, err := q.Edit(ctx)
		if u, is := errors.AsType[*tool.Unfit](err); is {
			d, err := looks.Approve(ctx, approval.Request{Tool: "read_file", Plan: tool.Plan{Effect: tool.Reads, Path: q.Plan.Path}, Place: q.Place})
			if err == nil && d.Allow {
				return approval.Answer{}, u
			}
			q.Shown = &tool.Edit{Path: q.Plan.Path, Note: "cannot be made as it stands: " + u.Error()}
		}
		return c.window.Ask(ctx, q)
	}
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
	machine := c.box.CostUSD()
	return tui.Status{Place: c.place, Title: c.title, Expires: c.expires, Model: c.agent.Model.Info(), Usage: c.usage, CostUSD: c.cost + machine, MachineUSD: machine}
}

// Prompt implements tui.Session.
func (c *conversation) Prompt(ctx context.Context, text string, emit func(agent.Event)) (agent.Outcome, error) {
	emit = watching(c.box, emit)
	defer c.box.Working()()
	watch := &loss{}
	said := c.app.redact.Stream() // a secret may be cut between two pieces
	partial := ""                 // of the step that streams
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
			partial += piece.Text
		case agent.Reset:
			said.Rest()
			partial = ""
		case agent.Step, agent.Answered:
			rest()
			partial = ""
		case agent.Reasoning, agent.Used:
		default:
			rest()
		}
		watch.event(e, c.place.Provider)
		emit(e)
	}
	outcome, err := c.agent.Run(ctx, text)
	c.mu.Lock()
	c.told += outcome.CostUSD
	c.cost = c.told
	c.mu.Unlock()
	if err != nil && strings.TrimSpace(partial) != "" {
		c.agent.Say(model.Message{Role: model.RoleAssistant, Text: partial + "\n[broken off here]"})
	}
	if ctx.Err() != nil {
		return outcome, err
	}
	return outcome, c.lost(watch, err)
}

// mostShown is how much of a command's output the model gets to see.
const mostShown = 20_000

// Shell implements tui.Session.
func (c *conversation) Shell(ctx context.Context, command string, emit func(agent.Event)) error {
	emit = watching(c.box, emit)
	defer c.box.Working()()
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
	text := fmt.Sprintf(ranMyself+"%s\n"+itEnded+"%d. Its output:\n%s", command, exit, bytes.ToValidUTF8(seen.Bytes(), []byte("\ufffd")))
	c.agent.Say(model.Message{Role: model.RoleUser, Text: text})
	c.agent.Say(model.Message{Role: model.RoleAssistant, Text: sawIt})
	if err == nil || ctx.Err() != nil {
		return err
	}
	return c.lost(&loss{}, err)
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

// remember adds a rule for this project to the user's own file, and to this session's.
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
	rule, keeps := approval.RuleIn(real(cfg.Root), rule, c.place.Host)
	if !keeps {
		return nil // the name of the project's directory cannot be written: it holds for the session
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

// What the model is told of a command of the user's.
const (
	ranMyself = "I ran this command myself, where your tools work: "
	itEnded   = "It ended with "
	sawIt     = "I have seen it."
)

// asTyped is what the user said, as it was typed.
func asTyped(text string) string {
	rest, own := strings.CutPrefix(text, ranMyself)
	if !own {
		return text
	}
	command, _, _ := strings.Cut(rest, itEnded)
	return "!" + strings.TrimSpace(command)
}

// Package hook runs programs that the user has set up, on the user's computer: when
// a session starts and ends, and before and after each tool call, wherever the call
// itself works.
package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/tail"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// An Event is a moment at which programs run.
type Event string

// The events.
const (
	SessionStart Event = "session_start" // a program that fails ends the run
	BeforeTool   Event = "before_tool"   // one that fails refuses the call
	AfterTool    Event = "after_tool"    // what one that fails says is told to the model
	SessionEnd   Event = "session_end"   // a failure is told to the user
)

// A Hook is one program.
type Hook struct {
	Name    string
	Event   Event
	Command []string
	Tools   []string // of the events around a tool; empty: all
	Timeout time.Duration
}

// A Set is the programs of one session. It is safe for concurrent use; programs
// run one after the other.
type Set struct {
	Hooks []Hook
	Host  sandbox.Sandbox                  // the user's computer
	Dir   string                           // where programs start
	Note  func(format string, args ...any) // says what runs; may be nil

	// Mask blots secrets out of what programs say; nil: nothing.
	Mask func(string) string

	// Place returns the command to start in place of one that is set up, or an error
	// if it may not be started.
	Place func(command []string) ([]string, error)

	mu sync.Mutex
}

// A Call is what a program reads on its standard input, as one JSON object.
type Call struct {
	Event    Event        `json:"event"`
	Tool     string       `json:"tool,omitempty"`
	Command  string       `json:"command,omitempty"`
	Path     string       `json:"path,omitempty"`
	URL      string       `json:"url,omitempty"`
	Provider string       `json:"provider"`          // where the call works
	Machine  string       `json:"machine,omitempty"` // empty: this computer
	Exit     *int         `json:"exit,omitempty"`    // after execute
	Code     sandbox.Code `json:"code,omitempty"`    // after a call that failed
}

// outputMax bounds what is kept of a program's output.
const outputMax = 16 << 10

// Run starts the programs of an event in the order of their names, until one fails.
// The error is a *Failure, or that of ctx.
func (s *Set) Run(ctx context.Context, c Call) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.Hooks {
		if h.Event != c.Event || len(h.Tools) > 0 && c.Tool != "" && !slices.Contains(h.Tools, c.Tool) {
			continue
		}
		if err := s.start(ctx, h, c); err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether a program waits for an event.
func (s *Set) Has(e Event) bool {
	return s != nil && slices.ContainsFunc(s.Hooks, func(h Hook) bool { return h.Event == e })
}

// A Failure is a program that did not end with 0.
type Failure struct {
	Hook string
	Exit int    // -1: it could not be started or did not end in time
	Says string // the end of its output, or why it did not run
}

func (e *Failure) Error() string {
	text := fmt.Sprintf("the hook %s", e.Hook)
	if e.Exit >= 0 {
		text += fmt.Sprintf(" ended with %d", e.Exit)
	} else {
		text += " failed"
	}
	if e.Says != "" {
		text += ": " + e.Says
	}
	return text
}

func (s *Set) start(ctx context.Context, h Hook, c Call) error {
	fail := func(exit int, says string) error {
		if s.Mask != nil {
			says = s.Mask(says)
		}
		return &Failure{h.Name, exit, strings.TrimSpace(says)}
	}
	input, err := json.Marshal(c)
	if err != nil {
		return fail(-1, err.Error())
	}
	args := h.Command
	if s.Place != nil {
		if args, err = s.Place(h.Command); err != nil {
			return fail(-1, err.Error())
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	if s.Note != nil && (c.Event == SessionStart || c.Event == SessionEnd) {
		s.Note("hook %s runs on this computer: %s", h.Name, strings.Join(h.Command, " "))
	}
	out := &tail.Buffer{Most: outputMax}
	within, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	exit, err := s.Host.Exec(within, sandbox.Cmd{
		ID: id.String(), Args: args, Dir: s.Dir, Stdin: bytes.NewReader(append(input, '\n')), Stdout: out, Stderr: out,
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case within.Err() != nil:
		return fail(-1, fmt.Sprintf("it did not end within %v", h.Timeout))
	case err != nil:
		return fail(-1, err.Error())
	case exit != 0:
		return fail(exit, out.String())
	}
	return nil
}

// call is what a program is told of a tool call.
func call(e Event, name string, plan tool.Plan, at approval.Place) Call {
	c := Call{Event: e, Tool: name, Command: plan.Command, Path: plan.Path, URL: plan.URL, Provider: at.Provider}
	if !at.Host {
		c.Machine = at.ID
	}
	return c
}

// Approver returns an Approver that asks next, and then lets the programs look at
// what it allowed.
func (s *Set) Approver(next approval.Approver) approval.Approver {
	if !s.Has(BeforeTool) {
		return next
	}
	return approver{s, next}
}

type approver struct {
	set  *Set
	next approval.Approver
}

func (a approver) Approve(ctx context.Context, req approval.Request) (approval.Decision, error) {
	d, err := a.next.Approve(ctx, req)
	if err != nil || !d.Allow {
		return d, err
	}
	if d.Command != "" {
		req.Plan.Command = d.Command
	}
	err = a.set.Run(ctx, call(BeforeTool, req.Tool, req.Plan, req.Place))
	if failure, ok := errors.AsType[*Failure](err); ok {
		return approval.Decision{Kind: approval.ByPolicy, Tier: d.Tier, Reason: failure.Error()}, nil
	}
	return d, err
}

// Tools returns the tools with the programs that run after each call.
func (s *Set) Tools(tools []tool.Tool, place approval.Place) []tool.Tool {
	if !s.Has(AfterTool) {
		return tools
	}
	all := make([]tool.Tool, len(tools))
	for i, t := range tools {
		all[i] = watched{t, s, place}
	}
	return all
}

type watched struct {
	tool.Tool
	set   *Set
	place approval.Place
}

// Unwrap gives the tool itself to those who ask it for more.
func (w watched) Unwrap() tool.Tool { return w.Tool }

func (w watched) Run(ctx context.Context, input string, emit func(tool.Output)) (tool.Result, error) {
	r, err := w.Tool.Run(ctx, input, emit)
	if err != nil {
		return r, err
	}
	plan, err := w.Plan(input)
	if err != nil {
		return r, nil // it ran, so it was well-formed
	}
	at := w.place
	if plan.Effect == tool.Leaves {
		at = approval.Place{Provider: "local", Host: true}
	}
	c := call(AfterTool, w.Name(), plan, at)
	c.Code = r.Code
	if plan.Effect == tool.Runs {
		c.Exit = &r.Exit
	}
	err = w.set.Run(ctx, c)
	if failure, ok := errors.AsType[*Failure](err); ok {
		r.Text += fmt.Sprintf("\n[%s]", failure.Error())
		return r, nil
	}
	return r, err
}

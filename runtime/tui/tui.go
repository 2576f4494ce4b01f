// Package tui is the chat window: events of the agent become what is seen, keys
// become prompts and answers. What is done with goes to the terminal's own
// scrollback; what is under way stands at the bottom.
package tui

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/model"
)

// A Session is what the window talks to. Prompt, Shell and Command are called one
// at a time; the rest at any time.
type Session interface {
	// Prompt gives the model a message and works until it answers.
	Prompt(ctx context.Context, text string, emit func(agent.Event)) (agent.Outcome, error)

	// Shell runs a command of the user's where the tools work, and makes it part of
	// the conversation.
	Shell(ctx context.Context, command string, emit func(agent.Event)) error

	// Command runs a slash command that the window does not know, and returns what
	// it says. Ok is false if there is no such command.
	Command(ctx context.Context, name, args string) (text string, ok bool, err error)

	Mode() approval.Mode
	SetMode(approval.Mode)
	Status() Status
}

// A Status is what the line at the bottom shows.
type Status struct {
	Place   approval.Place
	Title   string // of the provider: "Daytona"
	Expires time.Time
	Model   model.Info
	Usage   model.Usage // of the last step: what fills the window
	CostUSD float64
}

// A Command is a slash command of the session's, for help and completion.
type Command struct {
	Name string // without the slash
	Help string
}

// A Window is one chat.
type Window struct {
	Session  Session
	Commands []Command // of the session's
	First    string    // a first message; may be empty
	Plain    bool      // no colours

	In      io.Reader
	Out     io.Writer
	Environ []string

	program *tea.Program
}

// errClosed is what somebody who asks is told when the window is no more.
var errClosed = errors.New("the chat window is closed")

// Run shows the window until the user leaves. The error is that of the terminal,
// or the cause of ctx.
func (w *Window) Run(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newView(inner, w)
	w.program = tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(w.In), tea.WithOutput(w.Out), tea.WithEnvironment(w.Environ), tea.WithoutSignalHandler())
	m.send = w.program.Send
	_, err := w.program.Run()
	cancel()
	m.idle() // what runs ends before we return
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Ask shows a question and waits for the answer. It fits approval.Attended.
func (w *Window) Ask(ctx context.Context, q approval.Question) (approval.Answer, error) {
	if w.program == nil {
		return approval.Answer{}, errClosed
	}
	reply := make(chan approval.Answer, 1)
	w.program.Send(askMsg{q, reply})
	select {
	case answer := <-reply:
		return answer, nil
	case <-ctx.Done():
		w.program.Send(askMsg{})
		return approval.Answer{}, context.Cause(ctx)
	}
}

// Note shows a line above the input.
func (w *Window) Note(text string) {
	if w.program != nil {
		w.program.Send(noteMsg(text))
	}
}

type (
	eventMsg struct{ agent.Event }
	doneMsg  struct {
		outcome agent.Outcome
		err     error
	}
	saidMsg struct { // by a slash command
		text string
		err  error
	}
	askMsg struct {
		approval.Question
		reply chan approval.Answer
	}
	noteMsg string
	tickMsg struct{}
)

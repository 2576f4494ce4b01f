// Package tui is the chat window: events of the agent become what is seen, keys
// become prompts and answers. What is done with goes to the terminal's own
// scrollback; what is under way stands at the bottom.
package tui

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os/exec"
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

	// Command runs a slash command that the window does not know.
	Command(ctx context.Context, name, args string, emit func(agent.Event)) (Reply, error)

	// Choices lists what there is to choose from.
	Choices(ctx context.Context, kind Kind) ([]Choice, error)

	Mode() approval.Mode
	SetMode(approval.Mode)
	Status() Status
}

// A Kind is a kind of things to choose from.
type Kind string

// The kinds.
const (
	Files         Kind = "files"         // where the tools work, from the start directory on
	Conversations Kind = "conversations" // of this project, but this one
)

// A Reply is what a slash command says.
type Reply struct {
	Text    string
	Patch   bool // the text is a patch
	Unknown bool // there is no such command
	Leave   bool // the window closes
}

// A LostError ends a turn since the machine is lost. The window shows what is known,
// and offers what can be done: a choice becomes the command /sandbox VALUE.
type LostError struct {
	Err     error
	Choices []Choice
}

func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap returns what is known.
func (e *LostError) Unwrap() error { return e.Err }

// A Status is what the line at the bottom shows.
type Status struct {
	Place   approval.Place
	Title   string // of the provider: "Daytona"
	Expires time.Time
	Model   model.Info
	Usage   model.Usage // of the last step: what fills the window
	CostUSD float64     // of models and machine

	// MachineUSD is what of CostUSD the machine has cost: an estimate, 0 if it is not
	// known.
	MachineUSD float64
}

// A Command is a slash command of the session's, for help and completion.
type Command struct {
	Name string // without the slash
	Help string
}

// A Said is a message of a conversation that goes on.
type Said struct {
	User bool
	Text string
}

// A Window is one chat.
type Window struct {
	Session  Session
	Commands []Command // of the session's
	First    string    // a first message; may be empty
	Past     []Said    // what was said before; the last of it is shown
	Outputs  []Output  // what was printed before
	Theme    string    // one of the themes; "" is ThemeAuto
	Plain    bool      // lines only: nothing is drawn again, as a screen reader wants it
	Notify   string    // how a window that nobody looks at calls: one of the notices; "" is NotifyOff

	History  []string                            // what the user sent before, the last at the end
	Remember func(string)                        // keeps what the user sent; may be nil
	Editor   func(text string) (*Editing, error) // opens the user's editor; may be nil

	In      io.Reader
	Out     io.Writer
	Width   func() int // columns of Out, where a plain window breaks its lines; nil leaves them whole
	Environ []string

	send func(tea.Msg) // nil: it is not shown
}

// An Editing is a text that is being changed in the user's editor.
type Editing struct {
	Cmd  *exec.Cmd
	Read func() (string, error) // what it is when the editor has ended
}

// errClosed is what somebody who asks is told when the window is no more.
var errClosed = errors.New("the chat window is closed")

func (w *Window) theme() string { return cmp.Or(w.Theme, ThemeAuto) }

// Run shows the window until the user leaves. The error is that of the terminal,
// or the cause of ctx.
func (w *Window) Run(ctx context.Context) error {
	if w.Plain {
		return w.runPlain(ctx)
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newView(inner, w)
	var program *tea.Program
	out, ok := watched(w.Out, func() { program.Send(readyMsg{}) })
	m.ready = !ok
	narrower := func(_ tea.Model, msg tea.Msg) tea.Msg {
		if size, is := msg.(tea.WindowSizeMsg); is {
			m.narrowed(size.Width, out)
		}
		return msg
	}
	program = tea.NewProgram(m, tea.WithFilter(narrower), tea.WithContext(ctx), tea.WithInput(w.In), tea.WithOutput(out), tea.WithEnvironment(w.Environ), tea.WithoutSignalHandler())
	w.send, m.send = program.Send, program.Send
	_, err := program.Run()
	cancel()
	m.idle() // what runs ends before we return
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Ask shows a question and waits for the answer. It fits approval.Attended.
func (w *Window) Ask(ctx context.Context, q approval.Question) (approval.Answer, error) {
	if w.send == nil {
		return approval.Answer{}, errClosed
	}
	reply := make(chan approval.Answer, 1)
	w.send(askMsg{q, reply})
	select {
	case answer := <-reply:
		return answer, nil
	case <-ctx.Done():
		w.send(askMsg{})
		return approval.Answer{}, context.Cause(ctx)
	}
}

// Note shows a line above the input.
func (w *Window) Note(text string) {
	if w.send != nil {
		w.send(noteMsg(text))
	}
}

type (
	eventMsg struct{ agent.Event }
	doneMsg  struct {
		outcome agent.Outcome
		err     error
	}
	saidMsg struct { // by a slash command
		Reply
		name string
	}
	askMsg struct {
		approval.Question
		reply chan approval.Answer
	}
	choicesMsg struct {
		picker *picker
		items  []Choice
		err    error
	}
	editorMsg struct {
		editing *Editing
		err     error
	}
	editedMsg struct {
		text string
		err  error
	}
	readyMsg struct{} // the window stands on the screen for the first time
	noteMsg  string
	tickMsg  struct{}
	firstMsg string
)

package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/headless"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/tui"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// What the user may want when the machine of a conversation is lost.
const (
	lostAgain   = "again"   // reach the same machine once more
	lostNew     = "new"     // another one, with what was saved of it
	lostWithout = "without" // only talk
)

// A loss watches over one turn for the machine being lost.
type loss struct {
	mu   sync.Mutex
	code sandbox.Code // of the last call that ran in the sandbox; "" is one that went well
	ran  map[string]bool
}

// event looks at what the agent does.
func (l *loss) event(e agent.Event, provider string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := e.(type) {
	case agent.CallStarted:
		if l.ran == nil {
			l.ran = map[string]bool{}
		}
		l.ran[e.ID] = e.Provider == provider
	case agent.CallDone:
		if l.ran[e.ID] {
			l.code = e.Code
		}
	}
}

// lost makes an error that offers what can be done out of one that says that the
// machine is lost, or out of a turn in which it did not answer in the end. Others are
// returned as they are.
func (c *conversation) lost(l *loss, err error) error {
	if c.place.Host {
		return err
	}
	l.mu.Lock()
	silent := l.code == sandbox.CodeUnavailable
	l.mu.Unlock()
	at := c.title + " " + c.place.ID
	again := tui.Choice{Value: lostAgain, Label: "try again", Detail: "reach " + at + " once more, as it is"}
	anew := tui.Choice{Value: lostNew, Label: "a new machine", Detail: "with the project and what was saved"}
	without := tui.Choice{Value: lostWithout, Label: "go on without", Detail: "only talk; nothing runs, here or there"}
	switch {
	case gone(err):
		c.gone = true
		return &tui.LostError{Err: fmt.Errorf("%w.\nThe vendor says that %s is no more.\nThe conversation stays, and so does what was saved: %s", err, at, c.saved()), Choices: []tui.Choice{anew, without}}
	case errors.Is(err, sandbox.ErrUnauthenticated):
		return &tui.LostError{Err: fmt.Errorf("%w.\nThe vendor refuses the sign-in; %s may still run.\nThe conversation stays. If the key has to be renewed, leave with /exit, sign in, and say: talkops -r %s", err, at, c.kept.id()), Choices: []tui.Choice{again, without}}
	case err == nil && silent, errors.Is(err, sandbox.ErrUnavailable):
		if err == nil {
			err = errors.New("the last call was not answered")
		}
		return &tui.LostError{Err: fmt.Errorf("%w.\n%s cannot be reached; what runs there goes on, as far as is known.\nThe conversation stays, and so does what was saved: %s", err, at, c.saved()), Choices: []tui.Choice{again, anew, without}}
	}
	return err
}

// saved says what came home of the machine.
func (c *conversation) saved() string {
	h := c.box.Home()
	if h == nil || len(h.Changes) == 0 {
		return "no changes"
	}
	return h.String()
}

// recover does what the user wants after a loss.
func (c *conversation) recover(want string) (tui.Reply, error) {
	switch {
	case c.kept.id() == "" && want != lostWithout:
		return tui.Reply{}, errors.New("this conversation is not kept on disk, so it cannot be taken into another machine")
	case want == lostWithout:
		c.agent.Tools = c.lookups
		for _, m := range reminder("The machine cannot be used any more. There are no files and no commands from now on: answer in words, and say so where it matters.") {
			c.agent.Say(m)
		}
		return tui.Reply{Text: "Going on without a machine: nothing runs, here or there. /sandbox again and /sandbox new are still there."}, nil
	}
	c.next, c.want = c.kept.id(), want
	return tui.Reply{Text: map[string]string{lostAgain: "Trying to reach the machine again.", lostNew: "Opening a new machine."}[want], Leave: true}, nil
}

// let lets go of the machine of a conversation that goes on elsewhere, or in the same
// one once more.
func (a *app) let(s *session.Session, c *conversation, p *headless.Printer) {
	if c.gone {
		s.End(context.Background()) // its error says once more that the machine is gone
		return
	}
	if err := s.Leave(); err != nil {
		p.Warn("%v", err)
	}
	if c.want == lostNew && s.Fresh {
		p.Warn("%s may still run, with what was not saved of it; it ends by itself %s. To end it: talkops sandbox rm --discard %s", c.place.ID, s.Lease().Ends(), c.place.ID)
	}
}

// tryAgain asks what to do about a machine that could not be had, when there is
// something to do. It returns nil to try again, and otherwise the error to end with,
// which is not told twice.
func (a *app) tryAgain(ctx context.Context, f *runFlags, err error) error {
	_, ok := errors.AsType[*session.StartError](err)
	if !ok || ctx.Err() != nil {
		return err
	}
	status, lines := explain(err)
	lines[0] = err.Error() // without a status: nothing has ended yet
	a.complain(lines)
	question := "[t]ry again"
	if f.thread != nil {
		question += ", a [n]ew machine with what was saved"
	}
	for range 5 {
		answer, unanswered := a.askText(ctx, question+", or [l]eave (l): ")
		if unanswered != nil {
			return err
		}
		switch strings.ToLower(answer) {
		case "t", "try", "again":
			return nil
		case "n", "new":
			if f.thread != nil {
				f.want = lostNew
				return nil
			}
		case "", "l", "leave":
			return errors.Join(&exitStatus{status}, err)
		}
	}
	return err
}

// A voice is how a session speaks: by lines on standard error, and through the window
// while that is on the screen. It is safe for concurrent use.
type voice struct {
	p    *headless.Printer
	live bool // what goes on is shown: silence needs no lines

	mu sync.Mutex
	w  *tui.Window
}

// through makes the window say what is said; nil: it is not there any more.
func (v *voice) through(w *tui.Window) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.w = w
}

func (v *voice) window() *tui.Window {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.w
}

func (v *voice) note(format string, args ...any) {
	if w := v.window(); w != nil {
		w.Note(fmt.Sprintf(format, args...))
		return
	}
	v.p.Note(format, args...)
	if v.live {
		v.p.Stop()
	}
}

func (v *voice) warn(format string, args ...any) {
	if w := v.window(); w != nil {
		w.Note(fmt.Sprintf(format, args...))
		return
	}
	v.p.Warn(format, args...)
}

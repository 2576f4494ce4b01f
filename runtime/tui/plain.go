package tui

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/tool"
)

// A plain window prints lines and reads lines. Nothing is drawn again, no key has a
// meaning of its own, and every state is said in words.
type plain struct {
	*Window
	msgs    chan tea.Msg
	typed   chan string
	ended   chan struct{} // closed when nothing is shown any more
	working bool
	stopped bool
	cancel  context.CancelFunc
	ask     *askMsg
	change  approval.Choice // the question waits for a reason or a changed command
	text    string
	code    bool   // what the model says is within a block of code
	rest    string // of a command's output
	queue   []string
	leaving bool
	wg      sync.WaitGroup
}

// runPlain shows the window as lines until the user leaves.
func (w *Window) runPlain(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &plain{Window: w, msgs: make(chan tea.Msg), typed: make(chan string), ended: make(chan struct{})}
	defer close(p.ended)
	w.send = func(m tea.Msg) {
		select {
		case p.msgs <- m:
		case <-p.ended:
		}
	}
	go p.read()
	defer func() {
		cancel()
		done := make(chan struct{})
		go func() { p.wg.Wait(); close(done) }()
		for {
			select {
			case m := <-p.msgs: // what still runs has something to say
				p.take(m)
			case <-done:
				return
			}
		}
	}()
	p.line("talkops. %s Type a line to send it; /help lists commands; /stop interrupts; /exit leaves.", p.place())
	for i, m := range w.Past[max(len(w.Past)-pastShown, 0):] {
		if n := len(w.Past) - pastShown; i == 0 && n > 0 {
			word := "messages"
			if n == 1 {
				word = "message"
			}
			p.line("%d %s before.", n, word)
		}
		if m.User {
			p.line("You: %s", m.Text)
		} else {
			p.says(m.Text)
			p.code = false
		}
	}
	if len(w.Past) > 0 {
		p.line("This conversation goes on.")
	}
	if w.First != "" {
		p.line("You: %s", w.First)
		p.start(inner, w.First)
	}
	for !p.leaving || p.working {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case text, open := <-p.typed:
			if !open {
				p.leaving, p.typed = true, nil
				p.stop()
				continue
			}
			p.enter(inner, text)
		case m := <-p.msgs:
			p.take(m)
			if !p.working && !p.leaving && len(p.queue) > 0 {
				next := p.queue[0]
				p.queue = p.queue[1:]
				p.line("You: %s", next)
				p.start(inner, next)
			}
		}
	}
	return nil
}

// read hands on what is typed, line by line.
func (p *plain) read() {
	in := bufio.NewReader(p.In)
	typed := p.typed
	for {
		text, err := in.ReadString('\n')
		if text = strings.TrimRight(text, "\r\n"); err == nil || text != "" {
			select {
			case typed <- text:
			case <-p.ended:
				return
			}
		}
		if err != nil {
			close(typed)
			return
		}
	}
}

func (p *plain) line(format string, args ...any) {
	text := strings.TrimRight(term.Clean(fmt.Sprintf(format, args...)), "\n")
	if p.Width != nil {
		text = term.Fold(text, p.Width())
	}
	fmt.Fprintln(p.Out, text)
}

// says prints what the model says. Lines of code stay whole.
func (p *plain) says(text string) {
	for line := range strings.SplitSeq(strings.TrimRight(term.Clean(text), "\n"), "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if p.Width != nil && !p.code {
			line = term.FoldProse(line, p.Width())
		}
		p.code = p.code != fence
		fmt.Fprintln(p.Out, line)
	}
}

func (p *plain) place() string {
	s := p.Session.Status()
	if s.Place.Host {
		return fmt.Sprintf("Commands run on this computer. Mode %s.", p.Session.Mode())
	}
	return fmt.Sprintf("Commands run in %s %s. Mode %s.", s.Title, s.Place.ID, p.Session.Mode())
}

func (p *plain) stop() {
	if p.working && !p.stopped {
		p.stopped = true
		p.cancel()
	}
}

// enter acts on a line that was typed.
func (p *plain) enter(ctx context.Context, text string) {
	text = term.Clean(text)
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "/stop":
		p.stop()
	case p.ask != nil:
		p.answer(trimmed)
	case trimmed == "":
	case trimmed == "/exit" || trimmed == "/quit":
		p.leaving = true
		p.stop()
	case p.working:
		p.queue = append(p.queue, text)
		p.line("That waits until the work is done.")
	default:
		if p.Remember != nil {
			p.Remember(text)
		}
		p.start(ctx, text)
	}
}

// start acts on a line of the user's.
func (p *plain) start(ctx context.Context, text string) {
	trimmed := strings.TrimSpace(text)
	name, isSlash := strings.CutPrefix(trimmed, "/")
	command, isShell := strings.CutPrefix(trimmed, "!")
	switch command = strings.TrimSpace(command); {
	case isSlash:
		name, args, _ := strings.Cut(name, " ")
		p.slash(ctx, name, strings.TrimSpace(args))
	case isShell && (command == "" || strings.HasPrefix(command, "!")):
		p.line("!command runs a command where the tools work; there is no way to this computer's shell from here")
	case isShell:
		p.work(ctx, func(ctx context.Context) error { return p.Session.Shell(ctx, command, p.emit) })
	default:
		p.work(ctx, func(ctx context.Context) error {
			_, err := p.Session.Prompt(ctx, text, p.emit)
			return err
		})
	}
}

func (p *plain) emit(e agent.Event) { p.send(eventMsg{e}) }

func (p *plain) slash(ctx context.Context, name, args string) {
	switch name {
	case "help":
		for _, c := range slices.Concat(own, p.Commands) {
			p.line("/%s: %s", c.Name, c.Help)
		}
		p.line("/stop: interrupt what runs")
		return
	case "mode":
		if args != "" {
			m := approval.Mode(args)
			if !slices.Contains(approval.Modes, m) {
				p.line("there is no mode %q: plan, manual, smart or yolo", args)
				return
			}
			p.Session.SetMode(m)
		}
		p.line("%s", p.place())
		return
	case "output":
		p.line("All that commands print is said as it comes.")
		return
	case "cost":
		p.line("%s", p.Session.Status().costs())
		return
	}
	p.work(ctx, func(ctx context.Context) error {
		if name == "resume" && args == "" {
			list, err := p.Session.Choices(ctx, Conversations)
			text := "Say /resume and one of these:"
			if len(list) == 0 {
				text = noOther
			}
			for _, c := range list {
				text += "\n" + c.Value + "  " + c.label() + "  " + c.Detail
			}
			p.send(saidMsg{Reply{Text: text}, name})
			return err
		}
		reply, err := p.Session.Command(ctx, name, args, p.emit)
		if err == nil {
			p.send(saidMsg{reply, name})
		}
		return err
	})
}

// work runs f beside the window.
func (p *plain) work(ctx context.Context, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	p.working, p.stopped, p.cancel = true, false, cancel
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		err := f(ctx)
		p.send(doneMsg{err: err})
	}()
}

// take shows what happened.
func (p *plain) take(m tea.Msg) {
	switch m := m.(type) {
	case eventMsg:
		p.event(m.Event)
	case noteMsg:
		p.line("%s", string(m))
	case saidMsg:
		switch {
		case m.Unknown:
			p.line("There is no command /%s; /help lists them.", m.name)
		default:
			p.line("%s", m.Text)
		}
		p.leaving = p.leaving || m.Leave
	case askMsg:
		if m.reply == nil {
			p.ask = nil
			return
		}
		p.ask, p.change = &m, ""
		p.question()
	case doneMsg:
		p.cancel()
		p.flush()
		p.working, p.ask = false, nil
		switch {
		case p.stopped:
			p.line("Interrupted.")
		case m.err != nil:
			p.line("Error: %v", m.err)
			if lost, ok := errors.AsType[*LostError](m.err); ok {
				for _, c := range lost.Choices {
					p.line("/sandbox %s: %s, %s", c.Value, c.Label, c.Detail)
				}
			}
		}
		if !p.leaving && len(p.queue) == 0 {
			p.line("Ready.")
		}
	}
}

func (p *plain) event(e agent.Event) {
	switch e := e.(type) {
	case agent.Text:
		p.text += e.Text
		if i := strings.LastIndexByte(p.text, '\n'); i >= 0 {
			p.says(p.text[:i])
			p.text = p.text[i+1:]
		}
	case agent.Reset:
		p.text, p.code = "", false
		p.line("The answer starts again.")
	case agent.Retry:
		p.line("Waiting %v: %s", e.Wait.Round(time.Second), e.Reason)
	case agent.Step, agent.Answered:
		p.flush()
	case agent.Shortening:
		p.line("Summing the conversation up…")
	case agent.Shortened:
		if e.Failed != "" {
			p.line("It could not be summed up: %s", e.Failed)
		}
	case agent.CallStarted:
		p.flush()
		at := e.Provider
		if at == "local" || at == "" {
			at = "this computer"
		}
		if e.Edited {
			at += ", edited by you"
		}
		p.line("Runs %s on %s: %s", e.Tool, at, e.Says())
	case agent.CallOutput:
		lines := strings.Split(p.rest+term.Clean(e.Data), "\n")
		p.rest = lines[len(lines)-1]
		for _, l := range lines[:len(lines)-1] {
			p.line("| %s", l)
		}
	case agent.CallDone:
		if p.rest != "" {
			p.line("| %s", p.rest)
			p.rest = ""
		}
		switch {
		case e.Path != "": // nothing was said of it
			p.line("Failed: %s %s: %s", e.Tool, agreed(e.Path), strings.ReplaceAll(string(e.Code), "_", " "))
		case e.Code != "":
			p.line("Failed: %s", strings.ReplaceAll(string(e.Code), "_", " "))
		case e.Tool == "execute":
			p.line("Ended with exit %d after %s", e.Exit, cmp.Or(short(e.Took), "0s"))
		}
	case agent.Refused:
		p.line("Refused: %s %s: %s", e.Tool, e.Says(), toUser(e.Reason))
	}
}

func (p *plain) flush() {
	if strings.TrimSpace(p.text) != "" {
		p.says(p.text)
	}
	p.text, p.code = "", false
}

// question says what is asked, and what may be answered.
func (p *plain) question() {
	q := p.ask
	where := "on this computer"
	if !q.Place.Host {
		where = "in " + q.Place.Provider + " " + q.Place.ID
	}
	p.line("Question: may this run %s? It %s (%s).", where, agreed(q.Why.Reason), q.Why.Tier)
	if q.Shown != nil {
		for _, l := range newStyles(ThemeNone).edit(*q.Shown, 100) {
			p.line("%s", l)
		}
	} else {
		p.line("%s: %s", q.Tool, asked(q.Plan))
	}
	if q.Change != nil {
		p.line("%s", agreed(q.Change.String()))
	}
	words := []string{"y once"}
	if slices.Contains(q.Offers, approval.Session) {
		words = append(words, "s for this session")
	}
	if slices.Contains(q.Offers, approval.Always) {
		words = append(words, "a always, in this project: "+agreed(q.Rule))
	}
	words = append(words, "n no")
	if q.Plan.Effect == tool.Runs {
		words = append(words, "e to change it")
	}
	p.line("Answer: %s.", strings.Join(words, ", "))
}

// answer takes the answer to a question.
func (p *plain) answer(text string) {
	reply := func(a approval.Answer) {
		p.ask.reply <- a
		p.ask = nil
	}
	offered := func(c approval.Choice) bool { return slices.Contains(p.ask.Offers, c) }
	switch word := strings.ToLower(text); {
	case p.change == approval.Refuse:
		reply(approval.Answer{Choice: approval.Refuse, Reason: text})
	case p.change == approval.Once && text == "":
		p.line("That is no command; type one, or /stop.")
	case p.change == approval.Once:
		reply(approval.Answer{Choice: approval.Once, Command: text})
	case word == "y" || word == "yes":
		reply(approval.Answer{Choice: approval.Once})
	case word == "s" && offered(approval.Session):
		reply(approval.Answer{Choice: approval.Session})
	case word == "a" && offered(approval.Always):
		reply(approval.Answer{Choice: approval.Always})
	case word == "n" || word == "no":
		p.change = approval.Refuse
		p.line("Why not? An empty line gives no reason.")
	case word == "e" && p.ask.Plan.Effect == tool.Runs:
		p.change = approval.Once
		p.line("Type the command to run instead.")
	default:
		p.question()
	}
}

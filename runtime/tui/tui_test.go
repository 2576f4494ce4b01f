package tui

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/tool"
)

// A desk is a session without a model: each prompt runs the next of its turns.
type desk struct {
	mu      sync.Mutex
	mode    approval.Mode
	place   approval.Place
	machine float64 // what the machine has cost
	turns   []func(ctx context.Context, emit func(agent.Event)) error
	said    []string
	shells  []string
	nothing bool                                                    // there is nothing to choose from
	shell   func(ctx context.Context, emit func(agent.Event)) error // what a command of the user's does; may be nil
}

func (d *desk) Prompt(ctx context.Context, text string, emit func(agent.Event)) (agent.Outcome, error) {
	d.mu.Lock()
	d.said = append(d.said, text)
	var turn func(context.Context, func(agent.Event)) error
	if len(d.turns) > 0 {
		turn, d.turns = d.turns[0], d.turns[1:]
	}
	d.mu.Unlock()
	if turn == nil {
		emit(agent.Text{Text: "You said " + text})
		emit(agent.Answered{})
		return agent.Outcome{}, nil
	}
	return agent.Outcome{}, turn(ctx, emit)
}

func (d *desk) Shell(ctx context.Context, command string, emit func(agent.Event)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shells = append(d.shells, command)
	if d.shell != nil {
		return d.shell(ctx, emit)
	}
	return nil
}

func (d *desk) Command(_ context.Context, name, args string, _ func(agent.Event)) (Reply, error) {
	switch name {
	case "config":
		return Reply{Text: "config " + args}, nil
	case "diff":
		return Reply{Text: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\x1b[2J\n+b\n", Patch: true}, nil
	case "resume":
		return Reply{Text: "resume " + args, Leave: true}, nil
	}
	return Reply{Unknown: true}, nil
}

func (d *desk) Choices(_ context.Context, kind Kind) ([]Choice, error) {
	if d.nothing {
		return nil, nil
	}
	if kind == Files {
		return []Choice{{Value: "main.go"}, {Value: "docs/read me.md"}, {Value: "cmd/deploy.go"}}, nil
	}
	return []Choice{{Value: "t-1", Label: "the first"}, {Value: "t-2", Label: "the second"}}, nil
}

func (d *desk) Mode() approval.Mode {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mode
}

func (d *desk) SetMode(m approval.Mode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mode = m
}

// heard is what was said to it.
func (d *desk) heard() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.said)
}

// ran is how many commands of the user's were run.
func (d *desk) ran() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.shells)
}
func (d *desk) Status() Status {
	return Status{Place: d.place, Title: "Acme", Model: model.Info{Provider: "p", Name: "m", Window: 200_000}, Usage: model.Usage{Input: 50_000}, CostUSD: 0.5 + d.machine, MachineUSD: d.machine, Expires: time.Now().Add(90 * time.Minute)}
}

// A bench runs a view without a terminal: commands run, their messages come back,
// and what is printed is kept.
type bench struct {
	t       *testing.T
	v       *view
	msgs    chan tea.Msg
	printed []string
	quit    bool
}

func open(t *testing.T, d *desk) *bench {
	return openWindow(t, &Window{Session: d, Theme: ThemeNone, Commands: []Command{{"config", "settings"}, {"resume", "go on"}}})
}

func openWindow(t *testing.T, w *Window) *bench {
	b := &bench{t: t, msgs: make(chan tea.Msg, 1000)}
	b.v = newView(t.Context(), w)
	b.v.send = func(m tea.Msg) { b.msgs <- m }
	b.run(b.v.Init())
	b.update(tea.WindowSizeMsg{Width: 60, Height: 20})
	b.update(readyMsg{})
	return b
}

// run executes a command as the library does: what it holds side by side or in turn.
func (b *bench) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() { b.dispatch(cmd()) }()
}

func (b *bench) dispatch(msg tea.Msg) {
	if msg == nil {
		return
	}
	b.msgs <- msg
}

func (b *bench) update(msg tea.Msg) {
	switch m := msg.(type) {
	case tea.BatchMsg:
		for _, c := range m {
			b.run(c)
		}
		return
	case tea.QuitMsg:
		b.quit = true
		return
	case printedMsg, tickMsg:
	}
	if cmds, ok := sequence(msg); ok {
		go func() {
			for _, c := range cmds {
				if c != nil {
					b.dispatch(c())
				}
			}
		}()
		return
	}
	if text, ok := printed(msg); ok {
		b.printed = append(b.printed, ansi.Strip(text))
		return
	}
	_, cmd := b.v.Update(msg)
	b.run(cmd)
}

// until lets messages come until ok holds.
func (b *bench) until(what string, ok func() bool) {
	b.t.Helper()
	deadline := time.After(10 * time.Second)
	for !ok() {
		select {
		case m := <-b.msgs:
			b.update(m)
		case <-deadline:
			b.t.Fatalf("never: %s\nprinted %q\nview:\n%s", what, b.printed, b.view())
		}
	}
}

func (b *bench) view() string { return ansi.Strip(b.v.View().Content) }

func (b *bench) all() string { return strings.Join(b.printed, "\n") }

func (b *bench) press(keys ...string) {
	for _, k := range keys {
		b.update(key(k))
	}
}

func (b *bench) typed(text string) {
	for _, r := range text {
		b.update(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

func key(name string) tea.KeyPressMsg {
	switch name {
	case "enter":
		return tea.KeyPressMsg{Code: tea.KeyEnter}
	case "esc":
		return tea.KeyPressMsg{Code: tea.KeyEscape}
	case "up":
		return tea.KeyPressMsg{Code: tea.KeyUp}
	case "down":
		return tea.KeyPressMsg{Code: tea.KeyDown}
	case "backspace":
		return tea.KeyPressMsg{Code: tea.KeyBackspace}
	case "tab":
		return tea.KeyPressMsg{Code: tea.KeyTab}
	case "shift+tab":
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	case "alt+enter":
		return tea.KeyPressMsg{Code: tea.KeyEnter, Mod: tea.ModAlt}
	}
	if c, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(c[0]), Mod: tea.ModCtrl}
	}
	r := []rune(name)[0]
	return tea.KeyPressMsg{Code: r, Text: name}
}

func TestATurn(t *testing.T) {
	d := &desk{mode: approval.Manual, place: approval.Place{Provider: "acme", ID: "box-1"}}
	d.turns = append(d.turns, func(_ context.Context, emit func(agent.Event)) error {
		emit(agent.Text{Text: "I will\x1b[2J look."})
		emit(agent.Step{})
		emit(agent.CallStarted{ID: "1", Tool: "execute", Command: "make test", Provider: "acme", Machine: "box-1"})
		for i := range 9 {
			emit(agent.CallOutput{ID: "1", Data: strings.Repeat("x", i) + "\x1b]0;title\x07\n"})
		}
		emit(agent.CallDone{ID: "1", Tool: "execute", Exit: 2, Took: time.Second})
		emit(agent.Text{Text: "It fails."})
		emit(agent.Answered{})
		return nil
	})
	b := open(t, d)
	b.typed("try it")
	b.press("enter")
	b.until("the turn ends", func() bool { return !b.v.working && strings.Contains(b.all(), "It fails.") })
	got := b.all()
	order := []string{"› try it", "I will look.", "✗ execute [acme] make test exit 2 1.0s", "3 lines above", "xxxxxxxx", "It fails."}
	at := 0
	for _, want := range order {
		i := strings.Index(got[at:], want)
		if i < 0 {
			t.Fatalf("%q is not printed, or not in its place:\n%s", want, got)
		}
		at += i
	}
	if strings.ContainsAny(got, "\x1b\x07") {
		t.Errorf("the terminal could be driven: %q", got)
	}
	view := b.view()
	for _, want := range []string{" ACME box-1 ", "mode manual", "50k/200k", "$0.50", "left"} {
		if !strings.Contains(view, want) {
			t.Errorf("the view lacks %q:\n%s", want, view)
		}
	}
	for _, line := range strings.Split(view, "\n") {
		if ansi.StringWidth(line) > 60 {
			t.Errorf("a line is wider than the window: %q", line)
		}
	}
}

func TestThisComputerIsUnmistakable(t *testing.T) {
	b := open(t, &desk{mode: approval.Manual, place: approval.Place{Host: true}})
	if !strings.Contains(b.view(), " THIS COMPUTER ") {
		t.Errorf("view:\n%s", b.view())
	}
}

func TestAnswers(t *testing.T) {
	q := approval.Question{
		Request: approval.Request{Tool: "execute", Change: &approval.Change{Program: "terraform", Known: true, Destroyed: 2}, Plan: tool.Plan{Effect: tool.Runs, Command: "make\x1b[31m all"}, Place: approval.Place{Host: true}},
		Why:     approval.Decision{Tier: approval.T3, Reason: "runs code that was not read"},
		Offers:  []approval.Choice{approval.Once, approval.Session, approval.Always, approval.Refuse}, Rule: "make all",
	}
	for _, row := range []struct {
		name string
		keys func(b *bench)
		want approval.Answer
	}{
		{"once", func(b *bench) { b.press("y") }, approval.Answer{Choice: approval.Once}},
		{"session", func(b *bench) { b.press("s") }, approval.Answer{Choice: approval.Session}},
		{"always", func(b *bench) { b.press("a") }, approval.Answer{Choice: approval.Always}},
		{"no", func(b *bench) { b.press("esc") }, approval.Answer{Choice: approval.Refuse}},
		{"no, with a reason", func(b *bench) { b.press("n"); b.typed("not now"); b.press("enter") }, approval.Answer{Choice: approval.Refuse, Reason: "not now"}},
		{"edited", func(b *bench) { b.press("e"); b.typed(" -n"); b.press("enter") }, approval.Answer{Choice: approval.Once, Command: "make all -n"}},
		{"other keys do nothing", func(b *bench) { b.press("enter", "tab", "up"); b.press("y") }, approval.Answer{Choice: approval.Once}},
		{"edited to what it was", func(b *bench) { b.v.ask.Plan.Command = "make all\n"; b.press("e", "enter") }, approval.Answer{Choice: approval.Once}},
		{"editing taken back", func(b *bench) { b.press("e", "esc", "y") }, approval.Answer{Choice: approval.Once}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := open(t, &desk{place: q.Place})
			b.typed("half a prompt")
			b.v.typed = time.Time{} // a pause
			reply := make(chan approval.Answer, 1)
			b.update(askMsg{q, reply})
			view := b.view()
			for _, want := range []string{"May this run?", "on THIS COMPUTER", "execute: make<U+001B>[31m all", "runs code that was not read (T3)", "0 to replace, 2", "y once", "a always, in this project: make all", "e edit"} {
				if !strings.Contains(view, want) {
					t.Errorf("the card lacks %q:\n%s", want, view)
				}
			}
			row.keys(b)
			select {
			case got := <-reply:
				if got != row.want {
					t.Errorf("got %+v, want %+v", got, row.want)
				}
			default:
				t.Fatal("no answer")
			}
			if got := b.v.input.Value(); got != "half a prompt" {
				t.Errorf("what was typed before is now %q", got)
			}
		})
	}
}

func TestWhatIsBeingTypedIsNoAnswer(t *testing.T) {
	q := approval.Question{
		Request: approval.Request{Tool: "execute", Plan: tool.Plan{Effect: tool.Runs, Command: "make"}, Place: approval.Place{Host: true}},
		Offers:  []approval.Choice{approval.Once, approval.Session, approval.Always, approval.Refuse},
	}
	b := open(t, &desk{place: q.Place})
	b.typed("then d")
	reply := make(chan approval.Answer, 1)
	b.update(askMsg{q, reply})
	b.typed("eploy and sayz")
	b.press("backspace")
	b.update(tea.PasteMsg{Content: " yes"})
	if len(reply) > 0 || b.v.refusing || b.v.editing {
		t.Fatal("a letter of a line is taken for an answer")
	}
	if got := b.view(); !strings.Contains(got, "what you typed is kept") {
		t.Errorf("it is not said where the letters go:\n%s", got)
	}
	b.v.typed = b.v.typed.Add(-typingPause)
	b.press("e")
	b.press("ctrl+u", "enter")
	b.press("esc")
	b.typed(", then say all") // a line that begins while the question stands
	b.v.typed = b.v.typed.Add(-typingPause)
	b.press("e")
	b.press("ctrl+u", "enter")
	if len(reply) > 0 {
		t.Fatal("an empty command is taken for the one that was asked about")
	}
	b.update(askMsg{}) // the question is withdrawn
	b.press("enter")
	if got := b.v.history; len(got) != 1 || got[0] != "then deploy and say yes, then say all" {
		t.Errorf("sent %q", got)
	}
}

func TestWhatIsPastedAheadSurvivesAnInterrupt(t *testing.T) {
	d := &desk{}
	d.turns = append(d.turns, func(ctx context.Context, _ func(agent.Event)) error { <-ctx.Done(); return ctx.Err() })
	b := open(t, d)
	b.typed("go")
	b.press("enter")
	long := strings.Repeat("line\n", 20) + "end"
	other := strings.Repeat("other\n", 20) + "end"
	b.update(tea.PasteMsg{Content: long})
	b.press("enter", "up")
	if got := b.v.input.Value(); got != "[pasted 21 lines]" {
		t.Errorf("taken back, it is %q", got)
	}
	b.press("enter")
	b.update(tea.PasteMsg{Content: other})
	b.press("enter", "esc")
	b.until("it stops", func() bool { return !b.v.working })
	if got := b.v.input.Value(); got != "[pasted 21 lines]\n"+other {
		t.Errorf("the input is %q", got)
	}
	if !strings.Contains(b.view(), "\n┆ end") {
		t.Errorf("the end of the input is not seen:\n%s", b.view())
	}
	b.press("enter")
	b.until("it is sent", func() bool { return slices.Contains(d.heard(), long+"\n"+other) })
}

func TestHowACallEndedIsSeenInANarrowWindow(t *testing.T) {
	b := open(t, &desk{})
	b.update(eventMsg{agent.CallStarted{ID: "a", Tool: "execute", Command: strings.Repeat("terraform plan ", 10)}})
	if got := b.view(); !regexp.MustCompile(`(?m)terraform.*… \d\.\ds$`).MatchString(got) {
		t.Errorf("running:\n%s", got)
	}
	b.update(eventMsg{agent.CallDone{ID: "a", Tool: "execute", Exit: 1, Took: 300 * time.Millisecond}})
	// Of what has ended the command is seen whole, unless it is very long.
	b.until("how it ended is seen", func() bool {
		return strings.Contains(b.all(), "\n  plan terraform plan terraform plan terraform plan\n  exit 1 0.3s")
	})
	if strings.Contains(b.all(), "…") {
		t.Errorf("the command is cut:\n%s", b.all())
	}
	b.update(eventMsg{agent.CallStarted{ID: "b", Tool: "execute", Command: "cd /srv/infrastructure && terraform apply -auto-approve plan"}})
	b.update(eventMsg{agent.CallDone{ID: "b", Tool: "execute", Took: 300 * time.Millisecond}})
	b.until("it stands behind the command", func() bool { return strings.Contains(b.all(), "\n  -auto-approve plan exit 0 0.3s") })
	b.update(eventMsg{agent.CallStarted{ID: "c", Tool: "execute", Command: strings.Repeat("helm list ", 100)}})
	b.update(eventMsg{agent.CallDone{ID: "c", Tool: "execute", Exit: 3, Took: 300 * time.Millisecond}})
	b.until("a very long one is cut", func() bool {
		return regexp.MustCompile(`(?m)✗ execute helm .*\n(  (helm|list) .*\n){4}  (helm|list) .*… exit 3 0\.3s$`).MatchString(b.all())
	})
}

func TestOutputOfOnesOwnCommandIsShown(t *testing.T) {
	for most, line := range map[int]string{tailLines: "list", wideLines: "!list"} {
		d := &desk{}
		b := open(t, d)
		output := func(_ context.Context, emit func(agent.Event)) error {
			emit(agent.CallStarted{ID: "a", Tool: "execute", Command: "list"})
			for i := range 150 {
				emit(agent.CallOutput{ID: "a", Data: fmt.Sprintf("file %d\n", i+1)})
			}
			emit(agent.CallDone{ID: "a", Tool: "execute"})
			return nil
		}
		d.turns, d.shell = append(d.turns, output), output
		b.typed(line)
		b.press("enter")
		b.until("it ends", func() bool { return !b.v.working && strings.Contains(b.all(), "file 150") })
		if got := b.all(); strings.Count(got, "  file ") != most || !strings.Contains(got, fmt.Sprintf("… %d lines above", 150-most)) {
			t.Errorf("%s: want %d lines:\n%s", line, most, got)
		}
	}
}

// What a command printed is shown whole when the user wants it, also while it runs.
func TestOutputIsExpanded(t *testing.T) {
	setup := Output{Title: "setup.sh"}
	setup.Add("installed\n")
	b := openWindow(t, &Window{Session: &desk{}, Theme: ThemeNone, Outputs: []Output{setup}})
	b.press("ctrl+o")
	b.until("what was printed at the start is shown", func() bool { return strings.Contains(b.all(), "Output 1, 1 line: setup.sh\ninstalled") })
	b.press("ctrl+o")
	b.until("once", func() bool { return strings.Contains(b.all(), "All of the last output is above") })

	b.update(eventMsg{agent.CallStarted{ID: "a", Tool: "execute", Command: "list"}})
	for i := range 30 {
		b.update(eventMsg{agent.CallOutput{ID: "a", Data: fmt.Sprintf("file %d\n", i+1)}})
	}
	folded := b.view()
	b.press("ctrl+o")
	wide := b.view()
	if strings.Contains(folded, "file 24\n") || !strings.Contains(folded, "24 lines above; Ctrl+O shows more") {
		t.Errorf("folded:\n%s", folded)
	}
	if !strings.Contains(wide, "file 24\n") || !strings.Contains(wide, "22 lines above; Ctrl+O shows less") {
		t.Errorf("expanded:\n%s", wide)
	}
	b.press("ctrl+o")
	if got := b.view(); got != folded && !strings.Contains(got, "Ctrl+O shows more") {
		t.Errorf("folded again:\n%s", got)
	}
	b.update(eventMsg{agent.CallDone{ID: "a", Tool: "execute"}})
	b.until("the end is shown", func() bool { return strings.Contains(b.all(), "24 lines above; Ctrl+O or /output 2 shows all") })
	if strings.Contains(b.all(), "file 1\n") {
		t.Errorf("all of it is shown at once:\n%s", b.all())
	}
	b.press("ctrl+o")
	b.until("all is shown", func() bool { return strings.Contains(b.all(), "Output 2, 30 lines: list\nfile 1\nfile 2\n") })
	b.typed("/output")
	b.press("enter")
	b.until("they are listed", func() bool {
		return regexp.MustCompile(`(?m)^  1  setup.sh · 1 line$\n^  2  list · 30 lines$`).MatchString(b.all())
	})
	b.typed("/output 9")
	b.press("enter")
	b.until("a wrong number is told", func() bool { return strings.Contains(b.all(), `there is no output "9"; there are 1 to 2`) })
}

// Of much output the end is kept, and how much is not.
func TestMuchOutputIsKeptInPart(t *testing.T) {
	var o Output
	for i := range 100_000 {
		o.Add(fmt.Sprintf("line %d\n", i))
	}
	if o.Lines() != 100_000 || len(o.text) > 2*outputMost || !strings.HasSuffix(string(o.text), "line 99999\n") || !strings.HasPrefix(string(o.text), "line ") {
		t.Errorf("%d lines, %d bytes, %.20q", o.Lines(), len(o.text), o.text)
	}
	b := openWindow(t, &Window{Session: &desk{}, Theme: ThemeNone, Outputs: []Output{o}})
	b.press("ctrl+o")
	b.until("it is said", func() bool { return regexp.MustCompile(`\(the first \d+ are not kept\)`).MatchString(b.all()) })
	for range outputsMost + 3 {
		b.v.keep(Output{Title: "x"})
	}
	if len(b.v.outputs) != outputsMost || b.v.keep(Output{Title: "y"}) != outputsMost+5 {
		t.Errorf("%d outputs, %d forgotten", len(b.v.outputs), b.v.forgotten)
	}
}

func TestInterrupting(t *testing.T) {
	d := &desk{}
	ended := make(chan struct{})
	d.turns = append(d.turns, func(ctx context.Context, emit func(agent.Event)) error {
		emit(agent.Text{Text: "A beginning"})
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	})
	b := open(t, d)
	b.typed("go")
	b.press("enter")
	b.until("text arrives", func() bool { return strings.Contains(b.view(), "A beginning") })
	b.typed("and then")
	b.press("enter") // typed ahead
	if !strings.Contains(b.view(), "queued: and then") {
		t.Errorf("the queue is not shown:\n%s", b.view())
	}
	b.press("esc")
	b.until("it stops", func() bool { return !b.v.working && strings.Contains(b.all(), "Interrupted.") })
	<-ended
	if got := b.all(); strings.Index(got, "A beginning") > strings.Index(got, "Interrupted.") {
		t.Errorf("out of order:\n%s", got)
	}
	if got := b.v.input.Value(); !strings.Contains(got, "and then") {
		t.Errorf("what was typed ahead is lost: %q", got)
	}
}

func TestTypedAheadComesNext(t *testing.T) {
	d := &desk{}
	release := make(chan struct{})
	d.turns = append(d.turns, func(context.Context, func(agent.Event)) error { <-release; return nil })
	b := open(t, d)
	b.typed("one")
	b.press("enter")
	b.typed("two")
	b.press("enter")
	close(release)
	b.until("both are said", func() bool { return strings.Contains(b.all(), "You said two") })
}

func TestInput(t *testing.T) {
	d := &desk{mode: approval.Plan}
	b := open(t, d)
	b.typed("first")
	b.press("alt+enter")
	b.typed(`second\`)
	b.press("enter")
	b.typed("third")
	b.press("enter")
	b.until("it is said", func() bool { return strings.Contains(b.all(), "You said first") })
	if d.said[0] != "first\nsecond\nthird" {
		t.Errorf("said %q", d.said[0])
	}
	b.press("up")
	if got := b.v.input.Value(); got != d.said[0] {
		t.Errorf("history gives %q", got)
	}
	b.v.input.Reset()
	for _, want := range []approval.Mode{approval.Manual, approval.Smart, approval.Plan} { // never yolo
		b.press("shift+tab")
		if got := d.Mode(); got != want {
			t.Errorf("mode %s, want %s", got, want)
		}
	}
	for line, want := range map[string]string{
		"/help": "/mode", "/mode yolo": "mode yolo", "/mode wild": "there is no mode", "/config show": "config show", "/nothing": "there is no command /nothing", "!!ls": "way to this computer's shell",
	} {
		b.typed(line)
		b.press("enter")
		b.until(line, func() bool { return strings.Contains(b.all(), want) && !b.v.working })
	}
	b.typed("!make test")
	b.press("enter")
	b.until("the command is run", func() bool { return d.ran() == 1 && !b.v.working })
	b.typed("/con")
	b.press("tab")
	if got := b.v.input.Value(); got != "/config " {
		t.Errorf("completed to %q", got)
	}
}

func TestLeaving(t *testing.T) {
	d := &desk{}
	d.turns = append(d.turns, func(ctx context.Context, _ func(agent.Event)) error { <-ctx.Done(); return errors.New("ended") })
	b := open(t, d)
	b.typed("go")
	b.press("enter")
	b.press("ctrl+c")
	if b.quit {
		t.Error("one Ctrl+C leaves")
	}
	b.press("ctrl+c")
	b.until("it leaves when the work has stopped", func() bool { return b.quit })
	if b.v.working {
		t.Error("it left work behind")
	}
	b = open(t, d)
	b.typed("/exit")
	b.press("enter")
	b.until("it leaves", func() bool { return b.quit })
}

func TestLongTextGoesToTheScrollback(t *testing.T) {
	d := &desk{}
	var text strings.Builder
	for i := range 200 {
		text.WriteString(strings.Repeat("word ", i%20) + "\n")
	}
	d.turns = append(d.turns, func(_ context.Context, emit func(agent.Event)) error {
		for chunk := range strings.SplitSeq(text.String(), " ") {
			emit(agent.Text{Text: chunk + " "})
		}
		emit(agent.Answered{})
		return nil
	})
	b := open(t, d)
	b.typed("go")
	b.press("enter")
	highest := 0
	b.until("all is printed", func() bool {
		highest = max(highest, strings.Count(b.view(), "\n"))
		return !b.v.working && len(b.v.out) == 0 && !b.v.printing
	})
	if got, want := strings.Count(b.all(), "word"), strings.Count(text.String(), "word"); got != want {
		t.Errorf("%d words are printed, want %d", got, want)
	}
	if highest >= 20 {
		t.Errorf("the live part has %d lines in a window of 20", highest)
	}
}

func TestWhatACommandPrintsKeepsItsColumns(t *testing.T) {
	b := open(t, &desk{place: approval.Place{Provider: "acme", ID: "box-1"}})
	table := "NAME      READY\n  shop\t1/1\n"
	b.v.event(agent.CallStarted{ID: "a", Tool: "execute", Command: "kubectl get pods"})
	b.v.event(agent.CallOutput{ID: "a", Data: table})
	shown := "  NAME      READY\n    shop  1/1\n"
	if !strings.Contains(trimmed(b.view()), shown) {
		t.Errorf("while it runs:\n%s", b.view())
	}
	b.run(b.v.event(agent.CallDone{ID: "a", Tool: "execute"}))
	b.until("the end", func() bool { return strings.Contains(b.all()+"\n", shown) })
	b.press("ctrl+o")
	b.until("all of it", func() bool { return strings.Contains(b.all(), "All of the last output is above") })
	// A line that is cut is not seen in full.
	b.v.event(agent.CallStarted{ID: "b", Tool: "execute", Command: "cat long"})
	b.v.event(agent.CallOutput{ID: "b", Data: strings.Repeat("word ", 30) + "end\n"})
	b.run(b.v.event(agent.CallDone{ID: "b", Tool: "execute"}))
	b.until("a hint", func() bool {
		return strings.Contains(b.all(), "… cut to the window; Ctrl+O or /output 2 shows all")
	})
	b.press("ctrl+o")
	b.until("all of the line", func() bool { return strings.Contains(b.all(), "word end") })
}

func TestWhatIsPrintedFitsAboveTheWindow(t *testing.T) {
	b := open(t, &desk{place: approval.Place{Provider: "acme", ID: "box-1"}})
	high := strings.Count(b.view(), "\n") + 1
	before := len(b.printed)
	b.run(b.v.say(strings.TrimSpace(strings.Repeat("a line\n", 100))))
	b.until("all lines", func() bool { return strings.Count(b.all(), "a line") == 100 })
	for _, text := range b.printed[before:] {
		if n := strings.Count(text, "\n") + 1; n > 20-high {
			t.Errorf("%d lines are printed at once above a window of %d in 20", n, high)
		}
	}
}

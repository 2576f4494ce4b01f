package tui

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/headless"
)

// view is the state of the window. Update changes it and does no I/O.
type view struct {
	ctx     context.Context
	session Session
	window  *Window
	send    func(tea.Msg)
	styles  styles

	input         textarea.Model
	width, height int

	working  bool
	stopped  bool               // the turn is being interrupted
	cancel   context.CancelFunc // of the turn
	began    time.Time
	text     string // of the step that streams
	thinking bool
	card     *card
	queue    []string // typed ahead
	ask      *askMsg
	refusing bool // the input is the reason of a refusal
	editing  bool // the input is a changed command
	kept     string

	begun    bool
	out      []string // for the scrollback, in order
	printing bool

	history []string
	at      int       // in history; len(history) is the input itself
	quit    time.Time // of the first ctrl+c
	leaving bool

	wg *sync.WaitGroup
}

// A card is a tool call that runs.
type card struct {
	agent.CallStarted
	tail  []string
	lines int
	rest  string
	began time.Time
}

const (
	tailLines = 6
	inputMost = 8
)

func newView(ctx context.Context, w *Window) *view {
	in := textarea.New()
	in.Placeholder = "Say what to do; /help for help"
	in.Prompt = "› "
	in.ShowLineNumbers = false
	in.DynamicHeight = true
	in.MinHeight = 1
	in.MaxHeight = inputMost
	in.SetHeight(1)
	in.SetVirtualCursor(true)
	in.Focus()
	return &view{ctx: ctx, session: w.Session, window: w, input: in, styles: newStyles(w.Plain), width: 80, height: 24, wg: &sync.WaitGroup{}}
}

// idle waits until nothing runs.
func (v *view) idle() { v.wg.Wait() }

// Init implements tea.Model. The window begins when its size is known.
func (v *view) Init() tea.Cmd { return nil }

// begin says hello and starts the first turn, if there is a first message.
func (v *view) begin() tea.Cmd {
	hello := v.print(v.styles.dim, "Enter sends, Alt+Enter is a new line, Esc interrupts, Shift+Tab changes the mode; /help")
	if v.window.First == "" {
		return hello
	}
	return tea.Batch(hello, func() tea.Msg { return firstMsg(v.window.First) })
}

type firstMsg string

// Update implements tea.Model.
func (v *view) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		v.width, v.height = max(msg.Width, 20), max(msg.Height, 6)
		v.input.SetWidth(v.width - 1)
		if !v.begun {
			v.begun = true
			return v, v.begin()
		}
		return v, nil
	case tea.KeyPressMsg:
		return v.key(msg)
	case firstMsg:
		return v, v.start(string(msg))
	case eventMsg:
		return v, v.event(msg.Event)
	case doneMsg:
		return v, v.done(msg)
	case saidMsg:
		if msg.err != nil {
			return v, v.print(v.styles.bad, msg.err.Error())
		}
		return v, v.print(v.styles.plain, msg.text)
	case askMsg:
		if msg.reply == nil {
			v.ask = nil
			return v, nil
		}
		v.ask, v.kept = &msg, v.input.Value()
		v.input.Reset()
		return v, nil
	case noteMsg:
		return v, v.print(v.styles.dim, string(msg))
	case printedMsg:
		v.printing = false
		return v, v.pump()
	case tickMsg:
		if v.working {
			return v, tick()
		}
		return v, nil
	}
	var cmd tea.Cmd
	v.input, cmd = v.input.Update(msg)
	return v, cmd
}

// printedMsg says that a piece of the scrollback is printed.
type printedMsg struct{}

// say puts a line into the scrollback, behind all that was put there before.
func (v *view) say(text string) tea.Cmd {
	v.out = append(v.out, text)
	return v.pump()
}

// pump prints what waits. When all is said and the user has left, that is the end.
func (v *view) pump() tea.Cmd {
	switch {
	case v.printing:
		return nil
	case len(v.out) == 0:
		if v.leaving && !v.working {
			return tea.Quit
		}
		return nil
	}
	text := strings.Join(v.out, "\n")
	v.out, v.printing = nil, true
	return tea.Sequence(tea.Println(text), func() tea.Msg { return printedMsg{} })
}

func tick() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} })
}

// key acts on a key.
func (v *view) key(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	name := k.String()
	if name != "ctrl+c" {
		v.quit = time.Time{}
	}
	if v.ask != nil && !v.refusing && !v.editing {
		if cmd, used := v.answer(name); used {
			return v, cmd
		}
		if name != "ctrl+c" && name != "esc" {
			return v, nil
		}
	}
	switch name {
	case "ctrl+c":
		switch {
		case !v.quit.IsZero() && time.Since(v.quit) < 2*time.Second, !v.working && v.input.Value() == "" && v.leaving:
			return v, v.leave()
		case v.working:
			v.interrupt()
		case v.input.Value() != "":
			v.input.Reset()
		}
		v.quit = time.Now()
		return v, v.print(v.styles.dim, "Ctrl+C once more leaves.")
	case "ctrl+d":
		if v.input.Value() == "" && !v.working {
			return v, v.leave()
		}
	case "esc":
		switch {
		case v.refusing || v.editing:
			v.refusing, v.editing = false, false
			v.input.Reset()
		case v.ask != nil:
			return v, v.reply(approval.Answer{Choice: approval.Refuse})
		case v.working:
			v.interrupt()
		}
		return v, nil
	case "shift+tab":
		return v, v.cycle()
	case "alt+enter", "ctrl+j", "shift+enter":
		v.input.InsertRune('\n')
		return v, nil
	case "enter":
		return v, v.enter()
	case "up":
		if v.input.Line() == 0 && len(v.history) > 0 && v.at > 0 && v.ask == nil {
			v.at--
			v.input.SetValue(v.history[v.at])
			return v, nil
		}
	case "down":
		if v.at < len(v.history) && v.ask == nil && v.input.Line() == v.input.LineCount()-1 {
			v.at++
			v.input.Reset()
			if v.at < len(v.history) {
				v.input.SetValue(v.history[v.at])
			}
			return v, nil
		}
	case "tab":
		v.complete()
		return v, nil
	}
	var cmd tea.Cmd
	v.input, cmd = v.input.Update(k)
	return v, cmd
}

// enter sends the input, or makes a new line of a backslash at its end.
func (v *view) enter() tea.Cmd {
	text := v.input.Value()
	if before, ok := strings.CutSuffix(text, `\`); ok {
		v.input.SetValue(before + "\n")
		v.input.MoveToEnd()
		return nil
	}
	switch {
	case v.refusing:
		return v.reply(approval.Answer{Choice: approval.Refuse, Reason: text})
	case v.editing:
		return v.reply(approval.Answer{Choice: approval.Once, Command: text})
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	v.input.Reset()
	v.history = append(slices.DeleteFunc(v.history, func(s string) bool { return s == text }), text)
	v.at = len(v.history)
	if v.working {
		if strings.HasPrefix(text, "/") {
			return v.slash(text)
		}
		v.queue = append(v.queue, text)
		return nil
	}
	return v.start(text)
}

// start acts on a line of the user's.
func (v *view) start(text string) tea.Cmd {
	trimmed := strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(trimmed, "/"):
		return v.slash(trimmed)
	case strings.HasPrefix(trimmed, "!"):
		command := strings.TrimSpace(trimmed[1:])
		if command == "" || strings.HasPrefix(command, "!") {
			return v.print(v.styles.bad, "!command runs a command where the tools work; there is no way to this computer's shell from here")
		}
		return v.work(v.echo("! "+command), func(ctx context.Context, emit func(agent.Event)) (agent.Outcome, error) {
			return agent.Outcome{}, v.session.Shell(ctx, command, emit)
		})
	}
	return v.work(v.echo(text), func(ctx context.Context, emit func(agent.Event)) (agent.Outcome, error) {
		return v.session.Prompt(ctx, text, emit)
	})
}

// work runs f beside the window.
func (v *view) work(echo tea.Cmd, f func(context.Context, func(agent.Event)) (agent.Outcome, error)) tea.Cmd {
	ctx, cancel := context.WithCancel(v.ctx)
	v.working, v.stopped, v.cancel, v.began, v.text, v.card = true, false, cancel, time.Now(), "", nil
	v.wg.Add(1)
	send := v.send
	run := func() tea.Msg {
		defer v.wg.Done()
		outcome, err := f(ctx, func(e agent.Event) { send(eventMsg{e}) })
		return doneMsg{outcome, err}
	}
	return tea.Batch(echo, run, tick())
}

func (v *view) interrupt() {
	if v.working && !v.stopped {
		v.stopped = true
		v.cancel()
	}
}

// done ends a turn.
func (v *view) done(msg doneMsg) tea.Cmd {
	v.cancel()
	cmds := []tea.Cmd{v.flush()}
	if v.card != nil {
		cmds = append(cmds, v.print(v.styles.bad, "  did not end"))
	}
	switch {
	case v.stopped:
		cmds = append(cmds, v.print(v.styles.bad, "Interrupted."))
	case msg.err != nil:
		cmds = append(cmds, v.print(v.styles.bad, msg.err.Error()))
	}
	v.working, v.card, v.ask, v.refusing, v.editing, v.thinking = false, nil, nil, false, false, false
	if len(v.queue) > 0 && !v.stopped && msg.err == nil && !v.leaving {
		next := v.queue[0]
		v.queue = v.queue[1:]
		cmds = append(cmds, v.start(next))
	} else if len(v.queue) > 0 {
		// What was typed ahead is the user's again.
		v.input.SetValue(strings.Join(append(v.queue, v.input.Value()), "\n"))
		v.queue = nil
	}
	return tea.Batch(append(cmds, v.pump())...)
}

// leave ends the window, after what runs.
func (v *view) leave() tea.Cmd {
	v.leaving = true
	if v.working {
		v.interrupt()
		return nil
	}
	return v.pump()
}

// event shows what the agent does.
func (v *view) event(e agent.Event) tea.Cmd {
	switch e := e.(type) {
	case agent.Text:
		v.thinking = false
		v.text += headless.Clean(e.Text)
		return v.overflow()
	case agent.Reasoning:
		v.thinking = true
	case agent.Reset:
		v.text = ""
	case agent.Retry:
		return v.print(v.styles.dim, fmt.Sprintf("waiting %v: %s", e.Wait.Round(time.Second), e.Reason))
	case agent.Step, agent.Answered:
		return v.flush()
	case agent.CallStarted:
		v.card = &card{CallStarted: e, began: time.Now()}
		return v.flush()
	case agent.CallOutput:
		if v.card != nil && v.card.ID == e.ID {
			v.card.add(headless.Clean(e.Data))
		}
	case agent.CallDone:
		return v.ended(e)
	case agent.Refused:
		return v.print(v.styles.bad, fmt.Sprintf("✗ %s %s: %s", e.Tool, what(e.Command, e.Path), e.Reason))
	}
	return nil
}

// add takes a piece of output.
func (c *card) add(data string) {
	lines := strings.Split(c.rest+data, "\n")
	c.rest = lines[len(lines)-1]
	for _, l := range lines[:len(lines)-1] {
		c.lines++
		c.tail = append(c.tail, l)
	}
	if n := len(c.tail); n > tailLines {
		c.tail = slices.Clone(c.tail[n-tailLines:])
	}
}

// ended prints a call that is done.
func (v *view) ended(e agent.CallDone) tea.Cmd {
	c := v.card
	if c == nil || c.ID != e.ID {
		c = &card{CallStarted: agent.CallStarted{ID: e.ID, Tool: e.Tool}}
	} else {
		v.card = nil
	}
	mark, result := v.styles.good.Render("✓"), ""
	switch {
	case e.Code != "":
		mark, result = v.styles.bad.Render("✗"), strings.ReplaceAll(string(e.Code), "_", " ")
	case e.Tool == "execute" && e.Exit != 0:
		mark, result = v.styles.bad.Render("✗"), fmt.Sprintf("exit %d", e.Exit)
	case e.Tool == "execute":
		result = "exit 0"
	}
	line := fmt.Sprintf("%s %s %s", mark, v.call(c), v.styles.dim.Render(strings.TrimSpace(result+" "+short(e.Took))))
	out := []string{ansi.Truncate(line, v.width, "…")}
	if e.Tool == "execute" {
		tail := c.tail
		if c.rest != "" {
			tail = append(slices.Clone(tail), c.rest)
		}
		if hidden := c.lines - len(c.tail); hidden > 0 {
			out = append(out, v.styles.dim.Render(fmt.Sprintf("  … %d lines above", hidden)))
		}
		for _, l := range tail {
			out = append(out, v.styles.dim.Render(ansi.Truncate("  "+oneLine(l), v.width, "…")))
		}
	}
	return v.say(strings.Join(out, "\n"))
}

// call words a tool call and where it runs.
func (v *view) call(c *card) string {
	at := c.Provider
	style := v.styles.box
	if at == "local" || at == "" {
		at, style = "this computer", v.styles.host
	}
	return fmt.Sprintf("%s %s %s", v.styles.strong.Render(c.Tool), style.Render("["+at+"]"), oneLine(what(c.Command, c.Path)))
}

func what(command, name string) string {
	if command != "" {
		return command
	}
	return name
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(headless.Neutral(s)), " ")
}

// flush moves the text that streamed to the scrollback.
func (v *view) flush() tea.Cmd {
	text := strings.Trim(v.text, "\n")
	v.text, v.thinking = "", false
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return v.say(v.wrap(text))
}

// overflow moves the beginning of a long text to the scrollback.
func (v *view) overflow() tea.Cmd {
	room := max(v.height-inputMost-4, 4)
	lines := strings.Split(v.wrap(v.text), "\n")
	if len(lines) <= room+8 {
		return nil
	}
	// Whole lines of the source only, so that nothing is wrapped twice.
	source := strings.SplitAfter(v.text, "\n")
	keep := len(source) - 1
	for n := 0; keep > 0; keep-- {
		if n += strings.Count(v.wrap(source[keep]), "\n") + 1; n > room {
			break
		}
	}
	if keep == 0 {
		return nil
	}
	head := strings.Join(source[:keep], "")
	v.text = strings.Join(source[keep:], "")
	return v.say(v.wrap(strings.TrimSuffix(head, "\n")))
}

func (v *view) wrap(text string) string {
	return ansi.Wrap(strings.ReplaceAll(text, "\t", "    "), v.width, "")
}

// print puts text into the scrollback.
func (v *view) print(style lipgloss.Style, text string) tea.Cmd {
	text = strings.TrimRight(headless.Clean(text), "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(v.wrap(text), "\n")
	for i, l := range lines {
		lines[i] = style.Render(l)
	}
	return v.say(strings.Join(lines, "\n"))
}

func (v *view) echo(text string) tea.Cmd {
	return v.print(v.styles.strong, "› "+strings.ReplaceAll(text, "\n", "\n  "))
}

// cycle goes to the next mode; never to yolo.
func (v *view) cycle() tea.Cmd {
	modes := []approval.Mode{approval.Plan, approval.Manual, approval.Smart}
	i := slices.Index(modes, v.session.Mode())
	next := modes[(i+1)%len(modes)]
	v.session.SetMode(next)
	return nil
}

// View implements tea.Model.
func (v *view) View() tea.View {
	var b strings.Builder
	if v.leaving && !v.working {
		return tea.NewView("")
	}
	if v.text != "" {
		lines := strings.Split(v.wrap(v.text), "\n")
		if most := max(v.height-inputMost-4, 4); len(lines) > most {
			lines = lines[len(lines)-most:]
		}
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
	if c := v.card; c != nil && v.ask == nil {
		b.WriteString(ansi.Truncate("⏵ "+v.call(c)+" "+v.styles.dim.Render(short(time.Since(c.began))), v.width, "…") + "\n")
		for _, l := range c.tail {
			b.WriteString(v.styles.dim.Render(ansi.Truncate("  "+oneLine(l), v.width, "…")) + "\n")
		}
	} else if v.working && v.text == "" && v.ask == nil {
		word := "working"
		if v.thinking {
			word = "thinking"
		}
		if v.stopped {
			word = "stopping"
		}
		b.WriteString(v.styles.dim.Render(fmt.Sprintf("%s… %s, Esc interrupts", word, short(time.Since(v.began)))) + "\n")
	}
	if v.ask != nil {
		b.WriteString(v.question())
	}
	for _, q := range v.queue {
		b.WriteString(v.styles.dim.Render(ansi.Truncate("queued: "+oneLine(q), v.width, "…")) + "\n")
	}
	b.WriteString(v.styles.dim.Render(strings.Repeat("─", v.width)) + "\n")
	b.WriteString(v.input.View() + "\n")
	b.WriteString(v.status())
	return tea.NewView(b.String())
}

// status is the line at the bottom. Where commands run comes first.
func (v *view) status() string {
	s := v.session.Status()
	where := v.styles.host.Render(" THIS COMPUTER ")
	if !s.Place.Host {
		where = v.styles.box.Render(" " + strings.ToUpper(s.Title) + " " + oneLine(s.Place.ID) + " ")
	}
	parts := []string{where, "mode " + string(v.session.Mode())}
	if s.Model.Name != "" {
		parts = append(parts, oneLine(s.Model.Provider+":"+path.Base(s.Model.Name)))
	}
	if used := s.Usage.Input + s.Usage.CacheRead + s.Usage.CacheWrite + s.Usage.Output; used > 0 {
		gauge := fmt.Sprintf("%dk", (used+999)/1000)
		if s.Model.Window > 0 {
			gauge = fmt.Sprintf("%s/%dk", gauge, s.Model.Window/1000)
		}
		parts = append(parts, gauge)
	}
	if s.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", s.CostUSD))
	}
	if left := time.Until(s.Expires); !s.Expires.IsZero() && !s.Place.Host {
		if left < 0 {
			left = 0
		}
		parts = append(parts, "ends in "+left.Round(time.Minute).String())
	}
	return ansi.Truncate(strings.Join(parts, v.styles.dim.Render(" · ")), v.width, "…")
}

func short(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// styles are the looks; plain has none.
type styles struct{ plain, dim, strong, good, bad, box, host lipgloss.Style }

func newStyles(plain bool) styles {
	s := lipgloss.NewStyle()
	if plain {
		return styles{s, s, s, s, s, s, s}
	}
	return styles{
		plain: s, dim: s.Faint(true), strong: s.Bold(true), good: s.Foreground(lipgloss.Color("2")), bad: s.Foreground(lipgloss.Color("1")),
		box: s.Bold(true).Foreground(lipgloss.Color("0")).Background(lipgloss.Color("6")), host: s.Bold(true).Foreground(lipgloss.Color("0")).Background(lipgloss.Color("3")),
	}
}

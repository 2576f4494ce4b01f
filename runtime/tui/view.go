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
	"github.com/talkops-ai/talkops/runtime/term"
)

// view is the state of the window. Update changes it and does no I/O.
type view struct {
	ctx     context.Context
	session Session
	window  *Window
	send    func(tea.Msg)
	styles  styles

	input         textarea.Model
	begins        begins
	folds         []fold // pasted texts that stand folded in the input
	chord         bool   // ctrl+x was pressed
	pick          *picker
	width, height int

	working  bool
	quiet    bool               // what runs is a slash command
	own      bool               // what runs is a command of the user's
	stopped  bool               // the turn is being interrupted
	cancel   context.CancelFunc // of the turn
	began    time.Time
	text     string // of the step that streams, from the block on that is still open
	blocks   int    // of the step that are printed
	drawn    drawn
	thinking bool
	cards    []*card // the calls that run; only those that look run side by side
	wide     bool    // the card shows more than its last lines

	outputs   []Output
	forgotten int  // outputs before them
	unseen    bool // the last is not seen in full

	queue    []line // typed ahead
	ask      *askMsg
	refusing bool      // the input is the reason of a refusal
	editing  bool      // the input is a changed command
	viewed   bool      // all of what is asked about was shown
	seen     bool      // all of it stands in the question
	kept     string    // of the input, while a question stands
	typed    time.Time // when a letter was last typed; zero once the line is sent

	begun    bool
	ready    bool     // what is printed stands above the window
	away     bool     // somebody else has the user's attention, as far as is known
	out      []string // for the scrollback, in order
	told     sort     // what was put there last
	printing bool
	frame    standing

	history []string
	at      int       // in history; len(history) is the input itself
	draft   string    // the input itself, while history is looked through
	quit    time.Time // of the first ctrl+c
	leaving bool

	wg *sync.WaitGroup
}

// A line is what the user sends: as it was typed, and with what was pasted in full.
type line struct {
	shown, full string
	folds       []fold
}

// drawn is the open block as it was rendered last.
type drawn struct {
	text  string
	width int
	lines []string
}

const (
	tailLines  = 6   // of a card
	wideLines  = 100 // of one that is expanded, or is a command of the user's own
	queueLines = 3   // of what was typed ahead
	inputMost  = 8
	inputRows  = 10_000 // of the input's content
)

func newView(ctx context.Context, w *Window) *view {
	in := textarea.New()
	in.ShowLineNumbers = false
	in.DynamicHeight = true
	in.MinHeight = 1
	in.MaxHeight = inputMost
	in.MaxContentHeight = inputRows
	in.SetHeight(1)
	in.SetVirtualCursor(false) // the terminal's own stands in a place that is known
	in.Focus()
	v := &view{
		ctx: ctx, session: w.Session, window: w, input: in, width: 80, height: 24, away: true,
		outputs: slices.Clone(w.Outputs), unseen: len(w.Outputs) > 0, history: slices.Clone(w.History), at: len(w.History), wg: &sync.WaitGroup{},
	}
	v.input.SetPromptFunc(ansi.StringWidth(prompt), v.mark)
	v.dress(w.theme())
	return v
}

// dress gives everything the looks of a theme.
func (v *view) dress(theme string) {
	v.styles, v.drawn = newStyles(theme), drawn{}
	looks := v.input.Styles()
	for _, s := range []*textarea.StyleState{&looks.Focused, &looks.Blurred} {
		*s = textarea.StyleState{Placeholder: v.styles.dim}
	}
	looks.Cursor.Color = nil
	v.input.SetStyles(looks)
}

// idle waits until nothing runs.
func (v *view) idle() { v.wg.Wait() }

// Init implements tea.Model. The window begins when its size is known.
func (v *view) Init() tea.Cmd {
	if v.window.theme() == ThemeAuto {
		return tea.RequestBackgroundColor
	}
	return nil
}

// begin says hello and starts the first turn, if there is a first message.
func (v *view) begin() tea.Cmd {
	var cmds []tea.Cmd
	if n := len(v.outputs); v.unseen {
		cmds = append(cmds, v.print(v.styles.dim, fmt.Sprintf("%s printed %s; Ctrl+O or /output %d shows all", v.outputs[n-1].Title, v.outputs[n-1].size(), n)))
	}
	const together = "\u00a0" // a key and what it does
	keys := strings.ReplaceAll("Enter sends, Alt+Enter:_new_line, Esc interrupts, Shift+Tab:_mode; /help", "_", together)
	cmds = append(cmds, v.print(v.styles.dim, strings.ReplaceAll(term.Fold(keys, v.width), together, " ")))
	cmds = append(cmds, v.past()...)
	if v.window.First != "" {
		first := v.window.First
		cmds = append(cmds, func() tea.Msg { return firstMsg(first) })
	}
	return tea.Batch(cmds...)
}

// pastShown is how much is shown of what was said before.
const pastShown = 4

// past shows the end of a conversation that goes on.
func (v *view) past() []tea.Cmd {
	said := v.window.Past
	if len(said) == 0 {
		return nil
	}
	var cmds []tea.Cmd
	if n := len(said) - pastShown; n > 0 {
		cmds = append(cmds, v.print(v.styles.dim, fmt.Sprintf("… and %d before", n)))
		said = said[n:]
	}
	for _, m := range said {
		if m.User {
			cmds = append(cmds, v.echo(m.Text))
		} else {
			cmds = append(cmds, v.tell(byModel, v.styles.markdown(term.Clean(m.Text), v.width)))
		}
	}
	return append(cmds, v.print(v.styles.dim, "This conversation goes on."))
}

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
	case tea.BackgroundColorMsg:
		if v.window.theme() == ThemeAuto && !msg.IsDark() {
			v.dress(ThemeLight)
		}
		return v, nil
	case tea.FocusMsg:
		v.away = false
		return v, nil
	case tea.BlurMsg:
		v.away = true
		return v, nil
	case tea.KeyPressMsg:
		return v.key(msg)
	case tea.PasteMsg:
		v.paste(msg.Content)
		return v, nil
	case firstMsg:
		return v, v.start(line{shown: string(msg), full: string(msg)})
	case eventMsg:
		return v, v.event(msg.Event)
	case doneMsg:
		return v, v.done(msg)
	case saidMsg:
		return v, v.said(msg)
	case choicesMsg:
		return v, v.choices(msg)
	case editorMsg:
		return v, v.openEditor(msg)
	case editedMsg:
		if msg.err != nil {
			return v, v.print(v.styles.bad, msg.err.Error())
		}
		v.setInput(strings.TrimRight(term.Clean(msg.text), "\n"))
		return v, nil
	case askMsg:
		v.settled()
		if msg.reply == nil {
			return v, nil
		}
		v.ask, v.kept, v.pick = &msg, v.input.Value(), nil
		v.input.Reset()
		return v, v.notify("waits for your answer")
	case noteMsg:
		return v, v.print(v.styles.dim, string(msg))
	case readyMsg:
		v.ready = true
		return v, v.pump()
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

func tick() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} })
}

// print puts text into the scrollback.
func (v *view) print(style lipgloss.Style, text string) tea.Cmd {
	text = strings.ReplaceAll(strings.TrimRight(term.Clean(text), "\n"), "\t", "    ")
	if text = dressed(style, term.Fold(text, v.width)); text == "" {
		return nil
	}
	return v.say(text)
}

// styled wraps text and gives every line of it a style.
func (v *view) styled(style lipgloss.Style, text string) string {
	return dressed(style, v.wrap(strings.TrimRight(term.Clean(text), "\n")))
}

// dressed gives every line of text a style.
func dressed(style lipgloss.Style, text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = style.Render(l)
	}
	return strings.Join(lines, "\n")
}

// fit puts an end behind a line, which is cut so that the end is seen.
func (v *view) fit(line, end string) string {
	if end == "" {
		return ansi.Truncate(line, v.width, "…")
	}
	return ansi.Truncate(ansi.Truncate(line, max(v.width-1-ansi.StringWidth(end), 12), "…")+" "+end, v.width, "…")
}

func (v *view) echo(text string) tea.Cmd {
	return v.tell(byUser, dressed(v.styles.strong, v.prompted(strings.TrimRight(term.Clean(text), "\n"))))
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
	text, below := v.content()
	view := tea.NewView(text)
	if view.Cursor = v.input.Cursor(); view.Cursor != nil && text != "" {
		view.Cursor.Y += below
	}
	v.frame.is(view)
	view.ReportFocus = v.window.Notify != "" && v.window.Notify != NotifyOff
	return view
}

// content is what stands in the window, and how many lines of it are above the input.
func (v *view) content() (text string, above int) {
	if v.leaving && !v.working {
		return "", 0
	}
	var b strings.Builder
	gap := 0
	if v.parted() {
		gap, _ = b.WriteString("\n")
	}
	for _, l := range v.open() {
		b.WriteString(l + "\n")
	}
	if c := v.card(); c != nil && v.ask == nil {
		b.WriteString(v.called("⏵", c, v.styles.dim.Render(short(time.Since(c.began)))) + "\n")
		shown := tailLines
		if v.wide && !v.own {
			shown = max(v.height-inputMost-4-gap, tailLines)
		}
		if above := c.lines - shown; above > 0 && !v.own {
			word := "Ctrl+O shows more"
			if v.wide {
				word = "Ctrl+O shows less"
			}
			b.WriteString(v.styles.dim.Render(v.fit("  … "+counted(above)+" above;", word)) + "\n")
		}
		for _, l := range c.tail[max(len(c.tail)-shown, 0):] {
			b.WriteString(v.styles.dim.Render(v.printed(l)) + "\n")
		}
	} else if v.working && v.text == "" && v.ask == nil {
		word := "working"
		if v.thinking {
			word = "thinking"
		}
		if v.stopped {
			word = "stopping"
		}
		b.WriteString(v.styles.dim.Render(strings.TrimSpace(fmt.Sprintf("%s… %s", word, short(time.Since(v.began))))+", Esc interrupts") + "\n")
	}
	v.input.Placeholder = "Say what to do; /help for help"
	if v.ask != nil {
		v.input.Placeholder = "one of the keys above is the answer; Esc refuses"
		switch {
		case v.refusing || v.editing:
			v.input.Placeholder = ""
		case v.kept != "":
			v.input.Placeholder = "answer by a key above; what you typed is kept"
		}
		// Below it stand the line, the input, the status and what is typed ahead; above it
		// one line stays free, or what is printed next would push the window's first away.
		room := v.height - 1 - strings.Count(b.String(), "\n") - 2 - v.input.Height() - min(len(v.queue), queueLines+1)
		if room > 12 {
			b.WriteString("\n")
			room--
		}
		b.WriteString(v.question(room))
	}
	if n := len(v.queue) - queueLines; n > 0 {
		b.WriteString(v.styles.dim.Render(fmt.Sprintf("queued: %d before these", n)) + "\n")
	}
	for i, q := range v.queue {
		if i < len(v.queue)-queueLines {
			continue
		}
		hint := ""
		if i == len(v.queue)-1 && v.input.Value() == "" && v.ask == nil && v.pick == nil {
			hint = " (Up edits it)"
		}
		b.WriteString(v.styles.dim.Render(v.fit("queued: "+inOneLine(q.shown), hint)) + "\n")
	}
	b.WriteString(v.styles.dim.Render(strings.Repeat("─", v.width)) + "\n")
	above = strings.Count(b.String(), "\n")
	v.lay()
	b.WriteString(v.input.View() + "\n")
	if v.pick != nil {
		b.WriteString(v.pick.view(v.styles, v.width, v.height-8))
	} else {
		b.WriteString(v.hints())
	}
	b.WriteString(v.status())
	return b.String(), above
}

// parted reports whether what is under way has a blank line above it: where it will have
// one in the scrollback, so that it does not move when it is printed.
func (v *view) parted() bool {
	switch {
	case !v.working || v.ask != nil:
		return false
	case v.text != "":
		return v.blocks > 0 || v.told != aside && v.told != byModel
	case v.card() != nil:
		return v.told != aside && v.told != byTool
	}
	return v.told == byUser || v.told == again
}

// openMost is how much of an open block is rendered. The end of a longer one is
// shown as it is, until it is whole.
const openMost = 16 << 10

// open shows the end of the block that is still open.
func (v *view) open() []string {
	if v.text == "" {
		return nil
	}
	most := max(v.height-inputMost-4, 4)
	if v.drawn.text != v.text || v.drawn.width != v.width {
		var lines []string
		if len(v.text) <= openMost {
			lines = strings.Split(v.styles.markdown(v.text, v.width), "\n")
		} else {
			end := v.text[max(len(v.text)-most*v.width, 0):]
			lines = strings.Split(v.wrap(strings.ToValidUTF8(end, "")), "\n")
		}
		v.drawn = drawn{v.text, v.width, lines}
	}
	return v.drawn.lines[max(len(v.drawn.lines)-most, 0):]
}

// status is the line at the bottom. Where commands run comes first. In a narrow
// window what matters less is left out, the model first.
func (v *view) status() string {
	s := v.session.Status()
	where := v.styles.host.Render(" THIS COMPUTER ")
	if !s.Place.Host {
		where = v.styles.box.Render(" " + strings.ToUpper(s.Title) + " " + oneLine(s.Place.ID) + " ")
	}
	mode := "mode " + string(v.session.Mode())
	if v.session.Mode() == approval.Yolo {
		mode = v.styles.bad.Render(mode)
	}
	name, left := "", ""
	if s.Model.Name != "" {
		name = oneLine(s.Model.Provider + ":" + path.Base(s.Model.Name))
	}
	if rest := time.Until(s.Expires); !s.Expires.IsZero() && !s.Place.Host {
		left = lasting(rest) + " left"
		if rest < 10*time.Minute {
			left = v.styles.bad.Render(left)
		}
	}
	parts := []string{where, mode, name, v.gauge(s), s.spent(), left}
	if ansi.StringWidth(v.joined(parts)) > v.width && s.CostUSD > 0 {
		parts[4] = money(s.CostUSD)
		if s.MachineUSD > 0 {
			parts[4] = about(s.CostUSD)
		}
	}
	for _, drop := range []int{2, 3, 4} {
		if ansi.StringWidth(v.joined(parts)) > v.width {
			parts[drop] = ""
		}
	}
	return ansi.Truncate(v.joined(parts), v.width, "…")
}

// joined puts the parts that there are side by side.
func (v *view) joined(parts []string) string {
	there := slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "" })
	return strings.Join(there, v.styles.dim.Render(" · "))
}

// gauge says how much of the model's window is full.
func (v *view) gauge(s Status) string {
	used := s.Usage.Sum()
	if used == 0 {
		return ""
	}
	text := fmt.Sprintf("%dk", (used+999)/1000)
	if s.Model.Window > 0 {
		text = fmt.Sprintf("%s/%dk", text, s.Model.Window/1000)
		if float64(used) >= agent.FullAt*float64(s.Model.Window)*0.9 {
			text = v.styles.bad.Render(text)
		}
	}
	return text
}

// spent says what was paid for the models, and for the machine where that is known.
func (s Status) spent() string {
	models := s.CostUSD - s.MachineUSD
	switch {
	case s.CostUSD <= 0:
		return ""
	case s.MachineUSD <= 0:
		return money(models)
	case models <= 0:
		return "machine " + about(s.MachineUSD)
	}
	return money(models) + " + machine " + about(s.MachineUSD)
}

// costs answers the command of that name.
func (s Status) costs() string {
	text := fmt.Sprintf("$%.4f so far", s.CostUSD-s.MachineUSD)
	if !s.Place.Host {
		text += " for the model"
	}
	if s.CostUSD == s.MachineUSD && !s.Model.Price.Known() {
		text = "the price of this model is not known"
	}
	switch {
	case s.Place.Host:
	case s.MachineUSD > 0:
		text += fmt.Sprintf("; about $%.4f for the machine, by the price list: an estimate", s.MachineUSD)
	default:
		text += "; what the machine costs is not known (sandbox.providers.<name>.usd_per_hour says it)"
	}
	return text
}

// money is a sum in dollars.
func money(usd float64) string {
	if usd > 0 && usd < 0.01 {
		return "<$0.01"
	}
	return fmt.Sprintf("$%.2f", usd)
}

// about is a sum that was estimated.
func about(usd float64) string {
	if usd < 0.01 {
		return money(usd)
	}
	return "~" + money(usd)
}

// lasting is how long a machine has, to the minute.
func lasting(d time.Duration) string {
	d = max(d, 0).Round(time.Minute)
	if d < time.Hour {
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
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

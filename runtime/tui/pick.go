package tui

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/term"
)

// A Choice is one thing that can be picked.
type Choice struct {
	Value  string
	Label  string // what is shown and searched; "" is Value
	Detail string // shown behind it
}

func (c Choice) label() string {
	if c.Label != "" {
		return c.Label
	}
	return c.Value
}

// A picker lets the user choose from a list by typing some letters of it.
type picker struct {
	title   string
	items   []Choice
	loading bool
	none    string // said if there is nothing to choose from
	typed   string
	hits    []int
	at      int
	done    func(Choice) tea.Cmd
	cancel  func() tea.Cmd // may be nil
}

const pickLines = 8

func newPicker(title string, items []Choice, done func(Choice) tea.Cmd) *picker {
	p := &picker{title: title, items: items, done: done}
	p.search()
	return p
}

func (p *picker) search() {
	p.hits = best(p.typed, len(p.items), func(i int) string { return p.items[i].label() })
	p.at = 0
}

// key acts on a key. It reports whether the picker is done with, and what follows.
func (p *picker) key(k tea.KeyPressMsg) (over bool, cmd tea.Cmd) {
	switch k.String() {
	case "esc", "ctrl+c", "ctrl+g":
		if p.cancel != nil {
			return true, p.cancel()
		}
		return true, nil
	case "enter", "tab":
		if len(p.hits) == 0 {
			return false, nil
		}
		return true, p.done(p.items[p.hits[p.at]])
	case "up", "ctrl+p", "ctrl+k":
		p.at = max(p.at-1, 0)
	case "down", "ctrl+n", "ctrl+j", "ctrl+r":
		p.at = min(p.at+1, max(len(p.hits)-1, 0))
	case "pgup":
		p.at = max(p.at-pickLines, 0)
	case "pgdown":
		p.at = min(p.at+pickLines, max(len(p.hits)-1, 0))
	case "backspace":
		if p.typed == "" {
			if p.cancel != nil {
				return true, p.cancel()
			}
			return true, nil
		}
		r := []rune(p.typed)
		p.typed = string(r[:len(r)-1])
		p.search()
	default:
		if k.Text != "" {
			p.typed += term.Clean(k.Text)
			p.search()
		}
	}
	return false, nil
}

// view shows the list, the chosen one marked, in at most that many lines.
func (p *picker) view(s styles, width, height int) string {
	var b strings.Builder
	asked, keys := s.strong.Render(p.title)+" "+p.typed+"▏", ""
	for _, keys = range []string{fmt.Sprintf("%d of %d · Enter takes, Esc goes back", len(p.hits), len(p.items)), "Enter takes, Esc goes back", "Enter takes, Esc: back"} {
		if ansi.StringWidth(asked)+2+ansi.StringWidth(keys) <= width {
			break
		}
	}
	fmt.Fprintln(&b, ansi.Truncate(asked+s.dim.Render("  "+keys), width, "…"))
	lines := min(pickLines, max(height, 2))
	switch {
	case p.loading:
		fmt.Fprintln(&b, s.dim.Render("  looking…"))
	case len(p.hits) == 0:
		fmt.Fprintln(&b, s.dim.Render("  nothing like that"))
	}
	from := max(min(p.at-lines/2, len(p.hits)-lines), 0)
	for i := from; i < min(from+lines, len(p.hits)); i++ {
		item := p.items[p.hits[i]]
		text, detail, mark := oneLine(item.label()), oneLine(item.Detail), "  "
		if detail != "" { // in a narrow window each has its part
			text = ansi.Truncate(text, max(width-4-ansi.StringWidth(detail), width/2), "…")
			detail = "  " + detail
		}
		if i == p.at {
			text, mark = s.picked.Render(text)+detail, "> "
		} else {
			text += s.dim.Render(detail)
		}
		fmt.Fprintln(&b, ansi.Truncate(mark+text, width, "…"))
	}
	return b.String()
}

// Pick lets the user choose one of items in a terminal, before there is a window. Ok
// is false if nothing was chosen.
func (w *Window) Pick(ctx context.Context, title string, items []Choice) (chosen Choice, ok bool, err error) {
	m := &pickModel{styles: newStyles(w.theme()), width: 80, height: 24}
	m.picker = newPicker(title, items, func(c Choice) tea.Cmd {
		chosen, ok = c, true
		return nil
	})
	_, err = tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(w.In), tea.WithOutput(w.Out), tea.WithEnvironment(w.Environ), tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return chosen, ok, err
}

type pickModel struct {
	picker        *picker
	styles        styles
	width, height int
	over          bool
}

// Init implements tea.Model.
func (m *pickModel) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m *pickModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 20), max(msg.Height, 6)
	case tea.KeyPressMsg:
		if m.over, _ = m.picker.key(msg); m.over {
			return m, tea.Quit
		}
	}
	return m, nil
}

// View implements tea.Model.
func (m *pickModel) View() tea.View {
	if m.over {
		return tea.NewView("")
	}
	return tea.NewView(strings.TrimSuffix(m.picker.view(m.styles, m.width, m.height-2), "\n"))
}

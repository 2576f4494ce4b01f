package tui

import (
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/term"
)

// A sort is what lines of the scrollback are.
type sort int

const (
	aside   sort = iota // belongs to what it stands behind
	byUser              // what the user sent
	byModel             // what the model says
	byTool              // what was done
	again               // all of what was printed once
)

// printedMsg says that a piece of the scrollback is printed.
type printedMsg struct{}

// say puts lines into the scrollback, behind all that was put there before.
func (v *view) say(text string) tea.Cmd { return v.tell(aside, text) }

// tell is say for lines of a sort, which have room to those of another.
func (v *view) tell(as sort, text string) tea.Cmd {
	if as != aside {
		if v.told != aside && (v.told != as || as == byUser || as == again) {
			text = "\n" + text
		}
		v.told = as
	}
	v.out = append(v.out, strings.Split(text, "\n")...)
	return v.pump()
}

// pump prints what waits, in pieces that fit above the window: the library scrolls the
// window itself away to make room for a piece that does not. When all is said and the
// user has left, that is the end.
func (v *view) pump() tea.Cmd {
	switch {
	case v.printing || !v.ready:
		return nil
	case len(v.out) == 0:
		if v.leaving && !v.working {
			return tea.Quit
		}
		return nil
	}
	room := v.height - v.frame.tallest()
	n := 0
	for n < len(v.out) {
		if room -= 1 + ansi.StringWidth(v.out[n])/v.width; room < 0 && n > 0 {
			break
		}
		n++
	}
	text := strings.Join(v.out[:n], "\n")
	v.out, v.printing = v.out[n:], true
	if text == "" {
		text = " " // the library prints no empty line
	}
	return tea.Sequence(tea.Println(text), func() tea.Msg { return printedMsg{} })
}

// A standing is what stands on the screen: the window as it was drawn last.
type standing struct {
	widths []int // of its lines
	x, y   int   // where the cursor is
	most   int   // lines that it had a short while ago
	until  time.Time
}

// drawnWithin is how long after a change of the window the screen may still show what
// stood there before.
const drawnWithin = 250 * time.Millisecond

// is takes what is drawn now.
func (f *standing) is(view tea.View) {
	f.widths = f.widths[:0]
	for l := range strings.SplitSeq(view.Content, "\n") {
		f.widths = append(f.widths, ansi.StringWidth(strings.TrimRight(ansi.Strip(l), " ")))
	}
	f.x, f.y = 0, len(f.widths)-1
	if view.Cursor != nil {
		f.x, f.y = view.Cursor.X, view.Cursor.Y
	}
	switch {
	case len(f.widths) >= f.most:
		f.most, f.until = len(f.widths), time.Time{}
	case f.until.IsZero():
		f.until = time.Now().Add(drawnWithin)
	}
}

// tallest is how many lines of the screen the window may have.
func (f *standing) tallest() int {
	if !f.until.IsZero() && time.Now().After(f.until) {
		f.most, f.until = len(f.widths), time.Time{}
	}
	return f.most
}

// wrapped is how many lines further down the cursor is when a terminal that wraps its
// lines anew has become that narrow.
func (f *standing) wrapped(width int) int {
	more := 0
	for i, w := range f.widths {
		if i == f.y {
			return more + f.x/width
		}
		more += max(w-1, 0) / width
	}
	return more
}

// narrowed prepares for drawing the window into a terminal that has become that narrow.
// Lines of it that have more are several now, and the library counts on one: it would
// leave the first of the window standing.
func (v *view) narrowed(width int, out io.Writer) {
	if s, ok := out.(*screen); ok && v.begun && width > 0 && width < v.width && term.Wraps(v.window.Environ) {
		s.raise(v.frame.wrapped(width))
	}
}

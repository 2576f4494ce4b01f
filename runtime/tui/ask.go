package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/headless"
	"github.com/talkops-ai/talkops/runtime/tool"
)

// question is the card of a call that needs the user's word.
func (v *view) question() string {
	q := v.ask
	var b strings.Builder
	where := v.styles.host.Render(" on THIS COMPUTER ")
	if !q.Place.Host {
		where = v.styles.box.Render(" in " + q.Place.Provider + " " + oneLine(q.Place.ID) + " ")
	}
	b.WriteString(v.styles.strong.Render("May this run?") + " " + where + "\n")
	text := headless.Clean(what(q.Plan.Command, q.Plan.Path))
	lines := strings.Split(v.wrap(q.Tool+": "+text), "\n")
	if most := max(v.height/2, 3); len(lines) > most {
		lines = append(lines[:most], v.styles.dim.Render(fmt.Sprintf("… %d more lines", len(lines)-most)))
	}
	for _, l := range lines {
		b.WriteString("  " + l + "\n")
	}
	why := fmt.Sprintf("  asked since it %s (%s)", q.Why.Reason, q.Why.Tier)
	if part := strings.TrimSpace(q.Why.Part); part != "" && part != strings.TrimSpace(q.Plan.Command) {
		why += ": " + oneLine(part)
	}
	b.WriteString(v.styles.dim.Render(ansi.Truncate(why, v.width, "…")) + "\n")
	if q.Change != nil {
		for _, l := range strings.Split(v.wrap("  "+oneLine(q.Change.String())), "\n") {
			b.WriteString(v.styles.strong.Render(l) + "\n")
		}
	}
	switch {
	case v.refusing:
		b.WriteString(v.styles.strong.Render("Why not?") + v.styles.dim.Render(" (Enter refuses, Esc goes back)") + "\n")
	case v.editing:
		b.WriteString(v.styles.strong.Render("Change it:") + v.styles.dim.Render(" (Enter runs it, Esc goes back)") + "\n")
	default:
		var keys []string
		for _, c := range q.Offers {
			switch c {
			case approval.Once:
				keys = append(keys, "y once")
			case approval.Session:
				keys = append(keys, "s this session")
			case approval.Always:
				keys = append(keys, "a always: "+oneLine(q.Rule))
			case approval.Refuse:
				keys = append(keys, "n no, because…")
			}
		}
		if q.Plan.Effect == tool.Runs {
			keys = append(keys, "e edit")
		}
		for _, l := range rows(keys, v.width) {
			b.WriteString(v.styles.strong.Render(l) + "\n")
		}
	}
	return b.String()
}

// answer acts on a key while a question stands. It reports whether the key is one
// of its own.
func (v *view) answer(key string) (tea.Cmd, bool) {
	offered := func(c approval.Choice) bool { return slices.Contains(v.ask.Offers, c) }
	switch key {
	case "y", "1":
		return v.reply(approval.Answer{Choice: approval.Once}), true
	case "s", "2":
		if offered(approval.Session) {
			return v.reply(approval.Answer{Choice: approval.Session}), true
		}
	case "a", "3":
		if offered(approval.Always) {
			return v.reply(approval.Answer{Choice: approval.Always}), true
		}
	case "n":
		v.refusing = true
		return nil, true
	case "e":
		if v.ask.Plan.Effect == tool.Runs {
			v.editing = true
			v.input.SetValue(headless.Clean(v.ask.Plan.Command))
			v.input.MoveToEnd()
			return nil, true
		}
	}
	return nil, false
}

// reply gives the answer and takes up what was being typed.
func (v *view) reply(a approval.Answer) tea.Cmd {
	v.ask.reply <- a
	v.ask, v.refusing, v.editing = nil, false, false
	v.input.Reset()
	v.input.SetValue(v.kept)
	v.input.MoveToEnd()
	return nil
}

// rows puts words side by side, as many as fit.
func rows(words []string, width int) []string {
	var all []string
	line := ""
	for _, w := range words {
		w = ansi.Truncate(w, width, "…")
		switch {
		case line == "":
			line = w
		case ansi.StringWidth(line)+3+ansi.StringWidth(w) <= width:
			line += "   " + w
		default:
			all = append(all, line)
			line = w
		}
	}
	return append(all, line)
}

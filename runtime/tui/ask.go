package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/tool"
)

// whyLines is how much of the reason for a question is shown.
const whyLines = 3

// typingPause is how long nothing is typed before a letter is an answer.
const typingPause = 1500 * time.Millisecond

// typesOn reports whether a key belongs to the line that was being typed when the
// question came, and keeps it for that line if so.
func (v *view) typesOn(k tea.KeyPressMsg) bool {
	if k.Text == "" && k.String() != "backspace" || time.Since(v.typed) > typingPause {
		return false
	}
	v.typed = time.Now()
	if k.Text != "" {
		v.kept += term.Clean(k.Text)
	} else if r := []rune(v.kept); len(r) > 0 {
		v.kept = string(r[:len(r)-1])
	}
	return true
}

// answers are all letters that may be an answer.
const answers = "ysavne123"

// question is the card of a call that needs the user's word, in at most that many
// lines. Where the call is long, what it is comes before why it is asked for.
func (v *view) question(room int) string {
	q := v.ask
	var b strings.Builder
	where := v.styles.host.Render(" on THIS COMPUTER ")
	if !q.Place.Host {
		where = v.styles.box.Render(" in " + q.Place.Provider + " " + oneLine(q.Place.ID) + " ")
	}
	b.WriteString(v.styles.strong.Render("May this run?") + " " + where + "\n")
	text := asked(q.Plan)
	all := slices.Collect(slices.Chunk(strings.Split(apart(q.Tool+": "+text, v.width-2), "\n"), 1))
	if q.Shown != nil {
		all = v.styles.edited(*q.Shown, v.width-2)
	}
	lines := slices.Concat(all...)
	keys := v.keys()
	room -= 1 + len(keys) // the title
	reason := v.reason(max(room-min(len(lines), 3), 1))
	most := max(room-len(reason), 1)
	v.seen = len(lines) <= most
	if !v.seen {
		key, end := "; v shows all", "… v shows all"
		switch {
		case v.viewed:
			key, end = "; all of it is printed above", "… all is printed above"
		case v.refusing || v.editing: // a letter is typed
			key, end = "", "…"
		}
		if most == 1 {
			lines = []string{ansi.Truncate(lines[0], max(v.width-3-ansi.StringWidth(end), 8), "") + " " + v.styles.dim.Render(end)}
		} else {
			most--
			rest := fmt.Sprintf("… %s more%s", unseen(all, most), key)
			lines = append(lines[:most:most], v.styles.dim.Render(rest))
		}
	}
	for _, l := range lines {
		b.WriteString("  " + l + "\n")
	}
	for _, l := range slices.Concat(reason, keys) {
		b.WriteString(l + "\n")
	}
	return b.String()
}

// asked is all that a call would do, with nothing in it that is not seen: where to and
// what with for one that leaves this computer, and where a command runs if elsewhere.
func asked(p tool.Plan) string {
	text := cmp.Or(p.Command, p.Path, p.URL, p.Query)
	if p.Apart {
		text = "in " + p.Path + ":\n" + text // the same words mean other files there
	}
	if p.Subject != "" {
		text = p.Path + "\n" + p.Subject
	}
	if p.URL != "" && p.Query != "" {
		text = p.URL + "\n" + p.Query
	}
	return term.Visible(text)
}

// agreed is text that a person is to agree to, on one line, with nothing in it that is not
// seen.
func agreed(text string) string { return strings.Join(strings.Fields(term.Visible(text)), " ") }

// reason says why is asked, and what would change, in at most that many lines.
func (v *view) reason(room int) []string {
	q := v.ask
	var all []string
	because := agreed(q.Why.Reason) // it may name files
	why := fmt.Sprintf("  asked since it %s (%s)", because, q.Why.Tier)
	if mild := []approval.Tier{approval.T0, approval.T1, approval.T2}; slices.Contains(mild, q.Why.Tier) && q.Plan.Effect == tool.Runs && v.session.Mode() == approval.Manual { // no part of it is why
		why = fmt.Sprintf("  asked since mode manual asks for every command; it %s (%s)", because, q.Why.Tier)
	} else if slices.Contains(mild, q.Why.Tier) && q.Plan.Effect == tool.Writes && v.session.Mode() == approval.Manual {
		why = fmt.Sprintf("  asked since mode manual asks before files change; it %s (%s)", because, q.Why.Tier)
	} else if part := strings.TrimSpace(q.Why.Part); part != "" && part != strings.TrimSpace(q.Plan.Command) {
		why += ": " + agreed(part)
	}
	var change []string
	if q.Change != nil {
		for _, l := range strings.Split(v.hang("  "+agreed(q.Change.String()), 2), "\n") {
			change = append(change, v.styles.strong.Render(l))
		}
	}
	most := min(whyLines, max(room-len(change), 1))
	for i, l := range strings.Split(v.hang(why, 2), "\n") {
		if i == most {
			all[i-1] = ansi.Truncate(all[i-1], v.width-2, "") + v.styles.dim.Render(" …")
			break
		}
		all = append(all, v.styles.dim.Render(l))
	}
	if all = append(all, change...); len(all) > room {
		end := v.styles.dim.Render(" …")
		all = append(all[:room-1:room-1], ansi.Truncate(strings.TrimSuffix(all[room-1], end), v.width-2, "")+end)
	}
	return all
}

// keys are the answers that there are, or what is being typed instead of one.
func (v *view) keys() []string {
	q := v.ask
	switch {
	case v.refusing:
		return []string{v.styles.strong.Render("Why not?") + v.styles.dim.Render(" (Enter refuses, Esc goes back)")}
	case v.editing:
		return []string{v.styles.strong.Render("Change it:") + v.styles.dim.Render(" (Enter runs it, Esc goes back)")}
	}
	var keys []string
	for _, c := range q.Offers {
		switch c {
		case approval.Once:
			keys = append(keys, "y once")
		case approval.Session:
			keys = append(keys, "s this session")
		case approval.Always:
			keys = append(keys, "a always, in this project: "+agreed(q.Rule))
		case approval.Refuse:
			keys = append(keys, "n no, because…")
		}
	}
	if q.Plan.Effect == tool.Runs {
		keys = append(keys, "e edit")
	}
	lines := rows(keys, v.width)
	for i, l := range lines {
		lines[i] = v.styles.strong.Render(l)
	}
	return lines
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
	case "v":
		if v.seen || v.viewed {
			return nil, true
		}
		v.viewed = true
		return v.tell(byTool, strings.Join(v.whole(), "\n")), true
	case "n":
		v.refusing = true
		return nil, true
	case "e":
		if v.ask.Plan.Effect == tool.Runs {
			v.editing = true
			v.putInput(strings.TrimRight(term.Clean(v.ask.Plan.Command), "\n"))
			return nil, true
		}
	}
	return nil, false
}

// whole is all of what is asked about.
func (v *view) whole() []string {
	if q := v.ask; q.Shown != nil {
		return v.styles.edit(*q.Shown, v.width)
	}
	head := v.styles.strong.Render(v.ask.Tool + ", all of it, not run yet:")
	return append([]string{head}, strings.Split(apart(asked(v.ask.Plan), v.width), "\n")...)
}

// keptLines is how much of a change that was allowed stays in the scrollback.
const keptLines = 40

// reply gives the answer and takes up what was being typed.
func (v *view) reply(a approval.Answer) tea.Cmd {
	var shown tea.Cmd
	if v.ask.Shown != nil && a.Choice != approval.Refuse && !v.viewed {
		all := v.styles.edited(*v.ask.Shown, v.width)
		lines := slices.Concat(all...)
		if len(lines) > keptLines+1 { // one would take no more room than the word that it is missing
			lines = append(lines[:keptLines:keptLines], v.styles.dim.Render("… "+unseen(all, keptLines)+" more"))
		}
		shown = v.tell(byTool, strings.Join(lines, "\n"))
	}
	v.ask.reply <- a
	v.settled()
	return shown
}

// settled ends the question, if one stands, and takes up what was being typed.
func (v *view) settled() {
	if v.ask == nil {
		return
	}
	v.ask, v.refusing, v.editing, v.viewed, v.seen = nil, false, false, false, false
	v.putInput(v.kept)
	v.kept = ""
}

// rowsMost is how many lines a word may have that is wider than the window.
const rowsMost = 4

// rows puts words side by side, as many as fit.
func rows(words []string, width int) []string {
	var all []string
	line := ""
	for _, w := range words {
		if ansi.StringWidth(w) > width { // what is allowed for good is seen whole
			if line != "" {
				all = append(all, line)
			}
			lines := strings.Split(wrapped(w, width-2), "\n")
			if len(lines) > rowsMost {
				lines = append(lines[:rowsMost-1:rowsMost-1], ansi.Truncate(lines[rowsMost-1], width-4, "")+" …")
			}
			all, line = append(all, strings.Join(lines, "\n  ")), ""
			continue
		}
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
	if line != "" {
		all = append(all, line)
	}
	return strings.Split(strings.Join(all, "\n"), "\n")
}

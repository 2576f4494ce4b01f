package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/term"
)

// A fold is a pasted text and what stands for it in the input.
type fold struct{ mark, text string }

// What is pasted is folded if it has more lines or characters than these.
const (
	foldLines = 6
	foldChars = 1000
)

// key acts on a key.
func (v *view) key(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	name := k.String()
	if name != "ctrl+c" {
		v.quit = time.Time{}
	}
	if v.pick != nil {
		over, cmd := v.pick.key(k)
		if over {
			v.pick = nil
		}
		return v, cmd
	}
	if v.ask != nil && !v.refusing && !v.editing {
		if v.typesOn(k) {
			return v, nil
		}
		if cmd, used := v.answer(name); used {
			return v, cmd
		}
		if k.Text != "" && !strings.Contains(answers, k.Text) { // a line begins
			v.typed = time.Now()
			v.typesOn(k)
		}
		if name == "ctrl+o" && v.unseen && len(v.outputs) > 0 { // what is asked may hang on it
			return v, v.show(len(v.outputs) - 1)
		}
		if name != "ctrl+c" && name != "esc" {
			return v, nil
		}
	}
	chord := v.chord
	v.chord = false
	switch name {
	case "ctrl+c":
		if !v.quit.IsZero() && time.Since(v.quit) < twice || !v.working && v.input.Value() == "" && v.leaving {
			return v, v.leave()
		}
		cleared := v.clear()
		if cleared && v.working {
			return v, v.print(v.styles.dim, "Cleared; Up brings it back. Ctrl+C once more interrupts.")
		}
		v.quit = time.Now()
		switch {
		case v.working:
			v.interrupt() // its end says the rest
			return v, nil
		case cleared:
			return v, v.print(v.styles.dim, "Cleared; Up brings it back. "+onceMore)
		}
		return v, v.print(v.styles.dim, onceMore)
	case "ctrl+d":
		if v.input.Value() == "" && !v.working {
			return v, v.leave()
		}
	case "esc":
		switch {
		case v.refusing || v.editing:
			v.refusing, v.editing, v.typed = false, false, time.Time{}
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
		if v.ask == nil && v.input.Line() == 0 && v.earlier() {
			return v, nil
		}
	case "down":
		if v.at < len(v.history) && v.ask == nil && v.input.Line() == v.input.LineCount()-1 {
			if v.at++; v.at < len(v.history) {
				v.setInput(v.history[v.at])
			} else {
				v.setInput(v.draft)
			}
			return v, nil
		}
	case "tab":
		v.complete()
		return v, nil
	case "ctrl+r":
		if v.ask == nil {
			v.search()
		}
		return v, nil
	case "ctrl+o":
		return v, v.expand()
	case "ctrl+x":
		v.chord = true
		return v, nil
	case "ctrl+e":
		if chord {
			return v, v.edit()
		}
	case "ctrl+g":
		return v, v.edit()
	case "@":
		if v.ask == nil && v.wordBegins() {
			v.input.InsertRune('@')
			return v, v.files()
		}
	}
	if k.Text != "" {
		v.typed = time.Now()
	}
	var cmd tea.Cmd
	v.input, cmd = v.input.Update(k)
	return v, cmd
}

// wordBegins reports whether what is typed next begins a word.
func (v *view) wordBegins() bool {
	lines := strings.Split(v.input.Value(), "\n")
	if v.input.Line() >= len(lines) {
		return true
	}
	r := []rune(lines[v.input.Line()])
	at := min(v.input.Column(), len(r))
	return at == 0 || r[at-1] == ' '
}

// putInput shows a text in the input, and the end of it.
func (v *view) putInput(text string) {
	v.input.Reset()
	v.input.SetValue(text)
	v.input.MoveToEnd()
	v.input.View() // without it the input does not know how far it can scroll
	v.input, _ = v.input.Update(nil)
}

// setInput puts a text into the input, with the cursor at its end.
func (v *view) setInput(text string) {
	v.putInput(text)
	v.folds = slices.DeleteFunc(v.folds, func(f fold) bool { return !strings.Contains(text, f.mark) })
}

// paste puts what was pasted into the input, folded if it is long.
func (v *view) paste(text string) {
	text = term.Clean(text)
	switch {
	case v.pick != nil:
		v.pick.typed += strings.Join(strings.Fields(text), " ")
		v.pick.search()
		return
	}
	insert := v.input.InsertString
	waits := v.ask != nil && !v.refusing && !v.editing
	if waits { // it is no answer
		insert = func(s string) { v.kept += s }
	}
	lines := strings.Count(strings.TrimRight(text, "\n"), "\n") + 1
	if lines <= foldLines && len(text) <= foldChars || v.ask != nil && !waits {
		insert(text)
		return
	}
	name := fmt.Sprintf("pasted %d lines", lines)
	if lines == 1 {
		name = fmt.Sprintf("pasted %d characters", len([]rune(text)))
	}
	mark := "[" + name + "]"
	for n := 2; slices.ContainsFunc(v.folds, func(f fold) bool { return f.mark == mark }); n++ {
		mark = fmt.Sprintf("[%s #%d]", name, n)
	}
	v.folds = append(v.folds, fold{mark, text})
	insert(mark)
}

// unfold puts what was pasted where it stands folded.
func (v *view) unfold(text string) string {
	var pairs []string
	for _, f := range v.folds {
		pairs = append(pairs, f.mark, f.text)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// enter sends the input, or makes a new line of a backslash at its end.
func (v *view) enter() tea.Cmd {
	text := v.input.Value()
	v.typed = time.Time{}
	if before, ok := strings.CutSuffix(text, `\`); ok {
		v.input.SetValue(before + "\n")
		v.input.MoveToEnd()
		return nil
	}
	switch {
	case v.refusing:
		return v.reply(approval.Answer{Choice: approval.Refuse, Reason: text})
	case v.editing:
		if strings.TrimSpace(text) == "" {
			return nil // no command is none to run
		}
		if text == strings.TrimRight(v.ask.Plan.Command, "\n") { // it is as it was asked for
			text = ""
		}
		return v.reply(approval.Answer{Choice: approval.Once, Command: text})
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	l := line{text, v.unfold(text), slices.Clone(v.folds)}
	v.setInput("")
	keep := v.record(l.full)
	if v.working {
		if strings.HasPrefix(text, "/") {
			return tea.Batch(keep, v.slash(text))
		}
		v.queue = append(v.queue, l)
		return keep
	}
	return tea.Batch(keep, v.start(l))
}

// takeBack puts lines that were typed ahead before what is in the input, with what was
// pasted into them folded as it was.
func (v *view) takeBack(lines []line) {
	var all []string
	for _, l := range lines {
		text := l.shown
		if slices.ContainsFunc(l.folds, func(f fold) bool {
			return slices.ContainsFunc(v.folds, func(g fold) bool { return g.mark == f.mark && g.text != f.text })
		}) {
			text, l.folds = l.full, nil // the mark stands for another text
		}
		all, v.folds = append(all, text), append(v.folds, l.folds...)
	}
	v.setInput(strings.TrimRight(strings.Join(append(all, v.input.Value()), "\n"), "\n"))
}

// record adds to the history, here and where it is kept.
func (v *view) record(text string) tea.Cmd {
	v.bygone(text)
	remember := v.window.Remember
	if remember == nil {
		return nil
	}
	return func() tea.Msg {
		remember(text)
		return nil
	}
}

// clear empties the input, and reports whether there was something in it that Up brings
// back. As it was not sent, it is kept here alone.
func (v *view) clear() bool {
	text := v.unfold(v.input.Value())
	v.setInput("")
	if strings.TrimSpace(text) == "" {
		return false
	}
	v.bygone(text)
	return true
}

// bygone adds to the history that Up goes through.
func (v *view) bygone(text string) {
	v.history = append(slices.DeleteFunc(v.history, func(s string) bool { return s == text }), text)
	v.at = len(v.history)
}

// earlier takes back what is queued, or goes back in the history.
func (v *view) earlier() bool {
	if n := len(v.queue); n > 0 && v.input.Value() == "" {
		v.takeBack(v.queue[n-1:])
		v.queue = v.queue[:n-1]
		return true
	}
	if len(v.history) == 0 || v.at == 0 {
		return false
	}
	if v.at == len(v.history) {
		v.draft = v.unfold(v.input.Value())
	}
	v.at--
	v.setInput(v.history[v.at])
	return true
}

// search lets the user choose from what was sent before.
func (v *view) search() {
	var items []Choice
	for _, text := range slices.Backward(v.history) {
		items = append(items, Choice{Value: text, Label: oneLine(text)})
	}
	v.pick = newPicker("sent before:", items, func(c Choice) tea.Cmd {
		v.setInput(c.Value)
		return nil
	})
}

// files lets the user choose a file to mention.
func (v *view) files() tea.Cmd {
	title := "file on this computer:"
	if s := v.session.Status(); !s.Place.Host {
		title = "file in " + s.Title + " " + oneLine(s.Place.ID) + ":"
	}
	p := newPicker(title, nil, func(c Choice) tea.Cmd {
		name := c.Value
		if strings.ContainsAny(name, " \t\"") {
			name = fmt.Sprintf("%q", name)
		}
		v.input.InsertString(name + " ")
		return nil
	})
	p.none = "there is no file to choose from"
	p.cancel = func() tea.Cmd {
		v.input.InsertString(p.typed)
		return nil
	}
	return v.choose(p, Files)
}

// choose shows a picker and looks for what there is to choose from.
func (v *view) choose(p *picker, kind Kind) tea.Cmd {
	p.loading = true
	v.pick = p
	session, ctx := v.session, v.ctx
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		items, err := session.Choices(ctx, kind)
		return choicesMsg{p, items, err}
	}
}

// choices fills a picker that is still there.
func (v *view) choices(msg choicesMsg) tea.Cmd {
	if v.pick != msg.picker {
		return nil
	}
	if msg.err != nil {
		v.pick = nil
		return v.print(v.styles.bad, msg.err.Error())
	}
	if len(msg.items) == 0 {
		v.pick = nil
		if cancel := msg.picker.cancel; cancel != nil {
			cancel()
		}
		return v.print(v.styles.plain, msg.picker.none)
	}
	msg.picker.loading, msg.picker.items = false, msg.items
	msg.picker.search()
	return nil
}

// edit opens the user's editor with the input.
func (v *view) edit() tea.Cmd {
	open := v.window.Editor
	if open == nil || v.ask != nil && !v.refusing && !v.editing {
		return nil
	}
	text := v.unfold(v.input.Value())
	return func() tea.Msg {
		editing, err := open(text)
		return editorMsg{editing, err}
	}
}

func (v *view) openEditor(msg editorMsg) tea.Cmd {
	if msg.err != nil {
		return v.print(v.styles.bad, msg.err.Error())
	}
	return tea.ExecProcess(msg.editing.Cmd, func(err error) tea.Msg {
		if err != nil {
			return editedMsg{err: fmt.Errorf("the editor: %w", err)}
		}
		text, err := msg.editing.Read()
		return editedMsg{text, err}
	})
}

// hintLines is how many slash commands are offered while one is typed.
const hintLines = 5

// offers are the commands that what is typed may mean.
func (v *view) offers() []Command {
	typed, ok := strings.CutPrefix(v.input.Value(), "/")
	if !ok || v.ask != nil || strings.ContainsAny(typed, " \n") {
		return nil
	}
	all := v.commands()
	var list []Command
	for _, i := range best(typed, len(all), func(i int) string { return all[i].Name }) {
		list = append(list, all[i])
	}
	return list
}

// hints shows them.
func (v *view) hints() string {
	var b strings.Builder
	offers := v.offers()
	for i, c := range offers {
		if i == hintLines {
			b.WriteString(v.styles.dim.Render(fmt.Sprintf("  and %d more; /help", len(offers)-i)) + "\n")
			break
		}
		mark := "  "
		if i == 0 {
			mark = "> "
		}
		b.WriteString(ansi.Truncate(mark+v.styles.strong.Render(fmt.Sprintf("/%-9s", c.Name))+" "+v.styles.dim.Render(c.Help), v.width, "…") + "\n")
	}
	return b.String()
}

// complete finishes the name of a slash command.
func (v *view) complete() {
	if offers := v.offers(); len(offers) > 0 {
		v.setInput("/" + offers[0].Name + " ")
	}
}

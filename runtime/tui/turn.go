package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/term"
)

// A card is a tool call that runs.
type card struct {
	agent.CallStarted
	tail  []string // its last lines
	all   Output
	lines int
	rest  string
	began time.Time
}

// start acts on a line of the user's.
func (v *view) start(l line) tea.Cmd {
	trimmed := strings.TrimSpace(l.full)
	switch {
	case strings.HasPrefix(trimmed, "/"):
		return v.slash(trimmed)
	case strings.HasPrefix(trimmed, "!"):
		command := strings.TrimSpace(trimmed[1:])
		if command == "" || strings.HasPrefix(command, "!") {
			return v.print(v.styles.bad, "!command runs a command where the tools work; there is no way to this computer's shell from here")
		}
		cmd := v.work(v.echo("!"+strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l.shown), "!"))), func(ctx context.Context, emit func(agent.Event)) (agent.Outcome, error) {
			return agent.Outcome{}, v.session.Shell(ctx, command, emit)
		})
		v.own = true
		return cmd
	}
	return v.work(v.echo(l.shown), func(ctx context.Context, emit func(agent.Event)) (agent.Outcome, error) {
		return v.session.Prompt(ctx, l.full, emit)
	})
}

// work runs f beside the window.
func (v *view) work(echo tea.Cmd, f func(context.Context, func(agent.Event)) (agent.Outcome, error)) tea.Cmd {
	ctx, cancel := context.WithCancel(v.ctx)
	v.working, v.quiet, v.own, v.stopped, v.cancel, v.began, v.text, v.blocks, v.cards = true, false, false, false, cancel, time.Now(), "", 0, nil
	v.wg.Add(1)
	gather := &gatherer{send: v.send}
	run := func() tea.Msg {
		defer v.wg.Done()
		outcome, err := f(ctx, gather.event)
		gather.flush()
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

// twice is how soon after the first a Ctrl+C is the second, which leaves.
const twice = 2 * time.Second

const onceMore = "Ctrl+C once more leaves."

// longTurn is how long a turn has to be for its end to be called out.
const longTurn = 20 * time.Second

// done ends a turn.
func (v *view) done(msg doneMsg) tea.Cmd {
	v.cancel()
	cmds := []tea.Cmd{v.flush()}
	if v.card() != nil {
		cmds = append(cmds, v.print(v.styles.bad, "  did not end"))
	}
	switch {
	case v.stopped:
		said := "Interrupted."
		if len(v.queue) > 0 {
			said += " What was queued is in the input again, and not sent."
		}
		if !v.leaving && time.Since(v.quit) < twice {
			said += " " + onceMore
		}
		cmds = append(cmds, v.print(v.styles.bad, said))
	case msg.err != nil:
		cmds = append(cmds, v.print(v.styles.bad, msg.err.Error()))
	}
	if time.Since(v.began) > longTurn && !v.stopped && len(v.queue) == 0 {
		cmds = append(cmds, v.notify("is done"))
	}
	v.settled()
	v.working, v.cards, v.thinking = false, nil, false
	if len(v.queue) > 0 && !v.stopped && msg.err == nil && !v.leaving {
		next := v.queue[0]
		v.queue = v.queue[1:]
		cmds = append(cmds, v.start(next))
	} else if len(v.queue) > 0 {
		// What was typed ahead is the user's again.
		v.takeBack(v.queue)
		v.queue = nil
	}
	if lost, ok := errors.AsType[*LostError](msg.err); ok && !v.stopped && !v.leaving {
		v.pick = newPicker("the machine is lost; what now?", lost.Choices, func(c Choice) tea.Cmd { return v.command(nil, "sandbox", c.Value) })
		cmds = append(cmds, v.notify("has lost its machine"))
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
		v.text += term.Clean(e.Text)
		return v.settle()
	case agent.Reasoning:
		v.thinking = true
	case agent.Reset:
		printed := v.blocks > 0
		v.text, v.blocks = "", 0
		if printed {
			return v.print(v.styles.dim, "(the answer broke off and starts again)")
		}
	case agent.Retry:
		return v.print(v.styles.dim, fmt.Sprintf("waiting %v: %s", e.Wait.Round(time.Second), e.Reason))
	case agent.Shortening:
		return tea.Batch(v.flush(), v.print(v.styles.dim, fmt.Sprintf("Summing the conversation up (about %d tokens)…", e.Tokens)))
	case agent.Shortened:
		if e.Failed != "" {
			return v.print(v.styles.bad, "The conversation could not be made shorter: "+e.Failed)
		}
		return v.print(v.styles.dim, fmt.Sprintf("Summed up: about %d tokens are %d now. Decisions, open work and the last steps are kept; what stands above is not lost to you.", e.Before, e.After))
	case agent.Step, agent.Answered:
		return v.flush()
	case agent.CallStarted:
		v.cards, v.wide = append(v.cards, &card{CallStarted: e, began: time.Now()}), v.own
		return v.flush()
	case agent.CallOutput:
		if i := v.carded(e.ID); i >= 0 {
			v.cards[i].add(term.Clean(e.Data))
		}
	case agent.CallDone:
		return v.ended(e)
	case agent.Refused:
		says := strings.Split(inLines(e.Says()), "\n")
		if n := len(says); n > endedMost {
			says = append(says[:endedMost-1:endedMost-1], fmt.Sprintf("… %d lines more", n-endedMost+1))
		}
		return v.tell(byTool, dressed(v.styles.bad, v.hangApart(term.Clean(fmt.Sprintf("✗ %s %s: %s", e.Tool, strings.Join(says, "\n"), toUser(e.Reason))), 2)))
	}
	return nil
}

// settle moves the blocks that are whole to the scrollback.
func (v *view) settle() tea.Cmd {
	whole, rest := finished(v.text)
	if strings.TrimSpace(whole) == "" {
		return nil
	}
	v.text = rest
	return v.block(whole)
}

// block prints a block of what the model says.
func (v *view) block(source string) tea.Cmd {
	text := v.styles.markdown(strings.Trim(source, "\n"), v.width)
	if v.blocks++; v.blocks > 1 {
		text = "\n" + text
	}
	return v.tell(byModel, text)
}

// flush moves the text that streamed to the scrollback.
func (v *view) flush() tea.Cmd {
	text := v.text
	v.text, v.thinking = "", false
	var cmd tea.Cmd
	if strings.TrimSpace(text) != "" {
		cmd = v.block(text)
	}
	v.blocks = 0
	return cmd
}

// card is the call that began last of those that run, or nil.
func (v *view) card() *card {
	if len(v.cards) == 0 {
		return nil
	}
	return v.cards[len(v.cards)-1]
}

// carded is where the call of that ID is among those that run, or -1.
func (v *view) carded(id string) int {
	return slices.IndexFunc(v.cards, func(c *card) bool { return c.ID == id })
}

// add takes a piece of output.
func (c *card) add(data string) {
	c.all.Add(data)
	lines := strings.Split(c.rest+data, "\n")
	c.rest = lines[len(lines)-1]
	for _, l := range lines[:len(lines)-1] {
		c.lines++
		c.tail = append(c.tail, l)
	}
	if n := len(c.tail); n > wideLines {
		c.tail = slices.Clone(c.tail[n-wideLines:])
	}
}

// ended prints a call that is done.
func (v *view) ended(e agent.CallDone) tea.Cmd {
	c := &card{CallStarted: agent.CallStarted{ID: e.ID, Tool: e.Tool, Path: e.Path}} // one that was never begun
	if i := v.carded(e.ID); i >= 0 {
		c = v.cards[i]
		v.cards = slices.Delete(v.cards, i, i+1)
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
	out := []string{v.finish(mark, c, v.styles.dim.Render(strings.TrimSpace(result+" "+short(e.Took))))}
	if e.Tool == "execute" {
		tail := c.tail
		if c.rest != "" {
			tail = append(slices.Clone(tail), c.rest)
		}
		above := c.lines - len(c.tail)
		if n := len(tail) - v.tailShown(); n > 0 {
			tail, above = tail[n:], above+n
		}
		if len(c.all.text) > 0 {
			c.all.Title = inOneLine(cmp.Or(c.Command, c.Tool))
			number := v.keep(c.all)
			less := ""
			switch {
			case above > 0:
				less = counted(above) + " above;"
			case slices.ContainsFunc(tail, func(l string) bool { return v.printed(l) != columns(l) }):
				less = "cut to the window;"
			}
			if v.unseen = less != ""; v.unseen {
				out = append(out, v.styles.dim.Render(v.fit("  … "+less, fmt.Sprintf("Ctrl+O or /output %d shows all", number))))
			}
		}
		for _, l := range tail {
			out = append(out, v.styles.dim.Render(v.printed(l)))
		}
	}
	return v.tell(byTool, strings.Join(out, "\n"))
}

// endedMost is how many lines the command of a call has when it has ended.
const endedMost = 6

// finish is a call that has ended. Of its command more is seen than of one that runs:
// the question it was part of is gone.
func (v *view) finish(mark string, c *card, end string) string {
	if c.Command == "" {
		line, says := mark+" "+v.call(c, ""), "  "+oneLine(c.Says())
		rest := strings.TrimRight(says+" "+end, " ")
		switch {
		case c.Path == "" || ansi.StringWidth(line+rest)-1 <= v.width || ansi.StringWidth(says) > v.width:
			return v.called(mark, c, end)
		case ansi.StringWidth(rest) > v.width:
			rest = says + "\n" + v.fit("  "+end, "")
		}
		return line + "\n" + rest
	}
	lines := strings.Split(v.hangApart(mark+" "+v.call(c, inLines(c.Says())), 2), "\n")
	last := len(lines) - 1
	if last >= endedMost {
		last = endedMost - 1
		lines = append(lines[:last:last], v.fit(lines[last]+" …", end))
	} else if ansi.StringWidth(lines[last])+1+ansi.StringWidth(end) > v.width {
		lines = append(lines, "  "+end)
	} else {
		lines[last] += " " + end
	}
	return strings.Join(lines, "\n")
}

// called is the line of a call. Of a path that is too long for it the end is seen.
func (v *view) called(mark string, c *card, end string) string {
	what := oneLine(c.Says())
	if c.Command != "" {
		what = inOneLine(c.Says())
	}
	line := mark + " " + v.call(c, what)
	if c.Command == "" && c.Subject == "" && c.Path != "" {
		path := oneLine(c.Path)
		over := ansi.StringWidth(line) + 1 + ansi.StringWidth(end) - v.width
		if over > 0 && over+1 < ansi.StringWidth(path) {
			seen := ansi.TruncateLeft(path, over+1, "…")
			if i := strings.IndexByte(seen, '/'); i > 0 && i < len(seen)-1 {
				seen = "…" + seen[i:] // from the beginning of a name
			}
			line = strings.TrimSuffix(line, path) + seen
		}
	}
	return v.fit(line, end)
}

// call words a tool call that is about what, and where it runs.
func (v *view) call(c *card, what string) string {
	text, style, at := v.styles.strong.Render(c.Tool), v.styles.box, c.Provider
	if at == "local" {
		style, at = v.styles.host, "this computer"
	}
	if at != "" { // it was begun
		text += " " + style.Render("["+at+"]")
	}
	if c.Edited {
		text += v.styles.strong.Render(" edited by you:")
	}
	return strings.TrimSpace(text + " " + what)
}

// columns is a line that was printed as it stands below a call, with its columns.
func columns(l string) string {
	return "  " + strings.TrimRight(term.Untab(term.Neutral(l)), " \r\n")
}

// printed is such a line, cut to the window.
func (v *view) printed(l string) string { return ansi.Truncate(columns(l), v.width, "…") }

func oneLine(s string) string {
	return strings.Join(strings.Fields(term.Neutral(s)), " ")
}

// inLines is a command in its lines, but for the blank ones.
func inLines(command string) string {
	var all []string
	for l := range strings.SplitSeq(term.Neutral(command), "\n") {
		if l = strings.TrimRight(l, " \t"); l != "" {
			all = append(all, l)
		}
	}
	return strings.Join(all, "\n")
}

// inOneLine is a command in one line, with a mark where it begins another.
func inOneLine(command string) string {
	all := strings.Split(inLines(command), "\n")
	for i, l := range all {
		all[i] = oneLine(l)
	}
	return strings.Join(all, " ⏎ ")
}

// toUser is a reason as the user reads it, to whom the model's "the user" is "you".
func toUser(reason string) string {
	if rest, is := strings.CutPrefix(reason, "the user "); is {
		return "you " + rest
	}
	return reason
}

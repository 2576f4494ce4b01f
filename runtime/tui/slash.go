package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/talkops-ai/talkops/runtime/approval"
)

// own are the commands that the window itself knows.
var own = []Command{
	{"help", "show this"},
	{"mode", "say or change who decides: /mode plan, manual, smart or yolo"},
	{"cost", "what this conversation has cost"},
	{"exit", "leave; what happens with the work is said"},
}

func (v *view) commands() []Command {
	all := slices.Concat(own, v.window.Commands)
	slices.SortFunc(all, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// slash runs a slash command.
func (v *view) slash(line string) tea.Cmd {
	name, args, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "/"), " ")
	args = strings.TrimSpace(args)
	echo := v.echo("/" + strings.TrimSpace(name+" "+args))
	say := func(text string) tea.Cmd { return tea.Batch(echo, v.print(v.styles.plain, text)) }
	switch name {
	case "help", "?":
		var b strings.Builder
		for _, c := range v.commands() {
			fmt.Fprintf(&b, "/%-9s %s\n", c.Name, c.Help)
		}
		b.WriteString("!command   run a command where the tools work, and let the model see it\n" +
			"Enter sends; Alt+Enter, Ctrl+J or a \\ at the end makes a new line; Up and Down go through what was sent.\n" +
			"Esc interrupts; Shift+Tab changes the mode; Ctrl+C twice leaves. Typed while work goes on, a message waits its turn.")
		return say(b.String())
	case "exit", "quit", "q":
		return tea.Batch(echo, v.leave())
	case "mode":
		if args == "" {
			return say("mode " + string(v.session.Mode()))
		}
		m := approval.Mode(args)
		if !slices.Contains(approval.Modes, m) {
			return say(fmt.Sprintf("there is no mode %q: plan, manual, smart or yolo", args))
		}
		v.session.SetMode(m)
		return say("mode " + args)
	case "cost":
		s := v.session.Status()
		if s.CostUSD == 0 && !s.Model.Price.Known() {
			return say("the price of this model is not known")
		}
		return say(fmt.Sprintf("$%.4f so far", s.CostUSD))
	}
	if v.working {
		return say("/" + name + " has to wait until the work is done; Esc interrupts it")
	}
	session, ctx := v.session, v.ctx
	known := v.commands()
	return tea.Batch(echo, func() tea.Msg {
		text, ok, err := session.Command(ctx, name, args)
		if !ok {
			err = fmt.Errorf("there is no command /%s%s; /help lists them", name, near(name, known))
		}
		return saidMsg{text, err}
	})
}

// near offers the command that begins the same.
func near(name string, known []Command) string {
	for _, c := range known {
		if name != "" && strings.HasPrefix(c.Name, name[:1]) {
			return fmt.Sprintf(" (is it /%s?)", c.Name)
		}
	}
	return ""
}

// complete finishes the name of a slash command.
func (v *view) complete() {
	text := v.input.Value()
	prefix, ok := strings.CutPrefix(text, "/")
	if !ok || strings.ContainsAny(prefix, " \n") {
		return
	}
	for _, c := range v.commands() {
		if strings.HasPrefix(c.Name, prefix) {
			v.input.SetValue("/" + c.Name + " ")
			v.input.MoveToEnd()
			return
		}
	}
}

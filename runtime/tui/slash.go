package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
)

// own are the commands that the window itself knows.
var own = []Command{
	{"help", "show this"},
	{"mode", "say or change who decides: /mode plan, manual, smart or yolo"},
	{"cost", "what this conversation has cost"},
	{"output", "what commands printed: the list, or /output NUMBER all of one"},
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
			fmt.Fprintf(&b, "/%-9s %s\n", c.Name, v.hang(c.Help, 11))
		}
		b.WriteString("!command   " + v.hang("run a command where the tools work, and let the model see it", 11) + "\n" +
			"Enter sends; Alt+Enter, Ctrl+J or a \\ at the end makes a new line; Up and Down go through what was sent. › begins a message, ┆ a further line of it.\n" +
			"Ctrl+O shows all that a command printed; Ctrl+R searches what was sent; Ctrl+G opens your editor; @ chooses a file from where the tools work.\n" +
			"Esc interrupts; Shift+Tab changes the mode; Ctrl+C clears what was typed, or else interrupts; twice, it leaves. Typed while work goes on, a message waits its turn; Up takes it back, and so does Esc.")
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
	case "output":
		return tea.Batch(echo, v.output(args))
	case "cost":
		return say(v.session.Status().costs())
	}
	if v.working {
		return say("/" + name + " has to wait until the work is done; Esc interrupts it")
	}
	if name == "resume" && args == "" {
		return tea.Batch(echo, v.resume())
	}
	return v.command(echo, name, args)
}

// command runs a command of the session's.
func (v *view) command(echo tea.Cmd, name, args string) tea.Cmd {
	send := v.send
	return v.work(echo, func(ctx context.Context, emit func(agent.Event)) (agent.Outcome, error) {
		reply, err := v.session.Command(ctx, name, args, emit)
		if err == nil {
			send(saidMsg{reply, name})
		}
		return agent.Outcome{}, err
	})
}

// said shows what a slash command says.
func (v *view) said(msg saidMsg) tea.Cmd {
	var cmd tea.Cmd
	switch {
	case msg.Unknown:
		var names []string
		for _, c := range v.commands() {
			names = append(names, c.Name)
		}
		text := "there is no command /" + msg.name
		if n := nearest(msg.name, names); n != "" {
			text += "; is it /" + n + "?"
		}
		cmd = v.print(v.styles.bad, text+" (/help lists them)")
	case msg.Patch:
		cmd = v.say(strings.Join(v.styles.patch(msg.Text, v.width), "\n"))
	default:
		cmd = v.print(v.styles.plain, msg.Text)
	}
	if msg.Leave {
		v.leaving = true // when the command has ended
	}
	return cmd
}

// noOther is said where there is no conversation to go on with.
const noOther = "there is no other conversation of this project"

// resume lets the user choose a conversation to go on with.
func (v *view) resume() tea.Cmd {
	p := newPicker("go on with:", nil, func(c Choice) tea.Cmd { return v.command(nil, "resume", c.Value) })
	p.none = noOther
	return v.choose(p, Conversations)
}

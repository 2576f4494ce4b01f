package tui

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/talkops-ai/talkops/runtime/term"
)

// An Output is what a command printed, for looking at it once more.
type Output struct {
	Title string // what printed it, on one line
	lines int    // of all that was printed
	text  []byte // its end, if there was more than is kept
}

const (
	outputMost  = 256 << 10 // bytes of one output that are kept
	outputsMost = 40        // outputs
)

// Add takes a piece of what is printed.
func (o *Output) Add(data string) {
	o.lines += strings.Count(data, "\n")
	o.text = append(o.text, data...)
	if len(o.text) > 2*outputMost {
		rest := o.text[len(o.text)-outputMost:]
		o.text = slices.Clone(rest[bytes.IndexByte(rest, '\n')+1:])
	}
}

// size words how much was printed.
func (o *Output) size() string {
	return counted(o.Lines())
}

// Lines is how many lines were printed.
func (o *Output) Lines() int {
	if len(o.text) > 0 && o.text[len(o.text)-1] != '\n' {
		return o.lines + 1
	}
	return o.lines
}

// counted words a number of lines.
func counted(lines int) string {
	if lines == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", lines)
}

// keep keeps an output, and returns the number it is called by.
func (v *view) keep(o Output) int {
	v.outputs = append(v.outputs, o)
	if n := len(v.outputs) - outputsMost; n > 0 {
		v.outputs, v.forgotten = v.outputs[n:], v.forgotten+n
	}
	return v.forgotten + len(v.outputs)
}

// expand shows more of what runs, or all of what was printed last.
func (v *view) expand() tea.Cmd {
	switch {
	case v.card() != nil:
		v.wide = !v.wide
		return nil
	case len(v.outputs) == 0:
		return v.print(v.styles.dim, "No command has printed anything yet.")
	case !v.unseen:
		return v.print(v.styles.dim, "All of the last output is above; /output lists the others.")
	}
	return v.show(len(v.outputs) - 1)
}

// show prints an output, whole.
func (v *view) show(i int) tea.Cmd {
	o := v.outputs[i]
	if i == len(v.outputs)-1 {
		v.unseen = false
	}
	head := fmt.Sprintf("Output %d, %s: %s", v.forgotten+i+1, o.size(), o.Title)
	if kept := bytes.Count(o.text, []byte("\n")); kept < o.lines {
		head += fmt.Sprintf(" (the first %d are not kept)", o.lines-kept)
	}
	return v.tell(again, v.styled(v.styles.strong, head)+"\n"+dressed(v.styles.dim, apart(strings.TrimRight(term.Untab(term.Clean(string(o.text))), "\n"), v.width)))
}

// output is the command of that name.
func (v *view) output(args string) tea.Cmd {
	if len(v.outputs) == 0 {
		return v.print(v.styles.plain, "no command has printed anything yet")
	}
	if args == "" {
		var b strings.Builder
		for i, o := range v.outputs {
			number := fmt.Sprintf("%3d  ", v.forgotten+i+1)
			b.WriteString(v.fit(number+oneLine(o.Title), "· "+o.size()) + "\n")
		}
		b.WriteString("/output NUMBER shows all of one; Ctrl+O all of the last.")
		return v.print(v.styles.plain, b.String())
	}
	n, err := strconv.Atoi(args)
	if err != nil || n <= v.forgotten || n > v.forgotten+len(v.outputs) {
		return v.print(v.styles.bad, fmt.Sprintf("there is no output %q; there are %d to %d", args, v.forgotten+1, v.forgotten+len(v.outputs)))
	}
	return v.show(n - v.forgotten - 1)
}

// tailShown is how many lines of a card are shown when it has ended.
func (v *view) tailShown() int {
	if v.wide {
		return wideLines
	}
	return tailLines
}

package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/workspace"
)

// pipedWidth is how many columns a list has that nobody looks at.
const pipedWidth = 80

// stat shows one line for each change. Names that would not fit are cut in their
// middle.
func (a *app) stat(h *workspace.Home, changes []workspace.Change) error {
	type row struct{ what, name, size string }
	var rows []row
	names, sizes := 0, 0
	for _, c := range changes {
		what := "M"
		switch {
		case c.Now == nil:
			what = "D"
		case c.Was == nil:
			what = "A"
		}
		size, err := extent(h, c)
		if err != nil {
			return err
		}
		r := row{what, quoted(c.Name), size}
		rows = append(rows, r)
		names, sizes = max(names, ansi.StringWidth(r.name)), max(sizes, len(size))
	}
	width := pipedWidth
	if a.streams.OutTTY {
		width = a.streams.ErrWidth
	}
	const around = len("M    ")
	names = min(names, max(width-around-sizes, 12))
	for _, r := range rows {
		name := cutMiddle(r.name, names)
		if _, err := fmt.Fprintf(a.streams.Out, "%s  %s%s  %s\n", r.what, name, strings.Repeat(" ", names-ansi.StringWidth(name)), r.size); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(a.streams.Out, h)
	return err
}

// cutMiddle makes a text fit into so many columns. Its end tells more than its
// beginning.
func cutMiddle(text string, width int) string {
	if ansi.StringWidth(text) <= width {
		return text
	}
	head := ansi.Truncate(text, (width-1)/3, "") + "…"
	rest := width - ansi.StringWidth(head)
	return head + ansi.TruncateLeft(text, ansi.StringWidth(text)-rest, "")
}

// extent says how much a change is.
func extent(h *workspace.Home, c workspace.Change) (string, error) {
	if c.Now != nil && c.Now.Kind == workspace.Dir || c.Now == nil && c.Was != nil && c.Was.Kind == workspace.Dir {
		return "directory", nil
	}
	var n counter
	left, err := h.Patch(&n, []workspace.Change{c})
	switch {
	case err != nil && !errors.Is(err, errBinary):
		return "", err
	case len(left) > 0 && c.Now != nil:
		return "changed, " + workspace.Size(c.Now.Size), nil
	case n.binary && c.Now != nil:
		return "binary, " + workspace.Size(c.Now.Size), nil
	case n.binary:
		return "binary", nil
	}
	return fmt.Sprintf("+%d -%d", n.plus, n.minus), nil
}

// A counter tells how many lines of text a patch that is written to it adds and takes
// away. It keeps no more than the beginning of a line.
type counter struct {
	plus, minus int
	binary      bool

	head   []byte // of the line
	inside bool   // of a hunk
}

// errBinary ends a patch of which no lines can be counted.
var errBinary = errors.New("a binary file")

func (n *counter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, more, ended := bytes.Cut(rest, []byte("\n"))
		const enough = len("GIT binary")
		n.head = append(n.head, line[:min(len(line), max(enough-len(n.head), 0))]...)
		if !ended {
			break
		}
		if n.line(); n.binary {
			return 0, errBinary
		}
		n.head, rest = n.head[:0], more
	}
	return len(p), nil
}

func (n *counter) line() {
	switch {
	case bytes.HasPrefix(n.head, []byte("diff ")):
		n.inside = false
	case bytes.HasPrefix(n.head, []byte("GIT binary")):
		n.binary = true
	case bytes.HasPrefix(n.head, []byte("@@ ")):
		n.inside = true
	case n.inside && bytes.HasPrefix(n.head, []byte("+")):
		n.plus++
	case n.inside && bytes.HasPrefix(n.head, []byte("-")):
		n.minus++
	}
}

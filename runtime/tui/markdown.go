package tui

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// A page renders Markdown as lines of at most width columns. Its input is clean
// text: nothing in it can steer the terminal, so all escape sequences are ours.
type page struct {
	styles styles
	width  int
	source []byte
}

// markdown renders a text.
func (s styles) markdown(source string, width int) string {
	p := &page{styles: s, width: max(width, 10), source: []byte(strings.ReplaceAll(source, "\t", "    "))}
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList))
	root := md.Parser().Parse(text.NewReader(p.source))
	return strings.Join(p.blocks(root, p.width), "\n")
}

// finished cuts text at the end of its last block that is whole, while more of it
// may come. What stays open is rest.
func finished(text string) (whole, rest string) {
	fence := ""
	cut, at := 0, 0
	blank := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimRight(strings.TrimLeft(line, " "), "\n ")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		full := strings.HasSuffix(line, "\n")
		switch {
		case fence != "":
			if full && indent < 4 && strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "" {
				fence = ""
				cut = at + len(line)
			}
		case trimmed == "":
			blank = true
		default:
			if blank && indent == 0 && full {
				cut = at
			}
			blank = false
			if mark := fenceOf(trimmed); mark != "" && indent < 4 {
				fence = mark
			}
		}
		at += len(line)
	}
	return text[:cut], text[cut:]
}

// fenceOf is the mark that ends the code which a line begins.
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		n := len(line) - len(strings.TrimLeft(line, c))
		if n >= 3 && (c == "~" || !strings.Contains(line[n:], "`")) {
			return strings.Repeat(c, n)
		}
	}
	return ""
}

// blocks renders what stands in a block, with an empty line between its parts,
// unless that is a tight list.
func (p *page) blocks(n ast.Node, width int) []string {
	var out []string
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		lines := p.block(c, width)
		if len(lines) == 0 {
			continue
		}
		if len(out) > 0 && !tight(c) {
			out = append(out, "")
		}
		out = append(out, lines...)
	}
	return out
}

// tight reports whether a block follows the one before it at once.
func tight(n ast.Node) bool {
	_, isText := n.(*ast.TextBlock)
	list, isList := n.(*ast.List)
	return isText || isList && list.IsTight && n.Parent().Kind() == ast.KindListItem
}

func (p *page) block(n ast.Node, width int) []string {
	width = max(width, 10)
	switch n := n.(type) {
	case *ast.Heading:
		mark := ""
		if p.styles.bare {
			mark = strings.Repeat("#", n.Level) + " "
		}
		lines := p.wrap(mark+p.inline(n), width)
		for i, l := range lines {
			lines[i] = p.styles.heading.Render(l)
		}
		return lines
	case *ast.Paragraph, *ast.TextBlock:
		return p.wrap(p.inline(n), width)
	case *ast.FencedCodeBlock:
		return p.code(string(n.Language(p.source)), p.lines(n), width)
	case *ast.CodeBlock:
		return p.code("", p.lines(n), width)
	case *ast.HTMLBlock:
		body := p.lines(n)
		if n.HasClosure() {
			body += string(n.ClosureLine.Value(p.source))
		}
		return p.wrap(strings.TrimRight(body, "\n"), width)
	case *ast.ThematicBreak:
		return []string{p.styles.dim.Render(strings.Repeat("─", min(width, 40)))}
	case *ast.Blockquote:
		lines := p.blocks(n, width-2)
		for i, l := range lines {
			lines[i] = p.styles.dim.Render("│") + " " + l
		}
		return lines
	case *ast.List:
		return p.list(n, width)
	case *east.Table:
		return p.table(n, width)
	}
	return p.wrap(p.inline(n), width)
}

func (p *page) lines(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(p.source))
	}
	return b.String()
}

func (p *page) wrap(s string, width int) []string {
	if s == "" {
		return nil
	}
	return strings.Split(between(s, func(s string) string { return lipgloss.Wrap(s, width, breaks(s, width)) }), "\n")
}

// inColumn is what stands in a column of a table. If a name has no room in it, it is broken
// behind a slash, and if a part of that has none, behind a hyphen.
func inColumn(s string, width int) []string {
	if s == "" {
		return nil
	}
	wrap := func(s string) string { return lipgloss.Wrap(s, width, "/") } // a path is read on
	for word := range strings.FieldsSeq(ansi.Strip(s)) {
		for part := range strings.SplitAfterSeq(word, "/") {
			if ansi.StringWidth(part) > width {
				return strings.Split(closed(s, wrap), "\n")
			}
		}
	}
	return strings.Split(between(s, wrap), "\n")
}

// code renders code, each line broken where it does not fit, and marked there.
func (p *page) code(lang, body string, width int) []string {
	h := p.styles.highlighter(lang)
	var out []string
	for _, line := range strings.Split(strings.TrimRight(body, "\n"), "\n") {
		for _, piece := range marked(h.line(line), width-2) {
			out = append(out, "  "+piece)
		}
	}
	return out
}

// broken cuts a styled line into pieces of at most width columns, those behind the first
// of so many less, between words where that leaves no piece short. The space that a break
// takes the place of is part of neither piece.
func broken(line string, width, less int) []string {
	n := ansi.StringWidth(line)
	if n <= width {
		return []string{line}
	}
	var out []string
	for at := 0; at < n; {
		piece := ansi.Cut(line, at, at+width)
		w := ansi.StringWidth(piece)
		if w == 0 {
			break
		}
		space := 0
		if at+w < n {
			shown := ansi.Strip(piece)
			last := strings.LastIndexByte(shown, ' ')
			if ansi.Strip(ansi.Cut(line, at+w, at+w+1)) == " " {
				space = 1
			} else if words := ansi.StringWidth(shown[:last+1]); words > width/2 && strings.TrimSpace(shown[:last]) != "" {
				w, space = words-1, 1
				piece = ansi.Cut(line, at, at+w)
			}
		}
		if len(out) == 0 {
			width -= less
		}
		out = append(out, piece)
		at += w + space
	}
	return out
}

func (p *page) list(n *ast.List, width int) []string {
	var out []string
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if p.styles.bare {
			mark = "- "
		}
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d%c ", number, n.Marker)
			number++
		}
		indent := strings.Repeat(" ", ansi.StringWidth(mark))
		lines := p.blocks(item, width-len(indent))
		if len(lines) == 0 {
			lines = []string{""}
		}
		if len(out) > 0 && !n.IsTight {
			out = append(out, "")
		}
		for i, l := range lines {
			switch {
			case i == 0:
				l = p.styles.dim.Render(mark) + l
			case l != "":
				l = indent + l
			}
			out = append(out, l)
		}
	}
	return out
}

// table renders a table with columns as wide as they have to be, or as there is
// room for.
func (p *page) table(n *east.Table, width int) []string {
	var cells [][]string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var line []string
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			line = append(line, p.inline(c))
		}
		cells = append(cells, line)
	}
	columns := len(n.Alignments)
	if columns == 0 || len(cells) == 0 {
		return nil
	}
	widths := make([]int, columns)
	for _, row := range cells {
		for i := range min(len(row), columns) {
			widths[i] = max(widths[i], ansi.StringWidth(row[i]), 1)
		}
	}
	room := max(width-3*(columns-1), columns)
	for sum(widths) > room {
		widest := slices.Index(widths, slices.Max(widths))
		widths[widest]--
	}
	var out []string
	for r, row := range cells {
		wrapped := make([][]string, columns)
		height := 1
		for i := range columns {
			if i < len(row) {
				wrapped[i] = inColumn(row[i], widths[i])
			}
			height = max(height, len(wrapped[i]))
		}
		for y := range height {
			var parts []string
			for i := range columns {
				cell := ""
				if y < len(wrapped[i]) {
					cell = wrapped[i][y]
				}
				if r == 0 {
					cell = p.styles.strong.Render(cell)
				}
				parts = append(parts, aligned(cell, widths[i], n.Alignments[i]))
			}
			out = append(out, strings.TrimRight(strings.Join(parts, p.styles.dim.Render(" │ ")), " "))
		}
		if r == 0 {
			var parts []string
			for _, w := range widths {
				parts = append(parts, strings.Repeat("─", w))
			}
			out = append(out, p.styles.dim.Render(strings.Join(parts, "─┼─")))
		}
	}
	return out
}

func aligned(cell string, width int, how east.Alignment) string {
	gap := max(width-ansi.StringWidth(cell), 0)
	switch how {
	case east.AlignRight:
		return strings.Repeat(" ", gap) + cell
	case east.AlignCenter:
		return strings.Repeat(" ", gap/2) + cell + strings.Repeat(" ", gap-gap/2)
	}
	return cell + strings.Repeat(" ", gap)
}

func sum(list []int) int {
	n := 0
	for _, x := range list {
		n += x
	}
	return n
}

// inline renders what stands in a line.
func (p *page) inline(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		b.WriteString(p.span(c))
	}
	return b.String()
}

func (p *page) span(n ast.Node) string {
	s := p.styles
	marked := func(style lipgloss.Style, mark, text string) string {
		if s.bare {
			return mark + text + mark
		}
		return style.Render(text)
	}
	switch n := n.(type) {
	case *ast.Text:
		text := string(n.Segment.Value(p.source))
		switch {
		case n.HardLineBreak():
			text += "\n"
		case n.SoftLineBreak():
			text += " "
		}
		return text
	case *ast.String:
		return string(n.Value)
	case *ast.CodeSpan:
		return marked(s.code, "`", p.inline(n))
	case *ast.Emphasis:
		if n.Level > 1 {
			return marked(s.strong, "**", p.inline(n))
		}
		return marked(s.italic, "*", p.inline(n))
	case *east.Strikethrough:
		return s.struck.Render("~~" + p.inline(n) + "~~")
	case *east.TaskCheckBox:
		if n.IsChecked {
			return "[x] "
		}
		return "[ ] "
	case *ast.Link:
		return p.link(p.inline(n), string(n.Destination))
	case *ast.Image:
		return p.link(p.inline(n), string(n.Destination))
	case *ast.AutoLink:
		return s.link.Render(string(n.URL(p.source)))
	case *ast.RawHTML:
		var b strings.Builder
		for i := range n.Segments.Len() {
			segment := n.Segments.At(i)
			b.Write(segment.Value(p.source))
		}
		return b.String()
	}
	return p.inline(n)
}

// link shows where a link leads, in full: a text cannot pass for another address.
func (p *page) link(label, to string) string {
	switch plain := strings.TrimSpace(ansi.Strip(label)); {
	case plain == to || plain == "":
		return p.styles.link.Render(to)
	}
	return label + " (" + p.styles.link.Render(to) + ")"
}

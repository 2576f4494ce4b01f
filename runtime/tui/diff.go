package tui

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/tool"
)

// sideWidth is how wide a window has to be for a change to be shown side by side.
const sideWidth = 120

// edit shows what a call changes in a file: one below the other, or side by side
// where there is room and something on both.
func (s styles) edit(e tool.Edit, width int) []string {
	return slices.Concat(s.edited(e, width)...)
}

// edited is edit with the lines of the window that are one of the file together.
func (s styles) edited(e tool.Edit, width int) [][]string {
	head := "changes "
	switch {
	case e.New:
		head = "makes "
	case e.Gone:
		head = "deletes "
	}
	before, after := term.Visible(string(e.Before)), term.Visible(string(e.After))
	if e.Gone {
		after = ""
	}
	now := ""
	if e.Note != "" {
		if len(e.After) == 0 || e.Gone {
			return [][]string{s.title(head+agreed(e.Path)+": "+e.Note, width)}
		}
		now = ", now " + e.Note // what comes in its place is seen all the same
	}
	var hunks []*udiff.Hunk
	if u, err := udiff.ToUnifiedDiff("a", "b", before, udiff.Lines(before, after), 3); err == nil {
		hunks = u.Hunks
	}
	plus, minus := 0, 0
	for _, h := range hunks {
		for _, l := range h.Lines {
			switch l.Kind {
			case udiff.Insert:
				plus++
			case udiff.Delete:
				minus++
			}
		}
	}
	out := [][]string{s.title(fmt.Sprintf("+%d -%d: %s%s", plus, minus, head, agreed(e.Path)+now), width)}
	if len(hunks) == 0 {
		return append(out, []string{s.dim.Render("  no line is changed")})
	}
	digits := digits(hunks[len(hunks)-1])
	for i, h := range hunks {
		if i > 0 {
			out = append(out, []string{s.dim.Render("  ⋮")})
		}
		if width >= sideWidth && plus > 0 && minus > 0 { // one side alone needs no second
			out = append(out, s.beside(h, digits, width)...)
		} else {
			out = append(out, s.below(h, digits, width)...)
		}
	}
	return out
}

// unseen words how many of those do not fit into that many lines of the window. One that
// is seen in part counts only if it is all there is.
func unseen(all [][]string, most int) string {
	for i, lines := range all {
		if most <= 0 {
			return counted(len(all) - i)
		}
		most -= len(lines)
	}
	return counted(1)
}

// title is what is done to which file, whole: it is what the user agrees to.
func (s styles) title(text string, width int) []string {
	if ansi.StringWidth(text) <= width {
		return []string{s.strong.Render(text)}
	}
	lines := strings.Split(wrapped(text, width-2), "\n")
	for i, l := range lines {
		if i > 0 {
			l = "  " + l
		}
		lines[i] = s.strong.Render(l)
	}
	return lines
}

// row is text of a file without its line end, in one line of the terminal.
func row(content string) string {
	return strings.ReplaceAll(strings.TrimRight(content, "\n"), "\t", "    ")
}

// digits is how many the highest number of a line in a hunk has.
func digits(h *udiff.Hunk) int {
	from, to := max(h.FromLine, 1), max(h.ToLine, 1)
	for _, l := range h.Lines {
		if l.Kind != udiff.Insert {
			from++
		}
		if l.Kind != udiff.Delete {
			to++
		}
	}
	return len(fmt.Sprint(max(from, to) - 1))
}

// below shows a hunk as a unified diff, with the numbers of lines, of so many digits.
func (s styles) below(h *udiff.Hunk, digits, width int) [][]string {
	from, to := max(h.FromLine, 1), max(h.ToLine, 1)
	var out [][]string
	for _, l := range h.Lines {
		number, mark, style := 0, " ", s.plain
		switch l.Kind {
		case udiff.Delete:
			number, mark, style = from, "-", s.removed
			from++
		case udiff.Insert:
			number, mark, style = to, "+", s.added
			to++
		default:
			number = to
			from++
			to++
		}
		var lines []string
		for i, piece := range marked(row(l.Content), width-digits-2) {
			label := fmt.Sprintf("%*d", digits, number)
			if i > 0 {
				label = strings.Repeat(" ", digits)
			}
			lines = append(lines, s.dim.Render(label)+" "+style.Render(mark+piece))
		}
		out = append(out, lines)
	}
	return out
}

// beside shows a hunk with what was on the left and what will be on the right.
func (s styles) beside(h *udiff.Hunk, digits, width int) [][]string {
	type side struct {
		number int
		text   string
		kind   udiff.OpKind
		there  bool
	}
	from, to := max(h.FromLine, 1), max(h.ToLine, 1)
	var lefts, rights []side
	even := func() {
		for len(lefts) < len(rights) {
			lefts = append(lefts, side{})
		}
		for len(rights) < len(lefts) {
			rights = append(rights, side{})
		}
	}
	for _, l := range h.Lines {
		switch l.Kind {
		case udiff.Delete:
			lefts = append(lefts, side{from, row(l.Content), l.Kind, true})
			from++
		case udiff.Insert:
			rights = append(rights, side{to, row(l.Content), l.Kind, true})
			to++
		default:
			even()
			lefts = append(lefts, side{from, row(l.Content), l.Kind, true})
			rights = append(rights, side{to, row(l.Content), l.Kind, true})
			from++
			to++
		}
	}
	even()
	half := (width - 3) / 2
	cell := func(x side) []string {
		if !x.there {
			return []string{strings.Repeat(" ", half)}
		}
		mark, style := " ", s.plain
		switch x.kind {
		case udiff.Delete:
			mark, style = "-", s.removed
		case udiff.Insert:
			mark, style = "+", s.added
		}
		var lines []string
		for i, piece := range marked(x.text, half-digits-2) {
			label := fmt.Sprintf("%*d", digits, x.number)
			if i > 0 {
				label = strings.Repeat(" ", digits)
			}
			gap := strings.Repeat(" ", max(half-digits-2-ansi.StringWidth(piece), 0))
			lines = append(lines, s.dim.Render(label)+" "+style.Render(mark+piece)+gap)
		}
		return lines
	}
	var out [][]string
	for i := range lefts {
		l, r := cell(lefts[i]), cell(rights[i])
		var lines []string
		for y := range max(len(l), len(r)) {
			a, b := strings.Repeat(" ", half), ""
			if y < len(l) {
				a = l[y]
			}
			if y < len(r) {
				b = r[y]
			}
			lines = append(lines, a+s.dim.Render(" │ ")+strings.TrimRight(b, " "))
		}
		out = append(out, lines)
	}
	return out
}

// patch shows a patch in colours.
func (s styles) patch(text string, width int) []string {
	var out []string
	was, is := 0, 0 // lines that the hunk still has of the file as it was, and as it is
	for _, line := range strings.Split(strings.TrimRight(term.Clean(text), "\n"), "\n") {
		inside := was > 0 || is > 0
		if !inside && strings.HasPrefix(line, "index ") {
			continue // hashes say nothing to a person
		}
		if m := hunkHead.FindStringSubmatch(line); m != nil && !inside {
			was, is = length(m[1]), length(m[2])
		}
		line = strings.ReplaceAll(line, "\t", "    ")
		if line != "" && strings.Contains("+- ", line[:1]) && (inside || !strings.HasPrefix(line, "+++ ") && !strings.HasPrefix(line, "--- ")) {
			style := s.plain
			switch line[0] {
			case '-':
				style, was = s.removed, was-1
			case '+':
				style, is = s.added, is-1
			default:
				was, is = was-1, is-1
			}
			for _, piece := range marked(line[1:], width-1) { // what is left of it is no line of another sign
				out = append(out, style.Render(line[:1]+piece))
			}
			continue
		}
		out = append(out, marked(s.change(named(line)), width)...) // nor is what is left of a name that begins with one
	}
	return out
}

// marked is a line of a change in pieces of at most width columns; those behind the first
// begin with goesOn, which stands behind the sign of the line.
func marked(line string, width int) []string {
	pieces := broken(line, width, ansi.StringWidth(goesOn))
	for i := 1; i < len(pieces); i++ {
		pieces[i] = goesOn + pieces[i]
	}
	return pieces
}

// goesOn stands before what is left of a line that was broken, which is no line of its
// own.
const goesOn = "↳ "

// hunkHead is how a hunk of a patch begins, with how many lines it has of the file as it
// was and as it is.
var hunkHead = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// length reads one of these numbers, which is left out if it is 1.
func length(text string) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return 1
}

// quotedName is how git writes a name that is not plain ASCII.
var quotedName = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// named shows the names of a patch's header line as they are read.
func named(line string) string {
	if !strings.HasPrefix(line, "diff --git ") && !strings.HasPrefix(line, "--- \"") && !strings.HasPrefix(line, "+++ \"") {
		return line
	}
	return quotedName.ReplaceAllStringFunc(line, func(quoted string) string {
		name, err := strconv.Unquote(quoted)
		if err != nil || !utf8.ValidString(name) {
			return quoted
		}
		return oneLine(name)
	})
}

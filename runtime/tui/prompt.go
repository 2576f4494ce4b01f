package tui

import (
	"strings"

	"charm.land/bubbles/v2/textarea"
)

// prompt stands before what the user says.
const prompt = "› "

// alsoBegun stands before each line of it but the first, which the user began. What goes on of
// one that is broken has blanks.
const alsoBegun = "┆ "

// prompted is what the user said as it stands in the window.
func (v *view) prompted(text string) string {
	var all []string
	mark := prompt
	for l := range strings.SplitSeq(text, "\n") {
		all = append(all, strings.TrimRight(mark+v.hang(l, 2), " "))
		mark = alsoBegun
	}
	return strings.Join(all, "\n")
}

// begins are the rows of the input with which a line of it begins, as far as it is laid
// out. A line that is wider than the window has more rows than that one.
type begins struct {
	text  string
	width int
	rows  map[int]bool
	tall  map[string]int // how many rows a line of that width has
	probe *textarea.Model
}

// lay finds where the lines of the input begin now.
func (v *view) lay() {
	b, text, width := &v.begins, v.input.Value(), v.input.Width()
	if b.rows != nil && b.text == text && b.width == width {
		return
	}
	if b.probe == nil || b.width != width {
		probe := textarea.New()
		probe.Prompt, probe.ShowLineNumbers = "", false
		probe.SetWidth(width)
		b.probe, b.tall = &probe, map[string]int{}
	}
	known, row := b.tall, 0
	b.text, b.width, b.rows, b.tall = text, width, map[int]bool{}, map[string]int{}
	for l := range strings.SplitSeq(text, "\n") {
		n := known[l]
		if n == 0 {
			b.probe.SetValue(l)
			n = max(b.probe.LineInfo().Height, 1)
		}
		b.rows[row], b.tall[l] = true, n
		row += n
	}
}

// mark is what stands before a row of the input.
func (v *view) mark(row textarea.PromptInfo) string {
	switch {
	case row.LineNumber == 0:
		return prompt
	case v.begins.rows[row.LineNumber]:
		return alsoBegun
	}
	return strings.Repeat(" ", len([]rune(prompt)))
}

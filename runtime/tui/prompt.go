package tui

import (
	"strings"

	"charm.land/bubbles/v2/textarea"
)

// prompt stands before each line of the input that the user began.
const prompt = "› "

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

// mark is what stands before a row of the input: what goes on of a line has blanks.
func (v *view) mark(row textarea.PromptInfo) string {
	if v.begins.rows[row.LineNumber] {
		return prompt
	}
	return strings.Repeat(" ", len([]rune(prompt)))
}

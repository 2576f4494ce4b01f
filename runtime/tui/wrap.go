package tui

import (
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// hang wraps text; what follows its first line stands further in than that.
func (v *view) hang(text string, in int) string {
	return strings.ReplaceAll(wrapped(text, v.width-in), "\n", "\n"+strings.Repeat(" ", in))
}

// hangApart is hang for what may have lines of its own.
func (v *view) hangApart(text string, in int) string {
	return strings.ReplaceAll(apart(text, v.width-in), "\n", "\n"+strings.Repeat(" ", in))
}

// apart is text in lines of at most width columns. If it has several, what goes on of one
// that is broken is marked, so that it is not taken for the next.
func apart(text string, width int) string {
	lines := strings.Split(strings.ReplaceAll(text, "\t", "    "), "\n")
	if len(lines) == 1 {
		return wrapped(text, width)
	}
	for i, l := range lines {
		if ansi.StringWidth(l) <= width {
			continue
		}
		in := min(len(l)-len(strings.TrimLeft(l, " ")), width/2)
		goes := strings.Repeat(" ", in) + goesOn
		lines[i] = strings.ReplaceAll(wrapped(l, width-ansi.StringWidth(goes)), "\n", "\n"+goes)
	}
	return strings.Join(lines, "\n")
}

func (v *view) wrap(text string) string {
	return wrapped(text, v.width)
}

// wrapped is text in lines of at most width columns, broken between words.
func wrapped(text string, width int) string {
	return between(strings.ReplaceAll(text, "\t", "    "), func(text string) string { return ansi.Wrap(text, width, breaks(text, width)) })
}

// breaks are the letters behind which words of text are broken: a slash, if one of them
// has no room in a line.
func breaks(text string, width int) string {
	for word := range strings.FieldsSeq(text) {
		if ansi.StringWidth(word) > width {
			return "/"
		}
	}
	return ""
}

// between is text that wrap breaks between words. A hyphen is part of its word: "--" at
// the end of a line would be read as a word of a command.
func between(text string, wrap func(string) string) string {
	const stays = '\u2011' // as wide as a hyphen, and nothing breaks at it
	var was []rune
	text = strings.Map(func(r rune) rune {
		if r == '-' || r == stays {
			was = append(was, r)
			return stays
		}
		return r
	}, text)
	return strings.Map(func(r rune) rune {
		if r == stays && len(was) > 0 {
			r, was = was[0], was[1:]
		}
		return r
	}, closed(text, wrap))
}

// pair stands for a letter and the mark behind it: it is as wide as the two, and nothing
// breaks in it.
const pair = "："

// ends is such a pair at the end of a word, or what looks like one already. What sets a
// colour ends with no letter.
var ends = regexp.MustCompile(`\x1b\[[0-9;]*m|(` + pair + `)|([!-~\x{2011}][:;,.])(?:\s|$)`)

// closed is text that wrap breaks, but not before a mark that ends a phrase.
func closed(text string, wrap func(string) string) string {
	var was []string
	text = ends.ReplaceAllStringFunc(text, func(s string) string {
		found := ends.FindStringSubmatch(s)
		two := found[1] + found[2]
		if two == "" {
			return s
		}
		was = append(was, two)
		return pair + strings.TrimPrefix(s, two)
	})
	parts := strings.SplitAfter(wrap(text), pair)
	for i, part := range parts {
		if before, is := strings.CutSuffix(part, pair); is && i < len(was) {
			parts[i] = before + was[i]
		}
	}
	return strings.Join(parts, "")
}

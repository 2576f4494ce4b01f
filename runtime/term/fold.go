package term

import (
	"io"
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Fold breaks the lines of text between words, so that none needs more than width
// columns; what follows the first of them stands further in. A line that fits stays as
// it is. What the reader is to copy stays whole: a command, what stands between
// backquotes, a word, a line of a block of code or of a table. It has a line of its own
// if the rest of one is too short, and if it is wider than that the terminal breaks it,
// which puts it together again when it is copied.
func Fold(text string, width int) string { return folded(text, width, 2) }

// FoldProse is Fold for paragraphs, whose lines all begin at the same column. Those of
// a list stand further in than its marks.
func FoldProse(text string, width int) string { return folded(text, width, 0) }

func folded(text string, width, hang int) string {
	var b strings.Builder
	code := false
	for line := range strings.SplitAfterSeq(text, "\n") {
		line, end := strings.CutSuffix(line, "\n")
		trimmed := strings.TrimSpace(line)
		fence := strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")
		table := len(trimmed) > 1 && trimmed[0] == '|' && trimmed[len(trimmed)-1] == '|'
		if code || fence || table {
			b.WriteString(line)
		} else {
			fold(&b, line, width, hang)
		}
		code = code != fence
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// listed is the mark of an item of a list.
var listed = regexp.MustCompile(`^([-*] |[0-9]{1,3}[.)] )`)

// leastFolded is the width from which on lines are broken.
const leastFolded = 20

func fold(b *strings.Builder, line string, width, hang int) {
	whole := untabbed(line)
	if width < leastFolded || ansi.StringWidth(whole) <= width {
		b.WriteString(line)
		return
	}
	text := strings.TrimLeft(whole, " ")
	in := min(len(whole)-len(text), width/2)
	b.WriteString(strings.Repeat(" ", in))
	hang = in + max(hang, len(listed.FindString(text)))
	at, first := in, true
	for _, p := range pieces(text) {
		wide := ansi.StringWidth(p.text)
		switch {
		case first:
		case at+len(p.space)+wide <= width, at+len(p.space) <= hang: // a line of its own would give it no more room
			b.WriteString(p.space)
			at += len(p.space)
		default:
			b.WriteString("\n" + strings.Repeat(" ", hang))
			at = hang
		}
		b.WriteString(p.text)
		at += wide
		first = false
	}
	if end := text[len(strings.TrimRight(text, " ")):]; at+len(end) <= width {
		b.WriteString(end) // of a question
	}
}

// Untab is text with its tabs as the spaces that they are on a terminal, so that what
// was printed in columns stays in them.
func Untab(text string) string {
	if !strings.Contains(text, "\t") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = untabbed(l)
	}
	return strings.Join(lines, "\n")
}

// untabbed is such a line.
func untabbed(line string) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	at := 0
	for i, part := range strings.Split(line, "\t") {
		if i > 0 {
			n := 8 - at%8
			b.WriteString(strings.Repeat(" ", n))
			at += n
		}
		b.WriteString(part)
		at += ansi.StringWidth(part)
	}
	return b.String()
}

// A piece of a line is not broken; space is what stands before it.
type piece struct{ space, text string }

func pieces(text string) []piece {
	var all []piece
	for text != "" {
		rest := strings.TrimLeft(text, " ")
		space := text[:len(text)-len(rest)]
		if rest == "" {
			break
		}
		n := word(rest)
		if inner, in := strings.CutPrefix(rest, "("); in && command(inner) > 0 {
			n = 1 + command(inner)
		} else if found := command(rest); found > 0 && (len(all) == 0 || leads(all[len(all)-1].text)) {
			n = found
		}
		all = append(all, piece{space, rest[:n]})
		text = rest[n:]
	}
	return all
}

// leads reports whether a command may follow a word.
func leads(word string) bool {
	return strings.HasSuffix(word, ":") || word == "run" || word == "by" || word == "|"
}

// word is the length of the word that text begins with, with all between backquotes.
func word(text string) int {
	quoted := false
	for i, r := range text {
		switch {
		case r == '`':
			quoted = !quoted && strings.Contains(text[i+1:], "`")
		case r == ' ' && !quoted:
			return i
		}
	}
	return len(text)
}

var (
	commands   = regexp.MustCompile(`^(talkops -|talkops [a-z]+( |$|[.;,)])|git (apply|switch|merge|log|checkout) |cd [^ ]+ && |export [A-Z_]+=|modal setup|aws [a-z]|[A-Z_]+=\S+ talkops )`)
	commandEnd = regexp.MustCompile(`^(?:([;,).:]+)( |$)|( – | \(exit \d))`)
)

// command is the length of the command that text begins with, 0 if it begins with none.
func command(text string) int {
	if !commands.MatchString(text) {
		return 0
	}
	quote := rune(0)
	for i, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case (r == '"' || r == '\'') && strings.ContainsRune(text[i+1:], r):
			quote = r
		default:
			if end := commandEnd.FindStringSubmatch(text[i:]); end != nil {
				return i + len(end[1]) // with the mark behind it
			}
		}
	}
	return len(strings.TrimRight(text, " "))
}

// A folder writes lines onto a terminal as Fold breaks them. What is written at once
// is whole lines, or a question at their end.
type folder struct {
	w     io.Writer
	width func() int
}

func (f *folder) Write(p []byte) (int, error) {
	if _, err := io.WriteString(f.w, Fold(string(p), f.width())); err != nil {
		return 0, err
	}
	return len(p), nil
}

package term

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Sequences that steer a terminal: CSI, then the string kinds (OSC, DCS, SOS, PM,
// APC) up to their end, then the short ones. The C1 forms are single characters.
var sequences = regexp.MustCompile(
	"(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]" +
		"|(?:\x1b[\\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\x07\x1b\u009c\n]*(?:\x07|\x1b\\\\|\u009c)" +
		"|\x1b[ -/]*[0-~]")

// Clean returns s without anything that could steer a terminal or reorder what is
// read: escape sequences, control characters other than newline and tab, marks of
// text direction and invisible characters. Line ends become newlines.
func Clean(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	s = sequences.ReplaceAllString(s, "")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u200c', r == '\u200d': // joiners spell words and emoji
			return r
		case r == '\r', r == '\u2028', r == '\u2029':
			return '\n'
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
}

var (
	lineCommand = regexp.MustCompile(`(?m)^(\s*:):`)
	hashCommand = regexp.MustCompile(`##(vso)?\[`)
)

// Neutral returns Clean(s) with the marks apart that CI systems take for commands
// in a log: "::" at the start of a line, "##[" and "##vso[" anywhere.
func Neutral(s string) string {
	s = lineCommand.ReplaceAllString(Clean(s), "$1 :")
	return hashCommand.ReplaceAllString(s, "# #$1[")
}

// blank reports whether a character shows nothing, or what looks like a blank, and is
// none that a shell or a person takes for one.
func blank(r rune) bool {
	return r == '\u2800' || r != ' ' && unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Cf, unicode.Co, unicode.Other_Default_Ignorable_Code_Point)
}

// Visible returns s for a person who is to agree to it: no more steers the terminal
// than in Clean(s), and what Clean leaves out is written out, as <U+001B>. Joiners and
// variation selectors stay where they may belong to what stands before them.
func Visible(s string) string {
	var b strings.Builder
	var before rune
	for _, r := range strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\r\n", "\n") {
		hidden := unicode.IsControl(r) && r != '\n' && r != '\t' || blank(r)
		if r == '\u200c' || r == '\u200d' || unicode.Is(unicode.Variation_Selector, r) {
			hidden = before < unicode.MaxASCII || unicode.Is(unicode.Variation_Selector, before)
		}
		if hidden {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

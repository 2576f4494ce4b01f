package approval

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A lexer reads the raw letters of a command line, ahead of any parser, for what shells
// are known to read in more than one way and everyday lines do not need. It need not
// know what a line means: where a parser and a shell could part, it has found something
// before they do.
type lexer struct {
	text string
	at   int

	unplain string // what is needed by no everyday line
	differs string // what shells are seen to read differently

	document string // the end of the here-document that begins after this line
	bare     bool   // its end is not quoted: variables are replaced in it
	tabs     bool   // tabs before its lines do not count
	awaited  bool   // there is one
	inside   int    // of substitutions, subshells and groups
}

// Letters that are looked at together.
var (
	joining   = regexp.MustCompile(`^[\w'"./ \t-]`)                                                  // may follow a line that goes on
	ending    = regexp.MustCompile(`^(-?)[ \t]*(?:([\w.+-]+)|'([\w.+-]+)'|"([\w.+-]+)")[ \t\n;&|>]`) // a here-document's name
	plainANSI = regexp.MustCompile(`^\$'(?:[\w ./:,=+@%-]|\\[nt])*'`)
	escaped   = regexp.MustCompile(`(?s)^\$'(?:[^'\\]|\\.)*'`)
	braces    = regexp.MustCompile(`^\{[\w.,~:/+@%=*{}-]*\}`)
	counted   = regexp.MustCompile(`^\$\(\([\d\w$+*/% ()<>=-]*?\)\)`)
	variable  = regexp.MustCompile(`^\$(?:\w|\{[\w:?@#*!$]+[-+]?[\w./:@ -]*\})`) // in a here-document
)

// unplain returns what the lexer finds in a text.
func unplain(text string) *lexer {
	l := &lexer{text: text}
	for _, r := range text {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			l.odd("a control character")
		}
	}
	l.command(false)
	if l.awaited {
		l.differ("a here-document without an end")
	}
	return l
}

func (l *lexer) odd(what string) {
	if l.unplain == "" {
		l.unplain = what
	}
}

func (l *lexer) differ(what string) {
	l.odd(what)
	if l.differs == "" {
		l.differs = what
	}
}

// peek is the letter so far from here, or 0.
func (l *lexer) peek(by int) byte {
	if i := l.at + by; i >= 0 && i < len(l.text) {
		return l.text[i]
	}
	return 0
}

func (l *lexer) has(prefix string) bool { return strings.HasPrefix(l.text[l.at:], prefix) }

// begins reports whether a word begins here.
func (l *lexer) begins() bool { return l.at == 0 || strings.IndexByte(" \t\n;&|()<>", l.peek(-1)) >= 0 }

// first reports whether a command begins here.
func (l *lexer) first() bool {
	before := strings.TrimRight(l.text[:l.at], " \t")
	if before == "" || strings.IndexByte("\n;&|({!", before[len(before)-1]) >= 0 {
		return true
	}
	word := before[strings.LastIndexAny(before, " \t\n;&|()")+1:]
	return strings.Contains(" if then elif else while until do time ", " "+word+" ")
}

// within reads past the parenthesis that ends a substitution or a subshell.
func (l *lexer) within() {
	inside := l.inside
	l.inside++
	l.command(true)
	l.inside = inside
}

// command reads up to the end, or past the parenthesis that ends what is nested.
func (l *lexer) command(nested bool) {
	for l.at < len(l.text) {
		switch b := l.text[l.at]; b {
		case '\n':
			l.at++
			if l.awaited {
				l.body()
			}
			continue
		case '\'':
			end := strings.IndexByte(l.text[l.at+1:], '\'')
			if end < 0 {
				l.differ("a quote without an end")
				l.at = len(l.text)
				return
			}
			if l.awaited && strings.Contains(l.text[l.at+1:l.at+1+end], "\n") {
				l.differ("a here-document in the midst of words")
			}
			l.at += 1 + end
		case '"':
			l.at++
			l.quoted()
			continue
		case '\\':
			l.escape(strings.IndexByte(" \t&|", l.peek(-1)) >= 0 && !l.awaited)
			continue
		case '`':
			l.odd("a command in backquotes")
		case '$':
			l.dollar(false)
			continue
		case '#':
			if l.begins() {
				l.comment()
				continue
			}
		case '(':
			switch {
			case strings.IndexByte("@+?*!", l.peek(-1)) >= 0 && l.at > 0:
				l.odd("an extended pattern")
			case l.peek(1) == '(' && l.first():
				l.odd("arithmetic as a command")
			case l.awaited:
				l.odd("a here-document within a group")
			}
			l.at++
			l.within()
			continue
		case ')':
			l.at++
			if nested {
				return
			}
			continue
		case '<', '>':
			switch {
			case l.peek(1) == '(':
				l.odd("a command in the place of a file")
			case l.has("<<<"):
				l.at += 2
			case l.has("<<"):
				l.at += 2
				l.begin()
				continue
			}
		case '|', '&', ';':
			if l.has("|&") || l.has("&>>") || l.has(";&") || l.has(";;&") {
				l.odd("a sign that only some shells know")
			}
		case '!':
			l.history()
		case '{', '}':
			l.brace()
			continue
		case 'c':
			if nested && l.has("case") && l.begins() && strings.IndexByte(" \t\n", l.peek(4)) >= 0 {
				l.odd("a choice within a substitution")
			}
		}
		l.letter()
	}
	if nested {
		l.odd("a parenthesis without an end")
	}
}

// letter passes one, which is no quote.
func (l *lexer) letter() {
	r, size := utf8.DecodeRuneInString(l.text[l.at:])
	if r == utf8.RuneError && size <= 1 || r > unicode.MaxASCII && (unicode.IsSpace(r) || !unicode.IsGraphic(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)) {
		l.odd("an invisible character")
	}
	l.at += size
}

// escape passes a backslash and what follows. A line may go on only between words.
func (l *lexer) escape(between bool) {
	l.at++
	switch rest := l.text[l.at:]; {
	case rest == "":
		l.differ("a backslash at its end")
	case rest[0] != '\n':
		l.letter()
	default:
		l.at++
		switch {
		case between && joining.MatchString(rest[1:]):
		case l.at > 2 && strings.IndexByte("$<>({[`", l.text[l.at-3]) >= 0:
			l.differ("a sign that a backslash parts")
		default:
			l.odd("a line that goes on in the midst of a word")
		}
	}
}

// comment passes one.
func (l *lexer) comment() {
	text, _, _ := strings.Cut(l.text[l.at:], "\n")
	switch {
	case strings.HasSuffix(strings.TrimSuffix(text, "\r"), `\`):
		l.differ("a comment that ends in a backslash")
	case strings.ContainsAny(text, "\\'\"`"), l.awaited, l.inside > 0, l.at > 0 && strings.IndexByte(" \t\n", l.peek(-1)) < 0:
		l.odd("a comment that is not plain")
	}
	l.at += len(text)
}

// dollar passes what a dollar begins.
func (l *lexer) dollar(quoted bool) {
	switch next := l.peek(1); {
	case next == '\'' && !quoted:
		if text := plainANSI.FindString(l.text[l.at:]); text != "" {
			l.at += len(text)
			return
		}
		l.odd("a text with signs that only some shells know")
		l.at += max(len(escaped.FindString(l.text[l.at:])), 1)
	case next == '\'' || next == '"' && !quoted || next == '[':
		l.odd("a sign that only some shells know")
		l.at++
	case next == '\\' && l.peek(2) == '\n':
		l.differ("a sign that a backslash parts")
		l.at++
	case next == '{':
		l.at += 2
		l.expansion(quoted)
	case l.has("$(("):
		if sum := counted.FindString(l.text[l.at:]); sum != "" {
			l.at += len(sum)
			return
		}
		if strings.ContainsAny(l.text[l.at:], `'"`) {
			l.differ("arithmetic that is not plain")
		}
		l.odd("arithmetic that is not plain")
		fallthrough
	case next == '(':
		l.at += 2
		if l.awaited {
			l.differ("a here-document in the midst of words")
		}
		l.within()
	case next == '!':
		l.at += 2
	default:
		l.at++
	}
}

// expansion passes a variable in braces, after the first.
func (l *lexer) expansion(quoted bool) {
	for l.at < len(l.text) {
		switch b := l.text[l.at]; b {
		case '}':
			l.at++
			return
		case '\'', '"', '\\':
			if quoted {
				l.differ("quotes in a variable that is quoted")
			}
			l.odd("quotes in a variable")
		case '`', '{', '\n':
			l.odd("more than plain text in a variable")
		case '$':
			if next := l.peek(1); !isWord(next) {
				l.odd("more than plain text in a variable")
			}
			l.dollar(quoted)
			continue
		}
		l.letter()
	}
	l.odd("a variable without an end")
}

// quoted passes what stands in double quotes, after the first.
func (l *lexer) quoted() {
	for l.at < len(l.text) {
		switch b := l.text[l.at]; b {
		case '"':
			l.at++
			return
		case '\\':
			l.escape(false)
			continue
		case '`':
			l.odd("a command in backquotes")
		case '$':
			l.dollar(true)
			continue
		case '!':
			l.history()
		case '\n':
			if l.awaited {
				l.differ("a here-document in the midst of words")
			}
		}
		l.letter()
	}
	l.differ("a quote without an end")
}

// history looks at a mark that an interactive shell takes for a line of before.
func (l *lexer) history() {
	if next := l.peek(1); next == '!' || next >= 'a' && next <= 'z' || next >= 'A' && next <= 'Z' {
		l.odd("a mark of a line before")
	}
}

// brace passes a group's own words and plain expansions.
func (l *lexer) brace() {
	if next := l.peek(1); l.begins() && (next == 0 || strings.IndexByte(" \t\n;&|)<>", next) >= 0) {
		if l.text[l.at] == '{' {
			l.inside++
		} else if l.inside > 0 {
			l.inside--
		}
		l.at++
		return
	}
	plain := braces.FindString(l.text[l.at:])
	if plain == "" || strings.IndexByte("<>", l.peek(len(plain))) >= 0 && l.at+len(plain) < len(l.text) {
		l.odd("braces that are not plain")
		plain = "{"
	}
	l.at += len(plain)
}

// begin reads the name of a here-document.
func (l *lexer) begin() {
	m := ending.FindStringSubmatch(l.text[l.at:] + "\n")
	if m == nil || l.awaited {
		l.differ("a here-document whose end is not plain")
		return
	}
	if l.inside > 0 {
		l.odd("a here-document within a group")
	}
	l.awaited, l.tabs, l.bare, l.document = true, m[1] != "", m[2] != "", m[2]+m[3]+m[4]
	l.at += len(m[0]) - 1
}

// body passes the lines of a here-document.
func (l *lexer) body() {
	l.awaited = false
	for line := range strings.Lines(l.text[l.at:]) {
		l.at += len(line)
		line = strings.TrimSuffix(line, "\n")
		text := strings.TrimLeft(line, "\t")
		if text == l.document && (l.tabs || text == line) {
			return
		}
		if strings.HasPrefix(text, l.document) {
			l.differ("a here-document that may end before its end")
		}
		if l.bare {
			l.replaced(line)
		}
	}
	l.differ("a here-document without an end")
}

// replaced looks at a line of a here-document in which variables are replaced.
func (l *lexer) replaced(line string) {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '`':
			l.odd("a command in a here-document")
		case '\\':
			if next := l.peek(0); i != len(line)-1 {
				l.odd("a backslash in a here-document")
			} else if i == 0 || line[i-1] != ' ' && line[i-1] != '\t' || next != ' ' {
				l.differ("a here-document that may end before its end")
			}
		case '$':
			m := variable.FindString(line[i:])
			if m == "" {
				if strings.ContainsAny(line, `'"`) {
					l.differ("quotes in a variable that is quoted")
				}
				l.odd("more than a plain variable in a here-document")
				return
			}
			i += len(m) - 1
		}
	}
}

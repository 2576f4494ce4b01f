package tui

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

// A language is what is needed to tell its comments, texts and words apart.
type language struct {
	names    []string
	line     []string // what begins a comment
	from, to string   // around a comment of several lines
	quotes   string   // characters around a text
	long     []string // marks around a text of several lines
	words    string   // its own words
	keys     bool     // a word before ":" or "=" is a name
	diff     bool     // lines that begin with + or - are changes
}

// languages are those that turn up in the work of operations people.
func languages() []language {
	const c = "break case const continue default do else enum for goto if return static struct switch typedef union void volatile while "
	return []language{
		{names: []string{"sh", "bash", "shell", "zsh", "console", "shellsession"}, line: []string{"#"}, quotes: `"'`, words: "if then elif else fi for while until do done case esac in function return local export readonly set unset exit trap source eval exec cd echo sudo"},
		{names: []string{"yaml", "yml"}, line: []string{"#"}, quotes: `"'`, words: "true false null yes no on off", keys: true},
		{names: []string{"json", "jsonc", "json5"}, line: []string{"//"}, quotes: `"`, words: "true false null", keys: true},
		{names: []string{"toml", "ini", "cfg", "conf", "properties", "dotenv"}, line: []string{"#", ";"}, quotes: `"'`, words: "true false", keys: true},
		{names: []string{"hcl", "terraform", "tf", "tfvars"}, line: []string{"#", "//"}, from: "/*", to: "*/", quotes: `"`, words: "resource data module variable output provider terraform locals for_each count depends_on true false null for in if", keys: true},
		{names: []string{"dockerfile", "docker", "containerfile"}, line: []string{"#"}, quotes: `"'`, words: "FROM RUN CMD LABEL EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG ONBUILD STOPSIGNAL HEALTHCHECK SHELL AS"},
		{names: []string{"make", "makefile"}, line: []string{"#"}, quotes: `"'`, words: "ifeq ifneq ifdef ifndef else endif include define endef export override"},
		{names: []string{"go", "golang"}, line: []string{"//"}, from: "/*", to: "*/", quotes: `"'`, long: []string{"`"}, words: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota error string int bool byte any"},
		{names: []string{"python", "py", "python3"}, line: []string{"#"}, quotes: `"'`, long: []string{`"""`, `'''`}, words: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield self"},
		{names: []string{"javascript", "js", "typescript", "ts", "jsx", "tsx"}, line: []string{"//"}, from: "/*", to: "*/", quotes: `"'`, long: []string{"`"}, words: "async await break case catch class const continue default delete do else export extends false finally for from function if import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield"},
		{names: []string{"rust", "rs"}, line: []string{"//"}, from: "/*", to: "*/", quotes: `"`, words: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while"},
		{names: []string{"ruby", "rb"}, line: []string{"#"}, quotes: `"'`, words: "begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield require"},
		{names: []string{"java", "kotlin", "kt", "groovy", "jenkinsfile", "scala"}, line: []string{"//"}, from: "/*", to: "*/", quotes: `"'`, words: c + "abstract boolean catch class extends false final finally fun implements import instanceof int interface long new null package private protected public super this throw throws true try val var when def"},
		{names: []string{"c", "cpp", "c++", "cc", "h"}, line: []string{"//"}, from: "/*", to: "*/", quotes: `"'`, words: c + "auto bool char class double extern float int long namespace new nullptr private public short signed sizeof template this throw true false unsigned using virtual"},
		{names: []string{"sql", "psql", "mysql"}, line: []string{"--"}, from: "/*", to: "*/", quotes: `"'`, words: "SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX DROP ALTER ADD JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER LIMIT HAVING AND OR NOT NULL AS DISTINCT UNION PRIMARY KEY select from where insert into values update set delete create table index drop alter add join left right inner outer on group by order limit having and or not null as distinct union primary key"},
		{names: []string{"diff", "patch"}, diff: true},
	}
}

// A highlighter colours the lines of one piece of code, in order.
type highlighter struct {
	styles styles
	lang   *language
	words  map[string]bool
	until  string // ends what began on a line before
	inWord bool   // what comes next follows a word or sign at once
	style  lipgloss.Style
}

func (s styles) highlighter(name string) *highlighter {
	h := &highlighter{styles: s}
	name = strings.ToLower(strings.TrimSpace(name))
	if s.bare || name == "" {
		return h
	}
	for _, l := range languages() {
		if slices.Contains(l.names, name) {
			h.lang, h.words = &l, map[string]bool{}
			for _, w := range strings.Fields(l.words) {
				h.words[w] = true
			}
			break
		}
	}
	return h
}

// line colours one line.
func (h *highlighter) line(line string) string {
	switch {
	case h.lang == nil:
		return line
	case h.lang.diff:
		return h.styles.change(line)
	}
	var b strings.Builder
	h.inWord = false
	for line != "" {
		n, style := 0, h.style
		if h.until != "" {
			n = h.close(line, 0)
		} else {
			n, style = h.token(line)
		}
		b.WriteString(style.Render(line[:n]))
		h.inWord = line[n-1] != ' '
		line = line[n:]
	}
	return b.String()
}

// close is where what is open ends in line.
func (h *highlighter) close(line string, from int) int {
	if i := strings.Index(line[from:], h.until); i >= 0 {
		n := from + i + len(h.until)
		h.until = ""
		return n
	}
	return len(line)
}

// token is the length and look of what line begins with.
func (h *highlighter) token(line string) (int, lipgloss.Style) {
	s, l := h.styles, h.lang
	for _, mark := range l.line {
		if strings.HasPrefix(line, mark) && !(mark == "#" && h.inWord) {
			return len(line), s.comment
		}
	}
	if l.from != "" && strings.HasPrefix(line, l.from) {
		h.until, h.style = l.to, s.comment
		return h.close(line, len(l.from)), s.comment
	}
	for _, mark := range l.long {
		if strings.HasPrefix(line, mark) {
			h.until, h.style = mark, s.text
			return h.close(line, len(mark)), s.text
		}
	}
	r, size := utf8.DecodeRuneInString(line)
	switch {
	case strings.ContainsRune(l.quotes, r):
		n := 1
		for n < len(line) && line[n] != line[0] {
			if line[n] == '\\' {
				n++
			}
			n++
		}
		n = min(n+1, len(line))
		if l.keys && strings.HasPrefix(strings.TrimLeft(line[n:], " "), ":") {
			return n, s.name
		}
		return n, s.text
	case unicode.IsDigit(r):
		n := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsDigit(r) && !unicode.IsLetter(r) && r != '.' && r != '_' })
		if n < 0 {
			n = len(line)
		}
		return n, s.number
	case unicode.IsLetter(r) || r == '_':
		n := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' })
		if n < 0 {
			n = len(line)
		}
		after := strings.TrimLeft(line[n:], " ")
		switch {
		case l.keys && (strings.HasPrefix(after, ":") || strings.HasPrefix(after, "=") && !strings.HasPrefix(after, "==")):
			return n, s.name
		case h.words[line[:n]]:
			return n, s.word
		}
		return n, s.plain
	}
	// What begins no comment, text or word is taken in one piece.
	n := size
	for n < len(line) {
		r, size := utf8.DecodeRuneInString(line[n:])
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || strings.ContainsRune(l.quotes+"#/-;`", r) {
			break
		}
		n += size
	}
	return n, s.plain
}

// change colours a line of a patch.
func (s styles) change(line string) string {
	switch {
	case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		return s.strong.Render(line)
	case strings.HasPrefix(line, "@@"):
		return s.hunk.Render(line)
	case strings.HasPrefix(line, "+"):
		return s.added.Render(line)
	case strings.HasPrefix(line, "-"):
		return s.removed.Render(line)
	}
	return line
}

package approval

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

func (c *command) redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc == nil {
			return
		}
		c.part = "a here-document"
		w := c.document(r)
		c.in = input{unknown: true}
		if w.static && !w.glob {
			c.in = input{text: &w.text}
		}
		return
	case syntax.WordHdoc:
		c.part = "a here-string"
		w := c.one(r.Word)
		c.in = input{unknown: true}
		if w.static && !w.glob {
			c.in = input{text: &w.text}
		}
		return
	}
	c.part = r.Op.String() + " " + c.show(r.Word)
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		c.variableOf(literal(strings.Trim(r.N.Value, "{}"))) // it holds the number from now on
	}
	for _, w := range c.resolve(r.Word) {
		switch r.Op {
		case syntax.RdrIn:
			c.in = input{unknown: true}
			c.read(w)
		case syntax.DplIn:
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
			if w.glob {
				c.find(T3, "writes to files whose names are not in the line", machine)
			}
			c.written(w)
		case syntax.DplOut:
			if w.static && (w.text == "-" || strings.Trim(strings.TrimSuffix(w.text, "-"), "0123456789") == "") {
				continue
			}
			c.written(w)
		case syntax.RdrInOut:
			c.read(w)
			c.written(w)
		default:
			c.written(w)
		}
	}
}

// document is the text of a here-document, in which quotes are nothing special.
func (c *command) document(r *syntax.Redirect) word {
	c.nested(r.Hdoc)
	quoted := false
	syntax.Walk(r.Word, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			quoted = true
		case *syntax.Lit:
			quoted = quoted || strings.Contains(x.Value, `\`)
		}
		return true
	})
	w := word{static: true}
	for _, p := range r.Hdoc.Parts {
		switch x := p.(type) {
		case *syntax.Lit:
			text := x.Value
			if !quoted {
				text = strings.NewReplacer(`\\`, `\`, `\$`, `$`, "\\`", "`", "\\\n", "").Replace(text)
			}
			w.text += text
		case *syntax.ParamExp:
			value, ok := c.value(x)
			w.text, w.static = w.text+value, w.static && ok && !c.patterns[x.Param.Value]
		default:
			w.static = false
		}
	}
	return c.subscript(w)
}

// passes lists the options with which a program that is fed names of files passes them
// on whole, and no others.
var passes = map[string][]string{
	"grep": {"-v", "-i", "-E", "-F", "-w", "-e"}, "sort": {"-u", "-r", "-f", "-V", "-z"}, "uniq": {}, "head": {"-n", "-#"}, "tail": {"-n", "-#"},
}

// prints lists the options with which a program prints names of files as they are.
var prints = map[string][]string{
	"ls":   {"-a", "-A", "-1", "-d", "-t", "-r", "-S"},
	"fd":   {"-H", "-I", "-u", "-a", "-i", "-s", "-g", "-p", "-F", "-0", "-d", "-t", "-e", "-E", "-S", "--hidden", "--no-ignore", "--glob", "--max-depth", "--type", "--extension", "--exclude", "--print0"},
	"git":  {"-c", "-d", "-m", "-o", "-z", "--cached", "--deleted", "--modified", "--others", "--exclude-standard", "--name-only"},
	"grep": {"-l", "-L", "-r", "-R", "-n", "-i", "-E", "-F", "-P", "-w", "-v", "-I", "-s", "-e", "-Z", "--null", "--include", "--exclude", "--exclude-dir", "--files-with-matches", "--files-without-match", "--recursive", "--ignore-case"},
	"rg":   {"-l", "-i", "-S", "-F", "-P", "-w", "-v", "-e", "-g", "-t", "-T", "-u", "-0", "--glob", "--type", "--type-not", "--hidden", "--files", "--files-with-matches", "--null", "--no-ignore", "--no-config"},
}

// names reports whether a command prints nothing but names of files of the workspace.
func (c *command) names(s *syntax.Stmt) bool {
	if len(s.Redirs) > 0 {
		return false
	}
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.Pipe {
		words := c.quietly(b.Y)
		if len(words) == 0 || !words[0].static || len(b.Y.Redirs) > 0 || !c.names(b.X) {
			return false
		}
		name := words[0].text
		only, known := passes[name]
		o := forms()[name].split(words[1:])
		for option := range o.given {
			if len(option) == 2 && option[1] >= '0' && option[1] <= '9' {
				o.given["-#"] = nil
				delete(o.given, option)
			}
		}
		switch {
		case !known || !o.only(only...) || slices.ContainsFunc(words, word.open):
			return false
		case name != "grep":
			return len(o.operands) == 0
		}
		patterns := append(o.operands, o.values("-e")...)
		return len(patterns) == 1 && !picks(patterns[0].text)
	}
	words := c.quietly(s)
	if len(words) == 0 || !c.here() {
		return false
	}
	if slices.ContainsFunc(words, func(w word) bool {
		return !w.static || c.outside(w) || Secret(c.Home, "/"+w.text) || strings.ContainsAny(w.text, "*?[") && mayBeSecret(w.text)
	}) {
		return false
	}
	name, args := words[0].text, words[1:]
	if name == "fdfind" {
		name = "fd"
	}
	o := forms()[name].split(args)
	if name == "git" && len(args) > 0 {
		o = gitSplit(args[0].text, args[1:])
	}
	if only, known := prints[name]; known && !o.only(only...) {
		return false
	}
	switch name {
	case "find":
		return !flagged(args, "-printf", "-ls", "-exec", "-execdir", "-L")
	case "fd", "ls":
		return true
	case "git": // names that are there, or in the index; not those of a revision
		return len(args) > 0 && (args[0].text == "ls-files" && !o.has("--name-only") || args[0].text == "diff" && len(o.operands) == 0 && o.has("--name-only") && len(o.given) == 1)
	case "grep", "rg":
		return o.has("-l", "-L", "--files", "--files-with-matches", "--files-without-match")
	}
	return false
}

// quietly are the words of a simple command, which is judged elsewhere.
func (c *command) quietly(s *syntax.Stmt) (words []word) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok {
		return nil
	}
	quiet := c.child()
	quiet.found = new([]Finding)
	for _, a := range call.Args {
		words = append(words, quiet.resolve(a)...)
	}
	return words
}

// rooted is what the names that a command prints begin with, if it is known.
func (c *command) rooted(s *syntax.Stmt) string {
	for {
		b, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok {
			break
		}
		s = b.X
	}
	if words := c.quietly(s); len(words) > 0 && words[0].text == "find" {
		return root(words[1:])
	}
	return ""
}

// root is what the names that find prints begin with: the places where it looks, none
// of which can begin with a dash.
func root(args []word) string {
	roots := leads(args)
	switch {
	case slices.ContainsFunc(roots, word.open):
		return ""
	case len(roots) == 1:
		return roots[0].text
	}
	return "./"
}

// words judges the commands in words whose text does not matter.
func (c *command) words(ws ...*syntax.Word) {
	for _, w := range ws {
		if w != nil {
			c.nested(w)
		}
	}
}

// resolve returns what a word becomes: several with braces.
func (c *command) resolve(w *syntax.Word) []word {
	if c.posix {
		return []word{c.one(w)}
	}
	c.nested(w)
	var all []word
	copied := *w
	copied.Parts = slices.Clone(w.Parts)
	if syntax.SplitBraces(&copied) && c.joins(w) {
		c.find(T3, "puts a variable together with braces")
		return []word{{many: true}}
	}
	for b, err := range expand.BracesSeq(nil, &copied) {
		if err != nil || len(all) == 200 {
			return []word{{}}
		}
		all = append(all, c.subscript(c.text(b.Parts)))
	}
	return all
}

// joins reports whether more than text stands in a word with braces, which shells
// expand before it, or not at all. A variable that is known is text, in quotes.
func (c *command) joins(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch x := p.(type) {
		case *syntax.SglQuoted:
		case *syntax.Lit:
			if strings.Contains(x.Value, "$") {
				return true
			}
		case *syntax.DblQuoted:
			if v := c.text([]syntax.WordPart{x}); !v.static || v.glob {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// one is resolve without braces.
func (c *command) one(w *syntax.Word) word {
	c.nested(w)
	return c.subscript(c.text(w.Parts))
}

// inSubscript matches how a command in a text begins.
var inSubscript = regexp.MustCompile("\\$\\(|`|\\$\\{[ \t\n|(]")

// subscript finds text that some shells run when they take it for the subscript of
// an array, however it is quoted.
func (c *command) subscript(w word) word {
	if i := strings.IndexByte(w.text, '['); i >= 0 && inSubscript.MatchString(w.text[i:]) {
		c.find(TX, "hides a command in a subscript")
	}
	return w
}

// homes finds where a shell may take "~" for a home within a word.
var homes = regexp.MustCompile(`[=:]~`)

// text joins the parts of a word.
func (c *command) text(parts []syntax.WordPart) word {
	w := word{static: true}
	keep := func(known string, static bool) {
		if static && !w.static {
			w.head = known
		}
	}
	for i, p := range parts {
		known, static := w.text, w.static
		switch x := p.(type) {
		case *syntax.Lit:
			text, glob, ok := plainText(x.Value)
			if homes.MatchString(x.Value) || i > 0 && strings.HasPrefix(x.Value, "~") && (known == "" || strings.IndexByte("=:", known[len(known)-1]) >= 0) {
				ok = false // some shells put a home there
			}
			if rest, tilde := strings.CutPrefix(text, "~"); i == 0 && tilde && strings.HasPrefix(x.Value, "~") {
				if rest != "" && rest[0] != '/' || c.Home == "" || c.loose("HOME") {
					ok = false
				}
				text = c.Home + rest
			}
			w.text, w.glob, w.static = w.text+text, w.glob || glob, w.static && ok
			w.spread = w.spread || glob
		case *syntax.SglQuoted:
			text, ok := x.Value, true
			if x.Dollar {
				var err error
				text, _, err = expand.Format(nil, x.Value, nil)
				ok = err == nil && !strings.Contains(x.Value, "%") && !strings.Contains(text, "\x00") && !strings.Contains(x.Value, `\c`)
			}
			w.text, w.static = w.text+text, w.static && ok
		case *syntax.DblQuoted:
			for _, q := range x.Parts {
				known, static := w.text, w.static
				switch y := q.(type) {
				case *syntax.Lit:
					w.text += inQuotes(y.Value)
				case *syntax.ParamExp:
					value, ok := c.value(y)
					w.text, w.static = w.text+value, w.static && ok
					w.glob = w.glob || ok && c.patterns[y.Param.Value]
					w.many = w.many || !ok && list(y)
				default:
					w.static = false
				}
				keep(known, static)
			}
		case *syntax.ParamExp:
			value, ok := c.value(x)
			if ok && x.Param != nil && c.patterns[x.Param.Value] && c.Spaced != nil && c.Spaced() {
				c.find(T3, "may take a part of the name of a file for an option or another file; quotes around the variable do not")
			}
			if ok && strings.ContainsAny(value, " \t\n\\") || value == "" {
				ok = false // it is split, or vanishes
			}
			w.glob = w.glob || strings.ContainsAny(value, "*?[")
			w.spread = w.spread || strings.ContainsAny(value, "*?[")
			w.text, w.static = w.text+value, w.static && ok
			w.many = w.many || !ok
		case *syntax.CmdSubst:
			w.static, w.many = false, true
		case *syntax.ProcSubst:
			w.input, w.static = len(parts) == 1, false
		default:
			w.static, w.many = false, true
		}
		keep(known, static)
	}
	return w
}

// list reports whether an expansion is several words even in quotes.
func list(x *syntax.ParamExp) bool {
	if x.Param == nil || x.Param.Value == "@" || x.Names != 0 || x.Excl {
		return true
	}
	i, is := x.Index.(*syntax.Word)
	return x.Index != nil && (!is || i.Lit() == "@")
}

// plainText takes the quoting off text that stands outside of quotes.
func plainText(s string) (text string, glob, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				b.WriteByte(s[i])
			}
			continue
		case '*', '?', '[':
			glob = true
		}
		b.WriteByte(s[i])
	}
	return b.String(), glob, true
}

// inQuotes takes the quoting off text that stands in double quotes.
func inQuotes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// strange names the first character that hides or reorders text.
func strange(line string) (string, bool) {
	for _, r := range line {
		switch {
		case r == '\n', r == '\t':
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar, r == '\u2028', r == '\u2029', r == '\u3164', r == '\u00a0':
			return strings.ToUpper(strings.Trim(strings.Trim(quoteRune(r), "'"), `\`)), true
		}
	}
	return "", false
}

func quoteRune(r rune) string {
	const hex = "0123456789abcdef"
	s := []byte("u")
	for shift := 20; shift >= 0; shift -= 4 {
		if d := r >> shift & 15; d != 0 || len(s) > 1 || shift <= 12 {
			s = append(s, hex[d])
		}
	}
	return string(s)
}

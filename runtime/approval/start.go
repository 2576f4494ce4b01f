package approval

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// variableOf judges that the variable named by w is changed.
func (c *command) variableOf(w word) {
	if !w.static || w.glob && !strings.Contains(w.text, "[") {
		c.find(TX, "sets a variable whose name is not known")
		return
	}
	if setsInside(w.text) {
		c.find(TX, "sets a variable in a subscript")
	}
	name, _, _ := strings.Cut(strings.TrimLeft(w.text, "-"), "[")
	c.variable(name)
	c.numbered(name, nil)
	c.take(name)
}

// setsInside reports whether the subscript in a name of a variable may set another.
func setsInside(name string) bool {
	_, subscript, _ := strings.Cut(name, "[")
	return strings.Contains(subscript, "=") || strings.Contains(subscript, "++") || strings.Contains(subscript, "--")
}

// line judges the text of a command inside another.
func (c *command) line(text string) {
	part := c.part
	defer func() { c.part = part }()
	if c.depth++; c.depth > mostNested {
		c.find(TX, "is nested too deeply to be read")
	} else {
		for _, lang := range []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX} {
			f := posix(text)
			if lang == syntax.LangBash {
				if f = parse(text, lang); f == nil {
					c.find(TX, "cannot be read as a command", unparsed)
					continue
				}
			}
			inner := c.child()
			inner.posix = lang == syntax.LangPOSIX
			inner.effects = c.effects
			inner.in = input{}
			inner.vars, inner.from = map[string]string{}, text // what it is given may be another shell's
			inner.plainly(f)
			inner.statements(f)
			inner.list(f.Stmts)
		}
	}
	c.depth--
}

// text2 judges a word that a shell will read.
func (c *command) text2(w word) {
	if !w.static || w.glob {
		c.find(TX, "runs text that is not known")
		return
	}
	c.line(w.text)
}

// spoken judges words that are joined and read by a shell.
func (c *command) spoken(words []word) {
	if slices.ContainsFunc(words, func(w word) bool { return w.glob }) {
		c.find(TX, "runs the names of files as text")
	}
	all := texts(words)
	if all == nil {
		if len(words) > 1 && words[0].static {
			c.run(words)
		}
		c.find(TX, "runs text that is not known")
		return
	}
	if len(all) > 0 {
		c.line(strings.Join(all, " "))
	}
}

// after skips the options of a wrapper; valued ones take the next word. A word that
// is not known may be an option and is not skipped.
func after(args []word, valued []string) []word {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.static, a.text == "-", !strings.HasPrefix(a.text, "-"):
			return args[i:]
		case a.text == "--":
			return args[i+1:]
		case slices.Contains(valued, a.text):
			i++
		case len(a.text) > 2 && a.text[1] != '-':
			// Letters may be joined; the first with a value takes the rest, or the next word.
			for k := 1; k < len(a.text); k++ {
				if slices.Contains(valued, "?-"+a.text[k:k+1]) {
					break // only what is joined to it is its value
				}
				if slices.Contains(valued, "-"+a.text[k:k+1]) {
					if k == len(a.text)-1 {
						i++
					}
					break
				}
			}
		case strings.HasPrefix(a.text, "--") && slices.ContainsFunc(valued, func(v string) bool { return strings.HasPrefix(v, a.text) }):
			return append([]word{{}}, args[i:]...) // short for one of them: where the program begins is not sure
		}
	}
	return nil
}

// assignments judges and skips the NAME=value words before a program.
func assignments(c *command, args []word) []word {
	for i, a := range args {
		name, _, sets := strings.Cut(a.text, "=")
		if !sets || !a.static && strings.ContainsAny(name, "/ ") {
			return args[i:]
		}
		c.variable(name)
	}
	return nil
}

// environment judges env, and reports whether it only shows the environment.
func (c *command) environment(args []word) bool {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.static && !strings.Contains(a.text, "="):
			c.find(TX, "does not say which program it runs")
			return false
		case a.text == "-", a.text == "-i", a.text == "--ignore-environment", a.text == "-0", a.text == "--null", a.text == "-v", a.text == "--debug":
		case a.text == "-u", a.text == "--unset":
			i++
		case a.text == "-C", a.text == "--chdir":
			if i++; i < len(args) {
				c = c.child()
				c.enter(args[i])
			}
		case strings.HasPrefix(a.text, "-u") && !strings.HasPrefix(a.text, "--"), strings.HasPrefix(a.text, "--unset="), strings.HasPrefix(a.text, "--ignore-signal"), strings.HasPrefix(a.text, "--default-signal"):
		case a.text == "--":
		case strings.HasPrefix(a.text, "-"):
			c.find(TX, "runs a program in a way that cannot be read")
			return false
		case strings.Contains(a.text, "="):
			name, value, _ := strings.Cut(a.text, "=")
			c.variable(name)
			c.exported(name, word{text: value, static: a.static})
		default:
			c.run(args[i:])
			return false
		}
	}
	return true
}

// shell judges a shell that is started.
func (c *command) shell(args []word) {
	c = c.child()
	c.funcs = map[string]bool{} // it knows none of them
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.input:
			c.find(TX, "runs text that is not known")
			return
		case !a.static:
			c.find(TX, "runs text that is not known")
			return
		case a.text == "--":
			continue
		case a.text == "--version", a.text == "--help":
			c.find(T0, "looks")
			return
		case a.text == "--rcfile", a.text == "--init-file":
			c.find(T3, "runs code that was not read")
			i++
		case a.text == "-o", a.text == "+o", a.text == "-O", a.text == "+O":
			if i++; i < len(args) {
				c.mode(false, args[i])
			}
		case strings.HasPrefix(a.text, "--"):
		case len(a.text) > 1 && (a.text[0] == '-' || a.text[0] == '+'):
			for k, w := range args[i:] {
				// Further ones may stand before the text.
				if !w.static || w.text == "" || w.text[0] != '-' && w.text[0] != '+' && (k == 0 || !strings.HasSuffix(args[i+k-1].text, "o") && !strings.HasSuffix(args[i+k-1].text, "O")) {
					break
				}
				c.mode(w.text != "" && w.text[0] == '-', w)
			}
			if strings.Contains(a.text, "c") {
				// Further options may stand before the text.
				valued := func(s string) bool { return strings.HasSuffix(s, "o") || strings.HasSuffix(s, "O") }
				skip := valued(a.text)
				for i++; i < len(args) && args[i].static && (skip || strings.HasPrefix(args[i].text, "-") || strings.HasPrefix(args[i].text, "+")); i++ {
					skip = !skip && valued(args[i].text)
				}
				if i < len(args) {
					c.text2(args[i])
				}
				return
			}
			if strings.Contains(a.text, "s") {
				c.fed()
				return
			}
			if strings.HasSuffix(a.text, "o") || strings.HasSuffix(a.text, "O") {
				i++
			}
		case a.text == "-", a.text == "/dev/stdin":
			c.fed()
			return
		default:
			c.read(a)
			c.find(T3, "runs code that was not read")
			return
		}
	}
	c.fed()
}

// fed judges a shell that reads its commands from standard input.
func (c *command) fed() {
	switch {
	case c.in.text != nil:
		c.line(*c.in.text)
	case c.in.unknown:
		c.find(TX, "runs text that is not known")
	default:
		c.find(T3, "starts a shell")
	}
}

func (c *command) source(args []word) {
	switch {
	case len(args) == 0:
		c.find(T0, "looks")
	case !args[0].static, args[0].text == "/dev/stdin":
		c.find(TX, "runs text that is not known")
	default:
		c.find(T3, "runs code that was not read")
		// It may have changed everything.
		c.vars, c.dirs = map[string]string{}, nil
	}
}

func (c *command) trap(args []word) {
	o := split(args)
	if len(o.operands) < 2 || args[0].static && (args[0].text == "-l" || args[0].text == "-p") {
		c.find(T0, "looks")
		return
	}
	w := o.operands[0]
	switch {
	case w.static && (w.text == "" || w.text == "-"):
		c.find(T0, "looks")
	default:
		inner := c.child()
		inner.dirs = nil
		inner.text2(w)
		atEnd := !slices.ContainsFunc(o.operands[1:], func(w word) bool {
			return !w.static || !slices.Contains([]string{"EXIT", "0", "INT", "TERM", "HUP", "QUIT", "PIPE"}, strings.TrimPrefix(strings.ToUpper(w.text), "SIG"))
		})
		if f := parse(w.text, syntax.LangBash); f != nil && w.static && !atEnd {
			if moves, sets := leaves(f); moves || sets {
				c.find(T3, "changes what later commands see, at any time")
			}
		}
	}
}

func (c *command) xargs(args []word) {
	valued := []string{"?-i", "?-l", "?-e", "-n", "-I", "-P", "-L", "-d", "-s", "-a", "-E", "--max-args", "--max-procs", "--delimiter", "--arg-file", "--max-chars", "--process-slot-var"}
	rest := after(args, valued)
	o := split(args[:len(args)-len(rest)], valued...)
	for _, w := range o.values("-a", "--arg-file") {
		c.read(w)
	}
	for _, w := range o.values("--process-slot-var") {
		c.variableOf(w) // the program is looked for with it set
	}
	if len(rest) == 0 {
		c.find(T0, "looks")
		return
	}
	if rest[0].static && slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "ash"}, path.Base(rest[0].text)) {
		all := texts(rest)
		if all == nil || o.has("-I", "-i", "--replace", "-J") || slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "{}") }) || len(rest) < 3 {
			c.find(TX, "runs text that is not known")
			return
		}
	}
	var places []word // what stands for the input in the words of the program
	for _, w := range o.values("-I", "-i", "--replace", "-J") {
		if w.text == "" && w.static {
			w.text = "{}"
		}
		places = append(places, w)
	}
	inside := make([]bool, len(rest)) // a name in the word leads nowhere but below where the shell is
	for i, w := range rest {
		stands := slices.ContainsFunc(places, func(p word) bool { return !p.static || strings.Contains(w.text, p.text) })
		if stands || i > 0 && (strings.Contains(w.text, "{}") || w.text == "%" || w.text == "_") {
			rest[i].static = false
			inside[i] = w.static && !strings.HasPrefix(w.text, "/") && !strings.HasPrefix(w.text, "-") && !strings.Contains(w.text, "..")
		}
	}
	names := c.in.names && !o.has("-a", "--arg-file")
	if c.Spaced != nil && c.in.names && !o.has("-0", "--null") && c.Spaced() {
		c.find(T3, "may take a part of the name of a file for an option or another file; -print0 with xargs -0 does not")
	}
	for i := range rest {
		if rest[i].found = names && inside[i]; !rest[i].found {
			continue
		}
		rest[i].head = c.in.begins
		for _, p := range append(places, literal("{}")) {
			if before, _, is := strings.Cut(rest[i].text, p.text); is && before != "" {
				rest[i].head = before
			}
		}
	}
	c = c.child()
	c.spares = c.in.spares
	c.perFile(append(slices.Clone(rest), word{many: true, found: names, head: c.in.begins}), !names)
}

func (c *command) findFiles(args []word) {
	var roots []word
	tests, reads := false, false
	defer func() {
		for _, r := range roots {
			at, known := c.places(r)
			outside := !known || slices.ContainsFunc(at, func(p string) bool { return !below(c.Workspace, p) && !public(p) })
			if reads && outside {
				c.find(T1s, "reads files outside the workspace")
			}
		}
		if reads && slices.ContainsFunc(args, func(w word) bool {
			return w.static && (Secret("", "/"+w.text) || strings.ContainsAny(w.text, "*?[") && mayBeSecret(w.text))
		}) {
			c.secrets = true
			c.find(T1s, "reads credentials")
		}
		for i, w := range args {
			if reads && i > 0 && w.static && strings.HasSuffix(args[i-1].text, "regex") && picks(strings.TrimPrefix(w.text, ".*/")) {
				c.secrets = true
				c.find(T1s, "reads credentials")
			}
		}
	}()
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !a.static {
			if len(roots) == i {
				roots = append(roots, a)
				c.find(T3, "may do more than look")
				continue
			}
			if a.many {
				c.find(T3, "may do more than look")
			}
			continue // the value of a test; an option would stand first
		}
		switch a.text {
		case "-exec", "-execdir", "-ok", "-okdir":
			reads = true
			var words []word
			for i++; i < len(args) && !(args[i].static && (args[i].text == ";" || args[i].text == "+" && args[i-1].text == "{}")); i++ {
				w := args[i]
				if strings.Contains(w.text, "{}") {
					w.static, w.found = false, w.static && strings.HasPrefix(w.text, "{}") && !strings.Contains(w.text, "..")
					if w.found && !strings.HasSuffix(a.text, "dir") {
						w.head = root(args)
					}
				}
				words = append(words, w)
			}
			for k := range words {
				words[k].many = words[k].many || words[k].text == "{}" && i < len(args) && args[i].text == "+"
			}
			if len(words) > 1 && words[0].static && slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "ash"}, path.Base(words[0].text)) && !slices.ContainsFunc(words[1:], func(w word) bool { return w.static && w.text == "-c" }) {
				c.find(T3, "runs code that was not read")
				continue
			}
			in := c
			if strings.HasSuffix(a.text, "dir") {
				// It runs in directories that nobody looked into.
				in = c.child()
				unknown := func(string) bool { return true }
				in.GitRuns, in.Composes, in.Foreign, in.GoReaches, in.GoNewer, in.Imports = unknown, unknown, unknown, unknown, unknown, unknown
				in.Tracked = func(string, []string, bool) ([]string, bool) { return nil, false }
				in.Remotes = func(string) ([]string, bool) { return nil, false }
			}
			in = in.child()
			in.searched = sought(args)
			in.spares = c.under(roots, in.searched)
			in.perFile(words, !c.here() && len(roots) == 0)
		case "-delete":
			for _, r := range roots {
				at, known := c.places(r)
				inside := known && !slices.ContainsFunc(at, func(p string) bool { return !below(c.Workspace, p) })
				if !tests || !inside {
					c.destroyed(r, true)
				}
			}
			if len(roots) == 0 && !tests {
				c.destroyed(literal("."), true)
			}
			c.find(T2d, "deletes what it finds")
		case "-fprint", "-fprint0", "-fprintf", "-fls":
			if i++; i < len(args) {
				c.written(args[i])
			}
		case "-files0-from":
			c.find(T3, "may do more than look")
		default:
			if !strings.HasPrefix(a.text, "-") && a.text != "(" && a.text != "!" && len(roots) == i {
				roots = append(roots, a)
			} else if strings.HasPrefix(a.text, "-") && !slices.Contains([]string{"-H", "-L", "-P", "-depth", "-d", "-mindepth", "-maxdepth", "-xdev", "-mount", "-print", "-o", "-a", "-not", "-type"}, a.text) {
				tests = true
			}
		}
	}
	c.find(T0, "looks")
}

// perFile judges a program that is run for files that are not known: looking at
// them is looking, unless they may be anywhere.
func (c *command) perFile(words []word, anywhere bool) {
	if len(words) == 0 || !words[0].static {
		c.find(TX, "does not say which program it runs")
		return
	}
	inner := c.child()
	var found []Finding
	inner.found = &found
	inner.run(words)
	if len(found) > 0 && words[0].text != "echo" && words[0].text != "printf" {
		c.followed()
	}
	if c.Dashed != nil && c.Dashed() && !slices.ContainsFunc(words, func(w word) bool { return w.static && w.text == "--" }) {
		c.find(T3, "may take the name of a file for an option")
	}
	for _, f := range found {
		if f.Tier == T1s && !anywhere && f.Reason == "reads a file whose name is not known" {
			f.Tier, f.Reason = T0, "looks"
			c.held(literal("."), true)
		}
		*c.found = append(*c.found, f)
	}
}

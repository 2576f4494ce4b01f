package approval

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A reach says which of the files below what a program is given it leaves out.
type reach struct {
	roots  []word // whole trees; other operands are files, or patterns for them
	spares func(name string) bool
}

// reaches says what of trees a program reads by the names in them.
func (c *command) reaches(name string, args []word) reach {
	o := forms()[name].split(args)
	r := reach{}
	spare := func(list ...word) {
		before := r.spares
		r.spares = func(name string) bool {
			return before != nil && before(name) || slices.ContainsFunc(list, func(w word) bool { return w.static && named(w.text, name) })
		}
	}
	operands := o.operands
	switch name {
	case "grep", "egrep", "fgrep":
		if !o.has("-e", "-f", "--regexp", "--file") && len(operands) > 0 {
			operands = operands[1:]
		}
		recurse := func(w word) bool { return w.text == "recurse" || !w.static }
		if o.has("-r", "-R", "--recursive", "--dereference-recursive") || slices.ContainsFunc(o.values("-d", "--directories"), recurse) {
			if r.roots = operands; len(operands) == 0 {
				r.roots = []word{literal(".")}
			}
		}
		spare(append(o.values("--exclude"), o.values("--exclude-dir")...)...)
		if only := o.values("--include"); len(only) > 0 {
			without := r.spares
			r.spares = func(name string) bool {
				return without(name) || !slices.ContainsFunc(only, func(w word) bool { return !w.static || may(w.text, name) })
			}
		}
	case "rg":
		if !o.has("-e", "-f", "--regexp", "--file", "--files") && len(operands) > 0 {
			operands = operands[1:]
		}
		if o.has("--files", "--type-list") || len(operands) == 0 && (c.in.unknown || c.in.text != nil) {
			return r
		}
		if r.roots = operands; len(operands) == 0 {
			r.roots = []word{literal(".")}
		}
		r.spares = c.ripped(o)
	case "tar", "bsdtar":
		if r.roots = operands; len(args) > 0 && strings.Contains(strings.SplitN(args[0].text, "=", 2)[0], "t") && !o.has("-c", "--create") {
			return reach{}
		}
		spare(o.values("--exclude")...)
	case "zip":
		if o.has("-r") && len(operands) > 1 {
			r.roots = operands[1:]
		}
		excluded := o.values("-x")
		r.spares = func(name string) bool {
			return slices.ContainsFunc(excluded, func(w word) bool {
				return w.static && (star(w.text, name) || strings.HasPrefix(w.text, "*/") && path.Base(name) == w.text[2:] && strings.Contains(name, "/"))
			})
		}
	case "cp":
		if o.has("-r", "-R", "-a", "--recursive", "--archive") {
			r.roots = operands
		}
	case "rsync":
		r.roots = operands[:max(len(operands)-1, 0)]
		if !o.has("--include") {
			spare(o.values("--exclude")...)
		}
	case "diff", "colordiff":
		if o.has("-q", "--brief") {
			return r
		}
		r.roots = operands // of directories it compares the files of the same names in any case
		spare(append(o.values("-x"), o.values("--exclude")...)...)
	}
	return r
}

// ripped says which files rg leaves out: hidden ones, what a pattern or a kind of
// files leaves out.
func (c *command) ripped(o options) func(name string) bool {
	hidden := !o.has("--hidden", "-u", "--unrestricted", ".")
	var only, never []string
	for _, w := range append(o.values("-g", "--glob"), o.values("--iglob")...) {
		if !w.static {
			only = append(only, "*")
		} else if p, not := strings.CutPrefix(w.text, "!"); not {
			never = append(never, p)
		} else {
			only = append(only, w.text)
		}
	}
	typed := false
	for _, w := range o.values("-t", "--type") {
		known := slices.Contains(strings.Fields("go py python js ts tf yaml md markdown sh rust java docker make html css c cpp sql toml xml helm ruby php cs kotlin lua swift txt proto jinja puppet terraform"), w.text)
		typed = typed || known
		if !known {
			only = append(only, "*")
		}
	}
	return func(name string) bool {
		switch {
		case len(only) == 0 && typed, hidden && slices.ContainsFunc(strings.Split(name, "/"), func(p string) bool { return len(p) > 1 && p[0] == '.' && p != ".." }):
			return true
		case len(only) == 0 && slices.ContainsFunc(never, func(p string) bool { return named(p, name) }):
			return true
		}
		return len(only) > 0 && !slices.ContainsFunc(only, func(p string) bool { return may(p, name) })
	}
}

// named reports whether a pattern is for the file name for sure: for its own name, or
// for that of a directory that it is in.
func named(pattern, name string) bool {
	pattern = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "**/"), "/")
	if strings.ContainsAny(pattern, `/[\{`) {
		return false // programs differ in what it means
	}
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return star(strings.ReplaceAll(pattern, "?", "\x00"), part) })
}

// may reports whether a pattern can be for the file name.
func may(pattern, name string) bool {
	if strings.ContainsAny(pattern, `[\{?`) {
		return true
	}
	pattern = pattern[strings.LastIndexByte(pattern, '/')+1:]
	return pattern == "" || star(strings.ToLower(strings.ReplaceAll(pattern, "**", "*")), strings.ToLower(path.Base(name)))
}

// below finds the files of credentials among those that a program reads without that
// its words name them.
func (c *command) below(name string, args []word) {
	if c.Secrets == nil {
		return
	}
	r := c.reaches(name, args)
	c.spares = r.spares
	for _, w := range r.roots {
		c.held(w, true)
	}
}

// held judges a pattern for files, or a tree, by the files of credentials that are in
// it now.
func (c *command) held(w word, tree bool) {
	if c.Secrets == nil || !tree && !w.glob {
		return
	}
	at, known := c.places(w)
	if !known {
		at = []string{c.Workspace} // where it leads out of it, that is said elsewhere
	}
	var names []string
	for _, name := range c.Secrets() {
		rel := strings.TrimPrefix(strings.TrimPrefix(name, path.Clean(c.Workspace)), "/")
		if c.spares != nil && c.spares(rel) || slices.Contains(names, rel) {
			continue
		}
		if slices.ContainsFunc(at, func(p string) bool { return within(p, name, w.glob, tree) }) {
			names = append(names, rel)
		}
	}
	for dir := range c.filled {
		// What was moved, copied or linked there is not there to be looked at.
		if len(names) == 0 && len(c.Secrets()) > 0 && slices.ContainsFunc(at, func(p string) bool {
			return below(dir, p) || below(p, dir) && tree || w.glob && within(p, dir, true, true)
		}) {
			c.find(T1s, "may read files of credentials that were put there")
		}
	}
	if len(names) > 0 {
		more := ""
		if len(names) > 3 {
			names, more = names[:3], " and others"
		}
		c.find(T1s, "reads files of credentials, too: "+strings.Join(names, ", ")+more)
	}
}

// within reports whether a file is what a path or pattern stands for, or below it.
func within(at, name string, pattern, tree bool) bool {
	if !pattern {
		return below(at, name)
	}
	parts, names := strings.Split(brackets.ReplaceAllString(at, "?"), "/"), strings.Split(name, "/")
	if len(names) < len(parts) || len(names) > len(parts) && !tree {
		return false
	}
	names = names[:len(parts)]
	for i, p := range parts {
		if strings.HasPrefix(names[i], ".") && p != "" && strings.ContainsAny(p[:1], "*?") {
			return false
		}
		if ok, err := path.Match(p, names[i]); !ok && err == nil {
			return false
		}
	}
	return true
}

// foundBy says which files a command that prints names of files does not name.
func (c *command) foundBy(s *syntax.Stmt) func(name string) bool {
	if b, is := s.Cmd.(*syntax.BinaryCmd); is {
		return c.foundBy(b.X)
	}
	call, is := s.Cmd.(*syntax.CallExpr)
	if !is || len(call.Args) == 0 {
		return nil
	}
	quiet := c.child()
	quiet.found = new([]Finding)
	var words []word
	for _, a := range call.Args {
		words = append(words, quiet.resolve(a)...)
	}
	args := words[1:]
	switch words[0].text {
	case "find":
		return quiet.under(leads(args), sought(args))
	case "fd", "fdfind":
		o := forms()["fd"].split(args)
		var only []word
		for _, w := range o.values("-e", "--extension") {
			w.text = "*." + strings.TrimPrefix(w.text, ".")
			only = append(only, w)
		}
		hidden := o.has("-H", "-u", "--hidden", "--unrestricted")
		return func(name string) bool {
			return len(only) > 0 && spared(only, name) || !hidden && (name[0] == '.' || strings.Contains(name, "/."))
		}
	case "git":
		if o := split(args); len(o.operands) > 1 && o.operands[0].text == "ls-files" && len(o.given) == 0 {
			return func(name string) bool { return spared(o.operands[1:], name) }
		}
	case "grep", "rg":
		r := quiet.reaches(words[0].text, args)
		return quiet.under(r.roots, r.spares)
	}
	return nil
}

// leads are the words of find before its tests: where it looks.
func leads(args []word) []word {
	end := slices.IndexFunc(args, func(w word) bool {
		return w.static && (strings.HasPrefix(w.text, "-") && !slices.Contains([]string{"-H", "-L", "-P"}, w.text) || w.text == "(" || w.text == "!")
	})
	if end < 0 {
		end = len(args)
	}
	return slices.DeleteFunc(slices.Clone(args[:end]), func(w word) bool { return w.static && strings.HasPrefix(w.text, "-") })
}

// under adds the files that are in none of the trees to those that are left out.
func (c *command) under(roots []word, spares func(name string) bool) func(name string) bool {
	var all []string
	for _, w := range roots {
		at, known := c.places(w)
		if !known || w.glob {
			return spares
		}
		all = append(all, at...)
	}
	workspace := path.Clean(c.Workspace)
	return func(name string) bool {
		return spares != nil && spares(name) || len(all) > 0 && !slices.ContainsFunc(all, func(p string) bool { return below(p, workspace+"/"+name) })
	}
}

// spared reports whether none of the patterns can be for the file.
func spared(only []word, name string) bool {
	return !slices.ContainsFunc(only, func(w word) bool { return !w.static || may(w.text, name) })
}

// sought says which files find leaves out by their names.
func sought(args []word) func(name string) bool {
	var only, never []word
	byName := func(i int) bool {
		return i >= 0 && i < len(args) && (args[i].text == "-name" || args[i].text == "-iname")
	}
	for i, w := range args {
		switch {
		case w.text == "-o" || w.text == "-or" || w.text == ",":
			if !byName(i-2) || !byName(i+1) || w.text == "," {
				return nil
			}
		case byName(i) && i+1 < len(args) && i > 0 && (args[i-1].text == "!" || args[i-1].text == "-not"):
			never = append(never, args[i+1])
		case w.text == "!" || w.text == "-not":
			if i+1 < len(args) && args[i+1].text == "(" {
				return nil
			}
		case byName(i) && i+1 < len(args):
			only = append(only, args[i+1])
		}
	}
	return func(name string) bool {
		return len(only) > 0 && spared(only, name) || slices.ContainsFunc(never, func(w word) bool {
			return w.static && !strings.ContainsAny(w.text, `[\?`) && star(w.text, path.Base(name))
		})
	}
}

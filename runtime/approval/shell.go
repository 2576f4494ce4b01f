package approval

import (
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Classify reads a shell command line and returns what its parts do. It runs
// nothing and reads no file.
func Classify(line string, at Context) []Finding {
	found, _ := read(line, at)
	return found
}

// read is Classify, and returns the words of every simple command as well. A word
// that is not known is "".
func read(line string, at Context) (found []Finding, commands [][]string) {
	// A fault of the reader must not let a command pass.
	defer func() {
		if recover() != nil {
			found = append(found, Finding{Tier: TX, Part: line, Reason: "cannot be read as a command", unparsed: true})
		}
	}()
	if r, bad := strange(line); bad {
		found = append(found, Finding{Tier: TX, Part: line, Reason: "holds the invisible character " + r})
	}
	// The shell in the sandbox may be any POSIX one; where bash and POSIX read a
	// text differently, both readings count.
	bash := parse(line, syntax.LangBash)
	if bash == nil {
		return append(found, Finding{Tier: TX, Part: line, Reason: "cannot be read as a command", unparsed: true}), nil
	}
	strict := bash // as POSIX asks for
	if !alike(bash) {
		strict = posix(line)
	}
	var names *settled
	for {
		names = names.anew()
		all := found
		commands = nil
		judge(bash, line, at, false, names, &all, &commands)
		if strict != bash {
			judge(strict, line, at, true, names, &all, &commands)
		}
		if !names.again || names.hopeless() {
			return all, commands
		}
	}
}

func parse(text string, lang syntax.LangVariant) *syntax.File {
	f, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	return f
}

// posix reads a text as a POSIX shell does, up to where it would stop: what stands
// before that has run.
func posix(text string) *syntax.File {
	f := &syntax.File{}
	for stmt, err := range syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			break
		}
		f.Stmts = append(f.Stmts, stmt)
	}
	return f
}

func judge(f *syntax.File, line string, at Context, posix bool, names *settled, found *[]Finding, commands *[][]string) {
	c := &command{Context: at, printer: syntax.NewPrinter(syntax.SingleLine(true)), dirs: []string{path.Clean(at.Dir)}, vars: map[string]string{}, funcs: map[string]bool{}, mine: map[string]bool{}, patterns: map[string]bool{}, settled: names, from: line, filled: map[string]bool{}, traced: new(bool), wrote: new(bool), shifted: new(bool), steered: new(bool), indexed: new(bool), posix: posix, found: found, commands: commands, effects: &effects{}}
	if !path.IsAbs(at.Dir) {
		c.dirs = nil
	}
	c.plainly(f)
	c.statements(f)
	c.list(f.Stmts)
}

// A command judges one command line. It is the state of the shell as far as it
// can be known.
type command struct {
	Context
	dirs  []string          // where it may be; nil: not known
	vars  map[string]string // variables that are known
	funcs map[string]bool
	mine  map[string]bool // variables that the line has set for sure: what they held before is gone
	ran   map[string]bool // the same, at the end of the branch that was judged last, had it run

	posix  bool // the shell is no more than POSIX asks for: it knows no braces
	within bool // it is the body of a function
	aside  bool // the command is sent elsewhere or fed: it may not run at all

	patterns map[string]bool   // variables that hold the names that a pattern stands for
	direct   bool              // a simple command as it stands, not one that a program starts
	moves    bool              // a function may change the directory
	searched func(string) bool // the search that names the files leaves out one of that name
	spares   func(string) bool // the program leaves out a file of that name in the workspace
	compares bool              // values are compared, not shown
	wrote    *bool             // a file was written, with what is not known
	shifted  *bool             // a file was written, or git's index
	indexed  *bool             // git's index was written
	steered  *bool             // a file was written that may be more than text for people

	steeredBefore bool            // the same, before this part
	again         bool            // a part is judged again
	traced        *bool           // the shell shows the words of what it runs
	filled        map[string]bool // directories into which trees were put
	settled       *settled        // what is known of variables, in the whole line
	from          string          // the text that is judged

	found *[]Finding
	*effects

	printer  *syntax.Printer
	commands *[][]string // the words of every simple command; may be nil

	part  string   // what is judged now
	plain []string // the same as words, if nothing in it is hidden
	depth int      // of text in text
	loops int      // in loops
	in    input    // standard input
}

// effects are what the parts of one pipeline do together.
type effects struct{ secrets, sends bool }

// An input is what is known of standard input.
type input struct {
	text    *string // the whole of it
	unknown bool    // it comes from somewhere
	names   bool    // it is names of files of the workspace
	begins  string  // what each of them begins with, as far as it is known

	spares func(name string) bool // it is not among them
}

type mark func(*Finding)

func machine(f *Finding)  { f.machine = true }
func whole(f *Finding)    { f.whole = true }
func store(f *Finding)    { f.store = true }
func unread(f *Finding)   { f.typed = true }
func unparsed(f *Finding) { f.unparsed = true }
func vague(f *Finding)    { f.vague = true }

// find adds a finding about the part that is judged now.
func (c *command) find(t Tier, reason string, marks ...mark) {
	f := Finding{Tier: t, Part: c.part, Reason: reason, words: c.plain, away: c.Place.Host && !c.inWorkspace()}
	for _, m := range marks {
		m(&f)
	}
	*c.found = append(*c.found, f)
}

// child is the state of a subshell.
func (c *command) child() *command {
	s := *c
	s.dirs, s.vars, s.funcs, s.mine, s.patterns = slices.Clone(c.dirs), maps.Clone(c.vars), maps.Clone(c.funcs), maps.Clone(c.mine), maps.Clone(c.patterns)
	s.direct = false
	return &s
}

func (c *command) list(stmts []*syntax.Stmt) {
	for _, s := range stmts {
		c.stmt(s)
		if c.settled != nil {
			for _, name := range c.settled.ends[s] {
				delete(c.vars, name)
			}
		}
	}
}

// branch judges statements that may or may not run: what they change is not known
// afterwards.
func (c *command) branch(stmts []*syntax.Stmt) {
	dirs, funcs, mine := slices.Clone(c.dirs), maps.Clone(c.funcs), maps.Clone(c.mine)
	c.list(stmts)
	c.funcs = funcs // it may not have come to a declaration
	c.mine, c.ran = mine, c.mine
	c.dirs = either(dirs, c.dirs)
}

// either joins two sets of directories; nil is every one.
func either(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(a), b...))))
	if len(all) > 8 {
		return nil
	}
	return all
}

func (c *command) stmt(s *syntax.Stmt) {
	if s.Background {
		c = c.child()
	}
	before, earlier := c.in, c.steeredBefore
	if c.steered != nil && !c.again {
		c.steeredBefore = *c.steered // what it writes itself holds nothing yet
	}
	c.aside = slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool {
		return r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc && r.Op != syntax.WordHdoc
	})
	for _, r := range s.Redirs {
		c.redirect(r)
	}
	if c.aside {
		defer func(mine map[string]bool) { c.mine = mine }(maps.Clone(c.mine))
	}
	switch x := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		c.apart(func() { c.call(x) })
	case *syntax.BinaryCmd:
		c.binary(x)
	case *syntax.Block:
		c.list(x.Stmts)
	case *syntax.Subshell:
		c.child().list(x.Stmts)
	case *syntax.IfClause:
		always := map[string]bool(nil)
		for i := x; i != nil; i = i.Else {
			if i == x {
				c.list(i.Cond)
			} else {
				c.branch(i.Cond)
			}
			c.branch(i.Then)
			if i == x {
				always = maps.Clone(c.ran)
			}
			maps.DeleteFunc(always, func(name string, _ bool) bool { return !c.ran[name] })
			if i.Else == nil && len(i.Cond) == 0 {
				maps.Copy(c.mine, always)
			}
		}
	case *syntax.WhileClause:
		c.loop(func() { c.list(x.Cond); c.branch(x.Do) })
	case *syntax.ForClause:
		c.each(x)
	case *syntax.CaseClause:
		c.words(x.Word)
		for _, item := range x.Items {
			c.words(item.Patterns...)
			c.branch(item.Stmts)
		}
	case *syntax.FuncDecl:
		c.declare(x)
	case *syntax.DeclClause:
		c.part = x.Variant.Value
		exports, functions := x.Variant.Value == "export", false
		for _, a := range x.Args {
			if !a.Naked || a.Value == nil || a.Name != nil {
				continue
			}
			switch text := a.Value.Lit(); {
			case text == "":
				c.find(TX, "sets a variable whose name is not known")
			case strings.Contains("-+", text[:1]) && strings.Trim(text[1:], "aAgrxpfF-") != "" && !(exports && text == "-n"):
				c.find(TX, "a variable stands for another, or its text is worked out")
			case text[0] == '-':
				exports, functions = exports || strings.Contains(text, "x"), functions || strings.Contains(text, "f")
			}
		}
		for _, a := range x.Args {
			if !exports || a.Name == nil || functions {
				continue
			}
			value := word{}
			if a.Value != nil {
				value = c.one(a.Value)
			} else if a.Naked {
				value.text, value.static = c.vars[a.Name.Value]
			}
			c.exported(a.Name.Value, value)
		}
		if x.Variant.Value == "local" && !c.within {
			c.find(T3, "sets nothing outside of a function")
		}
		c.assign(x.Args, true)
		shows := !slices.ContainsFunc(x.Args, func(a *syntax.Assign) bool {
			return !a.Naked || a.Name != nil || a.Value == nil || !strings.HasPrefix(a.Value.Lit(), "-")
		}) // with no name it shows all
		for _, a := range x.Args {
			shows = shows || a.Naked && a.Value != nil && strings.HasPrefix(a.Value.Lit(), "-") && strings.Contains(a.Value.Lit(), "p")
		}
		if shows {
			c.secrets = true
			c.find(T1s, "shows the environment")
		}
	case *syntax.TimeClause:
		if x.Stmt != nil {
			c.stmt(x.Stmt)
		}
	case *syntax.CoprocClause:
		if x.Name != nil {
			c.part = "coproc " + c.show(x.Name)
			c.variableOf(c.one(x.Name)) // it holds numbers from now on
		}
		c.child().stmt(x.Stmt)
	case *syntax.ArithmCmd, *syntax.LetClause, *syntax.TestClause:
		c.part = "a test"
		if a, is := x.(*syntax.ArithmCmd); is {
			c.set(a.X)
		}
		if _, test := x.(*syntax.TestClause); !test {
			c.workedOut(x.(syntax.Node))
		}
		c.compares = true
		c.nested(x.(syntax.Node))
		c.compares = false
		c.find(T0, "looks")
	default:
		c.part = "a command"
		c.find(TX, "is of a kind that is not known")
	}
	c.in, c.steeredBefore = before, earlier
}

// apart judges one command or pipeline and what its parts do together.
func (c *command) apart(f func()) {
	outer := c.effects
	c.effects = &effects{}
	f()
	if c.secrets && c.sends {
		c.find(T5, "sends credentials away")
	}
	outer.secrets = outer.secrets || c.secrets
	outer.sends = outer.sends || c.sends
	c.effects = outer
}

func (c *command) binary(x *syntax.BinaryCmd) {
	switch x.Op {
	case syntax.AndStmt:
		before := slices.Clone(c.dirs)
		c.stmt(x.X)
		mine := maps.Clone(c.mine)
		if left, is := x.X.Cmd.(*syntax.BinaryCmd); is && left.Op == syntax.AndStmt && !x.X.Negated {
			maps.Copy(c.mine, c.ran) // all of it ran
		}
		if isCd(x.X) {
			// What follows runs only if the directory was entered.
			moved := c.dirs
			if entered := moved; len(entered) > len(before) {
				c.dirs = minus(entered, before)
			}
			c.stmt(x.Y)
			c.dirs = either(c.dirs, before)
			c.mine, c.ran = mine, c.mine
			return
		}
		c.branch([]*syntax.Stmt{x.Y})
		c.mine = mine
	case syntax.OrStmt:
		c.stmt(x.X)
		c.branch([]*syntax.Stmt{x.Y})
	default: // pipes
		c.apart(func() {
			left, right := c.child(), c.child()
			calm := c.shifted == nil || *c.shifted
			left.stmt(x.X)
			right.in = input{unknown: true, names: left.names(x.X)}
			if right.in.names {
				right.in.spares, right.in.begins = left.foundBy(x.X), left.rooted(x.X)
			}
			right.stmt(x.Y)
			if !calm && *c.shifted {
				c.child().beside(x.X) // they run at the same time
			}
		})
	}
}

// beside judges a part of a pipeline again, of which a later part writes: what it looks
// at may be there by then.
func (c *command) beside(s *syntax.Stmt) {
	wrote := *c.wrote
	*c.wrote, c.again = *c.steered, true
	c.commands = nil
	c.stmt(s)
	*c.wrote = wrote
}

func minus(a, b []string) []string {
	var rest []string
	for _, s := range a {
		if !slices.Contains(b, s) {
			rest = append(rest, s)
		}
	}
	if len(rest) == 0 {
		return a
	}
	return rest
}

func isCd(s *syntax.Stmt) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) > 0 && call.Args[0].Lit() == "cd"
}

func (c *command) declare(x *syntax.FuncDecl) {
	if x.Name == nil {
		c.part = "a function"
		c.find(TX, "is a function without a name")
		return
	}
	name := x.Name.Value
	c.part = name + "()"
	switch {
	case bomb(x):
		c.find(T5, "starts itself without end")
		return
	case known(name):
		c.find(TX, "a function takes the name of a program")
	}
	c.funcs[name] = true
	body := c.child()
	body.dirs, body.within = nil, true
	body.stmt(x.Body)
	moves, _ := leaves(x.Body)
	c.moves = c.moves || moves
}

// leaves reports whether a function, or a trap, may change the directory, or a
// variable, for the commands after it.
func leaves(body syntax.Node) (moves, sets bool) {
	syntax.Walk(body, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.Assign:
			sets = sets || x.Name != nil
		case *syntax.WordIter, *syntax.ArithmCmd, *syntax.ArithmExp, *syntax.LetClause, *syntax.CStyleLoop:
			sets = true
		case *syntax.ParamExp:
			sets = sets || x.Exp != nil && x.Param != nil
		case *syntax.CallExpr:
			for _, w := range x.Args {
				switch w.Lit() {
				case "cd", "pushd", "popd":
					moves = true
				case "read", "mapfile", "readarray", "getopts", "printf", "unset", "wait":
					sets = true
				case "eval", ".", "source":
					moves, sets = true, true
				}
			}
		}
		return true
	})
	return moves, sets
}

// bomb reports whether the function starts itself in a pipe or in the background.
func bomb(x *syntax.FuncDecl) bool {
	found := false
	syntax.Walk(x.Body, func(n syntax.Node) bool {
		s, ok := n.(*syntax.Stmt)
		if !ok {
			return true
		}
		call, simple := s.Cmd.(*syntax.CallExpr)
		if simple && s.Background && len(call.Args) > 0 && call.Args[0].Lit() == x.Name.Value {
			found = true
		}
		if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && (b.Op == syntax.Pipe || b.Op == syntax.PipeAll) {
			if left, ok := b.X.Cmd.(*syntax.CallExpr); ok && len(left.Args) > 0 && left.Args[0].Lit() == x.Name.Value {
				found = true
			}
		}
		return true
	})
	return found
}

// show prints a node as it would be typed.
func (c *command) show(n syntax.Node) string {
	if c.printer == nil {
		c.printer = syntax.NewPrinter(syntax.SingleLine(true))
	}
	var b strings.Builder
	if err := c.printer.Print(&b, n); err != nil {
		return "?"
	}
	const most = 200
	if r := []rune(b.String()); len(r) > most {
		return string(r[:most]) + "…"
	}
	return b.String()
}

// nested judges the commands inside a node.
func (c *command) nested(n syntax.Node) {
	part, plain := c.part, c.plain
	syntax.Walk(n, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.CmdSubst:
			if x.Backquotes && entangled(x) {
				c.find(TX, "is quoted in a way that shells read differently")
			}
			s := c.child()
			s.effects = c.effects
			s.list(x.Stmts)
			return false
		case *syntax.ProcSubst:
			s := c.child()
			s.effects = c.effects
			s.list(x.Stmts)
			return false
		case *syntax.ArithmExp:
			c.workedOut(x)
		case *syntax.BinaryTest:
			if slices.Contains([]syntax.BinTestOperator{syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr}, x.Op) {
				c.workedOut(x)
			}
			if x.Op == syntax.TsReMatch {
				c.complained(x.X) // what matches is kept
			}
		case *syntax.UnaryTest:
			if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
				c.workedOut(x)
				if w, is := x.X.(*syntax.Word); is && setsInside(c.text(w.Parts).text) {
					c.find(TX, "sets a variable in a subscript")
				}
			}
		case *syntax.ParamExp:
			if x.Exp != nil && x.Exp.Op == syntax.OtherParamOps && (x.Exp.Word == nil || !slices.Contains([]string{"Q", "U", "u", "L"}, x.Exp.Word.Lit())) || x.Width || x.IsSet || x.NestedParam != nil {
				c.find(TX, "expands text in a way that may run it")
			}
			if x.Excl && x.Names == 0 && x.Param != nil && c.taken(x.Param.Value) {
				c.find(TX, "takes text that is not known for the name of a variable, which may run it")
			}
			c.shown(x)
			if x.Index != nil {
				c.workedOut(x.Index)
			}
			if x.Slice != nil {
				for _, part := range []syntax.ArithmExpr{x.Slice.Offset, x.Slice.Length} {
					if part != nil {
						c.workedOut(part)
					}
				}
			}
			if x.Exp != nil && (x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull) && x.Param != nil {
				c.variable(x.Param.Value)
				if x.Exp.Word != nil {
					c.numbered(x.Param.Value, x.Exp.Word)
				}
			}
		case *syntax.BinaryArithm:
			if w, ok := x.X.(*syntax.Word); ok && strings.HasSuffix(x.Op.String(), "=") && w.Lit() != "" {
				c.variable(w.Lit())
			}
		case *syntax.UnaryArithm:
			if w, ok := x.X.(*syntax.Word); ok && w.Lit() != "" {
				c.loosen(w.Lit())
			}
		}
		return true
	})
	c.part, c.plain = part, plain
}

package approval

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// settled is what is known of the variables of a whole line, however often its parts
// run and in whatever order. A variable is known only where that is plain: one
// statement sets it, to a constant, and runs for sure before what uses it. What else
// sets it makes it unknown everywhere; the line is then judged anew.
type settled struct {
	loose map[string]bool           // not known: set in another way, more than once, or after a use
	taken map[string]bool           // may hold text from elsewhere, or what is no number
	owner map[string]place          // what sets it
	used  map[string]bool           // was used while it was not known
	plain map[*syntax.Assign]bool   // statements that run for sure
	ends  map[*syntax.Stmt][]string // variables that hold no longer than these statements
	turns int                       // judgements before this one
	again bool                      // more is loose, or taken, than the judgement began with
}

// A place is where in which text something stands.
type place struct {
	text string
	at   uint
}

// anew begins a judgement, with what the ones before found.
func (n *settled) anew() *settled {
	if n == nil {
		n = &settled{loose: map[string]bool{}, taken: map[string]bool{}}
	}
	return &settled{turns: n.turns + 1, loose: n.loose, taken: n.taken, owner: map[string]place{}, used: map[string]bool{}, plain: map[*syntax.Assign]bool{}, ends: map[*syntax.Stmt][]string{}}
}

// mostTurns is how often a line is judged before nothing in it counts as known.
const mostTurns = 10

// hopeless reports whether what the line does to its variables is too much to follow.
func (n *settled) hopeless() bool { return n.turns > mostTurns }

// loose reports whether nothing is known of a variable, in the whole line.
func (c *command) loose(name string) bool {
	return c.settled != nil && (c.settled.loose[name] || c.settled.hopeless())
}

// loosen notes that nothing is known of a variable, in the whole line.
func (c *command) loosen(name string) {
	if c.settled != nil && !c.settled.loose[name] {
		c.settled.loose[name], c.settled.again = true, true
	}
	delete(c.vars, name)
}

// take notes that a variable may hold more than a number or a plain name: where bash
// takes it for a number, it runs what it finds in it.
func (c *command) take(name string) {
	if c.settled != nil && !c.settled.taken[name] {
		c.settled.taken[name], c.settled.again = true, true
	}
}

// taken reports whether a variable may do so.
func (c *command) taken(name string) bool {
	return c.settled != nil && (c.settled.taken[name] || c.settled.hopeless())
}

// settle makes a variable known, if nothing else sets it and nothing used it before.
func (c *command) settle(name, value string, at syntax.Pos) {
	if c.settled == nil || c.loose(name) {
		return
	}
	here := place{c.from, at.Offset()}
	other, set := c.settled.owner[name]
	if set && other != here || c.settled.used[name] || unsettled(name) {
		c.loosen(name)
		return
	}
	c.settled.owner[name] = here
	c.vars[name] = value
}

// unsettled reports whether the shell sets a variable by itself.
func unsettled(name string) bool {
	return slices.Contains(special, name) || slices.Contains([]string{"HOME", "PWD", "COLUMNS", "LINES", "SHLVL"}, name)
}

// statements finds what sets a variable for sure: a statement of a text itself, in
// nothing that may not run, run twice or run elsewhere. What follows "&&" holds in
// what it is joined to; and after an error bash goes on with the next line of the
// text, so that what is behind other commands holds no longer than its own line.
func (c *command) statements(f *syntax.File) {
	upTo := uint(0) // the last line of the other commands
	for i, s := range f.Stmts {
		line, sure := s.Pos().Line(), true
		for _, x := range chain(s) {
			a := assignment(x)
			if a == nil {
				sure = false
				continue
			}
			c.settled.plain[a] = true
			end := s
			if sure {
				for _, next := range f.Stmts[i:] {
					if next.Pos().Line() == line {
						end = next
					}
				}
			}
			if !sure || upTo >= line || upTo > 0 && strings.Contains(c.from, "\\\n") {
				c.settled.ends[end] = append(c.settled.ends[end], a.Name.Value)
			}
		}
		if !sure {
			upTo = s.End().Line()
		}
	}
}

// chain are the statements that "&&" joins.
func chain(s *syntax.Stmt) []*syntax.Stmt {
	if b, is := s.Cmd.(*syntax.BinaryCmd); is && b.Op == syntax.AndStmt && alone(s) {
		return append(chain(b.X), chain(b.Y)...)
	}
	return []*syntax.Stmt{s}
}

func alone(s *syntax.Stmt) bool {
	return !s.Background && !s.Negated && !s.Coprocess && !s.Disown && len(s.Redirs) == 0
}

// assignment is the one thing that a statement does, if that is to set a variable, or
// to export one, to a constant.
func assignment(s *syntax.Stmt) *syntax.Assign {
	var all []*syntax.Assign
	exports := false
	switch x := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(x.Args) == 0 {
			all = x.Assigns
		}
	case *syntax.DeclClause:
		if x.Variant.Value == "export" {
			all, exports = x.Args, true
		}
	}
	if len(all) != 1 || !alone(s) {
		return nil
	}
	a := all[0]
	if a.Name == nil || a.Naked || a.Append || a.Index != nil || a.Array != nil || a.Value != nil && (!constant(a.Value) || exports && strings.HasPrefix(a.Value.Lit(), "~")) {
		return nil
	}
	return a
}

// constant reports whether every shell takes a word for the same text, whatever it is
// run with.
func constant(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch x := p.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(x.Value, "{}*?[$") {
				return false
			}
		case *syntax.SglQuoted:
			if x.Dollar {
				return false
			}
		case *syntax.DblQuoted:
			for _, q := range x.Parts {
				if _, is := q.(*syntax.Lit); !is || x.Dollar {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

package approval

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// construct names the first part of a command line that is more of the shell than
// looking takes: what has side effects of its own, or a meaning that depends on what
// was done before. Empty: there is none. The list is of what is known; a kind of node
// that is not on it is more.
func construct(f syntax.Node) string {
	more := ""
	say := func(what string) {
		if more == "" {
			more = what
		}
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.File, *syntax.CallExpr, *syntax.Word, *syntax.SglQuoted, *syntax.Lit, *syntax.CmdSubst, *syntax.Comment,
			*syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.CaseClause, *syntax.CaseItem, *syntax.WordIter, *syntax.Redirect,
			*syntax.TimeClause, *syntax.TestClause, *syntax.ParenTest, *syntax.BinaryCmd:
		case *syntax.UnaryTest:
			if w, is := n.X.(*syntax.Word); (n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar) && !(is && variables.MatchString(w.Lit())) {
				say("a test of a variable that the line does not name")
			}
		case *syntax.DblQuoted:
			if n.Dollar {
				say("a text that is translated")
			}
		case *syntax.Stmt:
			if n.Background || n.Coprocess || n.Disown {
				say("a job in the background")
			}
		case *syntax.ForClause:
			if _, plain := n.Loop.(*syntax.WordIter); !plain || n.Select {
				say("a loop that counts or asks")
			}
		case *syntax.Assign:
			if n.Index != nil || n.Array != nil || n.Append {
				say("an array")
			}
		case *syntax.BinaryTest:
			switch n.Op {
			case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch, syntax.TsBefore, syntax.TsAfter, syntax.AndTest, syntax.OrTest, syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
			default:
				say("a comparison of numbers or by a pattern")
			}
		case *syntax.ParamExp:
			switch {
			case n.Excl, n.Names != 0, n.Index != nil, n.Slice != nil, n.Width, n.NestedParam != nil, n.Flags != nil, n.IsSet:
				say("a variable that is taken apart")
			case n.Exp != nil:
				switch n.Exp.Op {
				case syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.OtherParamOps:
					say("a variable that is set while it is shown")
				}
			}
		case *syntax.ArithmExp:
			if !constants(n.X) {
				say("arithmetic with variables")
			}
			return false
		case *syntax.ArithmCmd, *syntax.LetClause, *syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm:
			say("arithmetic with variables")
		case *syntax.FuncDecl:
			say("a function")
		case *syntax.DeclClause:
			say("a declaration")
		case *syntax.CoprocClause:
			say("a coprocess")
		case *syntax.ProcSubst:
			say("a command in the place of a file")
		case *syntax.ExtGlob:
			say("an extended pattern")
		default:
			say(fmt.Sprintf("%T", n))
		}
		return more == ""
	})
	return more
}

// constants reports whether an expression is made of numbers alone.
func constants(x syntax.ArithmExpr) bool {
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		return constants(x.X) && constants(x.Y)
	case *syntax.UnaryArithm:
		return constants(x.X)
	case *syntax.ParenArithm:
		return constants(x.X)
	case *syntax.Word:
		return len(x.Lit()) > 0 && strings.Trim(x.Lit(), "0123456789") == ""
	}
	return false
}

// plainly asks where the letters of a text are read differently by shells; and where it
// uses more of the shell than looking takes, or is not plain in its letters, and would
// run on a computer that stays.
func (c *command) plainly(f *syntax.File) {
	letters := unplain(c.from)
	if letters.differs != "" {
		c.find(TX, "is read differently by shells: "+letters.differs)
	}
	if c.Place.Disposable {
		return
	}
	if letters.unplain != "" {
		c.find(T3, "is not plain in its letters: "+letters.unplain)
	}
	if what := construct(f); what != "" {
		c.find(T3, "uses more of the shell than looking takes: "+what)
	}
}

package approval

import (
	"fmt"
	"regexp"
	"slices"
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

// plainly asks where a text uses more of the shell than that, and would run on a
// computer that stays.
func (c *command) plainly(f *syntax.File) {
	if c.Place.Disposable {
		return
	}
	if what := construct(f); what != "" {
		c.find(T3, "uses more of the shell than looking takes: "+what)
	}
}

// requoted finds quotes in a variable, or in arithmetic, that is itself in quotes or in
// a here-document: shells, and the parser, differ in whether they are quotes there.
func (c *command) requoted(f syntax.Node) {
	var in []syntax.Node
	found := false
	syntax.Walk(f, func(n syntax.Node) bool {
		if n == nil {
			in = in[:len(in)-1]
			return true
		}
		in = append(in, n)
		switch x := n.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			found = found || nestedIn(in[:len(in)-1])
		case *syntax.Lit:
			found = found || strings.ContainsAny(x.Value, `'"`) && nestedIn(in[:len(in)-1])
		case *syntax.Redirect:
			if x.Op != syntax.Hdoc && x.Op != syntax.DashHdoc {
				break
			}
			found = found || c.misread(x)
			if x.Hdoc != nil { // it is walked, too, but does not show that it is a document
				c.requoted(&syntax.DblQuoted{Parts: x.Hdoc.Parts})
			}
		}
		return true
	})
	if found {
		c.find(TX, "is quoted in a way that shells read differently")
	}
}

// nestedIn reports whether the innermost of these nodes that counts is a variable in
// quotes, or arithmetic.
func nestedIn(in []syntax.Node) bool {
	taken := false
	for _, n := range slices.Backward(in) {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.ArithmExp:
			return true
		case *syntax.ParamExp:
			taken = true
		case *syntax.DblQuoted:
			if taken {
				return true
			}
		}
	}
	return false
}

// Ends of here-documents that all shells, and the parser, take for the same.
var (
	ending = regexp.MustCompile(`^(?:[\w.+-]+|'[\w.+-]+'|"[\w.+-]+"|\\[\w.+-]+)$`)
	cut    = regexp.MustCompile(`(?m)^\t*[^ \t\n]*\\\r?$`)
)

// misread reports whether shells may see another end of a here-document: its name is not
// plain, a line begins with it, or a line becomes it that a backslash joins.
func (c *command) misread(r *syntax.Redirect) bool {
	from, to, size := r.Word.Pos().Offset(), r.Word.End().Offset(), uint(len(c.from))
	if from > to || to > size || !ending.MatchString(c.from[from:to]) {
		return true
	}
	if r.Hdoc == nil {
		return false
	}
	begin, end := r.Hdoc.Pos().Offset(), r.Hdoc.End().Offset()
	if begin > end || end > size {
		return true
	}
	name := strings.Trim(c.from[from:to], "'\"\\")
	lines := strings.Split(c.from[begin:end], "\n")
	last := len(lines) - 1
	if strings.TrimLeft(lines[last], "\t") != name {
		return true
	}
	for _, line := range lines[:last] {
		if strings.HasPrefix(strings.TrimLeft(line, "\t"), name) {
			return true
		}
	}
	body := strings.Join(lines[:last], "\n")
	return name == c.from[from:to] && (cut.MatchString(body) || strings.HasSuffix(body, "\\") || strings.HasSuffix(body, "\\\r"))
}

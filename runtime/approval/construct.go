package approval

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// construct names the first part of a command line that is more of the shell than
// looking takes: what has side effects of its own, a meaning that depends on what was
// done before, or more than one reading. Empty: the line is made of programs and words
// that are written in it, joined by pipes, "&&", "||", ";" and line ends, and of files
// to which they write. All else, also what is not known, is more.
func construct(stmts []*syntax.Stmt) string {
	for _, s := range stmts {
		if more := beyond(s); more != "" {
			return more
		}
	}
	return ""
}

func beyond(s *syntax.Stmt) string {
	if s.Background || s.Coprocess || s.Disown {
		return "a job in the background"
	}
	for _, r := range s.Redirs {
		if more := redirected(r); more != "" {
			return more
		}
	}
	switch x := s.Cmd.(type) {
	case *syntax.CallExpr:
		return called(x)
	case *syntax.BinaryCmd:
		if x.Op != syntax.AndStmt && x.Op != syntax.OrStmt && x.Op != syntax.Pipe {
			return "a pipe that only some shells know"
		}
		if more := beyond(x.X); more != "" {
			return more
		}
		return beyond(x.Y)
	case *syntax.TimeClause:
		if x.Stmt != nil && !x.PosixFormat {
			return beyond(x.Stmt)
		}
		return "a measurement of nothing"
	case nil:
		return "a redirection without a command"
	case *syntax.Block, *syntax.Subshell:
		return "a group"
	case *syntax.IfClause, *syntax.CaseClause, *syntax.TestClause:
		return "a condition that is more than && or ||"
	case *syntax.WhileClause, *syntax.ForClause:
		return "a loop"
	case *syntax.FuncDecl:
		return "a function"
	case *syntax.DeclClause:
		return "a declaration"
	case *syntax.CoprocClause:
		return "a coprocess"
	case *syntax.ArithmCmd, *syntax.LetClause:
		return "arithmetic as a command"
	}
	return fmt.Sprintf("%T", s.Cmd)
}

// called names what of a simple command is more. Text that is known only when the line
// runs may be printed, and is nothing else.
func called(x *syntax.CallExpr) string {
	if len(x.Args) == 0 {
		return "a variable of its own"
	}
	for _, a := range x.Assigns {
		if a.Name == nil || a.Append || a.Naked || a.Index != nil || a.Array != nil || a.Value != nil && !constant(a.Value) {
			return "a variable that is not plain"
		}
	}
	prints := map[string]int{"echo": 1, "printf": 2}[x.Args[0].Lit()]
	for i, w := range x.Args {
		if more := spelled(w, prints > 0 && i >= prints); more != "" {
			return more
		}
	}
	return ""
}

func redirected(r *syntax.Redirect) string {
	if r.N != nil && !slices.Contains([]string{"0", "1", "2"}, r.N.Value) {
		return "a file by a number of its own"
	}
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrIn, syntax.WordHdoc:
	case syntax.DplOut:
		if !slices.Contains([]string{"1", "2"}, r.Word.Lit()) {
			return "a file by a number of its own"
		}
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc != nil {
			for _, p := range r.Hdoc.Parts {
				if _, plain := p.(*syntax.Lit); !plain {
					return "a here-document with variables"
				}
			}
		}
	default:
		return "a redirection that is not plain"
	}
	return spelled(r.Word, false)
}

// spelled names what of a word is not written in the line, where prints is whether it
// need not be.
func spelled(w *syntax.Word, prints bool) string {
	for _, p := range w.Parts {
		quoted, is := p.(*syntax.DblQuoted)
		if !is {
			if more := piece(p, prints, false); more != "" {
				return more
			}
			continue
		}
		if quoted.Dollar {
			return "a text that is translated"
		}
		for _, p := range quoted.Parts {
			if more := piece(p, prints, true); more != "" {
				return more
			}
		}
	}
	return ""
}

func piece(p syntax.WordPart, prints, quoted bool) string {
	switch x := p.(type) {
	case *syntax.Lit:
		if !quoted && strings.Contains(x.Value, "{") && (strings.Contains(x.Value, ",") || strings.Contains(x.Value, "..")) {
			return "braces that stand for several words"
		}
	case *syntax.SglQuoted:
		if x.Dollar {
			return "a text with signs that only some shells know"
		}
	case *syntax.ParamExp:
		if !prints && x.Param != nil && x.Param.Value != "HOME" && x.Param.Value != "PWD" {
			return "a variable that is more than printed"
		}
		if x.Flags != nil || x.Excl || x.Length || x.Width || x.IsSet || x.NestedParam != nil || x.Index != nil || len(x.Modifiers) > 0 || x.Slice != nil || x.Repl != nil || x.Names != 0 || x.Exp != nil {
			return "a variable that is taken apart"
		}
	case *syntax.ArithmExp:
		if !prints || !constants(x.X) {
			return "arithmetic with variables"
		}
	case *syntax.CmdSubst:
		switch {
		case !prints:
			return "a command whose output is more than printed"
		case x.Backquotes, x.TempFile, x.ReplyVar, len(x.Stmts) != 1:
			return "a command in the place of a word that is not plain"
		}
		return construct(x.Stmts)
	case *syntax.ProcSubst:
		return "a command in the place of a file"
	case *syntax.ExtGlob:
		return "an extended pattern"
	default:
		return fmt.Sprintf("%T", p)
	}
	return ""
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
		return digits(x.Lit())
	}
	return false
}

func digits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

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
	if what := construct(f.Stmts); what != "" {
		c.find(T3, "uses more of the shell than looking takes: "+what)
	}
}

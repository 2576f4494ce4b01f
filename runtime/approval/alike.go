package approval

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// alike reports whether every POSIX shell takes a text for what bash takes it for. The
// list is of what is known; what is not on it counts as different.
func alike(f *syntax.File) bool {
	same := true
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.File, *syntax.Word, *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.WordIter:
		case *syntax.Comment:
			same = false
		case *syntax.Stmt:
			same = same && !n.Background && !n.Coprocess && !n.Disown
		case *syntax.CallExpr:
			for _, w := range n.Args {
				same = same && w.Lit() != "local" && w.Lit() != "[[" && w.Lit() != "time"
			}
		case *syntax.Lit:
			same = same && !strings.ContainsAny(n.Value, "{}\\\n")
		case *syntax.SglQuoted:
			same = same && !n.Dollar
		case *syntax.DblQuoted:
			same = same && !n.Dollar
		case *syntax.CmdSubst:
			same = same && !n.Backquotes && !n.TempFile && !n.ReplyVar
		case *syntax.BinaryCmd:
			same = same && n.Op != syntax.PipeAll
		case *syntax.ForClause:
			_, words := n.Loop.(*syntax.WordIter)
			same = same && words && !n.Select && !n.Braces
		case *syntax.Assign:
			same = same && !n.Append && !n.Naked && n.Index == nil && n.Array == nil
		case *syntax.ParamExp:
			same = same && n.Param != nil && !n.Excl && !n.Width && !n.IsSet && n.Flags == nil && n.NestedParam == nil && n.Index == nil && len(n.Modifiers) == 0 && n.Slice == nil && n.Repl == nil && n.Names == 0 && n.Exp == nil
		case *syntax.Redirect:
			switch n.Op {
			case syntax.RdrOut, syntax.AppOut, syntax.RdrIn, syntax.DplOut, syntax.DplIn:
				same = same && (n.N == nil || len(n.N.Value) == 1)
			default:
				same = false
			}
		default:
			same = false
		}
		return same
	})
	return same
}

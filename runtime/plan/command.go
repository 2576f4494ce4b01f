package plan

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// An action is a command that acts on infrastructure.
type action struct {
	program string   // "kubectl"
	verb    string   // "apply"
	words   []string // of the simple command
	dir     string   // where it runs
	env     map[string]string
	names   map[string]string
	problem error // why it cannot be looked at

	line     string // the whole command line
	from, to int    // where the simple command stands in it, in bytes; both 0: it is run by another

	global []string // options of the program that say where: context, namespace …
	rest   []string // the words behind the verb, those options left out
}

var errMore = errors.New("the command line does more than this, so it cannot be shown alone")

// besides are programs that may stand beside the one that acts: they change
// nothing.
var besides = []string{"cd", "echo", "true", "pwd", "ls", "set", ":"}

// filters may read what it prints.
var filters = []string{"cat", "head", "tail", "grep"}

// wrappers run the command in their words.
var wrappers = []string{"sudo", "env", "time", "timeout", "nice", "nohup", "command", "exec", "stdbuf", "xargs", "watch", "setsid"}

// find returns the action of a command line that starts in dir, or nil if there is
// none.
func find(line, dir string) *action {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil
	}
	s := &scene{dir: dir, line: line}
	for _, stmt := range file.Stmts {
		s.stmt(stmt, true)
	}
	if s.found != nil && s.more && s.found.problem == nil {
		s.found.problem = errMore
	}
	return s.found
}

// A scene is what is known of a command line.
type scene struct {
	dir   string
	line  string
	found *action
	more  bool // something else in it may change what the action does
}

// stmt looks at one statement; plain, if it is sure to run before the next.
func (s *scene) stmt(stmt *syntax.Stmt, plain bool) {
	if stmt.Background || stmt.Coprocess || stmt.Negated {
		s.more = true
	}
	for _, r := range stmt.Redirs {
		to := ""
		if r.Word != nil {
			to, _ = static(r.Word)
		}
		if r.Op != syntax.DplOut && to != "/dev/null" {
			s.more = true
		}
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.BinaryCmd:
		switch cmd.Op {
		case syntax.AndStmt:
			s.stmt(cmd.X, plain)
			s.stmt(cmd.Y, plain)
		case syntax.Pipe, syntax.PipeAll:
			s.stmt(cmd.X, plain)
			s.filter(cmd.Y)
		default:
			s.more = true
			s.anywhere(stmt)
		}
	case *syntax.CallExpr:
		s.call(cmd)
	case nil:
	default:
		s.more = true
		s.anywhere(stmt)
	}
}

// filter looks at what reads the output of another command.
func (s *scene) filter(stmt *syntax.Stmt) {
	if call, ok := stmt.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 && len(stmt.Redirs) == 0 && len(call.Assigns) == 0 {
		if name, ok := static(call.Args[0]); ok && slices.Contains(filters, name) && !holdsCommands(call) {
			return
		}
	}
	s.more = true
	s.anywhere(stmt)
}

// anywhere looks for actions in what is not read in order.
func (s *scene) anywhere(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok {
			s.call(call)
		}
		return true
	})
}

func holdsCommands(node syntax.Node) bool {
	found := false
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			found = true
		}
		return !found
	})
	return found
}

// call looks at a simple command.
func (s *scene) call(call *syntax.CallExpr) {
	if holdsCommands(call) {
		s.more = true
	}
	var words []string
	sure := true
	for _, w := range call.Args {
		text, ok := static(w)
		sure = sure && ok
		words = append(words, text)
	}
	if len(words) == 0 {
		s.more = s.more || len(call.Assigns) > 0
		return
	}
	env := map[string]string{}
	for _, a := range call.Assigns {
		text := ""
		ok := !a.Append && a.Array == nil && a.Index == nil
		if a.Value != nil && ok {
			text, ok = static(a.Value)
		}
		sure = sure && ok
		env[a.Name.Value] = text
	}
	name := path.Base(words[0])
	if act := newAction(words, s.dir, env); act != nil {
		s.more = s.more || s.found != nil
		s.found = act
		act.line, act.from, act.to = s.line, int(call.Pos().Offset()), int(call.End().Offset())
		if !sure {
			act.problem = errors.New("parts of the command are only known when it runs")
		}
		return
	}
	switch {
	case slices.Contains(wrappers, name):
		for i := 1; i < len(words); i++ {
			if act := newAction(words[i:], s.dir, env); act != nil {
				act.problem = errors.New("it is run by way of " + name)
				s.more = s.more || s.found != nil
				s.found = act
				return
			}
		}
		s.more = true
	case name == "cd" && sure && len(words) == 2 && s.found == nil && !strings.HasPrefix(words[1], "-") && !strings.HasPrefix(words[1], "~"):
		s.dir = absolute(s.dir, words[1])
	case name == "cd":
		s.more = true
	case !slices.Contains(besides, name) || len(call.Assigns) > 0:
		s.more = true
	}
}

// static is a word that stands for the same text whenever it is read.
func static(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, `\*?[{`) || i == 0 && strings.HasPrefix(p.Value, "~") {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || strings.Contains(lit.Value, `\`) || p.Dollar {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// newAction reads the words of a simple command.
func newAction(words []string, dir string, env map[string]string) *action {
	a := &action{program: path.Base(words[0]), words: words, dir: dir, env: env, names: map[string]string{}}
	switch a.program {
	case "terraform", "tofu":
		if w := env["TF_WORKSPACE"]; w != "" {
			a.names["workspace"] = w
		}
		a.split(nil, map[string]string{"-chdir": "directory"})
		if a.verb != "apply" && a.verb != "destroy" {
			return nil
		}
	case "kubectl", "oc":
		a.split(kubectlValued, map[string]string{"--context": "context", "-n": "namespace", "--namespace": "namespace", "--cluster": "cluster", "--kubeconfig": "kubeconfig",
			"--user": "user", "-s": "server", "--server": "server"})
		if a.verb != "apply" && a.verb != "delete" || a.verb == "apply" && len(a.rest) > 0 && slices.Contains([]string{"view-last-applied", "set-last-applied", "edit-last-applied"}, a.rest[0]) {
			return nil
		}
	case "helm":
		a.split(helmValued, map[string]string{"--kube-context": "context", "-n": "namespace", "--namespace": "namespace", "--kubeconfig": "kubeconfig", "--kube-apiserver": "server"})
		switch a.verb {
		case "upgrade":
		case "uninstall", "delete", "del", "un":
			a.verb = "uninstall"
		default:
			return nil
		}
	default:
		return nil
	}
	for i, w := range a.rest {
		value, has := strings.CutPrefix(w, "--dry-run=")
		if w == "--dry-run" && i+1 < len(a.rest) && a.program != "helm" && slices.Contains([]string{"client", "server", "none"}, a.rest[i+1]) {
			value, has = a.rest[i+1], true
		}
		if w == "--dry-run" || has && value != "none" && value != "false" {
			return nil
		}
		if w == "-h" || w == "-help" || w == "--help" {
			return nil
		}
	}
	if len(a.names) == 0 {
		a.names = nil
	}
	return a
}

// split finds the verb, and the options that say where the command acts.
func (a *action) split(valued []string, where map[string]string) {
	for i := 1; i < len(a.words); i++ {
		w := a.words[i]
		name, value, has := strings.Cut(w, "=")
		if meaning, ok := where[name]; ok && strings.HasPrefix(w, "-") {
			if !has {
				if i+1 >= len(a.words) {
					return
				}
				i++
				value = a.words[i]
				a.global = append(a.global, w, value)
			} else {
				a.global = append(a.global, w)
			}
			a.names[meaning] = clip(value)
			continue
		}
		switch {
		case a.verb == "" && !strings.HasPrefix(w, "-"):
			a.verb = w
		case a.verb == "" && !has && slices.Contains(valued, w):
			i++
		case a.verb != "":
			a.rest = append(a.rest, w)
		}
	}
}

// sort splits the words behind the verb into options, with their values, and the
// others.
func (a *action) sort(valued []string) (options [][]string, words []string) {
	for i := 0; i < len(a.rest); i++ {
		w := a.rest[i]
		switch {
		case w == "--":
			return options, append(words, a.rest[i+1:]...)
		case !strings.HasPrefix(w, "-") || w == "-":
			words = append(words, w)
		case !strings.Contains(w, "=") && slices.Contains(valued, w) && i+1 < len(a.rest):
			options = append(options, []string{w, a.rest[i+1]})
			i++
		default:
			options = append(options, []string{w})
		}
	}
	return options, words
}

// keep returns the options of these names.
func keep(options [][]string, names ...string) (kept []string) {
	for _, o := range options {
		name, _, _ := strings.Cut(o[0], "=")
		if slices.Contains(names, name) {
			kept = append(kept, o...)
		}
	}
	return kept
}

// value returns the values of an option.
func values(options [][]string, names ...string) (list []string) {
	for _, o := range options {
		name, v, has := strings.Cut(o[0], "=")
		switch {
		case !slices.Contains(names, name):
		case has:
			list = append(list, v)
		case len(o) > 1:
			list = append(list, o[1])
		}
	}
	return list
}

package approval

import (
	"slices"
	"strings"
)

// options are arguments, read.
type options struct {
	given    map[string][]word // by name with its dashes; the value is empty for a bare one
	operands []word
	hidden   bool // an argument that may be an option is not known
}

// split reads arguments as getopt does. Valued options take a value; those of
// one letter may be joined, and with a "?" in front, like "?-i", must be.
func split(args []word, valued ...string) options {
	o := options{given: make(map[string][]word)}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.static:
			o.hidden = o.hidden || !a.input
			o.operands = append(o.operands, a)
		case a.text == "--":
			o.operands = append(o.operands, args[i+1:]...)
			return o
		case strings.HasPrefix(a.text, "--"):
			name, value, has := strings.Cut(a.text, "=")
			w := word{text: value, static: true, glob: a.glob}
			if !has && slices.Contains(valued, name) {
				w = word{}
				if i++; i < len(args) {
					w = args[i]
				}
			}
			o.given[name] = append(o.given[name], w)
		case len(a.text) > 1 && a.text[0] == '-':
			for k := 1; k < len(a.text); k++ {
				name := "-" + a.text[k:k+1]
				if slices.Contains(valued, "?"+name) { // what is joined to it is its value
					o.given[name] = append(o.given[name], word{text: a.text[k+1:], static: true, glob: a.glob})
					break
				}
				if !slices.Contains(valued, name) {
					o.given[name] = append(o.given[name], literal(""))
					continue
				}
				w := word{text: a.text[k+1:], static: true, glob: a.glob}
				if k+1 == len(a.text) {
					w = word{}
					if i++; i < len(args) {
						w = args[i]
					}
				}
				o.given[name] = append(o.given[name], w)
				break
			}
		default:
			o.operands = append(o.operands, a)
		}
	}
	return o
}

// has reports whether one of the options was given.
func (o options) has(names ...string) bool {
	for _, n := range names {
		if _, ok := o.given[n]; ok {
			return true
		}
	}
	return false
}

// only reports whether no other options were given.
func (o options) only(names ...string) bool {
	for n := range o.given {
		if !slices.Contains(names, n) {
			return false
		}
	}
	return true
}

func (o options) values(names ...string) []word {
	var all []word
	for _, n := range names {
		all = append(all, o.given[n]...)
	}
	return all
}

// split reads arguments by the form of their program.
func (f *form) split(args []word) options {
	if f == nil {
		return split(args)
	}
	return split(args, f.valued...)
}

// shortened reports whether an argument is one of the long options, or short for it.
// Options that are whole by themselves are left out.
func shortened(args []word, full []string, whole ...string) bool {
	return slices.ContainsFunc(args, func(w word) bool {
		name, _, _ := strings.Cut(w.text, "=")
		return w.static && len(name) > 3 && strings.HasPrefix(name, "--") && !slices.Contains(whole, name) &&
			slices.ContainsFunc(full, func(f string) bool { return strings.HasPrefix(f, name) })
	})
}

// positional returns the words of a command that are no options, in order, with
// the options that take a value known. It reports false where a word that is not
// known may be an option or a verb.
func positional(args []word, valued ...string) (words []string, ok bool) {
	ok = true
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.static:
			if len(words) < 2 {
				ok = false
			}
			words = append(words, "")
		case a.text == "--":
			for _, w := range args[i+1:] {
				words = append(words, w.text)
			}
			return words, ok
		case strings.HasPrefix(a.text, "-"):
			switch name, _, has := strings.Cut(a.text, "="); {
			case has:
			case slices.Contains(valued, name):
				i++
			case len(words) == 0 && !slices.Contains(bare, name) && !joinedTo(valued, name):
				ok = false // it may take the word that looks like the verb
			}
		default:
			words = append(words, a.text)
		}
	}
	return words, ok
}

// bare are options of the tools for infrastructure that stand before the verb and
// take no value.
var bare = []string{"-h", "--help", "-help", "-version", "--version", "--debug", "-D", "-q", "--quiet", "--verbose", "--no-color", "-no-color", "--no-cli-pager", "--no-paginate", "--no-sign-request", "--only-show-errors", "-A", "--all-namespaces",
	"--insecure-skip-tls-verify", "--match-server-version", "--warnings-as-errors", "--disable-compression", "--tls", "--tlsverify", "--no-verify-ssl", "--no-user-output-enabled", "--non-interactive", "-y", "--yes", "--remote", "-r", "-a", "-i", "-v", "-n", "-l", "-w"}

// joinedTo reports whether an option is one letter that takes a value, with it.
func joinedTo(valued []string, name string) bool {
	return len(name) > 2 && name[1] != '-' && slices.Contains(valued, name[:2])
}

func at(words []string, i int) string {
	if i >= 0 && i < len(words) {
		return words[i]
	}
	return ""
}

// flagged reports whether one of the options is among args, alone or with a value.
func flagged(args []word, names ...string) bool {
	return slices.ContainsFunc(args, func(w word) bool {
		return slices.ContainsFunc(names, func(n string) bool { return w.text == n || strings.HasPrefix(w.text, n+"=") })
	})
}

// valuesOf are the values of an option with one dash or two, joined or not.
func valuesOf(args []word, name string) []word {
	var all []word
	for i, w := range args {
		n, value, joined := strings.Cut(strings.Replace(w.text, "--", "-", 1), "=")
		switch {
		case n != name:
		case joined:
			w.text = value
			all = append(all, w)
		case i+1 < len(args):
			all = append(all, args[i+1])
		}
	}
	return all
}

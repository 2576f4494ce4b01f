package approval

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Joined letters are read as getopt does, by the form and by split: a letter without a
// value goes on, one with a value takes the rest of the word or the next one, and one
// that may have a value takes the rest alone. The value is judged by its kind.
func TestJoinedLetters(t *testing.T) {
	at := Context{Place: Place{Host: true}, Dir: "/home/dev/shop", Workspace: "/home/dev/shop", Home: "/home/dev"}
	fresh := func() *command {
		return &command{Context: at, found: new([]Finding), effects: &effects{}, dirs: []string{at.Dir}}
	}
	next := literal(".env")
	tried, programs := 0, 0
	walk(forms(), "", func(line string, f *form) {
		if f.words || f.plain {
			return
		}
		var letters []string
		for _, name := range slices.Sorted(maps.Keys(f.options)) {
			if len(name) == 2 && name != "-#" {
				letters = append(letters, name[1:])
			}
		}
		if len(letters) > 0 {
			programs++
		}
		try := func(cluster string) {
			tried++
			letter, value, took := "", "", 0
			for i := range len(cluster) {
				v := f.options["-"+cluster[i:i+1]]
				if v.kind == "" {
					continue
				}
				if rest := cluster[i+1:]; rest != "" {
					letter, value = cluster[i:i+1], rest
				} else if !v.optional {
					letter, value, took = cluster[i:i+1], next.text, 1
				}
				break
			}
			c, direct := fresh(), fresh()
			used, ok := f.option(c, literal("-"+cluster), []word{next})
			o := f.split([]word{literal("-" + cluster), next})
			if letter == "" {
				if !ok || used != 0 || len(*c.found) > 0 || len(o.operands) != 1 {
					t.Errorf("%s -%s: %v, %d, %v", line, cluster, ok, used, *c.found)
				}
				return
			}
			k := f.options["-"+letter].kind
			want := k != anExec && k != theNames && k != aPair && k.value(direct, literal(value))
			if k == anExec || k == theNames || k == aPair {
				return
			}
			if ok != want || ok && used != took || len(*c.found) != len(*direct.found) {
				t.Errorf("%s -%s: %q is the value of -%s: %v, %d, %d found; want %v, %d, %d", line, cluster, value, letter, ok, used, len(*c.found), want, took, len(*direct.found))
			}
			if given := o.values("-" + letter); !slices.ContainsFunc(given, func(w word) bool { return w.text == value }) || len(o.operands) != 1-took {
				t.Errorf("%s -%s: split has %v as values of -%s, and %d operands", line, cluster, given, letter, len(o.operands))
			}
		}
		for _, a := range letters {
			for _, b := range letters {
				try(a + b)
				for _, d := range letters {
					try(a + b + d)
				}
			}
		}
	})
	if programs < 100 || tried < 100_000 {
		t.Errorf("only %d clusters of %d programs and verbs", tried, programs)
	}
}

// The readers of single programs see the same letters: what a cluster names is judged
// wherever it stands in it.
func TestFilesInJoinedLetters(t *testing.T) {
	at := Context{Place: Place{Host: true}, Dir: "/home/dev/shop", Workspace: "/home/dev/shop", Home: "/home/dev"}
	walk(forms(), "", func(line string, f *form) {
		if f.words || f.plain {
			return
		}
		for name, v := range f.options {
			if len(name) != 2 || v.kind != aFile && v.kind != anOutput {
				continue
			}
			for other, o := range f.options {
				if len(other) != 2 || o.kind != "" || other == "-#" {
					continue
				}
				for _, text := range []string{" " + other + name[1:] + ".env a", " " + other + name[1:] + " .env a", " a " + other + other[1:] + name[1:] + " .env"} {
					if j := Judge(line+text, at, ""); j.Verdict == Allow {
						t.Errorf("%q is allowed", line+text)
					}
				}
			}
		}
	})
	if strings.Count(textForms, "=file") < 3 {
		t.Error("the table has changed")
	}
}

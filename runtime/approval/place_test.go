package approval

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// nasty are names that a file of a project may have.
var nasty = []string{"-o", "--output=x", "-exec", "@f", "1emake", "$(id)", "-fprog", "|id", "ext::sh", "--pager=sh", "s/x/id/e", "p", "a=b", "!id", "-", "--", "sub/--to=x", "a -x b", ":/"}

// A way puts names in the place of N, as the shell or a program does.
type way struct {
	from, to string
	splits   bool // at blanks
}

var ways = []way{
	{"P *", "N", false}, {"P x/*", "x/N", false}, {"for f in *; do P \"$f\"; done", "N", false}, {"for f in *; do P $f; done", "N", true}, {"for f in *; do P \"./$f\"; done", "./N", false},
	{"ls | xargs P", "N", true}, {"find . -print0 | xargs -0 P", "./N", false}, {"git ls-files | xargs -I{} P {}", "N", false}, {"rg -l x | xargs -I% P x%", "xN", false}, {"xargs P <<< \"$(ls)\"", "N", true},
	{"find . -exec P {} \\;", "./N", false}, {"find x -exec P {} +", "x/N", false}, {"find . -execdir P {} \\;", "N", false}, {"fd . -x P {/}", "N", false}, {"fd . -X P", "N", false}, {"ls | while read -r f; do P \"$f\"; done", "N", false},
	{"P \"$(ls)\"", "N", false}, {"P \"x$(ls)\"", "xN", false},
}

// A line that puts a name from elsewhere before a program is allowed only if it is with
// each name in its place, as the program is given it.
func TestNamesInTheirPlace(t *testing.T) {
	t.Parallel()
	at := Context{Place: Place{Host: true}, Dir: "/home/dev/shop", Workspace: "/home/dev/shop", Home: "/home/dev"}
	allow := func(line, name string) bool {
		at.Dashed = func() bool { return strings.Contains("/"+name, "/-") }
		at.Spaced = func() bool { return Splits(name) }
		return Judge(line, at, "").Verdict == Allow
	}
	quote := func(name string) string { return "'" + name + "'" }
	allowed, tried, turn, seen := 0, 0, 0, map[string]int{}
	walk(forms(), "", func(line string, f *form) {
		if strings.HasPrefix(line, "xargs") || strings.HasPrefix(line, "find") || strings.HasPrefix(line, "fd") || line == "[[" {
			return // they are the ways, below; or no program
		}
		seen[fmt.Sprint(f.options, f.operands)]++
		befores := []string{"", " x --", " x", " --", " -e x", " p", " .", " p --", " -n 1"}
		for _, name := range slices.Sorted(maps.Keys(f.options)) {
			if v := f.options[name]; v.kind != "" && v.kind != anExec {
				befores = append(befores, " "+name)
			}
		}
		for i, before := range befores {
			some := ways
			if !f.names && !f.apart || i > 1 || seen[fmt.Sprint(f.options, f.operands)] > 1 {
				turn++
				some = []way{ways[turn%len(ways)]}
			}
			for _, w := range some {
				program := line + before
				from := strings.Replace(w.from, "P", program, 1)
				if tried++; !allow(from, "") {
					continue
				}
				for _, name := range nasty {
					if !allow(from, name) {
						continue
					}
					allowed++
					to := quote(strings.Replace(w.to, "N", name, 1))
					if w.splits {
						to = strings.ReplaceAll(to, " ", "' '")
					}
					if !allow(program+" "+to, "") {
						t.Errorf("%s is allowed, but not %s", from, program+" "+to)
					}
				}
			}
			for _, value := range []string{"=*", "=\"$(ls)\"", "*"} {
				option := strings.TrimSpace(before)
				if !strings.HasPrefix(option, "-") || !allow(line+before+value, "") {
					continue
				}
				for _, name := range nasty {
					if to := line + before + quote(strings.NewReplacer("*", name, "\"$(ls)\"", name).Replace(value)); !allow(to, "") {
						t.Errorf("%s is allowed, but not %s", line+before+value, to)
					}
				}
			}
		}
	})
	if allowed < 5000 {
		t.Errorf("only %d of %d lines are allowed: they say nothing", allowed, tried)
	}
}

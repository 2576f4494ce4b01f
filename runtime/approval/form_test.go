package approval

import (
	"maps"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// walk calls f with every program and verb of the table.
func walk(all map[string]*form, at string, f func(line string, x *form)) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		x := all[name]
		line := strings.TrimSpace(at + " " + strings.TrimSuffix(name, "*"))
		if strings.HasSuffix(name, "*") {
			line += "things"
		}
		f(line, x)
		walk(x.verbs, line, f)
	}
}

// plausible are words that are options of some program, or might be of the next
// version of one.
var plausible = strings.Fields(`output exec command config file files files0-from from-file program pager pre editor plugin plugins profile compress-program use-compress-program to-command checkpoint-action rsh hostname-bin eval load import include script init rcfile
	url server endpoint endpoint-url host proxy token password user as kubeconfig-file post-renderer external textconv ext-diff open-files-in-pager upload-pack receive-pack git-dir work-tree exec-path config-env env environment environ debug trace log-http log-file
	web browser edit interactive run shell listen daemon background delete remove write force-write target dest directory-prefix run-diagnostics show-token raw flatten unheard`)

// An option that the table does not list is asked for wherever it stands: whole,
// shortened, joined to another, with a value or without.
func TestWhatTheTableDoesNotList(t *testing.T) {
	at := Context{Place: Place{Host: true}, Dir: "/home/dev/shop", Workspace: "/home/dev/shop", Home: "/home/dev"}
	r := rand.New(rand.NewPCG(1, 2))
	programs, tried := 0, 0
	walk(forms(), "", func(line string, f *form) {
		if f.plain || strings.ContainsAny(line, ":[") {
			return
		}
		programs++
		var letters, words []string
		for l := range strings.SplitSeq("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%", "") {
			_, listed := f.options["-"+l]
			_, digits := f.options["-#"]
			if !listed && !(digits && strings.Contains("0123456789", l)) {
				letters = append(letters, "-"+l)
			}
		}
		for _, w := range plausible {
			words = append(words, "--"+w, "--"+w+"=x", "-"+w)
		}
		for name, v := range f.options {
			switch {
			case len(name) > 5:
				words = append(words, name[:3+r.IntN(len(name)-4)], name+"x")
				if v.kind == "" {
					words = append(words, name+"=x")
				}
			case len(name) == 2 && v.kind == "" && !f.words && len(letters) > 0:
				letters = append(letters, name+letters[r.IntN(len(letters))][1:])
			}
		}
		words = slices.DeleteFunc(words, func(w string) bool {
			name, _, has := strings.Cut(w, "=")
			v, listed := f.options[name]
			if strings.HasPrefix(w, "--") || f.words {
				return listed && (!has || v.kind != "")
			}
			return f.options["-"+w[1:2]] != value{} || !slices.Contains(letters, w[:2]) // its letters are options
		})
		r.Shuffle(len(words), func(i, k int) { words[i], words[k] = words[k], words[i] })
		for _, w := range append(letters, words[:min(len(words), 25)]...) {
			whole := w == "--version" || w == "--help" || slices.ContainsFunc(f.whole, func(s []string) bool { return len(s) == 1 && s[0] == w })
			text := line + []string{" ", " x "}[r.IntN(2)] + w + []string{"", " x"}[r.IntN(2)]
			if whole || (f.first || len(f.verbs) > 0) && strings.Contains(text, " x "+w) {
				continue
			}
			tried++
			if j := Judge(text, at, ""); j.Verdict == Allow {
				t.Errorf("%q is allowed (%s)", text, j.Finding.Tier)
			}
		}
	})
	if programs < 300 || tried < 10_000 {
		t.Errorf("only %d lines of %d programs and verbs", tried, programs)
	}
}

// The letters of the table take values as those of the programs that are here do.
func TestLettersAreThoseOfThePrograms(t *testing.T) {
	entry := regexp.MustCompile(`(?m)^\s+-([A-Za-z0-9])(?:, (?:-\w, )?--[a-z0-9-]+)?(.*)$`)
	valued, bare := regexp.MustCompile(`^(?:=[A-Z<{]| <| ?[A-Z][A-Z_]*(?:\s|$))`), regexp.MustCompile(`^(?:\s{2,}[^-\s]|\t|$)`)
	seen := 0
	for _, name := range strings.Fields("cat tac head tail wc cut tr nl fold fmt expand unexpand column join paste comm cmp diff od strings base64 md5sum cksum uniq sort grep egrep ls stat du df realpath readlink basename mkdir touch cp mv ln tee gzip xz zstd iconv split tar xargs timeout nice stdbuf env id uname nproc sed jq rg fd tree file free ps") {
		out, err := exec.Command(name, "--help").CombinedOutput()
		f := forms()[name]
		if err != nil || f == nil {
			continue
		}
		for _, m := range entry.FindAllStringSubmatch(string(out), -1) {
			v, listed := f.options["-"+m[1]]
			if !listed {
				continue
			}
			switch takes := v.kind != "" && !v.optional; {
			case valued.MatchString(m[2]) && !takes, bare.MatchString(m[2]) && takes:
				t.Errorf("%s %q: in the table it is %+v", name, strings.TrimSpace(m[0]), v)
			default:
				seen++
			}
		}
	}
	if _, err := exec.LookPath("sort"); err == nil && seen == 0 {
		t.Skip("the programs here do not tell their options as GNU's do")
	}
}

// What is written in the table is understood.
func TestTheTableIsSound(t *testing.T) {
	kinds := strings.Fields("text num name file out look pkg mode fmt shape link date pair cmd run chart pattern jq key api region names path bucket queue ids query word var local repo symbol")
	check := func(line string, k kind) {
		if k != "" && !slices.Contains(kinds, string(k)) && !(strings.HasPrefix(string(k), "{") && strings.HasSuffix(string(k), "}")) {
			t.Errorf("%s: %q is no kind", line, k)
		}
	}
	walk(forms(), "", func(line string, f *form) {
		for name, v := range f.options {
			check(line+" "+name, v.kind)
			if strings.HasPrefix(name, "+") || len(name) > 2 && name[1] != '-' && !f.words {
				t.Errorf("%s: %q is no option", line, name)
			}
		}
		for _, k := range f.operands {
			check(line, k)
		}
		if len(f.verbs) > 0 && len(f.operands) > 0 {
			t.Errorf("%s has verbs and operands", line)
		}
	})
}

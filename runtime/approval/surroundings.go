package approval

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// surroundings judges what a program may find around it on this computer, and obey. Those
// that read and write no more than the files they are given are free of it, save that some
// start others by name, or load code; git has rules of its own. Each other one may have
// settings, plug-ins and programs that it starts: in what the environment names, and in
// what was written a moment ago.
func (c *command) surroundings(name string) {
	if c.Place.Disposable || forms()[name] == nil {
		return // what has no form asks anyway
	}
	plain := name == "git" || plainPrograms()[name]
	if c.Leads != nil {
		for _, what := range c.Leads() {
			if !plain || strings.HasPrefix(what, "LD_") || slices.Contains(starters, name) && startersFind.MatchString(what) || name == "git" && gitFinds.MatchString(what) {
				c.find(T3, "may find settings or programs in the project, to which "+what+" leads")
				break
			}
		}
	}
	if c.steeredBefore && !plain {
		c.find(T3, "may obey what the line writes")
	}
}

// plainPrograms are those of the tables of forms that obey nothing but their arguments.
var plainPrograms = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, table := range []string{shellForms, fileForms, textForms} {
		for line := range strings.Lines(table) {
			names, _, _ := strings.Cut(line, ":")
			if line[0] == ' ' || strings.HasPrefix(names, "@") {
				continue
			}
			if alone, _, is := strings.Cut(line, " = "); is {
				names = alone
			}
			for _, n := range strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
				all[n] = true
			}
		}
	}
	for _, n := range strings.Fields("date uname id whoami hostname nproc uptime free df ps pgrep pidof sleep cal tty getconf arch lscpu vmstat iostat") {
		all[n] = true
	}
	all[":"] = true
	for _, n := range scripts {
		delete(all, n)
	}
	return all
})

// scripts start others by their names.
var scripts = []string{"zgrep", "zcat", "bzcat", "xzcat", "zstdcat", "gunzip", "bunzip2", "unxz", "unzstd"}

// starters are plain but for what the environment names: they are texts for a shell, perl
// or python, start a program that unpacks or compares, or take options from a file.
var starters = strings.Fields("tar bsdtar egrep fgrep yq rg shasum colordiff gofmt which file xargs")

// startersFind matches the variables by which they find it, and gitFinds those of git, for
// which the host looks at PATH as well.
var (
	startersFind = regexp.MustCompile(`^(?:PATH|HOME|XDG_CONFIG_\w+|PYTHON\w+|PERL\w+|RIPGREP_\w+)$`)
	gitFinds     = regexp.MustCompile(`^(?:HOME|XDG_CONFIG_\w+|GIT_\w+)$`)
)

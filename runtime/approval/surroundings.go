package approval

import (
	"strings"
	"sync"
)

// surroundings judges what a program may find around it on this computer, and obey. Those
// that read and write no more than the files they are given are free of it; git has rules
// of its own. Each other one may have settings, plug-ins and programs that it starts by
// name: in what the environment names, and in what was written a moment ago.
func (c *command) surroundings(name string) {
	if c.Place.Disposable || name == "git" || plainPrograms()[name] || forms()[name] == nil {
		return // what has no form asks anyway
	}
	if c.Leads != nil {
		if what := c.Leads(); what != "" {
			c.find(T3, "may find settings or programs in the project, to which "+what+" leads")
		}
	}
	if c.steeredBefore {
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

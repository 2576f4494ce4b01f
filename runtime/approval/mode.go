package approval

import (
	"slices"
	"strings"
)

// shellOptions change nothing but when the shell stops, what it shows, and what
// a pattern stands for.
var shellOptions = strings.Fields("errexit nounset xtrace verbose pipefail noglob errtrace functrace noclobber nullglob globstar failglob inherit_errexit nocasematch")

// modes judges the arguments of set and shopt.
func (c *command) modes(set bool, args []word) {
	named := !set
	for _, w := range args {
		switch {
		case !w.static:
			c.find(TX, "sets an option of the shell that is not known")
		case w.text == "--":
			return
		case w.text != "" && strings.Contains("-+", w.text[:1]):
			if strings.Trim(w.text[1:], map[bool]string{true: "euxvfEo", false: "suqp"}[set]) != "" {
				c.find(TX, "changes what programs are given, or what is typed")
			}
			c.trace(w.text)
			named = named || strings.Contains(w.text, "o")
			continue
		case named:
			if !slices.Contains(shellOptions, w.text) {
				c.find(TX, "changes what programs are given, or what is typed")
			}
			c.trace(w.text)
		}
		named = !set
	}
}

// mode judges an argument of a shell that is started.
func (c *command) mode(letters bool, w word) {
	switch {
	case !w.static:
		c.find(TX, "sets an option of the shell that is not known")
	case letters && strings.ContainsAny(w.text, "akH"), !letters && slices.Contains(strings.Fields("allexport keyword history histexpand dotglob globdots cdable_vars lastpipe"), w.text):
		c.find(TX, "changes what programs are given, or what is typed")
	}
	c.trace(w.text)
}

// trace notes that the shell shows the words of what it runs.
func (c *command) trace(option string) {
	if c.traced != nil && (option == "xtrace" || strings.HasPrefix(option, "-") && strings.Contains(option, "x")) {
		*c.traced = true
	}
}

package approval

import (
	"slices"
	"strings"
)

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

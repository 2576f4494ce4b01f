package sandbox

import "strings"

// Quote returns args as words of a POSIX shell command line, each of which the
// shell reads back exactly: nothing is expanded, split or run. Arguments must
// not contain NUL.
func Quote(args ...string) string {
	var b strings.Builder
	for i, arg := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		if arg != "" && strings.IndexFunc(arg, special) < 0 {
			b.WriteString(arg)
			continue
		}
		b.WriteByte('\'')
		b.WriteString(strings.ReplaceAll(arg, "'", `'\''`))
		b.WriteByte('\'')
	}
	return b.String()
}

// special reports whether r needs quoting. Bytes that are not UTF-8 arrive as
// the replacement rune and are quoted too, which keeps them as they are.
func special(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("@%_+:,./-", r)
}

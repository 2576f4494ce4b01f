package approval_test

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// What the shell and the parser read differently is not allowed: a comment that ends in
// a backslash, and quotes in a variable that is in quotes itself.
func TestReadDifferently(t *testing.T) {
	for _, line := range []string{
		"echo a # \\\n./x", "# \\\n./x", "echo $(ls # \\\n./x)", "sh -c 'ls # \\\n./x'", "ls;# \\\r\n./x",
		`echo "${HOME:+'$(./x)'}"`, `echo "${HOME:+$'$(./x)'}"`, `echo "${HOME:+'}"; ./x; : "'}"`, `sh -c 'echo "${HOME:+'"'"'$(./x)'"'"'}"'`,
		"cat <<E\n${HOME:+'$(./x)'}\nE", "cat <<E\n${HOME:+${HOME:+'`./x`'}}\nE", `echo "${HOME:+\'}"; : '; ./x; : "'}"'`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict == approval.Allow {
			t.Errorf("%q is allowed (%s)", line, j.Finding.Tier)
		}
	}
	for _, line := range []string{
		"# a\nls", "ls \\\n  -l # all\ncat a.txt", "echo 'it'\\''s'", `echo "${HOME:-none} it's $(echo 'x')"`, `echo ${HOME:-'a b'}`, "cat <<E\nit's ${HOME:-x}\nE",
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict != approval.Allow {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

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
		"cat <<E\nE\\\n\n./x\nE", "cat <<E\n\\\nE\n./x\nE", "cat <<EOF\nE\\\nO\\\nF\n./x\nEOF", "cat <<-E\n\t\\\nE\n./x\nE", "cat <<E\na b\\\nE\n./x\nE",
		"cat <<E\nx ${HOME:+\nE\n./x\n}\nE", "echo $(cat <<E\na\nE)\n./x\nE\n)", "echo $(cat <<'E'\na\nE)\n./x\nE\n)", "cat <<\"E\\\"\"\nE\"\n./x\nE\\\"", "cat <<E\n$\\\n(./x)\nE", "echo \"$\\\n(./x)\"", "sh -c 'echo \"$\\\n(./x)\"'", "cat <<\\E\n$(x)\nE",
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict == approval.Allow {
			t.Errorf("%q is allowed (%s)", line, j.Finding.Tier)
		}
	}
	for _, line := range []string{
		"# a\nls", "ls \\\n  -l # all\ncat a.txt", "echo 'it'\\''s'",
		"cat <<'E' > a.md\nls \\\n  -l $(x)\nE", "cat <<EOF > a.md\nRUN ls && \\\n  ls\nEOF", "cat <<\"EOF\" > a.md\nx\\\ny\nEOF\nls", "cat <<-EOF\n\ta\n\tEOF\nls", "ls &&\\\ncat a.txt",
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict != approval.Allow {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

package approval_test

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// Bash takes the word after "-v" of test for a variable, and runs what stands in its
// subscript: that word must be in the line, however the option is written.
func TestVariablesOfTest(t *testing.T) {
	for _, line := range []string{
		`test "-v" "$(cat f)"`, `[ '-v' "$(cat f)" ]`, `test \-v "$(cat f)"`, `test -"v" "$(cat f)"`, `x=$(cat f); test "-v" "$x"`, `o=-v; test "$o" "$(cat f)"`, `for o in -v; do for f in *; do test "$o" "$f"; done; done`,
		`for f in *; do test "-v" "$f"; done`, `while read -r f; do [ "-v" "$f" ]; done < f`, `test ! "-v" "$(cat f)"`, `test x = x -a "-R" "$(cat f)"`, `test "-$(cat f)" "$(cat f)"`, `builtin test -v "$(cat f)"`, `command [ -v "$(cat f)" ]`, `for f in *; do builtin test -v "$f"; done`,
		`bash -c 'test "-v" "$0"' x`, `test -v a*`, `[ -v a* ]`, `[ "-v" a* ]`, `builtin test -v a*`, `test *`, `[ * ]`, `test ?v x`, `builtin test -[!e] x`, `x='*'; builtin test $x`,
		// A subscript is worked out, whatever it names.
		`x=$(cat f); test "-v" 'a[x]'`, `x=$(cat f); builtin test -v 'a[x]'`, `x=$(cat f); [[ -v 'a[x]' ]]`, `[[ -v "$(cat f)" ]]`, `for x in $(cat f); do builtin test -v 'a[x+1]'; done`, `x=$(cat f); unset 'a[x]'`, `builtin test $(cat f)`, `builtin [ $(cat f) ]`, `x=$(cat f); builtin test $x`, `test -v$IFS"$(cat f)"`, `x=$(cat f); builtin unset 'HOME[x]'`, `x=$(cat f); wait -n -p 'a[x]'`,
		// A format of printf sets a variable to how much was printed: the path, to a directory of the project.
		`printf 'ab%n' PATH; ls`, `printf -- '%s%-5ln' ab PATH && ls`, `x='ab%n'; printf "$x" PATH; ls`, `printf 'ab%n' BASH_ENV; bash -c ls`, `builtin printf %n PATH`, `printf '%1$n' PATH`,
		// Some make a program of the name of a file.
		`zgrep x $'|\n;e id\n#.gz'`, "zgrep x 'a\nb'", "zgrep -e x -- 'a\nb'",
		// A text that is translated is read again.
		`echo $"hi"`, `TEXTDOMAINDIR=.; TEXTDOMAIN=m; echo $"hi"`, `bash -c 'cat $"hi"'`,
		// A format of git's may hold a sign before the letter.
		`git log -1 --format=%+GG`, `git log -1 --format=%-G?`, `git log -1 --pretty='format:% GK'`, `git show -s --format=x%-GS`, `git log -1 --format=%+-GS`, `git branch --sort=signature`, `git tag -l --sort=-signature:key`, `git for-each-ref --sort=*signature`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict == approval.Allow {
			t.Errorf("%q is allowed (%s)", line, j.Finding.Tier)
		}
	}
	for _, line := range []string{
		`git log -1 --format='%h %an%+b'`, `git tag --sort=-creatordate`, `git branch --sort=-committerdate`, `echo "$(ls)"`,
		`printf '%s: %-20s %5.2f%% %*d\n' a b 1 5 2`, `printf '%(%F)T %b %q\n' -1 'a\n' b`, `printf %s\\n "$(cat f)"`, `printf 'a\nb\n'`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict != approval.Allow {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

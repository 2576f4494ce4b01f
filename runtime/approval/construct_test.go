package approval_test

import (
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// On this computer a line is made of programs and words that are written in it. More of
// the shell is asked for, whatever the commands are; in a sandbox of the session's own it
// is not.
func TestTheShellIsPlainOnThisComputer(t *testing.T) {
	box := onHost
	box.Place = approval.Place{Provider: "acme", ID: "box-1", Disposable: true}
	for _, line := range []string{
		`for f in *.tf; do echo "$f"; done`, `while read -r l; do echo "$l"; done < a.txt`, `if [ -f a ]; then cat a; fi`, `case $HOME in /root) ls ;; esac`, `[[ -f a ]] && ls`, `(cd sub && ls)`, `{ ls; pwd; }`, `x=a; ls`, `cat "$x"`, `cat $(ls)`, `ls {a,b}`, `echo ${x:-a}`, `echo $((x))`, `> a.txt`, `ls 3> a.txt`, `ls >| a.txt`, `ls &> a.txt`, "cat <<E\n$HOME\nE", `cat $'a'`,
		`f() { ls; }; f`, `function f { ls; }; f`, `coproc { cat a; }`, `sleep 1 & wait`, `a=(1 2 3); echo ${a[0]}`, `a[0]=x; ls`, `x+=a; ls`, `((x=1)); ls`, `let x=1; ls`, `i=1; x=$((i+1)); ls`,
		`for ((i=0;i<3;i++)); do echo $i; done`, `select x in a b; do echo $x; done`, `export LC_ALL=C; ls`, `declare -r x=1; ls`, `local x=1; ls`, `readonly x; ls`, `x=HOME; echo ${!x}`, `echo ${!a*}`, `echo ${HOME:0:2}`, `echo ${x:=a}`, `x=a; echo ${x@Q}`,
		`diff <(ls a) <(ls b)`, `ls > >(cat)`, `ls @(a|b)`, `[[ $x -gt 1 ]] && ls`, `[[ $x =~ ^v ]] && ls`, `[[ -v a ]] && ls; ((1))`, `bash -c 'f() { ls; }; f'`, `echo $(f() { ls; }; f)`, "bash <<'E'\nf() { ls; }; f\nE",
	} {
		j := approval.Judge(line, onHost, "")
		said := false
		for _, f := range j.All {
			said = said || strings.Contains(f.Reason, "uses more of the shell than looking takes")
		}
		if j.Verdict == approval.Allow || !said {
			t.Errorf("%q: %s (%s)", line, j.Verdict, j.Finding.Reason)
		}
		for _, f := range approval.Judge(line, box, "").All {
			if strings.Contains(f.Reason, "uses more of the shell") {
				t.Errorf("%q in a sandbox: %s", line, f.Reason)
			}
		}
	}
	for _, line := range []string{
		`ls && cat a.txt | sort | uniq -c`,
		`echo $((2 + 3))`, `! grep -q x a`, `time ls`, `echo "$(git rev-parse HEAD)"`, `ls 2>/dev/null || true`, "cat <<E\nx\nE", `cat <<< x`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict != approval.Allow {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// Names of files that stand in the text of a program are not known.
func TestNamesInTexts(t *testing.T) {
	for line, want := range map[string]approval.Verdict{
		`for f in *; do sed -n "/$f/p" a.txt; done`: approval.Ask, `for f in */*; do sed -e "/$f/p" a.txt; done`: approval.Ask, `for f in *; do git log --format=$f; done`: approval.Ask, `for f in *; do git log --format="$f"; done`: approval.Ask,
		`sed -n '/a.*b/p' a.txt`: approval.Allow, `sed 's/[ab]*/x/' a.txt`: approval.Allow, `git log --format='%h %s'`: approval.Allow, `for f in *.tf; do sed -n 1,3p "$f"; done`: approval.Ask,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict != want {
			t.Errorf("%q: %s (%s, %s), want %s", line, j.Verdict, j.Finding.Tier, j.Finding.Reason, want)
		}
	}
}

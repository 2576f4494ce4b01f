package approval_test

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// What a variable or a word is, when the line runs, is not what it was when it was read
// once from the left to the right.
func TestReadAgain(t *testing.T) {
	for _, line := range []string{
		// A loop runs again with what it left.
		`x=f; while true; do sort $x big; x=--compress-program=./evil; done`, `x=f; until sort $x big; do x=--compress-program=./evil; done`, `x=f; for i in *; do sort $x big; x=--compress-program=./evil; done`,
		`x=f; while read y; do sort $x big; x=--compress-program=./evil; done < f`, `x=f; y=f; z=f; while :; do sort $z big; z=$y; y=$x; x=--compress-program=./evil; done`, `x=f; while true; do cat $x; x=../../etc/shadow; done`,
		`x=f; while true; do cp f $x; x=/etc/y; done`, `x=.; while true; do ls $x; cd $x; cat l; x=..; done`, `while test -v $x; do read x; done < f`, `x=f; while x=$y; sort $x big; do y=--compress-program=./evil; done`,
		`x=f; for i in 1; do while :; do sort $x big; x=--compress-program=./evil; done; done`,
		`while :; do while :; do while :; do while :; do while :; do while :; do ls; done; done; done; done; done; done`,
		// A command whose redirection fails does not run; what it would have set is not set.
		`x=--compress-program=./evil; x=f < /usr/none; sort $x big`, `x=--compress-program=./evil; { x=f; } < /usr/none; sort $x big`, `x=--compress-program=./evil; while x=f; false; do :; done < /usr/none; sort $x big`,
		`x=--compress-program=./evil; if x=f; then :; fi < /usr/none; sort $x big`, `x=--compress-program=./evil; x=f > d/none; sort $x big`, `{ TOKEN=x; } < /usr/none; echo $TOKEN`,
		// Braces are read before variables.
		`x=a; xb=--compress-program=./evil; sort $x{b,c} big`, `x=a; xb=../../etc/shadow; cat $x{b,c}`, `b=--compress-program=./evil; sort {f,$}b`, `xz=/etc/shadow; x=a; cat {$x,b}z`, `bash -c 'x=a; xb=/etc/shadow; cat $x{b,c}'`, `x=a; xb=/etc/shadow; cat $x{,.c}b`,
		// A variable beside braces is text only in quotes, and if it is known.
		`f=README.md; cp $f{,.bak}`, `d=sub; ls $d/{a,b}`, `ls "$d"/{a,b}`, `d=sub; ls "${d}"/{a,"$e"}`, `ls {a,$(cat f)}`,
		// What sets a variable more than once, or where it may not, makes it unknown.
		`x=f; x=f; sort $x big`, `x=f; sort $x big; x=f`, `sort $x big; x=f; sort $x big`, `cd d && x=f; sort $x big`, `cd d || x=f; sort $x big`, `cd d && JAVA_HOME=f; sort $JAVA_HOME big`, `JAVA_HOME=f < f; sort $JAVA_HOME big`, `! JAVA_HOME=f; sort $JAVA_HOME big`, `test -n "$x"; x=f; sort $x big`, "echo $((1/0)); x=f\nsort $x big", "echo $((1/0)); \\\nx=f\nsort $x big", `x=f || true; sort $x big`, `x=f | cat; sort $x big`, `x=f & sort $x big`, `(x=f; sort $x big)`, `{ x=f; sort $x big; }`, `if x=f; then sort $x big; fi`, `x=f true; sort $x big`,
		`y=f; x=$y; sort $x big`, `x=f; sh -c 'sort $x big'`, `x=f; sh -c 'x=g; ls'; sort $x big`, `x=f; read x < f; sort $x big`, `x=f; (read x < f); sort $x big`, `x=f; unset x; sort $x big`, `x=f; env x=g ls; sort $x big`, `x=f; for x in a; do sort $x big; done`, `for x in a b; do :; done; sort $x big`, `for x in a; do sort $x big; done; for x in b; do sort $x big; done`,
		`for x in {a,b}; do sort $x big; done`, `for x in a; do for x in b; do sort $x big; done; done`, `x='\.env'; cat $x`, `cd sub; ls "$PWD"`, `x=f; ls "$PWD"; cd sub`, `LINES=f; sort $LINES big`, `_=f; sort $_ big`,
		// A subscript is worked out, and sets what it names.
		`x=f; [[ -v 'a[x=-5]' ]]; sort $x big`, `x=f; [ -v 'a[x=-5]' ]; sort $x big`, `x=f; test -v 'a[--x]'; sort $x big`, `x=f; unset 'a[x=-5]'; sort $x big`, `x=f; read 'a[x=-5]' < f; sort $x big`,
		// A home may stand after "=" and ":".
		`cp f a=~/bin/ls`, `tee a=~/go/x < f`, `cat a=~/notes`, `echo x > a=~/x`, `x=foo:~/bar; cat "$x"`, `cat a={~,b}/x`, `bash -c 'cp f a=~/bin/ls'`,
		// A text that ends later in a set of characters, on some machines.
		`sed -n 's/[[.].]/]/;/w file/p' f`, `sed 's/[[=]=]/]/;/w file/p' f`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict == approval.Allow {
			t.Errorf("%q is allowed (%s)", line, j.Finding.Tier)
		}
	}
	for _, line := range []string{

		`ls "$PWD"`,
		`git log HEAD~1..HEAD --oneline`, `sed 's/[a-z]*/x/g' f`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict != approval.Allow {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// A shell that knows no braces and no "$'" takes them for the names of files; and it
// runs what stands before a line that it cannot read.
func TestPlainShellOnHost(t *testing.T) {
	c := onHost
	c.Real = func(name string) string {
		if name == c.Workspace+"/{p,q}" || name == c.Workspace+"/$a" {
			return "/etc/shadow"
		}
		return name
	}
	for line, allowed := range map[string]bool{
		`cat {p,q}`: false, `tee {p,q} < f`: false, `cat $'a'`: false, "cat $'a'\ncat <<< x": false, `sh -c 'cat {p,q}'`: false,
	} {
		if j := approval.Judge(line, c, ""); (j.Verdict == approval.Allow) != allowed {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

package approval

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/tool"
)

func TestFilesOfCredentialsInATree(t *testing.T) {
	t.Parallel()
	at := Context{Place: Place{Host: true}, Dir: "/w", Workspace: "/w", Home: "/home/me", Secrets: func() []string { return []string{"/w/.env", "/w/tls/server.pem"} }}
	for line, want := range map[string]Verdict{
		"grep -r X .": Ask, "grep -rn X": Ask, "grep -r X src": Allow, "grep -d recurse X .": Ask,
		"grep -r X * ": Ask, "grep -r --include='*.tf' X .": Allow, "grep -r --include='*' X .": Ask,
		"grep -r --exclude=.env --exclude='*.pem' X .": Allow, "grep -r --exclude=.env X .": Ask, "grep -r --exclude-dir=tls --exclude='.env*' X .": Allow,
		"rg X": Ask, "rg X -g '!*.pem'": Allow, "rg X -g '!tls'": Allow, "rg --hidden X -g '!*.pem'": Ask, "rg -t go X": Allow, "rg X src": Allow, "rg -g '*.tf' X": Allow, "cat a | rg X": Allow,
		"cat *": Allow, "cat tls/*": Ask, "cat */*": Ask, "cat .*": Ask, "head -1 src/*": Allow,
		"tar czf a.tgz .": Ask, "tar tf a.tgz": Allow,
		"zip -r a.zip .": Ask, "zip -r a.zip src": Ask, "cp -r tls copy": Ask, "rsync -a ./ out": Ask, "diff -r src tls": Ask, "diff -rq src tls": Allow,
		"find . -type f -exec grep X {} +": Ask, "find . -name '*.tf' -exec grep X {} +": Allow, "find src -type f -exec cat {} +": Allow,
		"find . -name '*.tf' -o -name '*.go' | xargs grep X": Allow, "find . -name '*.tf' -o -type f | xargs grep X": Ask, "find . -type f | xargs cat": Ask, "find src -type f | xargs cat": Allow,
		"git ls-files | xargs grep X": Ask, "git ls-files '*.go' | xargs grep X": Allow, "rg -l X src | xargs head": Allow,
	} {
		if j := Judge(line, at, ""); j.Verdict != want {
			t.Errorf("%s: %v (%s), want %v", line, j.Verdict, j.Finding.Reason, want)
		}
	}
}

func TestProgramTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`.`: true, `.items[].metadata.name`: true, `.items[] | select(.status.phase == "Running") | .metadata.name`: true, `map(select(.a > 1)) | length`: true, `to_entries[] | "\(.key)=\(.value.x)"`: true,
		`{name: .metadata.name, env: .spec.env, kind}`: true, `[.[] | {a, b: .c}] | sort_by(.a) | .[0:3] | @csv`: true, `.a as $x | $x.b // "no"`: true, `. as [$a, {b: $c}] | $a + $c`: true, `.env`: true, `keys[] | test("^env")`: true,
		`env`: false, `$ENV`: false, `$ ENV`: false, "$\nENV.PATH": false, `"\(env)"`: false, `{a: env}`: false, `{(env): 1}`: false, `$__prog_args`: false, `include "x"; .`: false, `import "x" as y; .`: false, `input_filename`: false, `. # x`: false, `def f: env; f`: false,
		`"a\(1 + (env|length))"`: false, `{a, env: env}`: false, `get_search_list`: false, `. as $env | env.PATH`: false,
	} {
		if filters(text, nil) != want {
			t.Errorf("jq %s: want %v", text, want)
		}
	}
	for text, want := range map[string]bool{
		`.metadata.my-label`: true, `.a | sort_keys(..)`: true, `.image = "x:1"`: true, `load("x")`: false, `strenv(X)`: false, `env(X)`: false, `"x" | envsubst`: false, `.a | eval`: false, `load_str("/etc/passwd")`: false, `"a\" | load(\"f\") | \"b"`: false, `system("id")`: false,
	} {
		if filters(text, yqWords) != want {
			t.Errorf("yq %s: want %v", text, want)
		}
	}
	for text, want := range map[string]bool{
		`{print $1}`: true, `NR==1{print $NF}`: true, `$3 > 100 {n++} END {print n/NR}`: true, `/error/ && !/debug/ {print $1, $2}`: true, `BEGIN{FS=":"} {printf "%s\n", $1}`: true, `{a[$1]+=$2} END {for (k in a) print k, a[k]}`: true, `length($0) > 80`: true, `/^[a-z]+$/`: true,
		`{print (a > b)}`: true, `{if ($5 > 80) print $6 " " $5}`: true, `!seen[$0]++`: true, `{s = s $1; gsub(/\//, "-")} END {print s}`: true, "{\n  x = $1 / 2\n  print x\n}": true,
		`{print > "f"}`: false, `{print $1 >> "f"}`: false, "{print $1,\n$2 > \"f\"}": false, `{print | "sh"}`: false, `{print |& "sh"}`: false, `{system($1)}`: false, `{system ($1)}`: false, `BEGIN{getline x < "f"}`: false, `BEGIN{while (("id" | getline l) > 0) print l}`: false,
		`BEGIN{print ENVIRON["X"]}`: false, `BEGIN{f="system"; @f("id")}`: false, `@include "x"`: false, `BEGIN{ARGV[1]="x"}`: false, `{if(1)/"/;system("x")/"/}`: false, `{x++/system("x")/1}`: false, `/[]/ "]/;{system(x)} #"`: false, `/[\]/"]/;{system(x)} #"/`: false,
		"{print \"a\\\n\" > \"f\"}": false, `{close("x")}`: false, `function f(x) {return x}`: false, `{length /x/; system("y") /}`: false, `{printf("a") > "f"}`: false, `{print(1)(2) > "f"}`: false,
	} {
		if awkLooks(text) != want {
			t.Errorf("awk %s: want %v", text, want)
		}
	}
}

// Names that come out of a program's own rules for them.
func TestNamesMadeByPrograms(t *testing.T) {
	t.Parallel()
	at := Context{Place: Place{Host: true}, Dir: "/w", Workspace: "/w", Home: "/home/me"}
	for _, line := range []string{
		`gunzip mise.toml-gz`, `gunzip Jenkinsfile-gz`, `gunzip Jenkinsfile_z`, `gunzip -f lefthook.yml-Z`, `gzip -d Jenkinsfile_GZ`,
		`tar cCf src .envrc a.go`, `tar cfC .envrc src a.go`, `tar vcCf . .git/hooks/pre-commit a`,
	} {
		if j := Judge(line, at, ""); j.Verdict == Allow {
			t.Errorf("%s: %v (%s)", line, j.Verdict, j.Finding.Reason)
		}
	}
}

// A pattern that is given by an option leaves the first operand a file, and a mode
// that is set for all is set for hooks.
func TestOperandsByOptions(t *testing.T) {
	t.Parallel()
	at := Context{Place: Place{Host: true}, Dir: "/w", Workspace: "/w", Home: "/home/me"}
	for line, want := range map[string]Verdict{
		`grep -ie A .env`: Ask, `grep -vf a.txt .env`: Ask, `grep -A1 -hie x ~/.aws/credentials`: Ask, `grep -ie A /etc/shadow`: Ask, `rg -oe . .env`: Ask, `rg -nf a.txt .env`: Ask, `zgrep -ie A .env`: Ask, `egrep -oe . .env`: Ask, `fgrep -cne A .env`: Ask, `grep -rie A ~/.ssh`: Ask,
		`grep -ie A main.tf`: Allow, `grep -i env main.tf`: Allow, `rg -n .env src`: Allow, `grep -rn -e A -e B src`: Allow,
		`yq -n 'env.PATH'`: Ask, `yq env.PATH a.yml`: Ask, `yq deploy/a.yml`: Allow, `yq -oj a.yaml`: Allow,
		`sed -i.ex '1e touch x' a.txt`: Ask, `sed -i.ep '1w .envrc' a.txt`: Ask, `sed -n -i.exp '1e id' a.txt`: Ask, `sed -i.fx '1e id' a.txt`: Ask, `sed -i.bak s/a/b/ a.txt`: Allow, `sed -i.e s/a/b/ a.txt`: Allow, `sed -i.orig -e s/a/b/ a.txt`: Allow,
		`ls | xargs -in python3 cat`: Ask, `ls | xargs -iP python3 cat`: Ask, `ls | xargs -la python3 cat`: Ask, `ls | xargs -n1 cat`: Allow,
		`xz -t -d mise.toml.xz`: Ask, `xz -ld Jenkinsfile.xz`: Ask, `zstd -td mise.toml.zst`: Ask, `bzip2 -td Jenkinsfile.bz2`: Ask, `xz -lz .envrc`: Ask, `xz -t a.xz`: Ask, `gzip -l a.gz`: Ask, `zstd -dc mise.toml.zst`: Allow,
		`chmod -R +x .`: Ask, `chmod -R u+w *`: Ask, `chmod -R +x scripts`: Allow, `chmod +x run.sh`: Allow,
	} {
		if j := Judge(line, at, ""); j.Verdict != want {
			t.Errorf("%s: %v (%s), want %v", line, j.Verdict, j.Finding.Reason, want)
		}
	}
}

// A rule is for the project: its words mean other files elsewhere.
func TestRulesStayInTheProject(t *testing.T) {
	t.Parallel()
	rules, err := ParseRules([]string{"make test", "rm -rf build", "git push"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := Policy{Mode: Smart, Rules: rules, Context: Context{Dir: "/w", Workspace: "/w", Project: "/w", Home: "/home/me"}}
	for line, want := range map[string]bool{
		"make test": true, "cd sub && make test": true, "cd /w/sub; rm -rf build": true, "git push": true, "make test && git push": true,
		"cd /tmp/x && make test": false, "cd .. && rm -rf build": false, "cd /; rm -rf build": false, `cd "$(cat a)" && make test`: false, "cd ../other && git push": false, "(cd ~; rm -rf build)": false, "pushd /tmp; make test": false,
	} {
		d, err := p.Approve(t.Context(), Request{Tool: "execute", Place: Place{Host: true}, Plan: tool.Plan{Effect: tool.Runs, Command: line}})
		if err != nil || d.Allow != want {
			t.Errorf("%s: %v (%s), want %v; %v", line, d.Allow, d.Reason, want, err)
		}
	}
}

// The tool that searches leaves files of credentials out, but not in git's own directory.
func TestSearchOfATreeWithCredentials(t *testing.T) {
	t.Parallel()
	p := Policy{Mode: Manual, Context: Context{Workspace: "/w", Home: "/home/me", Secrets: func() []string { return []string{"/w/.env", "/w/tls/server.pem", "/w/.git/config"} }}}
	for _, x := range []struct {
		name, path string
		want       bool
	}{{"grep", "/w", true}, {"grep", "/w/.env", false}, {"grep", "/w/.git", false}, {"grep", "/w/src", true}, {"grep", "/w/main.tf", true}, {"glob", "/w", true}, {"ls", "/w", true}, {"read_file", "/w/main.tf", true}, {"read_file", "/w/.env", false}} {
		d, err := p.Approve(t.Context(), Request{Tool: x.name, Place: Place{Host: true}, Plan: tool.Plan{Effect: tool.Reads, Path: x.path}})
		if err != nil || d.Allow != x.want {
			t.Errorf("%s %s: %v (%s), want %v; %v", x.name, x.path, d.Allow, d.Reason, x.want, err)
		}
	}
}

// A directory that was put somewhere in the same line holds what nobody looked into.
func TestReadingWhatWasPutThere(t *testing.T) {
	t.Parallel()
	c := Context{Place: Place{Host: true}, Dir: "/w", Workspace: "/w", Home: "/home/me", Secrets: func() []string { return []string{"/w/tls/server.key"} }}
	for line, allowed := range map[string]bool{
		`ln -s tls t; cat t/*`: false, `ln -s tls t && grep -r x t/`: false, `mv tls x && grep -rh . x`: false, `mv tls x; cat x/*`: false, `mv tls x; head */*`: false, `mv a b; grep -r x src`: true, `mv a b; cat src/*`: true, `mv a b; cat b`: true,
	} {
		if j := Judge(line, c, ""); (j.Verdict == Allow) != allowed {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

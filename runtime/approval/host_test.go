package approval_test

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// What is asked for on the user's computer, because it shows logins, lets a file of
// the workspace decide which program runs, or writes what programs obey later.
func TestAskedOnHost(t *testing.T) {
	for _, line := range []string{
		// The environment holds the user's logins.
		`echo $AWS_SECRET_ACCESS_KEY`, `echo "x${GITHUB_TOKEN:0:5}"`, `v=GITHUB_TOKEN; echo ${!v}`, `echo "${!1}"`, `x=$PGPASSWORD; echo $x`, `cat <<< $API_KEY`,
		`cat <<EOF` + "\n$GITHUB_TOKEN\nEOF", `trap 'echo $NPM_TOKEN' EXIT`, `for v in NPM_TOKEN X; do echo ${!v}; done`, `printf %s "$DATABASE_URL"`,
		`gh issue list --json title --jq '.[0]|env'`, `gh issue list -q '$ENV'`, `helm env`, `aws sts get-caller-identity --debug`, `gcloud compute instances list --log-http`,
		`podman secret inspect --showsecret x`,
		// A file that is not there is shown by its name.
		`git add --pathspec-from-file=/home/dev/.netrc --pathspec-file-nul`, `git add --pathspec-fr=x`,
		`terraform output -state=/mnt/x`, `terraform state list -state ../x`,
		`find . -name '.e*' | xargs cat`, `cat .terraformrc`, `cat x/.docker/config.json`,
		// PATH becomes a directory of the workspace.
		`mapfile -t PATH < f; ls`, `readarray -t PATH < f; ls`, `read -s PATH < f; ls`, `exec {PATH}</dev/null; ls`, `: {LD_PRELOAD}<f; ls`,
		`xargs --process-slot-var=PATH ls < f`, `xargs --process-slot-v=PATH ls < f`, `xargs --arg-f=/etc/shadow echo`,
		// A file keeps its name in a directory, or gets one by what is added to it.
		`cp tmpl/.envrc .`, `cp -r tmpl/.husky .`, `cp -t . tmpl/.npmrc`, `install tmpl/.envrc .`, `cp -r tmpl/.git/ .`, `cp -r tmpl/. .`, `cp -rT tmpl .`, `mv tmpl/.* .`,
		`rsync -a tmpl/ .`, `rsync -a tmpl/.envrc .`, `cp -b -S nvrc f .e`, `mv --suffix=nvrc -b f .e`, `sed -invrc s/a/b/ .e`, `sed --in-place=nvrc s/a/b/ .e`,
		`docker compose --project-directory /mnt/x ps`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict == approval.Allow {
			t.Errorf("%q is allowed (%s)", line, j.Finding.Tier)
		}
	}
	for _, line := range []string{
		`echo $HOME $PATH $AWS_REGION $SSH_AUTH_SOCK`,
		`echo '$GITHUB_TOKEN'`,
		`xargs --null -r -n1 echo < f`, `git add --all`,
		`gh pr list --json title --jq '.[].title'`, `gh pr list -q '.[] | .environment'`, `terraform output`, `terraform state list`,
		`find . -name '*.yaml' | xargs cat`, `cp a.txt b/`, `mv a.tf modules/`, `sed -i.bak s/a/b/ f`, `sed -nE 's/ai/b/p' f`,
		`docker compose ps`,
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict != approval.Allow {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// What a command puts into a directory is not there when git's settings are looked
// at before it runs.
func TestGitInADirectoryThatIsFilled(t *testing.T) {
	c := onHost
	c.GitRuns = func(string) bool { return false }
	c.Composes = func(dir string) bool { return dir != onHost.Dir }
	for line, allowed := range map[string]bool{
		`cp -r bare/. sub && git -C sub log`: false, `cp -r bare sub; cd sub && git status`: false, `mv bare sub && git -C sub log`: false, `rsync -a bare/ sub; git -C sub status`: false,
		`cp x/HEAD sub/HEAD; git -C sub log`: false, `echo x > sub/config; git -C sub log`: false, `(cp -r bare sub); git -C sub log`: false,
		`mv a b && git add -A && git diff --cached`: true, `git -C sub log`: true, `cp a.txt sub/; git -C sub log`: true,
		`docker compose ps`: true, `cd sub && docker compose ps`: false, `cd sub && docker compose ls`: false, `cd sub && docker-compose version`: false,
	} {
		if j := approval.Judge(line, c, ""); (j.Verdict == approval.Allow) != allowed {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

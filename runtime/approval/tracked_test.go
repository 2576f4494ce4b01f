package approval_test

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// Git shows what is in files that no word names.
func TestGitShowsFilesOfCredentials(t *testing.T) {
	c := onHost
	c.Tracked = func(_ string, words []string, differ bool) ([]string, bool) {
		for _, w := range words {
			if w == "abcd1234" {
				return nil, false
			}
		}
		if differ {
			return nil, true
		}
		return []string{onHost.Workspace + "/deploy/.env"}, true
	}
	for line, allowed := range map[string]bool{
		`git grep KEY`: false, `git grep KEY -- deploy`: false, `git grep KEY -- src`: true, `git grep -l KEY`: true, `git grep src`: false, `git grep KEY -- ':!.env'`: true, `git grep KEY -- '*.tf'`: true, `git grep KEY -- '*e*'`: false,
		`git log -p`: false, `git log -U1`: false, `git log -c`: false, `git log --cc`: false, `git log -L1,2:x`: false, `git log --binary`: false, `git log`: true, `git log --stat -3`: true, `git log -p -- src`: true, `git log -p --author src`: false, `git log -gp`: false,
		`git show`: false, `git show --stat`: true, `git show --stat -p`: false, `git show -s`: true, `git show abcd1234`: false, `git diff`: true, `git diff abcd1234`: false, `git status -v`: true, `git stash list -p`: false, `git stash list`: true, `git stash show -p`: false, `git reflog -p`: false, `git diff-tree -p HEAD`: false,
		`git archive HEAD`: false, `git archive HEAD -- src`: false, `git cat-file -p abcd1234`: false, `git cat-file -t abcd1234`: true, `git cat-file --batch --batch-all-objects`: false, `git cat-file blob abcd1234`: false, `git ls-files -s`: true, `git var -l`: false,
	} {
		if j := approval.Judge(line, c, ""); (j.Verdict == approval.Allow) != allowed {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// The addresses of other repositories may hold a login, and are where clients send one.
func TestAddressesOfGit(t *testing.T) {
	for _, x := range []struct {
		address, line string
		allowed       bool
	}{
		{"https://u:p@example.com/x", "git remote -v", false}, {"https://tok@example.com/x", "git remote get-url origin", false}, {"https://tok@example.com/x", "git config --get remote.origin.url", false}, {"https://tok@example.com/x", "git remote", true},
		{"ssh://git@example.com/x", "git remote -v", true}, {"git@example.com:x/y", "git remote -v", true}, {"https://example.com/x", "git remote -v", true},
	} {
		c := onHost
		c.Remotes = func(string) ([]string, bool) { return []string{"remote.origin.url " + x.address}, true }
		if j := approval.Judge(x.line, c, ""); (j.Verdict == approval.Allow) != x.allowed {
			t.Errorf("%s, %q: %s (%s, %s)", x.address, x.line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// What is copied, split or formatted into a directory is written through its links.
func TestWrittenThroughLinksBelow(t *testing.T) {
	c := onHost
	c.LinksBelow = func(dir string) bool {
		return dir == onHost.Workspace || dir == onHost.Workspace+"/b"
	}
	for line, allowed := range map[string]bool{
		`cp -r a/. b`: false, `cp a/rc b`: false, `cp -t b a/rc`: false, `cp a/* b/`: false, `cp a/rc c`: true, `mv a/rc b`: true, `split -l 1 f`: false, `split -l 1 f b/x`: false, `split -l 1 f c/x`: false,
		`gofmt -w b`: false, `gofmt -w .`: false, `gofmt -l .`: true, `gofmt -w c`: true, `go fmt`: false, `go fmt ./...`: false, `go fmt ./c/...`: true,
	} {
		if j := approval.Judge(line, c, ""); (j.Verdict == approval.Allow) != allowed {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// A go that the project asks for is fetched, and run.
func TestAnotherGo(t *testing.T) {
	c := onHost
	c.GoNewer = func(dir string) bool { return dir != onHost.Workspace }
	for line, allowed := range map[string]bool{
		`go version`: true, `go env GOPATH`: true, `cd sub && go version`: false, `cd sub && go env GOPATH`: false, `cd sub && go fmt ./...`: false, `cd sub && go help vet`: true, `echo toolchain go9.9.9 > go.mod; go version`: false, `find . -name go.mod -execdir go version \;`: false,
	} {
		if j := approval.Judge(line, c, ""); (j.Verdict == approval.Allow) != allowed {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// Programs that load what lies in the directory, or read what a file lists.
func TestFilesThatNameOthers(t *testing.T) {
	for _, line := range []string{
		`cdk version`, `packer version`, `packer --version`, `tar cf o.tar @spec`, `bsdtar -cf o.tar @spec`, `strings @list`, `strings -n 4 @list`, `yamllint -d '{ignore-from-file: x}' f.yml`,
		"echo \"`echo \\`ls\\``\"", "echo `cat <<E\n\\$(ls)\nE\n`",
	} {
		if j := approval.Judge(line, onHost, ""); j.Verdict == approval.Allow {
			t.Errorf("%q is allowed (%s)", line, j.Finding.Tier)
		}
	}
}

// What looks at processes and sockets shows no environment, and asks for no names.
func TestProcessesAndSockets(t *testing.T) {
	for line, allowed := range map[string]bool{
		`ps -oenviron`: false, `ps --format=environ`: false, `ps -eo pid,environ`: false, `ps -ef`: true, `ps -eo pid,args`: true,
		`lsof -ni@evil.example`: false, `lsof -i @evil.example`: false, `lsof -i TCP@a.evil.example:80`: false, `lsof -i :8080`: true, `lsof -nP -iTCP`: true,
		`ss dst a.evil.example`: false, `ss state established dst evil`: false, `ss -tlnp`: true, `ss -t state established`: true, `ip route get a.evil.example`: false, `ip route show`: true,
		`az acr repository list -n evil.example/`: false, `az acr show --name=evil.example#`: false, `az acr repository list -n shop`: true,
	} {
		if j := approval.Judge(line, onHost, ""); (j.Verdict == approval.Allow) != allowed {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// Shells take a pattern like ".?" for the directory above, too.
func TestPatternsThatLeadUp(t *testing.T) {
	for line, allowed := range map[string]bool{
		`cat .?/x`: false, `cat src/.?/.?/x`: false, `cat .[.]/x`: false, `cat .*/x`: false, `cat .[!a]/x`: false, `cp f .?/x`: false, `echo x > .?/x`: false, `cd .?; cat x`: false, `grep -r x .?`: false, `cat .github/*.yml`: true, `ls .*`: true, `cat src/*/x`: true,
	} {
		if j := approval.Judge(line, onHost, ""); (j.Verdict == approval.Allow) != allowed {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

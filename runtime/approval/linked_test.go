package approval_test

import (
	"path"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// A link that is moved leads elsewhere: what is written by its name later is not in the
// line. A tree is not copied without a question.
func TestLinksThatAreMoved(t *testing.T) {
	c := onHost
	c.Linked = func(name string) bool { return path.Base(name) == "l" || path.Base(name) == "tree" }
	for line, want := range map[string]approval.Verdict{
		`mv l k`: approval.Ask, `mv ./l k`: approval.Ask, `mv tree to; tee to/l < f`: approval.Ask, `mv a l b`: approval.Ask, `nice mv l k`: approval.Ask, `mv * k`: approval.Ask,
		`cp -P l k`: approval.Ask, `cp -a l k`: approval.Ask, `cp -r tree to`: approval.Ask, `cp -l l k`: approval.Ask, `ln -s a b`: approval.Ask, `ln a b`: approval.Ask,
		`mv plain k`: approval.Allow, `mv a b c`: approval.Allow, `cp l k`: approval.Allow,
	} {
		if j := approval.Judge(line, c, ""); j.Verdict != want {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// A copy into a directory is written through a link that has its name there.
func TestLinksThatAreCopiedTo(t *testing.T) {
	c := onHost
	c.Real = func(name string) string {
		if to, is := map[string]string{"/w/d/x": "/w/.git/config", "/w/d/y": "/w/b.txt", "/w/d/z": "/home/dev/z"}[strings.Replace(name, onHost.Workspace, "/w", 1)]; is {
			return strings.Replace(to, "/w", onHost.Workspace, 1)
		}
		return name
	}
	for line, want := range map[string]approval.Verdict{
		`cp src/x d/`: approval.Ask, `cp src/x d`: approval.Ask, `cp -f a.txt x ./d/.`: approval.Ask, `cp -n src/x src/../d`: approval.Ask, `cp src/z d`: approval.Ask,
		`cp src/y d`: approval.Allow, `cp a.txt d`: approval.Allow, `cp src/x e`: approval.Allow, `mv src/x d`: approval.Allow,
	} {
		if j := approval.Judge(line, c, ""); j.Verdict != want {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

// Where files may become a repository, git finds another one than was looked at as soon
// as the line writes, or adds.
func TestRepositoriesThatAreMade(t *testing.T) {
	for _, embeds := range []bool{true, false} {
		c := onHost
		c.GitRuns = func(string) bool { return false }
		c.Embeds = func() bool { return embeds }
		for _, line := range []string{
			`mkdir -p b/objects b/refs && cd b && git status`, `mkdir b/objects b/refs; git -C b status`, `touch b/objects/x && cd b && git log -3`, `chmod +x b/objects b/refs && git -C b log -3`,
			`mv b/objs b/objects && git -C b diff`, `echo x > b/refs/x; git -C b ls-files`, `git add n && git status`, `git -C b status | mkdir b/objects b/refs`, `nice git -C b status | cat | tee b/objects/x`,
		} {
			want := approval.Allow
			if embeds {
				want = approval.Ask
			}
			if j := approval.Judge(line, c, ""); j.Verdict != want {
				t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
			}
		}
		for _, line := range []string{`git status`, `git add a.txt`, `git status && touch a.txt`, `cd b && git log -3`} {
			if j := approval.Judge(line, c, ""); j.Verdict != approval.Allow {
				t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
			}
		}
	}
}

// What a line adds to the index, or need not be in it, git shows, too.
func TestCredentialsThatAreAdded(t *testing.T) {
	c := onHost
	c.Tracked = func(string, []string, bool) ([]string, bool) { return nil, true }
	c.Secrets = func() []string { return []string{onHost.Workspace + "/.env"} }
	for line, want := range map[string]approval.Verdict{
		`git add .env && git diff --cached`: approval.Ask, `git add -N . ; git diff`: approval.Ask, `git add -A && git status -vv`: approval.Ask, `git add -f .; git grep x`: approval.Ask, `git grep --untracked x`: approval.Ask, `git diff --cached | git add .env`: approval.Ask,
		`git add . && git diff --cached --stat`: approval.Allow, `git add a.txt && git diff --cached -- a.txt`: approval.Allow, `git add -A && git grep x -- ':!.env'`: approval.Allow, `git diff --cached`: approval.Allow, `git grep x`: approval.Allow, `echo x > a.txt; git diff`: approval.Allow,
	} {
		if j := approval.Judge(line, c, ""); j.Verdict != want {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

package approval_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// A copy of a link leads where the link does, or elsewhere: what is written by its name
// is not in the line.
func TestCopiesOfLinks(t *testing.T) {
	c := onHost
	c.Workspace = t.TempDir()
	c.Dir = c.Workspace
	for _, dir := range []string{"tree", "plain"} {
		if err := os.Mkdir(filepath.Join(c.Dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"l": ".git/config", "tree/l": "../.git/config"} {
		if err := os.Symlink(to, filepath.Join(c.Dir, name)); err != nil {
			t.Skip(err)
		}
	}
	for line, want := range map[string]approval.Verdict{
		`cp -P l k; cat f > k; git status`: approval.Ask, `cp -d l k; cat f > k`: approval.Ask, `cp -a l k && cp f k`: approval.Ask, `cp -r tree to; cat f > to/l`: approval.Ask, `mv tree to; tee to/l < f`: approval.Ask,
		`while read -r i; do cat f > k; cp -P l k; done < f`: approval.Ask,
		`cp -r plain to; cat f > to/g`:                       approval.Allow, `cp -r tree to`: approval.Allow, `cp -r tree to; cat f > g`: approval.Allow,
	} {
		if j := approval.Judge(line, c, ""); j.Verdict != want {
			t.Errorf("%q: %s (%s, %s)", line, j.Verdict, j.Finding.Tier, j.Finding.Reason)
		}
	}
}

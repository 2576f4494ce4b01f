package approval_test

import (
	"path"
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

package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/tool"
)

// TestOnlyALineOfTheInputIsMarked types lines that are wider than the window, and changes
// a command that is: what goes on of a line cannot be taken for another, nor a second line
// for another message.
func TestOnlyALineOfTheInputIsMarked(t *testing.T) {
	b := open(t, &desk{mode: approval.Manual})
	b.update(sized(40, 24))
	seen := func(what, want string) {
		t.Helper()
		var rows []string
		for l := range strings.SplitSeq(b.view(), "\n") {
			rows = append(rows, strings.TrimRight(l, " "))
		}
		if view := strings.Join(rows, "\n"); !strings.Contains(view, "─\n"+want+"\n") {
			t.Errorf("%s is not\n%s\nin\n%s", what, want, view)
		}
	}
	b.typed("raise the replicas of the frontend to three")
	seen("a long line", "› raise the replicas of the frontend\n  to three")
	b.press("alt+enter")
	b.typed("and roll it out, but only where nobody looks")
	seen("a second one", "› raise the replicas of the frontend\n  to three\n┆ and roll it out, but only where\n  nobody looks")
	b.update(sized(60, 24))
	seen("both in a wider window", "› raise the replicas of the frontend to three\n┆ and roll it out, but only where nobody looks")
	b.update(sized(40, 24))
	for range 10 { // the first rows are out of sight
		b.press("alt+enter")
		b.typed("x")
	}
	if view := b.view(); strings.Count(view, "\n┆ x") != inputMost {
		t.Errorf("lines of which the first are out of sight:\n%s", view)
	}
	b.v.setInput("one that is wider than the window is now\nand its second line")
	b.press("enter")
	b.until("it is sent", func() bool {
		return strings.Contains(b.all(), "› one that is wider than the window is\n  now\n┆ and its second line")
	})
	b.v.typed = time.Time{}
	b.update(askMsg{approval.Question{
		Request: approval.Request{Tool: "execute", Plan: tool.Plan{Effect: tool.Runs, Command: "cd environments/staging\nterraform plan -var-file=staging.tfvars -out=plan"}},
		Offers:  []approval.Choice{approval.Once, approval.Refuse},
	}, make(chan approval.Answer, 1)})
	b.press("e")
	seen("a command that is changed", "› cd environments/staging\n┆ terraform plan\n  -var-file=staging.tfvars -out=plan")
}

package tui

import (
	"bytes"
	"cmp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/tool"
)

// TestAllThatIsAskedForIsSeen holds that a question shows what is sent as well as where
// to, and what a terminal would not show.
func TestAllThatIsAskedForIsSeen(t *testing.T) {
	for _, row := range []struct {
		plan   tool.Plan
		shown  *tool.Edit
		change *approval.Change
		why    string
		want   []string
		aside  []string // stands in the question, beside what is asked about
	}{
		{plan: tool.Plan{Effect: tool.Leaves, URL: "https://search.example.com/search", Query: "the words"}, want: []string{"https://search.example.com/search", "the words"}},
		{plan: tool.Plan{Effect: tool.Leaves, URL: "mcp://docs/search", Query: `{"q":"the words"}`}, want: []string{"mcp://docs/search", `{"q":"the words"}`}},
		{plan: tool.Plan{Effect: tool.Reads, Path: "/etc/ssl", Subject: "key in /etc/ssl"}, want: []string{"/etc/ssl\n", "key in /etc/ssl"}},
		{plan: tool.Plan{Effect: tool.Runs, Command: "echo hi \x1b]0;touch made;\x07"}, want: []string{"touch made;", "<U+001B>"}},
		{plan: tool.Plan{Effect: tool.Runs, Command: "make test", Path: "/src/third/party", Apart: true}, want: []string{"in /src/third/party:\n", "make test"}},
		{plan: tool.Plan{Effect: tool.Runs, Command: "make \u202etest\u200b"}, want: []string{"make <U+202E>test<U+200B>"}},
		{plan: tool.Plan{Effect: tool.Writes, Path: "/src/run.sh"}, shown: &tool.Edit{Path: "/src/run.sh", New: true, After: []byte("true\x1b]0;\ntouch made;\x1b[2K\x07\n")}, want: []string{"true<U+001B>]0;", "touch made;<U+001B>[2K<U+0007>"}},
		{plan: tool.Plan{Effect: tool.Writes, Path: "/src/run.sh"}, shown: &tool.Edit{Path: "/src/run.sh", Before: []byte("true\n"), After: []byte("true\u202e\n")}, want: []string{"true<U+202E>"}},
		{plan: tool.Plan{Effect: tool.Writes, Path: "/src/run.sh"}, shown: &tool.Edit{Path: "/src/run.sh", Note: "a binary file of 5 bytes", After: []byte("touch made\n")}, want: []string{"+1 -0: changes /src/run.sh, now a binary file of 5 bytes", "touch made"}},
		{plan: tool.Plan{Effect: tool.Writes, Path: "/src/x\x1b]0;/out/\ay"}, shown: &tool.Edit{Path: "/src/x\x1b]0;/out/\ay", New: true, After: []byte("a\n")}, want: []string{"makes /src/x<U+001B>]0;/out/<U+0007>y"}},
		{plan: tool.Plan{Effect: tool.Runs, Command: "terraform apply"}, change: &approval.Change{Known: true, Destroyed: 2, Items: []approval.Item{{Action: "destroy", Name: "a\x1b]0;"}, {Action: "destroy", Name: "the.base"}, {Action: "add", Name: "b\a"}}}, aside: []string{"the.base"}},
		{plan: tool.Plan{Effect: tool.Runs, Command: "git diff"}, why: "shows x\x1b]0;and y\a.pem", aside: []string{"shows x<U+001B>]0;and y<U+0007>.pem"}},
	} {
		q := approval.Question{Request: approval.Request{Tool: "it", Plan: row.plan, Place: approval.Place{Host: true}, Change: row.change},
			Why: approval.Decision{Tier: approval.T4, Reason: cmp.Or(row.why, "asks")}, Offers: []approval.Choice{approval.Once, approval.Refuse}, Shown: row.shown}
		b := open(t, &desk{})
		b.update(sized(100, 40))
		b.update(askMsg{q, make(chan approval.Answer, 1)})
		card, all := b.view(), strings.Join(b.v.whole(), "\n")
		var lines bytes.Buffer
		p := &plain{Window: &Window{Out: &lines}, ask: &askMsg{q, nil}}
		p.question()
		for _, w := range row.aside {
			for what, text := range map[string]string{"the card": card, "a window of lines": lines.String()} {
				if !strings.Contains(text, w) {
					t.Errorf("%s does not show %q:\n%s", what, w, text)
				}
			}
		}
		for _, w := range row.want {
			for what, text := range map[string]string{"the card": card, "all of it": ansi.Strip(all), "a window of lines": lines.String()} {
				if !strings.Contains(text, w) {
					t.Errorf("%s does not show %q:\n%s", what, w, text)
				}
			}
		}
	}
}

package tui

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/tool"
)

// TestTheLinesOfACommandAreSeenApart holds that several lines do not read as one command.
func TestTheLinesOfACommandAreSeenApart(t *testing.T) {
	b := open(t, &desk{})
	b.update(sized(80, 24))
	b.update(eventMsg{agent.CallStarted{ID: "a", Tool: "execute", Command: "set -e\n\nfor f in *; do\n\twc -l \"$f\"\r\ndone\nexit 3\n"}})
	if got := b.view(); !strings.Contains(got, "⏵ execute set -e ⏎ for f in *; do ⏎ wc -l \"$f\" ⏎ done ⏎ exit 3 ") {
		t.Errorf("running:\n%s", got)
	}
	b.update(eventMsg{agent.CallOutput{ID: "a", Data: "1 a\n"}})
	b.update(eventMsg{agent.CallDone{ID: "a", Tool: "execute", Exit: 3, Took: 300 * time.Millisecond}})
	b.until("it stands as it was asked for", func() bool {
		return strings.Contains(b.all(), "✗ execute set -e\n  for f in *; do\n      wc -l \"$f\"\n  done\n  exit 3 exit 3 0.3s\n  1 a")
	})
	b.typed("/output 1")
	b.press("enter")
	b.until("it is told by its lines", func() bool { return strings.Contains(b.all(), "Output 1, 1 line: set -e ⏎ for f in *; do ⏎ wc") })
	b.update(eventMsg{agent.CallStarted{ID: "b", Tool: "execute", Command: strings.Repeat("true\n", 9)}})
	b.update(eventMsg{agent.CallDone{ID: "b", Tool: "execute", Took: 300 * time.Millisecond}})
	b.until("that there are more is seen", func() bool {
		return strings.Contains(b.all(), "✓ execute true"+strings.Repeat("\n  true", 5)+" … exit 0 0.3s")
	})
}

// TestNoPartIsWhyModeManualAsks holds that where the mode is what asks for a command that
// only looks, none of its parts is named as the reason.
func TestNoPartIsWhyModeManualAsks(t *testing.T) {
	b := open(t, &desk{mode: approval.Manual})
	b.update(sized(80, 24))
	for tier, want := range map[approval.Tier]string{approval.T0: "for every command; it looks (T0)\n", approval.T2: "for every command; it looks (T2)\n", approval.T3: "asked since it looks (T3): exit 3\n"} {
		b.update(askMsg{approval.Question{
			Request: approval.Request{Tool: "execute", Plan: tool.Plan{Effect: tool.Runs, Command: "ls; exit 3"}},
			Why:     approval.Decision{Tier: tier, Reason: "looks", Part: "exit 3"},
			Offers:  []approval.Choice{approval.Once, approval.Refuse},
		}, make(chan approval.Answer, 1)})
		if view := b.view(); !strings.Contains(view, want) {
			t.Errorf("%s is not seen in\n%s", want, view)
		}
		b.v.settled()
	}
}

// TestWhatIsUnderWayStandsWhereItIsPrinted holds that what is said and done after a message
// of the user's has a line of room to it from its beginning on.
func TestWhatIsUnderWayStandsWhereItIsPrinted(t *testing.T) {
	b := open(t, &desk{})
	b.update(sized(80, 24))
	b.v.working, b.v.told = true, byUser
	seen := func(what, begins string) {
		t.Helper()
		if view := b.view(); !strings.HasPrefix(view, begins) {
			t.Errorf("%s does not begin with %q:\n%s", what, begins, view)
		}
	}
	seen("the wait", "\nworking…")
	b.update(eventMsg{agent.Text{Text: "I will"}})
	seen("an answer", "\nI will\n")
	b.update(eventMsg{agent.Text{Text: " look.\n\nAnd then"}})
	seen("more of it", "\nI will look.\n\nAnd then\n")
	b.update(eventMsg{agent.CallStarted{ID: "a", Tool: "execute", Command: "ls"}})
	seen("a call", "\n⏵ execute ls")
	b.update(eventMsg{agent.CallDone{ID: "a", Tool: "execute"}})
	b.update(eventMsg{agent.CallStarted{ID: "b", Tool: "execute", Command: "pwd"}})
	seen("the next call", "⏵ execute pwd")
	b.update(eventMsg{agent.CallDone{ID: "b", Tool: "execute"}})
	b.until("it is printed with the same room", func() bool {
		return strings.Contains(b.all(), "I will look.\n\nAnd then\n\n✓ execute ls exit 0\n✓ execute pwd exit 0")
	})
	b.v.working = false
}

// TestAnOutputEndsWhereItIsSeenToEnd holds that what is told after all of an output cannot
// be taken for a line of it.
func TestAnOutputEndsWhereItIsSeenToEnd(t *testing.T) {
	b := open(t, &desk{})
	b.update(sized(80, 24))
	b.v.working = true
	call := func(id, command string) {
		b.update(eventMsg{agent.CallStarted{ID: id, Tool: "execute", Command: command}})
		b.update(eventMsg{agent.CallOutput{ID: id, Data: strings.Repeat("✓ execute rm\n", 30)}})
		b.update(eventMsg{agent.CallDone{ID: id, Tool: "execute"}})
	}
	call("a", "list")
	b.press("ctrl+o")
	if view := b.view(); !strings.HasPrefix(view, "\nworking…") {
		t.Errorf("the wait after it is\n%s", view)
	}
	call("b", "pwd")
	b.until("it has room on both sides", func() bool {
		return strings.Contains(b.all(), "  ✓ execute rm\n\nOutput 1, 30 lines: list\n") && strings.Contains(b.all(), "\n✓ execute rm\n\n✓ execute pwd")
	})
	b.v.working = false
}

// TestWhatIsPrintedInColumnsStaysInThem holds that a tab goes as far as on a terminal.
func TestWhatIsPrintedInColumnsStaysInThem(t *testing.T) {
	b := open(t, &desk{})
	b.update(sized(80, 24))
	b.update(eventMsg{agent.CallStarted{ID: "a", Tool: "execute", Command: "pods"}})
	b.update(eventMsg{agent.CallOutput{ID: "a", Data: "NAME\t\tREADY\tSTATUS\nshop-7d9\t1/1\tRunning\n"}})
	const name, shop = "NAME            READY   STATUS\n", "shop-7d9        1/1     Running"
	if got := b.view(); !strings.Contains(got, "  "+name+"  "+shop) {
		t.Errorf("under way:\n%s", got)
	}
	b.update(eventMsg{agent.CallDone{ID: "a", Tool: "execute"}})
	b.until("it is printed in columns", func() bool { return strings.Contains(b.all(), "\n  "+name+"  "+shop) })
	b.typed("/output 1")
	b.press("enter")
	b.until("all of it is", func() bool { return strings.Contains(b.all(), "\n"+name+shop) })
}

// TestNoKeyIsNamedThatWouldBeTyped changes and refuses a call that is longer than there
// is room for: v is a letter of the answer there.
func TestNoKeyIsNamedThatWouldBeTyped(t *testing.T) {
	b := open(t, &desk{mode: approval.Manual})
	b.update(sized(80, 24))
	b.v.typed = time.Time{}
	b.update(askMsg{approval.Question{
		Request: approval.Request{Tool: "execute", Plan: tool.Plan{Effect: tool.Runs, Command: strings.Repeat("true\n", 60)}},
		Offers:  []approval.Choice{approval.Once, approval.Refuse},
	}, make(chan approval.Answer, 1)})
	for _, key := range []string{"e", "n"} {
		if view := b.view(); !strings.Contains(view, " lines more; v shows all\n") {
			t.Fatalf("it is not said that there is more:\n%s", view)
		}
		b.press(key)
		if view := b.view(); strings.Contains(view, "v shows all") || !strings.Contains(view, " lines more\n") {
			t.Errorf("after %s:\n%s", key, view)
		}
		b.press("esc")
	}
}

// TestAllOfACallIsOfferedOnce looks at all of one that is longer than there is room for.
func TestAllOfACallIsOfferedOnce(t *testing.T) {
	for _, height := range []int{24, 9} {
		b := open(t, &desk{mode: approval.Manual})
		b.update(sized(80, height))
		b.v.typed = time.Time{}
		b.update(askMsg{approval.Question{
			Request: approval.Request{Tool: "execute", Plan: tool.Plan{Effect: tool.Runs, Command: strings.Repeat("true\n", 60)}},
			Offers:  []approval.Choice{approval.Once, approval.Refuse},
		}, make(chan approval.Answer, 1)})
		if view := b.view(); !strings.Contains(view, "v shows all") {
			t.Fatalf("it is not said that there is more:\n%s", view)
		}
		b.press("v", "v")
		b.until("all of it is printed", func() bool {
			return strings.Contains(b.all(), "execute, all of it, not run yet:\n"+strings.Repeat("true\n", 59))
		})
		if n := strings.Count(b.all(), "true"); n != 60 {
			t.Errorf("in %d lines, %d of 60 lines are printed:\n%s", height, n, b.all())
		}
		if view := b.view(); strings.Contains(view, "v shows all") || !strings.Contains(view, "printed above") {
			t.Errorf("in %d lines, after it was shown:\n%s", height, view)
		}
	}
}

// TestAChangedCommandIsSeenToBe holds that what the user made of a command is not taken for
// what the model asked for, while it runs, when it has ended, and in lines alone.
func TestAChangedCommandIsSeenToBe(t *testing.T) {
	b := open(t, &desk{})
	b.update(sized(80, 24))
	began := agent.CallStarted{ID: "a", Tool: "execute", Command: "make -n all", Provider: "acme", Edited: true}
	b.update(eventMsg{began})
	if view := b.view(); !strings.Contains(view, "⏵ execute [acme] edited by you: make -n all") {
		t.Errorf("running:\n%s", view)
	}
	b.update(eventMsg{agent.CallDone{ID: "a", Tool: "execute"}})
	b.until("it has ended", func() bool { return strings.Contains(b.all(), "✓ execute [acme] edited by you: make -n all exit 0") })
	var lines bytes.Buffer
	p := &plain{Window: &Window{Out: &lines}}
	p.event(began)
	if got := lines.String(); got != "Runs execute on acme, edited by you: make -n all\n" {
		t.Errorf("in lines: %q", got)
	}
}

// TestAMarkStandsBehindItsPhrase refuses a call whose path ends where a line does, in
// windows of all widths.
func TestAMarkStandsBehindItsPhrase(t *testing.T) {
	for width := 24; width < 90; width++ {
		for _, command := range []string{"rm -rf /home/daytona/infrastructure/overlays/staging/", "cat /home/daytona/infrastructure/overlays/staging/deployment-patch.yaml", "kubectl --context=staging-eu-west-1"} {
			text := "✗ execute " + command + ": you refused it: not today: ask me, please."
			got := wrapped(text, width)
			for l := range strings.SplitSeq(got, "\n") {
				if strings.HasPrefix(l, ":") || strings.HasPrefix(l, ".") || ansi.StringWidth(l) > width {
					t.Errorf("in %d columns, a line is %q:\n%s", width, l, got)
				}
			}
			joined := func(s string) string { return strings.Join(strings.Fields(s), "") }
			if joined(got) != joined(text) {
				t.Errorf("in %d columns, %q is\n%s", width, text, got)
			}
		}
	}
	// What looks like a mark of ours stays, as do colours.
	for _, text := range []string{"名前：x: y：: z", "\x1b[1ma\x1b[0m: b", ": a :: b"} {
		if got := wrapped(text, 80); got != text {
			t.Errorf("%q is %q", text, got)
		}
	}
}

// TestAnOptionInAnAnswerStaysWhole lets the model name one where the line ends.
func TestAnOptionInAnAnswerStaysWhole(t *testing.T) {
	for width := 40; width < 80; width++ {
		got := newStyles(ThemeDark).markdown("Look at **all** of them: `kubectl get pods --all-namespaces -o wide --sort-by=.metadata.name` tells.\n", width)
		for _, word := range []string{"--all-namespaces", "--sort-by=.metadata.name"} {
			if !strings.Contains(got, word) {
				t.Errorf("in %d columns %s is broken:\n%s", width, word, got)
			}
		}
	}
}

// TestAPathInATableIsBrokenBehindASlash lets the model name one that a column is too
// narrow for.
func TestAPathInATableIsBrokenBehindASlash(t *testing.T) {
	for width := 36; width < 60; width++ {
		got := newStyles(ThemeNone).markdown("| What | Where |\n|---|---|\n| the ingress of the shop | deploy/overlays/staging/ingress.yaml |\n", width)
		for _, part := range []string{"deploy/", "overlays/", "staging/", "ingress.yaml"} {
			if !strings.Contains(got, part) {
				t.Errorf("in %d columns %s is broken:\n%s", width, part, got)
			}
		}
	}
}

// TestANameInATableIsBrokenAtAHyphenOnlyIfItMust lets the model name one whose parts have
// room in a column.
func TestANameInATableIsBrokenAtAHyphenOnlyIfItMust(t *testing.T) {
	got := newStyles(ThemeNone).markdown("| File | Before | Now |\n|---|---|---|\n| environments/staging/checkout-api/deployment.yaml | latest | 2 to 6 replicas |\n", 60)
	if !strings.Contains(got, "environments/staging/ ") || !strings.Contains(got, "\ncheckout-api/deployment.yaml ") {
		t.Errorf("the name is broken:\n%s", got)
	}
	if got := strings.Join(inColumn("an-identifier-of-many-parts", 12), "|"); got != "an-|identifier-|of-many-|parts" {
		t.Errorf("a name that is wider than its column: %s", got)
	}
}

// TestABrokenLineOfACommandIsNoOther shows a command of several lines, of which one is wider
// than the window: while it is asked for, when it has ended, and when it was refused.
func TestABrokenLineOfACommandIsNoOther(t *testing.T) {
	const command = "for env in staging production; do\n  sh scripts/validate.sh environments/$env --strict\ndone\n"
	const want = " for env in staging\n  ↳ production; do\n    sh scripts/validate.sh\n    ↳ environments/$env --strict\n  done"
	b := open(t, &desk{mode: approval.Manual})
	b.update(sized(40, 24))
	b.v.typed = time.Time{}
	b.update(askMsg{approval.Question{
		Request: approval.Request{Tool: "execute", Plan: tool.Plan{Effect: tool.Runs, Command: command}},
		Offers:  []approval.Choice{approval.Once, approval.Refuse},
	}, make(chan approval.Answer, 1)})
	if view := b.view(); !strings.Contains(view, "execute:"+want) {
		t.Errorf("asked for:\n%s", view)
	}
	b.press("e")
	if got := b.v.input.Value(); got != strings.TrimRight(command, "\n") {
		t.Errorf("what is changed is %q", got)
	}
	b.press("esc", "y")
	b.update(eventMsg{agent.CallStarted{ID: "a", Tool: "execute", Command: command}})
	b.update(eventMsg{agent.CallDone{ID: "a", Tool: "execute"}})
	b.update(eventMsg{agent.Refused{ID: "b", Refusal: agent.Refusal{Tool: "execute", Command: command, Reason: "the user refused it"}}})
	b.until("both have ended", func() bool { return strings.Contains(b.all(), "refused it") })
	for _, mark := range []string{"✓", "✗"} {
		if !strings.Contains(b.all(), mark+" execute"+want) {
			t.Errorf("%s is seen as\n%s\nwant\n%s", mark, b.all(), want)
		}
	}
	if !strings.Contains(b.all(), want+": you refused it") {
		t.Errorf("that it was refused is not said behind it:\n%s", b.all())
	}
	b.update(eventMsg{agent.Refused{ID: "c", Refusal: agent.Refusal{Tool: "execute", Command: strings.Repeat("true\n", 20), Reason: "the user refused it"}}})
	b.until("a long one is cut", func() bool {
		return strings.HasSuffix(b.all(), "✗ execute true"+strings.Repeat("\n  true", 4)+"\n  … 15 lines more: you refused it")
	})
}

func TestABrokenNameInAPatchIsNoLineOfIt(t *testing.T) {
	got := strings.Join(newStyles(ThemeNone).patch("--- a/deploy/checkout-api.yaml\n+++ b/deploy/checkout-api.yaml\n", 23), "\n")
	if want := "--- a/deploy/checkout-a\n↳ pi.yaml\n+++ b/deploy/checkout-a\n↳ pi.yaml"; got != want {
		t.Errorf("the patch is shown as\n%s\nwant\n%s", got, want)
	}
}

// TestAPathWiderThanALineIsBrokenBehindASlash holds for what is asked and for answers.
func TestAPathWiderThanALineIsBrokenBehindASlash(t *testing.T) {
	const path = "/home/daytona/infrastructure/overlays/staging/checkout-api/deployment-patch.yaml"
	for width := 30; width < 78; width++ {
		for _, got := range []string{wrapped("changes "+path, width), newStyles(ThemeNone).markdown("It is "+path+" that changed.\n", width)} {
			for _, part := range strings.SplitAfter(path, "/") {
				if !strings.Contains(got, part) {
					t.Errorf("in %d columns %s is broken:\n%s", width, part, got)
				}
			}
		}
	}
}

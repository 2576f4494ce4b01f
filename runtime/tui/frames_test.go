package tui

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

var update = flag.Bool("update", false, "write what is seen as what is wanted")

// frame compares what is shown with testdata/NAME.txt, and holds every line to the
// width.
func frame(t *testing.T, name, got string, width int) {
	t.Helper()
	for _, l := range strings.Split(got, "\n") {
		if w := ansi.StringWidth(l); w > width {
			t.Errorf("%s: a line has %d columns of %d: %q", name, w, width, l)
		}
	}
	file := filepath.Join("testdata", name+".txt")
	got = strings.ReplaceAll(got, "\x1b", "␛") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

const document = `# Rollout of **payments**

The check fails since the *image tag* is ` + "`latest`" + `; see [the docs](https://example.com/docs) or
<https://example.com>. ~~Nothing~~ else is wrong, and this sentence is long enough to be wrapped.

1. Pin the tag
   - in ` + "`deploy.yaml`" + `
   - and in the chart
2. Roll out

- [x] seen
- [ ] done

> A quotation
> of two lines.

` + "```yaml" + `
# the deployment
kind: Deployment
replicas: 3
image: "registry.example.com/payments:1.4.2-with-a-rather-long-tag-that-does-not-fit"
` + "```" + `

| Name | Ready | 名前 |
|---|--:|:-:|
| payments | 3/3 | 支払い |
| a rather long name of a deployment | 1/12 | x |

---

日本語のテキストは幅が二倍なので、行の折り返しは文字数ではなく列数で決まります。

<b>not bold</b>
`

func TestMarkdown(t *testing.T) {
	for _, theme := range []string{ThemeNone, ThemeDark, ThemeLight} {
		for _, width := range []int{40, 80} {
			frame(t, fmt.Sprintf("markdown-%s-%d", theme, width), newStyles(theme).markdown(document, width), width)
		}
	}
}

// TestMarkdownInPieces lets a text come byte by byte: what is printed in pieces reads
// as what is printed whole, and no block is cut.
func TestMarkdownInPieces(t *testing.T) {
	text := document + "\n```\nopen\n\nstill open\n```\nafter it\n"
	s := newStyles(ThemeNone)
	var printed []string
	open := ""
	for _, r := range text {
		open += string(r)
		whole, rest := finished(open)
		if strings.TrimSpace(whole) != "" {
			printed = append(printed, s.markdown(strings.Trim(whole, "\n"), 60))
			open = rest
		}
	}
	printed = append(printed, s.markdown(strings.Trim(open, "\n"), 60))
	if len(printed) < 8 {
		t.Errorf("only %d pieces: the text is not printed as it comes", len(printed))
	}
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if got, want := squeeze(strings.Join(printed, "\n")), squeeze(s.markdown(text, 60)); got != want {
		t.Errorf("in pieces:\n%s\nwhole:\n%s", got, want)
	}
}

// TestNoTextDrivesTheTerminal gives texts that try to; the only sequences that come
// out are colours of ours.
func TestNoTextDrivesTheTerminal(t *testing.T) {
	d := &desk{}
	b := openWindow(t, &Window{Session: d, Theme: ThemeDark})
	for _, evil := range []string{
		"\x1b[2J\x1b]0;title\a", "`\x1b]52;c;aGk=\a`", "```sh\n\x1b[?1049h\n```\n\n", "[x](\x1b]8;;http://evil\x1b\\)", "a\u202eb\u200b\u009b2J", "| \x1b[1A |\n|---|\n| \x1bc |\n\n",
	} {
		b.v.text = ""
		whole := b.v.styles.markdown(cleaned(evil), 40)
		for _, e := range []string{whole, strings.Join(b.v.styles.edit(tool.Edit{Path: evil, Before: []byte(evil), After: []byte("x\n" + evil)}, 60), "\n"), strings.Join(b.v.styles.patch("+"+evil, 60), "\n"), newPicker(cleaned(evil), []Choice{{Value: evil}}, nil).view(b.v.styles, 60, 8)} {
			rest := colours.ReplaceAllString(e, "")
			if strings.ContainsAny(rest, "\x1b\a\u202e\u200b\u009b") {
				t.Errorf("%q comes out as %q", evil, e)
			}
		}
	}
}

func TestDiffs(t *testing.T) {
	var before, after []string
	for i := range 30 {
		before = append(before, fmt.Sprintf("line %d", i))
	}
	after = append(after, before...)
	after[3] = "line three, which is a good deal longer than it was before and has to be broken"
	after = append(after[:20], append([]string{"one more\twith a tab"}, after[22:]...)...)
	edit := tool.Edit{Path: "/w/notes.txt", Before: []byte(strings.Join(before, "\n") + "\n"), After: []byte(strings.Join(after, "\n") + "\n")}
	for _, width := range []int{50, 140} {
		frame(t, fmt.Sprintf("diff-%d", width), strings.Join(newStyles(ThemeNone).edit(edit, width), "\n"), width)
	}
	near := tool.Edit{Path: "/w/a", Before: []byte("a\nb\nc\nd\ne\nf\ng\n"), After: []byte("a\nb\nc\nd\ne\nF\ng\n")}
	if got := newStyles(ThemeNone).edit(near, 60); len(got) != 7 || got[1] != "3  c" || got[5] != "6 +F" {
		t.Errorf("numbers of one digit stand as %q", got)
	}
	full := tool.Edit{Path: "/w/a", Before: []byte("a\n"), After: []byte(strings.Repeat("x", 17) + "\n")}
	if got := newStyles(ThemeNone).edit(full, 20); len(got) != 3 || ansi.StringWidth(got[2]) != 20 {
		t.Errorf("a line that fits stands as %q", got)
	}
	frame(t, "diff-dark", strings.Join(newStyles(ThemeDark).edit(edit, 60), "\n"), 60)
	frame(t, "diff-new", strings.Join(newStyles(ThemeNone).edit(tool.Edit{Path: "/w/a", New: true, After: []byte("x\ny\n")}, 60), "\n"), 60)
	if got := strings.Join(newStyles(ThemeNone).edit(tool.Edit{Path: "/w/a", New: true, After: []byte("x\ny\n")}, 200), "\n"); strings.Contains(got, "│") {
		t.Errorf("a new file has an empty side beside it:\n%s", got)
	}
	patch := "diff --git \"a/\\346\\226\\260.txt\" \"b/\\346\\226\\260.txt\"\nindex 3e75..44f7\n--- \"a/\\346\\226\\260.txt\"\n+++ \"b/\\346\\226\\260\\033[2J.txt\"\n@@ -1 +1 @@\n-index a\n+\"\\346\"\n"
	if got, want := strings.Join(newStyles(ThemeNone).patch(patch, 80), "\n"), "diff --git a/新.txt b/新.txt\n--- a/新.txt\n+++ b/新.txt\n@@ -1 +1 @@\n-index a\n+\"\\346\""; got != want {
		t.Errorf("the patch is shown as\n%s\nwant\n%s", got, want)
	}
	patch = "@@ -1 +1 @@\n-a line with a - that is broken - where it stands\n+a line with more to it than there is room for\n a line that stays as it is and has as much\n"
	for _, l := range newStyles(ThemeNone).patch(patch, 24)[1:] {
		if ansi.StringWidth(l) > 24 {
			t.Errorf("too wide: %q", l)
		}
	}
	if got, want := strings.Join(newStyles(ThemeNone).patch(patch, 24), "\n"), "@@ -1 +1 @@\n-a line with a - that is\n-↳ broken - where it\n-↳ stands\n+a line with more to it\n+↳ than there is room\n+↳ for\n a line that stays as it\n ↳ is and has as much"; got != want {
		t.Errorf("a broken line of a patch is shown as\n%q\nwant\n%q", got, want)
	}
	patch = "@@ -1,2 +1,2 @@ query\n--- what was said\n a\n+++ of it\n--- a/b.sql\n+++ b/b.sql\n"
	dark := newStyles(ThemeDark)
	for i, want := range []string{"", dark.removed.Render("--- what was said"), " a", dark.added.Render("+++ of it"), dark.strong.Render("--- a/b.sql"), dark.strong.Render("+++ b/b.sql")} {
		if got := dark.patch(patch, 80)[i]; i > 0 && got != want {
			t.Errorf("line %d of the patch is %q, want %q", i, got, want)
		}
	}
	frame(t, "diff-gone", strings.Join(newStyles(ThemeNone).edit(tool.Edit{Path: "/w/a", Gone: true, Before: []byte("x\ny\n")}, 60), "\n"), 60)
	frame(t, "diff-note", strings.Join(newStyles(ThemeNone).edit(tool.Edit{Path: "/w/a", Gone: true, Note: "a directory, with all in it"}, 60), "\n"), 60)
}

func TestFrames(t *testing.T) {
	d := &desk{mode: approval.Manual, place: approval.Place{Provider: "acme", ID: "box-1"}}
	for _, width := range []int{40, 100} {
		b := open(t, d)
		b.update(sized(width, 24))
		frame(t, fmt.Sprintf("empty-%d", width), trimmed(b.view()), width)
		b.typed("/co")
		frame(t, fmt.Sprintf("hints-%d", width), trimmed(b.view()), width)
		b.v.setInput("")
		b.v.typed = time.Time{} // a pause
		b.update(askMsg{approval.Question{
			Request: approval.Request{Tool: "edit_file", Plan: tool.Plan{Effect: tool.Writes, Path: "/w/a.txt"}, Place: d.place},
			Why:     approval.Decision{Tier: approval.T2, Reason: "changes the workspace"},
			Offers:  []approval.Choice{approval.Once, approval.Session, approval.Refuse},
			Shown:   &tool.Edit{Path: "/w/a.txt", Before: []byte("a\nb\n"), After: []byte("a\nc\n")},
		}, make(chan approval.Answer, 1)})
		frame(t, fmt.Sprintf("question-%d", width), trimmed(b.view()), width)
		b.press("y")
		if !strings.Contains(b.all(), "+1 -1") {
			b.until("what was allowed stays to be seen", func() bool { return strings.Contains(b.all(), "+1 -1") })
		}
		b.press("ctrl+r")
		frame(t, fmt.Sprintf("picker-%d", width), trimmed(b.view()), width)
	}
}

// trimmed is a frame without what the clock decides.
func trimmed(view string) string {
	lines := strings.Split(view, "\n")
	last := len(lines) - 1
	if i := strings.Index(lines[last], " · 1h"); i >= 0 {
		lines[last] = lines[last][:i]
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// TestStatusLine holds the line at the bottom: where commands run is always there,
// and at 60 columns also who decides, what it cost and how long the machine has.
func TestStatusLine(t *testing.T) {
	box := approval.Place{Provider: "acme", ID: "box-1"}
	for _, row := range []struct {
		place   approval.Place
		mode    approval.Mode
		width   int
		machine float64
		want    string
	}{
		{box, approval.Smart, 100, 0, " ACME box-1  · mode smart · p:m · 50k/200k · $0.50 · 1h30m left"},
		{box, approval.Manual, 60, 0, " ACME box-1  · mode manual · 50k/200k · $0.50 · 1h30m left"},
		{box, approval.Smart, 100, 0.024, " ACME box-1  · mode smart · p:m · 50k/200k · $0.50 + machine ~$0.02 · 1h30m left"},
		{box, approval.Smart, 60, 0.024, " ACME box-1  · mode smart · 50k/200k · ~$0.52 · 1h30m left"},
		{box, approval.Manual, 40, 0, " ACME box-1  · mode manual · 1h30m left"},
		{approval.Place{Provider: "local", Host: true}, approval.Manual, 60, 0, " THIS COMPUTER  · mode manual · p:m · 50k/200k · $0.50"},
		{approval.Place{Provider: "local", Host: true}, approval.Yolo, 30, 0, " THIS COMPUTER  · mode yolo"},
	} {
		b := open(t, &desk{mode: row.mode, place: row.place, machine: row.machine})
		b.update(sized(row.width, 24))
		if got := strings.ReplaceAll(b.v.status(), "1h29m", "1h30m"); got != row.want {
			t.Errorf("%s at %d: got %q, want %q", row.mode, row.width, got, row.want)
		}
	}
	for want, s := range map[string]Status{
		"$0.5000 so far": {CostUSD: 0.5, Place: approval.Place{Host: true}},
		"$0.5000 so far for the model; about $0.0200 for the machine, by the price list: an estimate":                       {CostUSD: 0.52, MachineUSD: 0.02},
		"the price of this model is not known; about $0.0200 for the machine, by the price list: an estimate":               {CostUSD: 0.02, MachineUSD: 0.02},
		"$0.5000 so far for the model; what the machine costs is not known (sandbox.providers.<name>.usd_per_hour says it)": {CostUSD: 0.5},
	} {
		if got := s.costs(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := (Status{CostUSD: 0.02, MachineUSD: 0.02}).spent(); got != "machine ~$0.02" {
		t.Errorf("got %q", got)
	}
	dark := openWindow(t, &Window{Session: &desk{mode: approval.Yolo, place: box}, Theme: ThemeDark})
	away := dark.v.status()
	dark.v.session = &desk{mode: approval.Yolo, place: approval.Place{Host: true}}
	here := dark.v.status()
	if colour := func(s string) string { return s[:strings.Index(s, "m")] }; colour(away) == colour(here) {
		t.Errorf("this computer looks like a sandbox: %q, %q", here, away)
	}
	if !strings.Contains(here, newStyles(ThemeDark).bad.Render("mode yolo")) {
		t.Errorf("yolo is not marked: %q", here)
	}
}

// TestAResizedWindowWrapsAgain makes the window narrower and wider while an answer, a
// command and a question are open: all of them fit, and nothing of them is lost.
func TestAResizedWindowWrapsAgain(t *testing.T) {
	words := strings.Repeat("several words that are wrapped ", 6)
	d := &desk{mode: approval.Manual, place: approval.Place{Provider: "acme", ID: "box-1"}}
	b := open(t, d)
	b.v.working, b.v.cancel = true, func() {}
	fits := func(what string) {
		t.Helper()
		for _, width := range []int{60, 30, 120, 45} {
			b.update(sized(width, 40))
			view := b.view()
			for _, l := range strings.Split(view, "\n") {
				if w := ansi.StringWidth(l); w > width {
					t.Errorf("%s at %d: a line has %d columns: %q", what, width, w, l)
				}
			}
			if text := strings.Join(strings.Fields(view), " "); strings.Count(text, "wrapped") < 6 {
				t.Errorf("%s at %d: something is lost:\n%s", what, width, view)
			}
		}
	}
	b.v.event(agent.Text{Text: words})
	fits("an answer")
	b.v.text = ""
	b.update(askMsg{approval.Question{
		Request: approval.Request{Tool: "execute", Plan: tool.Plan{Effect: tool.Runs, Command: "echo " + words}, Place: d.place},
		Why:     approval.Decision{Tier: approval.T2, Reason: "changes the workspace"}, Offers: []approval.Choice{approval.Once, approval.Refuse},
	}, make(chan approval.Answer, 1)})
	fits("a question")
}

// TestAQuestionFitsInTheWindow holds that where a call runs and how it begins is seen
// in a low window, and what would be allowed for good in a narrow one.
func TestAQuestionFitsInTheWindow(t *testing.T) {
	rule := "kubectl --context prod-eu-west get deployments --namespace acme-production"
	for _, height := range []int{10, 16, 24, 50} {
		b := open(t, &desk{place: approval.Place{Provider: "acme", ID: "box-1"}})
		b.update(sized(60, height))
		b.update(askMsg{approval.Question{
			Request: approval.Request{
				Tool: "execute", Place: approval.Place{Provider: "acme", ID: "box-1"},
				Plan: tool.Plan{Effect: tool.Runs, Command: strings.Repeat(rule+"\n", 30)}, Change: &approval.Change{Problem: strings.Repeat("much is not known ", 20)},
			},
			Why: approval.Decision{Tier: approval.T4, Reason: "acts on a cluster", Part: strings.Repeat(rule+" ", 9)}, Rule: rule,
			Offers: []approval.Choice{approval.Once, approval.Always, approval.Refuse},
		}, make(chan approval.Answer, 1)})
		view := b.view()
		if n := strings.Count(view, "\n") + 1; n > height {
			t.Errorf("%d lines in a window of %d:\n%s", n, height, view)
		}
		words := strings.Join(strings.Fields(view), " ")
		for _, want := range []string{"May this run? in acme box-1", "execute: kubectl --context prod-eu-west", "v shows all", "asked since", "y once", "a always, in this project: " + rule, "n no, because…", "e edit"} {
			if !strings.Contains(words, want) {
				t.Errorf("in a window of %d lines there is no %q:\n%s", height, want, view)
			}
		}
	}
}

// TestAPickerShowsDetailsInANarrowWindow holds that of a long title so much is left
// out that what tells it from others is seen.
func TestAPickerShowsDetailsInANarrowWindow(t *testing.T) {
	p := newPicker("go on with:", []Choice{
		{Value: "1", Label: strings.Repeat("look at the deployment ", 4), Detail: "2 hours ago, 3 prompts, acme box-1"},
		{Value: "2", Label: "短い題名", Detail: "3 hours ago, 1 prompt, acme box-2"},
		{Value: "3", Label: strings.Repeat("落ちたテストを見る", 6), Detail: "4 hours ago, 12 prompts, acme box-3"},
	}, nil)
	view := p.view(newStyles(ThemeNone), 60, 20)
	for _, want := range []string{"… 2 hours ago, 3 prompts", "短い題名 3 hours ago, 1 prompt, acme box-2", "… 4 hours ago, 12 prom"} {
		if !strings.Contains(strings.Join(strings.Fields(view), " "), want) {
			t.Errorf("no %q in\n%s", want, view)
		}
	}
	for l := range strings.SplitSeq(view, "\n") {
		if ansi.StringWidth(l) > 60 {
			t.Errorf("too wide: %q", l)
		}
	}
}

// TestACallThatDidNotBegin has no place.
func TestACallThatDidNotBegin(t *testing.T) {
	b := open(t, &desk{place: approval.Place{Provider: "acme", ID: "box-1"}})
	b.update(eventMsg{agent.CallDone{ID: "a", Tool: "edit_file", Code: sandbox.CodeInvalidArgument}})
	b.until("it is told", func() bool { return strings.Contains(b.all(), "✗ edit_file invalid argument") })
}

// TestALongPathIsKnownByItsEnd holds that in a narrow window the file is seen that a call
// is about: whole where the user is asked, and by its name where it was done.
func TestALongPathIsKnownByItsEnd(t *testing.T) {
	const path = "/home/acme/infrastructure/modules/network/environments/staging/deployment.yaml"
	b := open(t, &desk{place: approval.Place{Provider: "acme", ID: "box-1"}})
	b.update(sized(60, 24))
	for _, edit := range []tool.Edit{{Path: path, Before: []byte("a\n"), After: []byte("b\n")}, {Path: path, Gone: true, Note: "a directory, with all in it"}} {
		b.update(askMsg{approval.Question{
			Request: approval.Request{Tool: "edit_file", Plan: tool.Plan{Effect: tool.Writes, Path: path}, Place: approval.Place{Provider: "acme", ID: "box-1"}},
			Why:     approval.Decision{Tier: approval.T2, Reason: "changes the workspace"},
			Offers:  []approval.Choice{approval.Once, approval.Refuse}, Shown: &edit,
		}, make(chan approval.Answer, 1)})
		view := b.view()
		if !strings.Contains(strings.Join(strings.Fields(view), ""), path) {
			t.Errorf("the path is not seen whole in\n%s", view)
		}
		for l := range strings.SplitSeq(view, "\n") {
			if ansi.StringWidth(l) > 60 {
				t.Errorf("too wide: %q", l)
			}
		}
		b.v.settled()
	}
	b.update(eventMsg{agent.CallStarted{ID: "a", Tool: "read_file", Path: path, Provider: "acme"}})
	if view := b.view(); !strings.Contains(view, "staging/deployment.yaml ") || !strings.Contains(view, "[acme] …") {
		t.Errorf("the name of the file is not seen in\n%s", view)
	}
	b.update(eventMsg{agent.CallDone{ID: "a", Tool: "read_file"}})
	b.until("it is told with its name", func() bool {
		return strings.Contains(b.all(), "staging/deployment.yaml") && strings.Contains(b.all(), "✓ read_file")
	})
	const fits = "/home/acme/infrastructure/network/deployment.yaml"
	b.update(eventMsg{agent.CallStarted{ID: "b", Tool: "read_file", Path: fits, Provider: "acme"}})
	b.update(eventMsg{agent.CallDone{ID: "b", Tool: "read_file"}})
	b.until("it has a line of its own", func() bool { return strings.Contains(b.all(), "✓ read_file [acme]\n  "+fits) })
	b.update(eventMsg{agent.CallStarted{ID: "c", Tool: "read_file", Path: fits, Provider: "acme"}})
	b.update(eventMsg{agent.CallDone{ID: "c", Tool: "read_file", Code: sandbox.CodeFileNotFound}})
	b.until("how it ended has one, too", func() bool {
		return strings.Contains(b.all(), "✗ read_file [acme]\n  "+fits+"\n  file not found")
	})
}

// TestASearchShowsWhatItLooksFor holds that a call of grep or glob is told by its pattern
// in a window of 60 columns, while it runs, when it has ended and when it is refused.
func TestASearchShowsWhatItLooksFor(t *testing.T) {
	b := open(t, &desk{place: approval.Place{Provider: "daytona", ID: "box-1"}})
	b.update(sized(60, 20))
	dir := "/home/daytona/" + strings.Repeat("deep/", 20)
	b.update(eventMsg{agent.CallStarted{ID: "a", Tool: "grep", Path: dir, Subject: "TO\x1b[2KDO\n in src", Provider: "daytona"}})
	if view := b.view(); !strings.Contains(view, "grep [daytona] TODO in src ") {
		t.Errorf("what runs does not say its pattern:\n%s", view)
	}
	b.update(eventMsg{agent.CallDone{ID: "a", Tool: "grep"}})
	b.update(eventMsg{agent.CallStarted{ID: "b", Tool: "glob", Path: dir, Subject: "**/*.go in " + dir, Provider: "daytona"}})
	b.update(eventMsg{agent.CallDone{ID: "b", Tool: "glob"}})
	b.update(eventMsg{agent.Refused{ID: "c", Refusal: agent.Refusal{Tool: "grep", Path: "/etc", Subject: "root in /etc", Reason: "the user said no"}}})
	b.until("all three are told", func() bool {
		all := b.all()
		return strings.Contains(all, "✓ grep [daytona] TODO in src") && strings.Contains(all, "✓ glob [daytona] **/*.go in /home/daytona/deep/") &&
			strings.Contains(all, "✗ grep root in /etc: you said no")
	})
	for l := range strings.SplitSeq(b.all(), "\n") {
		if ansi.StringWidth(l) > 60 {
			t.Errorf("too wide: %q", l)
		}
	}
}

// TestHyphensAreOfTheirWord holds that an option is not parted from its hyphens at the
// end of a line, and that every hyphen stays what it is.
func TestHyphensAreOfTheirWord(t *testing.T) {
	text := "kubectl apply --server-side --field-manager=acme non\u2011breaking -f\tk8s/a-b.yaml " + strings.Repeat("long", 20)
	for width := 12; width < 70; width++ {
		got := wrapped(text, width)
		if squeezed := func(s string) string { return strings.Join(strings.Fields(s), "") }; squeezed(got) != squeezed(text) {
			t.Fatalf("at %d something else is seen:\n%s", width, got)
		}
		for l := range strings.SplitSeq(got, "\n") {
			if ansi.StringWidth(l) > width {
				t.Errorf("at %d too wide: %q", width, l)
			}
			if width > 24 && strings.HasSuffix(l, "-") {
				t.Errorf("at %d an option is parted: %q", width, l)
			}
		}
	}
}

// TestWhatACommandPrintedIsSeenAtAQuestion holds that Ctrl+O does what the folded output
// says while the next call waits for its answer.
func TestWhatACommandPrintedIsSeenAtAQuestion(t *testing.T) {
	b := open(t, &desk{place: approval.Place{Provider: "acme", ID: "box-1"}})
	b.update(eventMsg{agent.CallStarted{ID: "a", Tool: "execute", Command: "list"}})
	b.update(eventMsg{agent.CallOutput{ID: "a", Data: "the first\n" + strings.Repeat("more\n", 50)}})
	b.update(eventMsg{agent.CallDone{ID: "a", Tool: "execute"}})
	b.until("it is folded", func() bool { return strings.Contains(b.all(), "Ctrl+O or /output 1 shows all") })
	b.update(askMsg{approval.Question{
		Request: approval.Request{Tool: "execute", Plan: tool.Plan{Effect: tool.Runs, Command: "make"}, Place: approval.Place{Provider: "acme", ID: "box-1"}},
		Offers:  []approval.Choice{approval.Once, approval.Refuse},
	}, make(chan approval.Answer, 1)})
	b.press("ctrl+o")
	b.until("all is shown", func() bool { return strings.Contains(b.all(), "the first\n") })
	if !strings.Contains(b.view(), "May this run?") {
		t.Errorf("the question is gone:\n%s", b.view())
	}
}

// TestHelpIsInColumns holds that in a narrow window what a command does stays beside it.
func TestHelpIsInColumns(t *testing.T) {
	b := open(t, &desk{})
	b.update(sized(40, 24))
	b.typed("/help")
	b.press("enter")
	b.until("help is shown", func() bool {
		return strings.Contains(b.all(), "\n!command   run a command where the tools\n           work, and let")
	})
}

// TestLongLinesOfCodeAreBrokenBetweenWords holds what the model says to its words.
func TestLongLinesOfCodeAreBrokenBetweenWords(t *testing.T) {
	for line, want := range map[string][]string{
		"kubectl apply --server-side":      {"kubectl apply", "--server-side"},
		"kubectl apply -f deployment.yaml": {"kubectl apply -f", "deployment.yaml"},
		"a registry.example.com/acme/shop": {"a registry.example.c", "om/acme/shop"},
		"twenty columns, then a word":      {"twenty columns, then", "a word"},
		"            indented-and-long":    {"            indented", "-and-long"},
	} {
		if got := broken(line, 20, 0); !slices.Equal(got, want) {
			t.Errorf("%q is broken as %q", line, got)
		}
	}
	got := ansi.Strip(newStyles(ThemeDark).markdown("```sh\ntwenty columns, then a word\n```\n", 22))
	if want := "  twenty columns, then\n  ↳ a word"; strings.TrimRight(got, "\n") != want {
		t.Errorf("code is\n%q, want\n%q", got, want)
	}
}

// TestWhatIsRefusedStandsAsWhatRan holds the room before a call to be the same for both.
func TestWhatIsRefusedStandsAsWhatRan(t *testing.T) {
	refused := agent.Refused{}
	refused.Tool, refused.Command, refused.Reason = "execute", "git push", "the user refused it"
	d := &desk{turns: []func(context.Context, func(agent.Event)) error{func(_ context.Context, emit func(agent.Event)) error {
		emit(refused)
		emit(agent.CallStarted{ID: "a", Tool: "execute", Command: "git status"})
		emit(agent.CallDone{ID: "a", Tool: "execute"})
		return nil
	}}}
	b := open(t, d)
	b.typed("push it")
	b.press("enter")
	b.until("both are seen", func() bool {
		return strings.Contains(b.all(), "› push it\n\n✗ execute git push: you refused it\n✓ execute git status exit 0")
	})
}

// TestCallsThatRunSideBySide holds each to what it was about, whichever ends first.
func TestCallsThatRunSideBySide(t *testing.T) {
	b := open(t, &desk{})
	for _, name := range []string{"one", "two", "three"} {
		b.update(eventMsg{agent.CallStarted{ID: name, Tool: "read_file", Path: "/w/" + name, Provider: "acme"}})
	}
	for _, name := range []string{"two", "three", "one"} {
		b.update(eventMsg{agent.CallDone{ID: name, Tool: "read_file"}})
	}
	b.until("all are told", func() bool {
		return strings.Contains(b.all(), "✓ read_file [acme] /w/two\n✓ read_file [acme] /w/three\n✓ read_file [acme] /w/one")
	})
	if strings.Contains(b.view(), "⏵") {
		t.Errorf("one still runs:\n%s", b.view())
	}
}

// TestWhatIsNotShownOfAChangeIsCounted goes by the lines of the file, of which each is
// two of the window here.
func TestWhatIsNotShownOfAChangeIsCounted(t *testing.T) {
	for lines, end := range map[int]string{40: `\n20 \+[^\n]*\n… 20 lines more$`, 20: `\n20 \+[^\n]*\n   \+↳ [^\n]*$`} {
		b := open(t, &desk{mode: approval.Manual})
		b.update(sized(60, 24))
		text := strings.Repeat("a line that is broken, for it is longer than the window is wide\n", lines)
		b.v.typed = time.Time{}
		b.update(askMsg{approval.Question{
			Request: approval.Request{Tool: "write_file", Plan: tool.Plan{Effect: tool.Writes, Path: "/w/a"}},
			Offers:  []approval.Choice{approval.Once, approval.Refuse},
			Shown:   &tool.Edit{Path: "/w/a", New: true, After: []byte(text)},
		}, make(chan approval.Answer, 1)})
		shown := regexp.MustCompile(`(?s)(\d+) \+a line[^\d]*… (\d+) lines more; v shows all`).FindStringSubmatch(b.view())
		if len(shown) == 0 {
			t.Fatalf("it is not said that there is more:\n%s", b.view())
		}
		seen, _ := strconv.Atoi(shown[1])
		if left, _ := strconv.Atoi(shown[2]); seen+left != lines {
			t.Errorf("%d lines are seen, and %d are said to be left, of %d:\n%s", seen, left, lines, b.view())
		}
		b.press("y")
		b.until("as much as has room stays", func() bool { return regexp.MustCompile(end).MatchString(b.all()) })
	}
}

// TestAChangeIsPrintedOnce looks at all of a long change before it is allowed. The
// question leaves a line free, or what is printed would push its first away.
func TestAChangeIsPrintedOnce(t *testing.T) {
	b := open(t, &desk{mode: approval.Manual})
	b.update(sized(60, 24))
	b.v.typed = time.Time{}
	b.update(askMsg{approval.Question{
		Request: approval.Request{Tool: "write_file", Plan: tool.Plan{Effect: tool.Writes, Path: "/w/a"}},
		Offers:  []approval.Choice{approval.Once, approval.Refuse},
		Shown:   &tool.Edit{Path: "/w/a", New: true, After: []byte(strings.Repeat("line\n", 30))},
	}, make(chan approval.Answer, 1)})
	if n := len(strings.Split(b.view(), "\n")); n != 23 {
		t.Errorf("the window has %d of 24 lines:\n%s", n, b.view())
	}
	b.press("v")
	b.until("all of it is seen", func() bool { return strings.Contains(b.all(), "30 +line") })
	b.press("y")
	b.update(eventMsg{agent.CallStarted{ID: "a", Tool: "write_file", Path: "/w/a"}})
	b.update(eventMsg{agent.CallDone{ID: "a", Tool: "write_file"}})
	b.until("it is made", func() bool { return strings.Contains(b.all(), "✓ write_file /w/a") })
	if n := strings.Count(b.all(), "makes /w/a"); n != 1 {
		t.Errorf("the change is printed %d times:\n%s", n, b.all())
	}
}

// TestWhatIsSeenIsNotPrintedToo presses v where the question has all of the change.
func TestWhatIsSeenIsNotPrintedToo(t *testing.T) {
	b := open(t, &desk{mode: approval.Manual})
	b.update(sized(60, 24))
	b.v.typed = time.Time{}
	b.update(askMsg{approval.Question{
		Request: approval.Request{Tool: "write_file", Plan: tool.Plan{Effect: tool.Writes, Path: "/w/a"}},
		Offers:  []approval.Choice{approval.Once, approval.Refuse},
		Shown:   &tool.Edit{Path: "/w/a", New: true, After: []byte("line\n")},
	}, make(chan approval.Answer, 1)})
	if !strings.Contains(b.view(), "1 +line") {
		t.Fatalf("the change is not seen in\n%s", b.view())
	}
	b.press("v")
	b.press("esc")
	b.update(eventMsg{agent.Refused{ID: "a", Refusal: agent.Refusal{Tool: "write_file", Path: "/w/a", Reason: "the user said no"}}})
	b.until("it is refused", func() bool { return strings.Contains(b.all(), "✗ write_file /w/a") })
	if strings.Contains(b.all(), "makes /w/a") {
		t.Errorf("the change is printed above its question:\n%s", b.all())
	}
}

// TestWhatWasSentStandsBehindItsMark sends lines of which the first is broken.
func TestWhatWasSentStandsBehindItsMark(t *testing.T) {
	d := &desk{}
	b := open(t, d)
	b.update(sized(40, 24))
	b.typed("raise the replicas of the frontend to three")
	b.press("alt+enter")
	b.typed("and roll it out")
	b.press("enter")
	b.until("it is told", func() bool {
		return strings.Contains(b.all(), "› raise the replicas of the frontend to\n  three\n┆ and roll it out")
	})
}

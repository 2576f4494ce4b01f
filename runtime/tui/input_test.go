package tui

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/tool"
)

var colours = regexp.MustCompile("\x1b\\[[0-9;:]*m")

func cleaned(s string) string { return term.Clean(s) }

func sized(width, height int) tea.Msg { return tea.WindowSizeMsg{Width: width, Height: height} }

func TestLongPastesAreFoldedAndSentWhole(t *testing.T) {
	d := &desk{}
	b := open(t, d)
	long := strings.Repeat("line\n", 20)
	b.typed("see ")
	b.update(tea.PasteMsg{Content: long})
	b.update(tea.PasteMsg{Content: long + "\x1b[2Jother\n"})
	b.update(tea.PasteMsg{Content: " and this"})
	if got := b.v.input.Value(); got != "see [pasted 20 lines][pasted 21 lines] and this" {
		t.Errorf("the input is %q", got)
	}
	b.press("enter")
	b.until("it is sent", func() bool { return !b.v.working && len(d.heard()) == 1 })
	if want := "see " + long + long + "other\n and this"; d.heard()[0] != want {
		t.Errorf("said %q, want %q", d.heard()[0], want)
	}
	b.until("it is shown folded", func() bool { return strings.Contains(b.all(), "› see [pasted 20 lines][pasted 21 lines] and") })
	b.update(tea.PasteMsg{Content: strings.Repeat("x", 5000)})
	b.update(tea.PasteMsg{Content: strings.Repeat("y", 5000)})
	if got := b.v.input.Value(); got != "[pasted 5000 characters][pasted 5000 characters #2]" {
		t.Errorf("the input is %q", got)
	}
	b.press("enter")
	b.until("it is sent", func() bool { return len(d.heard()) == 2 })
	if d.heard()[1] != strings.Repeat("x", 5000)+strings.Repeat("y", 5000) {
		t.Error("two pastes that look the same are mixed up")
	}
}

func TestManyLinesCanBeTyped(t *testing.T) {
	d := &desk{}
	b := open(t, d)
	for i := range 30 {
		if i > 0 {
			b.press("alt+enter")
		}
		b.typed("x")
	}
	b.press("enter")
	b.until("it is sent", func() bool { return len(d.heard()) == 1 })
	if n := strings.Count(d.heard()[0], "x"); n != 30 {
		t.Errorf("%d of 30 lines are sent", n)
	}
}

func TestFilesAreChosenFromWhereTheToolsWork(t *testing.T) {
	b := open(t, &desk{place: approval.Place{Provider: "acme", ID: "box-1"}})
	b.typed("mail a@b") // no word begins here
	if b.v.pick != nil {
		t.Fatal("a picker opens within a word")
	}
	b.typed(" @")
	b.until("the files are listed", func() bool { return strings.Contains(b.view(), "file in Acme box-1: ▏  3 of 3") })
	b.typed("dep")
	if !strings.Contains(b.view(), "> cmd/deploy.go") {
		t.Errorf("view:\n%s", b.view())
	}
	b.press("enter")
	b.typed("@")
	b.until("the files are listed", func() bool { return strings.Contains(b.view(), "3 of 3") })
	b.typed("read")
	b.press("tab")
	b.typed("@")
	b.typed("zz")
	b.press("esc")
	if got, want := b.v.input.Value(), `mail a@b @cmd/deploy.go @"docs/read me.md" @zz`; got != want {
		t.Errorf("the input is %q, want %q", got, want)
	}
}

func TestHistoryIsSearchedAndKept(t *testing.T) {
	kept := make(chan string, 1)
	d := &desk{}
	b := openWindow(t, &Window{Session: d, Theme: ThemeNone, History: []string{"terraform plan", "look at the pods"}, Remember: func(s string) { kept <- s }})
	b.press("up", "up")
	if got := b.v.input.Value(); got != "terraform plan" {
		t.Errorf("two steps back is %q", got)
	}
	b.press("down", "down")
	b.typed("a draft")
	b.press("up", "down")
	if got := b.v.input.Value(); got != "a draft" {
		t.Errorf("the draft is %q after a look back", got)
	}
	b.press("ctrl+u", "ctrl+r")
	b.typed("tfpl")
	b.press("enter")
	if got := b.v.input.Value(); got != "terraform plan" {
		t.Errorf("searched %q", got)
	}
	b.press("enter")
	b.until("it is sent", func() bool { return len(d.heard()) == 1 })
	if got := <-kept; got != "terraform plan" {
		t.Errorf("kept %q", got)
	}
}

func TestQueuedMessagesAreTakenBack(t *testing.T) {
	d := &desk{}
	release := make(chan struct{})
	d.turns = append(d.turns, func(context.Context, func(agent.Event)) error { <-release; return nil })
	b := open(t, d)
	b.typed("one")
	b.press("enter")
	for _, text := range []string{"two", "three"} {
		b.typed(text)
		b.press("enter")
	}
	if !strings.Contains(b.view(), "queued: three  (Up edits it)") {
		t.Errorf("view:\n%s", b.view())
	}
	b.update(sized(40, 24))
	b.typed("a message that is wider than")
	b.press("alt+enter")
	b.typed("the window")
	b.press("enter")
	if !strings.Contains(b.view(), "\nqueued: a message that i…  (Up edits it)\n") {
		t.Errorf("a long one:\n%s", b.view())
	}
	b.update(sized(80, 24))
	if !strings.Contains(b.view(), "\nqueued: a message that is wider than ⏎ the window  (Up edits it)\n") {
		t.Errorf("one of two lines:\n%s", b.view())
	}
	b.v.typed = time.Time{} // a pause
	b.update(askMsg{approval.Question{Request: approval.Request{Tool: "execute", Plan: tool.Plan{Effect: tool.Runs, Command: "ls"}}, Offers: []approval.Choice{approval.Once}}, make(chan approval.Answer, 1)})
	if strings.Contains(b.view(), "Up edits") {
		t.Errorf("Up does nothing while a question stands:\n%s", b.view())
	}
	b.press("y", "up")
	if got := b.v.input.Value(); got != "a message that is wider than\nthe window" {
		t.Errorf("taken back: %q", got)
	}
	b.v.setInput("")
	b.press("up")
	if got := b.v.input.Value(); got != "three" {
		t.Errorf("taken back: %q", got)
	}
	b.typed(" and four")
	b.press("enter")
	close(release)
	b.until("all are said", func() bool { return slices.Equal(d.heard(), []string{"one", "two", "three and four"}) && !b.v.working })
}

// TestWhatWasClearedIsBroughtBack presses Ctrl+C on a text that was not sent.
func TestWhatWasClearedIsBroughtBack(t *testing.T) {
	b := openWindow(t, &Window{Session: &desk{}, Theme: ThemeNone, History: []string{"look at the pods"}, Remember: func(s string) { t.Errorf("%q is remembered", s) }})
	b.typed("a long text that was not sent")
	b.press("ctrl+c")
	if b.v.input.Value() != "" {
		t.Error("it is not cleared")
	}
	b.until("it is said", func() bool { return strings.Contains(b.all(), "Cleared; Up brings it back. Ctrl+C once more leaves.") })
	for _, want := range []string{"a long text that was not sent", "look at the pods"} {
		b.press("up")
		if got := b.v.input.Value(); got != want {
			t.Errorf("Up brings %q, want %q", got, want)
		}
	}
}

func TestEditor(t *testing.T) {
	given := make(chan string, 1)
	w := &Window{Session: &desk{}, Theme: ThemeNone, Editor: func(text string) (*Editing, error) {
		given <- text
		return &Editing{Cmd: exec.Command("true"), Read: func() (string, error) { return text + " finished\x1b[2J\n", nil }}, nil
	}}
	b := openWindow(t, w)
	b.typed("draft")
	for _, keys := range [][]string{{"ctrl+g"}, {"ctrl+x", "ctrl+e"}} {
		b.press(keys...)
		if got := <-given; got != "draft" {
			t.Errorf("%v opens it with %q", keys, got)
		}
	}
	b.update(editedMsg{text: "draft finished\x1b[2J\n"})
	if got := b.v.input.Value(); got != "draft finished" {
		t.Errorf("the input is %q", got)
	}
	b.update(editedMsg{err: errors.New("no editor")})
	b.until("a failure is told", func() bool { return strings.Contains(b.all(), "no editor") })
}

func TestSlashCommands(t *testing.T) {
	b := open(t, &desk{})
	for line, want := range map[string]string{"/diff": "-a", "/confg": "is it /config?", "/resume t-9": "resume t-9"} {
		b.typed(line)
		b.press("enter")
		b.until(line, func() bool { return strings.Contains(b.all(), want) && !b.v.working })
	}
	b.until("it leaves to go on with another conversation", func() bool { return b.quit })
	b = open(t, &desk{})
	b.typed("/resume")
	b.press("enter")
	b.until("conversations are listed", func() bool { return strings.Contains(b.view(), "2 of 2") })
	b.typed("sec")
	b.press("enter")
	b.until("the one that was chosen goes on", func() bool { return strings.Contains(b.all(), "resume t-2") && b.quit })
}

func TestTheUserIsCalled(t *testing.T) {
	for how, want := range map[string]string{NotifyBell: "\a", NotifyOSC9: "\x1b]9;talkops waits for your answer\a", NotifyOSC777: "\x1b]777;notify;talkops;talkops waits for your answer\a", NotifyOff: ""} {
		if got := notice(how, "waits for your answer"); got != want {
			t.Errorf("%s gives %q", how, got)
		}
	}
	w := &Window{Session: &desk{}, Theme: ThemeNone, Notify: NotifyBell}
	b := openWindow(t, w)
	for _, row := range []struct {
		msg  tea.Msg
		want bool
	}{{nil, true}, {tea.FocusMsg{}, false}, {tea.BlurMsg{}, true}} {
		if row.msg != nil {
			b.update(row.msg)
		}
		if got := b.v.notify("is done") != nil; got != row.want {
			t.Errorf("after %T it calls: %v", row.msg, got)
		}
	}
	for _, row := range []struct{ env, value, want string }{
		{"TERM_PROGRAM", "ghostty", NotifyOSC9}, {"VTE_VERSION", "7000", NotifyOSC777}, {"TMUX", "x", NotifyBell}, {"TERM", "xterm", NotifyBell},
	} {
		if got := Notice(NotifyAuto, func(name string) string {
			if name == row.env {
				return row.value
			}
			return ""
		}); got != row.want {
			t.Errorf("%s=%s gives %s, want %s", row.env, row.value, got, row.want)
		}
	}
}

func TestCompactionIsSaid(t *testing.T) {
	d := &desk{}
	d.turns = append(d.turns, func(_ context.Context, emit func(agent.Event)) error {
		emit(agent.Shortening{Tokens: 170_000})
		emit(agent.Shortened{Before: 170_000, After: 30_000})
		emit(agent.Text{Text: "On we go."})
		emit(agent.Answered{})
		return nil
	})
	b := open(t, d)
	b.typed("go")
	b.press("enter")
	b.until("it is said", func() bool {
		return strings.Contains(b.all(), "about 170000 tokens are 30000 now") && strings.Contains(b.all(), "On we go.")
	})
}

func TestPastIsShown(t *testing.T) {
	b := openWindow(t, &Window{Session: &desk{}, Theme: ThemeNone, Past: []Said{{true, "a"}, {false, "b"}, {true, "c"}, {false, "d"}, {true, "first **asked**"}, {false, "then **answered**"}}})
	b.until("it is shown", func() bool {
		return strings.Contains(b.all(), "and 2 before") && strings.Contains(b.all(), "› first **asked**") && strings.Contains(b.all(), "This conversation goes on.")
	})
}

func TestFuzzy(t *testing.T) {
	words := []string{"modules/vpc/main.tf", "main.tf", "docs/domain.md", "MAINTAINERS"}
	for pattern, want := range map[string]string{"main": "main.tf", "vpcm": "modules/vpc/main.tf", "dom md": "docs/domain.md", "MAIN": "MAINTAINERS"} {
		list := best(pattern, len(words), func(i int) string { return words[i] })
		if len(list) == 0 || words[list[0]] != want {
			t.Errorf("%q finds %v first, want %s", pattern, list, want)
		}
	}
	if got := best("xyz", len(words), func(i int) string { return words[i] }); len(got) > 0 {
		t.Errorf("found %v", got)
	}
}

func TestNothingToChooseFromIsSaid(t *testing.T) {
	b := open(t, &desk{nothing: true})
	b.typed("/resume")
	b.press("enter")
	b.until("it is said", func() bool {
		return strings.Contains(b.all(), "no other conversation of this project") && b.v.pick == nil
	})
	b.typed("see @")
	b.until("it is said", func() bool { return strings.Contains(b.all(), "no file to choose from") && b.v.pick == nil })
	if got := b.v.input.Value(); got != "see @" {
		t.Errorf("the input is %q", got)
	}
}

// TestCtrlCWhileWorkGoesOn presses it with a text that was not sent, and a message queued:
// the text is cleared first, the work interrupted then, and what was queued is said to be
// back.
func TestCtrlCWhileWorkGoesOn(t *testing.T) {
	d := &desk{}
	d.turns = append(d.turns, func(ctx context.Context, _ func(agent.Event)) error { <-ctx.Done(); return errors.New("ended") })
	b := open(t, d)
	b.typed("go")
	b.press("enter")
	b.typed("and then this")
	b.press("enter")
	b.typed("a thought not sent")
	b.press("ctrl+c")
	b.until("it is cleared", func() bool {
		return strings.Contains(strings.Join(strings.Fields(b.all()), " "), "Cleared; Up brings it back. Ctrl+C once more interrupts.") && b.v.input.Value() == ""
	})
	if !b.v.working || b.quit {
		t.Error("it is interrupted, too")
	}
	b.press("ctrl+c")
	b.until("it is interrupted", func() bool {
		return !b.v.working && strings.Contains(strings.Join(strings.Fields(b.all()), " "), "Interrupted. What was queued is in the input again, and not sent.")
	})
	if got := b.v.input.Value(); got != "and then this" || b.quit {
		t.Errorf("in the input is %q, left: %v", got, b.quit)
	}
}

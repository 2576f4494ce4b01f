package headless_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/headless"
	"github.com/talkops-ai/talkops/runtime/tool"
)

// play prints a small run in a format.
func play(t *testing.T, set func(*headless.Printer)) (stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	p := &headless.Printer{Out: &out, Err: &err, Place: approval.Place{Provider: "daytona", ID: "sb-1"}}
	set(p)
	for _, e := range []agent.Event{
		agent.Text{Text: "Let me "}, agent.Text{Text: "look."},
		agent.Step{Text: "Let me look.\n::set-output name=x::y"},
		agent.CallStarted{ID: "a", Tool: "execute", Effect: tool.Runs, Command: "terraform fmt -check\n##[error]boo"},
		agent.CallOutput{ID: "a", Data: "main.tf"},
		agent.CallDone{ID: "a", Tool: "execute", Exit: 1, Took: 1200 * time.Millisecond, Text: "main.tf"},
		agent.Refused{ID: "b", Refusal: agent.Refusal{Tool: "delete", Path: "/work", Reason: "nobody to ask"}},
		agent.Refused{ID: "c", Refusal: agent.Refusal{Tool: "execute", Command: "rm x", Path: "/work", Reason: "nobody to ask"}},
		agent.Text{Text: "All \x1b[31mred\x1b[0m."},
		agent.Answered{Text: "All \x1b[31mred\x1b[0m."},
	} {
		p.Event(e)
	}
	r := headless.NewResult(agent.Outcome{Answer: "All \x1b[31mred\x1b[0m.", Turns: 2, CostUSD: 0.01})
	r.Code, r.Reason, r.Errors = 4, "permission needed", []string{"delete was refused"}
	if err := p.Finish(r); err != nil {
		t.Fatal(err)
	}
	return out.String(), err.String()
}

func TestTextHasTheAnswerAloneOnStdout(t *testing.T) {
	stdout, stderr := play(t, func(*headless.Printer) {})
	if stdout != "All red.\n" {
		t.Errorf("stdout is %q", stdout)
	}
	want := "Let me look.\n: :set-output name=x::y\n" +
		"→ execute [daytona sb-1] terraform fmt -check # #[error]boo\n  exit 1 in 1.2s\n" +
		"✗ refused delete /work: nobody to ask\n✗ refused execute rm x: nobody to ask\n" +
		"talkops: delete was refused\npermission needed (exit 4), 2 turns, $0.0100\n"
	if stderr != want {
		t.Errorf("stderr is\n%s\nwant\n%s", stderr, want)
	}
}

func TestQuietStillTellsRefusalsAndTheEnd(t *testing.T) {
	_, stderr := play(t, func(p *headless.Printer) { p.Quiet = true })
	want := "✗ refused delete /work: nobody to ask\n✗ refused execute rm x: nobody to ask\ntalkops: delete was refused\npermission needed (exit 4), 2 turns, $0.0100\n"
	if stderr != want {
		t.Errorf("stderr is\n%s\nwant\n%s", stderr, want)
	}
}

func TestJSONIsOneObject(t *testing.T) {
	stdout, _ := play(t, func(p *headless.Printer) { p.Format = headless.FormatJSON })
	var r map[string]any
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	if r["answer"] != "All red." || r["code"] != 4.0 || r["reason"] != "permission needed" || r["refused"] == nil {
		t.Errorf("result is %v", r)
	}
}

func TestStreamJSONEndsWithTheResult(t *testing.T) {
	stdout, _ := play(t, func(p *headless.Printer) { p.Format = headless.FormatStreamJSON })
	var kinds []string
	for line := range strings.Lines(stdout) {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		kinds = append(kinds, e.Type)
		if strings.Contains(line, "##[") {
			t.Errorf("a CI system would read a command in %s", line)
		}
	}
	want := "text text step call_started call_output call_done refused refused text answer result"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("events are %s, want %s", got, want)
	}
}

func TestSilenceIsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err bytes.Buffer
		p := &headless.Printer{Out: &bytes.Buffer{}, Err: &err}
		p.Note("uploading")
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if e := p.Finish(headless.Result{Reason: "done"}); e != nil {
			t.Fatal(e)
		}
		want := "uploading\n  … still working, 10s\n  … still working, 20s\ndone (exit 0), 0 turns\n"
		if err.String() != want {
			t.Errorf("stderr is %q, want %q", err.String(), want)
		}
	})
}

func TestSilenceAfterTheEndIsNotBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err bytes.Buffer
		p := &headless.Printer{Out: &bytes.Buffer{}, Err: &err}
		p.Note("uploading")
		p.Stop()
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if err.String() != "uploading\n" {
			t.Errorf("stderr is %q", err.String())
		}
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestFailureToWriteIsTold(t *testing.T) {
	var stderr bytes.Buffer
	p := &headless.Printer{Out: brokenPipe{}, Err: &stderr, Format: headless.FormatStreamJSON}
	p.Event(agent.Answered{Text: "x"})
	if err := p.Finish(headless.Result{Reason: "done"}); err == nil {
		t.Error("got no error")
	}
	if strings.Contains(stderr.String(), "done") {
		t.Errorf("the run says that it is done: %q", stderr.String())
	}
}

// TestASearchIsToldWithItsPattern holds that progress, refusals and events say what is
// looked for, and that the fields there were stay.
func TestASearchIsToldWithItsPattern(t *testing.T) {
	var out, err bytes.Buffer
	p := &headless.Printer{Out: &out, Err: &err, Format: headless.FormatStreamJSON, Place: approval.Place{Provider: "daytona", ID: "sb-1"}}
	p.Event(agent.CallStarted{ID: "a", Tool: "grep", Effect: tool.Reads, Path: "/home/acme/src", Subject: "TO\x1b[2KDO in src"})
	p.Event(agent.Refused{ID: "b", Refusal: agent.Refusal{Tool: "glob", Path: "/etc", Subject: "*.key in /etc", Reason: "nobody to ask"}})
	if want := "→ grep [daytona sb-1] TODO in src\n✗ refused glob *.key in /etc: nobody to ask\n"; err.String() != want {
		t.Errorf("stderr is\n%s\nwant\n%s", err.String(), want)
	}
	for _, want := range []string{`"path":"/home/acme/src","subject":"TO`, `"path":"/etc","subject":"*.key in /etc"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

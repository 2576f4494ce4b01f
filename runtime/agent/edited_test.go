package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/model/modeltest"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// rewriter allows every call with another command.
type rewriter string

func (r rewriter) Approve(context.Context, approval.Request) (approval.Decision, error) {
	return approval.Decision{Allow: true, Command: string(r)}, nil
}

// TestWhatAPersonChangedIsTold holds that the user and the model hear of a command which is
// not the one that was asked for, also when it does not end.
func TestWhatAPersonChangedIsTold(t *testing.T) {
	for _, fails := range []bool{false, true} {
		a, srv, _, act := start(t, calls("act", `{"command":"make all"}`), modeltest.Step{Text: "Well."})
		a.Approver = rewriter("make -n all")
		if fails {
			act.run = func(context.Context, string) (tool.Result, error) { return tool.Result{}, errors.New("the line broke") }
		}
		var began agent.CallStarted
		a.Emit = func(e agent.Event) {
			if c, is := e.(agent.CallStarted); is {
				began = c
			}
		}
		_, err := a.Run(t.Context(), "make it")
		if (err != nil) != fails {
			t.Fatal(err)
		}
		if !began.Edited || began.Command != "make -n all" {
			t.Errorf("it began as %+v", began)
		}
		if len(act.ran) != 1 || act.ran[0] != `{"command":"make -n all"}` {
			t.Errorf("ran %q", act.ran)
		}
		told := ""
		for _, m := range a.History {
			for _, r := range m.Results {
				told += r.Text
			}
		}
		if !strings.HasPrefix(told, "[The user changed the command; this is what ran: make -n all]\n") {
			t.Errorf("fails %v: the model is told %q", fails, told)
		}
		if !fails && !strings.Contains(string(srv.Requests()[1].Body), "this is what ran: make -n all") {
			t.Errorf("the model hears %s", srv.Requests()[1].Body)
		}
	}
}

// foresight knows what a command that applies would change.
type foresight struct{}

func (foresight) Preview(_ context.Context, what tool.Plan) *approval.Change {
	if !strings.HasPrefix(what.Command, "terraform apply") {
		return nil
	}
	return &approval.Change{Program: "terraform", Verb: "apply", Known: true, Destroyed: 1}
}

func (foresight) Same(context.Context, *approval.Change) error { return nil }

func (foresight) Forget(context.Context, *approval.Change) {}

// editor makes another command of the first that it is asked about, and answers what
// comes then.
type editor struct {
	command string
	then    bool
	shown   []*approval.Change
}

func (e *editor) Approve(_ context.Context, req approval.Request) (approval.Decision, error) {
	e.shown = append(e.shown, req.Change)
	if len(e.shown) == 1 {
		return approval.Decision{Allow: true, Command: e.command}, nil
	}
	return approval.Decision{Allow: e.then, Kind: approval.ByPerson, Reason: "the user refused it"}, nil
}

// TestAChangedCommandIsAskedAgainWithWhatItChanges holds that nothing is applied that was
// not shown, also where a person typed it.
func TestAChangedCommandIsAskedAgainWithWhatItChanges(t *testing.T) {
	for _, row := range []struct {
		command    string
		then       bool
		asked, ran int
	}{
		{"terraform apply -auto-approve", true, 2, 1},
		{"terraform apply -auto-approve", false, 2, 0},
		{"terraform version", false, 1, 1},
	} {
		a, _, _, act := start(t, calls("act", `{"command":"make all"}`), modeltest.Step{Text: "Well."})
		e := &editor{command: row.command, then: row.then}
		a.Approver, a.Previewer = e, foresight{}
		if _, err := a.Run(t.Context(), "make it"); err != nil {
			t.Fatal(err)
		}
		if len(e.shown) != row.asked || len(act.ran) != row.ran {
			t.Errorf("%s: asked %d times, ran %q", row.command, len(e.shown), act.ran)
		}
		if row.asked == 2 && len(e.shown) == 2 && (e.shown[1] == nil || e.shown[1].Destroyed != 1) {
			t.Errorf("%s: shown %+v", row.command, e.shown[1])
		}
	}
}

// misfit finds that no change can be made.
type misfit struct{}

func (misfit) Approve(context.Context, approval.Request) (approval.Decision, error) {
	return approval.Decision{}, &tool.Unfit{Result: tool.Result{Text: "error no_match: it does not occur", Code: sandbox.CodeNoMatch}, Err: errors.New("it does not occur")}
}

// TestAChangeThatDoesNotFitIsToldAsIfItRan lets the model try the same again and again.
func TestAChangeThatDoesNotFitIsToldAsIfItRan(t *testing.T) {
	var steps []modeltest.Step
	for range 20 {
		steps = append(steps, calls("act", `{"command":"x"}`))
	}
	a, _, _, act := start(t, steps...)
	a.Approver = misfit{}
	var done []agent.CallDone
	a.Emit = func(e agent.Event) {
		switch e := e.(type) {
		case agent.CallDone:
			done = append(done, e)
		case agent.CallStarted, agent.Refused:
			t.Errorf("%+v", e)
		}
	}
	_, err := a.Run(t.Context(), "make it")
	if err == nil || len(done) == 20 || len(act.ran) > 0 {
		t.Errorf("it goes round in circles: %d calls, %d ran, %v", len(done), len(act.ran), err)
	}
	if r := a.History[2].Results[0]; r.Text != "error no_match: it does not occur" || !r.Failed || done[0].Code != sandbox.CodeNoMatch {
		t.Errorf("the model is told %+v, the user %+v", r, done[0])
	}
}

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

package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

// sumUp keeps the last message, and with it the calls that it answers.
func sumUp(_ context.Context, history []model.Message) ([]model.Message, model.Usage, error) {
	n := len(history) - 1
	if history[n].Role == model.RoleTool {
		n--
	}
	return append([]model.Message{{Role: model.RoleUser, Text: "SUMMED UP"}}, history[n:]...), model.Usage{Input: 1000}, nil
}

func TestAFullWindowIsSummedUp(t *testing.T) {
	a, srv, _, _ := start(t)
	window := a.Model.Info().Window
	full := calls("look", `{"n":1}`)
	full.Usage = modeltest.Usage{Input: window * 85 / 100, Output: 900}
	almost := calls("look", `{"n":0}`)
	almost.Usage = modeltest.Usage{Input: window * 84 / 100}
	srv.Script(almost, full, modeltest.Step{Text: "done"})
	a.System = strings.Repeat("s", 8000)
	a.Shorten = sumUp
	var kinds []string
	var kept []model.Message
	cost := 0.0
	a.Emit = func(e agent.Event) { kinds = append(kinds, e.Kind()) }
	a.Keep = func(k agent.Kept) {
		cost += k.CostUSD
		switch {
		case k.Message != nil:
			kept = append(kept, *k.Message)
		case k.Short != nil:
			kept = k.Short
		}
	}
	a.Say(model.Message{Role: model.RoleUser, Text: strings.Repeat("x", 4000)})
	a.Say(model.Message{Role: model.RoleAssistant, Text: "hello"})
	out, err := a.Run(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	bodies := srv.Requests()
	if strings.Contains(bodies[1].Body, "SUMMED UP") || !strings.Contains(bodies[2].Body, "SUMMED UP") {
		t.Error("it is not summed up when the window is full, or too early")
	}
	if !strings.Contains(bodies[2].Body, "tool_result") {
		t.Error("the last result is lost")
	}
	if n := len(a.History); n != 4 || a.History[0].Text != "SUMMED UP" {
		t.Errorf("history is %+v", a.History)
	}
	if len(kept) != len(a.History) {
		t.Errorf("kept are %d messages of %d", len(kept), len(a.History))
	}
	if i := slices.Index(kinds, "shortening"); i < 0 || kinds[i+1] != "shortened" {
		t.Errorf("events are %v", kinds)
	}
	if out.Usage.Input != almost.Usage.Input+full.Usage.Input+1000+100 || out.CostUSD != cost {
		t.Errorf("used %+v, $%v, kept $%v", out.Usage, out.CostUSD, cost)
	}
}

func TestAModelThatSaysTheWindowIsFull(t *testing.T) {
	a, srv, _, _ := start(t, modeltest.Step{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`}, modeltest.Step{Text: "now it fits"})
	a.Shorten = sumUp
	out, err := a.Run(t.Context(), "go")
	if err != nil || out.Answer != "now it fits" || !strings.Contains(srv.Requests()[1].Body, "SUMMED UP") {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestASummaryThatFailsLosesNothing(t *testing.T) {
	full := calls("look", `{"n":1}`)
	full.Usage = modeltest.Usage{Input: 5_000_000}
	a, _, _, _ := start(t, full, modeltest.Step{Text: "done"})
	a.Shorten = func(context.Context, []model.Message) ([]model.Message, model.Usage, error) {
		return nil, model.Usage{}, errors.New("no")
	}
	failed := ""
	a.Emit = func(e agent.Event) {
		if e, ok := e.(agent.Shortened); ok {
			failed = e.Failed
		}
	}
	out, err := a.Run(t.Context(), "go")
	if err != nil || out.Answer != "done" || len(a.History) != 4 || failed != "no" {
		t.Errorf("%+v, %v, %d messages, failed %q", out, err, len(a.History), failed)
	}
}

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/model/modeltest"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// echo is a tool whose input is a plain word instead of JSON text it would parse.
type echo struct {
	name   string
	effect tool.Effect
	run    func(ctx context.Context, input string) (tool.Result, error)

	mu  sync.Mutex
	ran []string
}

func (e *echo) Name() string               { return e.name }
func (e *echo) Description() string        { return "Echo." }
func (e *echo) Parameters() map[string]any { return map[string]any{"type": "object"} }

func (e *echo) Plan(input string) (tool.Plan, error) {
	if !strings.HasSuffix(input, "}") {
		return tool.Plan{}, sandbox.Errorf(sandbox.CodeInvalidArgument, "the input is not JSON")
	}
	return tool.Plan{Effect: e.effect, Command: input, Path: "/w", Subject: "about " + input}, nil
}

func (e *echo) Run(ctx context.Context, input string, emit func(tool.Output)) (tool.Result, error) {
	e.mu.Lock()
	e.ran = append(e.ran, input)
	e.mu.Unlock()
	emit(tool.Output{Data: []byte("out")})
	if e.run != nil {
		return e.run(ctx, input)
	}
	return tool.Result{Text: "ok " + input}, nil
}

var manual = approval.Policy{Mode: approval.Manual, Context: approval.Context{Workspace: "/w"}}

// start returns an agent over a scripted model.
func start(t *testing.T, steps ...modeltest.Step) (*agent.Agent, *modeltest.Server, *echo, *echo) {
	t.Helper()
	srv := modeltest.New(t)
	srv.Script(steps...)
	m, err := model.Open(t.Context(), model.Config{Provider: "anthropic", Name: "claude-sonnet-4-6", APIKey: "k", BaseURL: srv.Anthropic(),
		Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	look, act := &echo{name: "look", effect: tool.Reads}, &echo{name: "act", effect: tool.Runs}
	return &agent.Agent{Model: m, Tools: []tool.Tool{look, act}, Approver: approval.Policy{Mode: approval.Yolo}}, srv, look, act
}

func calls(pairs ...string) modeltest.Step {
	var s modeltest.Step
	for i := 0; i < len(pairs); i += 2 {
		s.Calls = append(s.Calls, modeltest.Call{ID: fmt.Sprintf("c%d", i/2), Name: pairs[i], Input: pairs[i+1]})
	}
	return s
}

func TestRunWorksUntilTheModelAnswers(t *testing.T) {
	a, srv, look, act := start(t, calls("look", `{"n":1}`, "act", `{"n":2}`, "look", `{"n":3}`), modeltest.Step{Text: "All is well."})
	var kinds []string
	a.Emit = func(e agent.Event) { kinds = append(kinds, e.Kind()) }
	out, err := a.Run(t.Context(), "check it")
	if err != nil {
		t.Fatal(err)
	}
	if out.Answer != "All is well." || out.Turns != 2 || out.Calls != 3 || out.CostUSD <= 0 {
		t.Errorf("outcome is %+v", out)
	}
	if len(look.ran) != 2 || len(act.ran) != 1 {
		t.Errorf("ran %v and %v", look.ran, act.ran)
	}
	results := a.History[2].Results
	if len(results) != 3 || results[0].CallID != "c0" || results[2].CallID != "c2" || results[1].Text != `ok {"n":2}` {
		t.Errorf("results are %+v", results)
	}
	if body := srv.Requests()[1].Body; !strings.Contains(body, "tool_result") {
		t.Errorf("results are not sent: %s", body)
	}
	if last := kinds[len(kinds)-1]; last != "answer" {
		t.Errorf("the last event is %s", last)
	}
}

func TestReadsRunSideBySide(t *testing.T) {
	a, _, look, _ := start(t, calls("look", `{"n":1}`, "look", `{"n":2}`, "look", `{"n":3}`), modeltest.Step{Text: "ok"})
	var all sync.WaitGroup
	all.Add(3)
	look.run = func(context.Context, string) (tool.Result, error) {
		all.Done()
		all.Wait() // ends only if all three have started
		return tool.Result{Text: "x"}, nil
	}
	if _, err := a.Run(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
}

func TestCutCallIsNotRun(t *testing.T) {
	for name, finish := range map[string]string{"at the output limit": "length", "malformed": "tool_calls"} {
		t.Run(name, func(t *testing.T) {
			step := calls("act", `{"command":"rm -rf /tmp/a/b"}`)
			step.TruncatedCall, step.Finish = true, finish
			a, _, _, act := start(t, step, modeltest.Step{Text: "sorry"})
			out, err := a.Run(t.Context(), "go")
			if err != nil || len(act.ran) != 0 || out.Answer != "sorry" {
				t.Errorf("ran %v, answer %q, %v", act.ran, out.Answer, err)
			}
			if r := a.History[2].Results[0]; !r.Failed || !strings.HasPrefix(r.Text, "Not run") {
				t.Errorf("the model is told %+v", r)
			}
		})
	}
}

func TestRefusalIsToldAndCounted(t *testing.T) {
	a, _, _, act := start(t, calls("act", `{"n":1}`, "look", `{}`), modeltest.Step{Text: "could not"})
	a.Approver, a.Place = manual, approval.Place{Host: true}
	var said []string
	a.Emit = func(e agent.Event) {
		if e, ok := e.(interface{ Says() string }); ok {
			said = append(said, e.Says())
		}
	}
	out, err := a.Run(t.Context(), "go")
	if slices.Sort(said); !slices.Equal(said, []string{`about {"n":1}`, "about {}"}) {
		t.Errorf("the call that ran and the one that did not are about %q", said)
	}
	if err != nil || len(act.ran) != 0 || len(out.Refused) != 1 || !out.NeedsPerson() {
		t.Errorf("outcome %+v, ran %v, %v", out, act.ran, err)
	}
	if r := a.History[2].Results[0]; !strings.Contains(r.Text, `"status":"refused","kind":"needs_person"`) || !r.Failed {
		t.Errorf("the model is told %+v", r)
	}
}

// TestCircuitBreakers ends runs that go round in circles.
func TestCircuitBreakers(t *testing.T) {
	number := func(tool string, n int) modeltest.Step { return calls(tool, fmt.Sprintf(`{"n":%d}`, n)) }
	repeat := func(n int, step func(int) modeltest.Step) (all []modeltest.Step) {
		for i := range n {
			all = append(all, step(i))
		}
		return all
	}
	for _, row := range []struct {
		name  string
		steps []modeltest.Step
		err   error
		turns int
	}{
		{"three refusals in a row", repeat(4, func(i int) modeltest.Step { return number("act", i) }), agent.ErrRefused, 3},
		{"one call refused again and again", repeat(6, func(i int) modeltest.Step {
			if i%2 == 1 {
				return number("look", i)
			}
			return number("act", 0)
		}), agent.ErrRefused, 5},
		{"twenty refusals", repeat(60, func(i int) modeltest.Step {
			if i%2 == 1 {
				return number("look", i)
			}
			return number("act", i)
		}), agent.ErrRefused, 39},
		{"the same call with the same result", repeat(12, func(int) modeltest.Step { return number("look", 0) }), agent.ErrCircling, 10},
		{"refused in one step, then something else", []modeltest.Step{calls("act", `{"n":1}`, "act", `{"n":2}`, "act", `{"n":3}`, "act", `{"n":4}`), {Text: "ok"}}, nil, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, _, look, _ := start(t, row.steps...)
			a.Approver, a.Place = manual, approval.Place{Host: true}
			look.run = func(context.Context, string) (tool.Result, error) { return tool.Result{Text: "same"}, nil }
			out, err := a.Run(t.Context(), "go")
			if !errors.Is(err, row.err) || row.err == nil && err != nil || out.Turns != row.turns {
				t.Errorf("%v after %d turns, want %v after %d", err, out.Turns, row.err, row.turns)
			}
			if row.err == agent.ErrCircling {
				if text := a.History[10].Results[0].Text; !strings.Contains(text, "same result 5 times") {
					t.Errorf("the model is told %q", text)
				}
			}
		})
	}
}

func TestLimits(t *testing.T) {
	step := calls("look", `{}`)
	t.Run("turns", func(t *testing.T) {
		a, _, _, _ := start(t, step, step)
		a.MaxTurns = 2
		out, err := a.Run(t.Context(), "go")
		if !errors.Is(err, agent.ErrTurns) || out.Turns != 2 {
			t.Errorf("got %+v, %v", out, err)
		}
	})
	t.Run("money", func(t *testing.T) {
		step := step
		step.Usage = modeltest.Usage{Input: 400_000} // $1.20
		a, _, _, _ := start(t, step)
		a.MaxCostUSD = 1
		out, err := a.Run(t.Context(), "go")
		if !errors.Is(err, agent.ErrBudget) || out.CostUSD < 1.2 {
			t.Errorf("got %+v, %v", out, err)
		}
	})
}

func TestEmptyAnswerIsAskedAgainOnce(t *testing.T) {
	a, _, _, _ := start(t, modeltest.Step{}, modeltest.Step{Text: "here"})
	if out, err := a.Run(t.Context(), "go"); err != nil || out.Answer != "here" {
		t.Errorf("got %q, %v", out.Answer, err)
	}
	a, _, _, _ = start(t, modeltest.Step{}, modeltest.Step{})
	if _, err := a.Run(t.Context(), "go"); !errors.Is(err, agent.ErrEmpty) {
		t.Errorf("got %v", err)
	}
}

func TestLostSandboxEndsTheRun(t *testing.T) {
	a, _, _, act := start(t, calls("act", `{}`, "act", `{}`))
	act.run = func(context.Context, string) (tool.Result, error) {
		return tool.Result{}, sandbox.Errorf(sandbox.CodeGone, "it ended")
	}
	_, err := a.Run(t.Context(), "go")
	if !errors.Is(err, sandbox.ErrGone) || len(act.ran) != 1 {
		t.Errorf("ran %v, %v", act.ran, err)
	}
	if n := len(a.History[len(a.History)-1].Results); n != 2 {
		t.Errorf("history has %d results for 2 calls", n)
	}
}

func TestUnknownToolIsToldToTheModel(t *testing.T) {
	a, _, _, _ := start(t, calls("fly", `{}`), modeltest.Step{Text: "ok"})
	if _, err := a.Run(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if text := a.History[2].Results[0].Text; !strings.Contains(text, "look, act") {
		t.Errorf("the model is told %q", text)
	}
}

func TestCancelledRunLeavesAHistoryToGoOnFrom(t *testing.T) {
	a, srv, _, act := start(t, calls("act", `{}`))
	ctx, cancel := context.WithCancel(t.Context())
	act.run = func(ctx context.Context, _ string) (tool.Result, error) {
		cancel()
		return tool.Result{}, ctx.Err()
	}
	if _, err := a.Run(ctx, "go"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	srv.Script(modeltest.Step{Text: "going on"})
	if out, err := a.Run(t.Context(), "go on"); err != nil || out.Answer != "going on" {
		t.Errorf("got %q, %v", out.Answer, err)
	}
}

func TestSystemPromptSaysWhereToolsRun(t *testing.T) {
	in := agent.System(agent.Facts{Provider: "daytona", ID: "sb-1", Dir: "/work", Disposable: true, Instructions: "Use tabs."})
	for _, want := range []string{"daytona", "sb-1", "/work", "cannot be reached", "Use tabs."} {
		if !strings.Contains(in, want) {
			t.Errorf("the prompt for a sandbox lacks %q", want)
		}
	}
	if on := agent.System(agent.Facts{Host: true}); !strings.Contains(on, "this computer") || strings.Contains(on, "sandbox") {
		t.Errorf("the prompt for this computer speaks of a sandbox:\n%s", on)
	}
}

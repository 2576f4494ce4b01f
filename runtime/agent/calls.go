package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const parallelReads = 4

// calls runs the calls of an answer and returns their results in the same order.
// Neighbours that only look run side by side; all else runs in turn. There is a
// result for each call also with an error, which ends the run.
func (r *run) calls(ctx context.Context, answer model.Answer) ([]model.Result, error) {
	calls := answer.Message.Calls
	results := make([]model.Result, len(calls))
	for i, c := range calls {
		results[i] = model.Result{CallID: c.ID, Name: c.Name, Text: "Not run: the run ended before.", Failed: true}
	}
	if answer.Finish == model.FinishLength {
		for i, c := range calls {
			results[i].Text = cutCalls
			r.emit(CallDone{ID: c.ID, Tool: c.Name, Code: sandbox.CodeInvalidArgument, Text: cutCalls})
		}
		return results, nil
	}
	for i := 0; i < len(calls); {
		batch := r.reads(calls[i:])
		if batch == 0 {
			err := r.one(ctx, calls[i], &results[i])
			if r.ended(len(calls), results[i]); err != nil {
				return results, err
			}
			i++
			continue
		}
		if err := r.together(ctx, calls[i:i+batch], results[i:i+batch], len(calls)); err != nil {
			return results, err
		}
		i += batch
	}
	return results, nil
}

// reads counts the calls at the front that only look.
func (r *run) reads(calls []model.Call) int {
	for i, c := range calls {
		t := r.tool(c.Name)
		if t == nil {
			return i
		}
		if plan, err := t.Plan(c.Input); err != nil || plan.Effect != tool.Reads {
			return i
		}
	}
	return len(calls)
}

// together runs reads side by side, a few at a time, and returns the error of the
// first that has one. all is how many calls their step has.
func (r *run) together(ctx context.Context, calls []model.Call, results []model.Result, all int) error {
	var wg sync.WaitGroup
	errs := make([]error, len(calls))
	slots := make(chan struct{}, parallelReads)
	for i := range calls {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = r.one(ctx, calls[i], &results[i])
			r.ended(all, results[i])
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// ended keeps what a call came to while others of its step are still to come. The last
// is kept with the step as well.
func (r *run) ended(calls int, result model.Result) {
	if r.Keep == nil || calls < 2 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Keep(Kept{Result: &result})
}

// one plans, approves and runs a call, and writes what the model is told.
func (r *run) one(ctx context.Context, c model.Call, result *model.Result) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fail := func(code sandbox.Code, text string) {
		result.Text, result.Failed = text, true
		r.emit(CallDone{ID: c.ID, Tool: c.Name, Code: code, Text: text})
	}
	t := r.tool(c.Name)
	if t == nil {
		fail(sandbox.CodeNotFound, fmt.Sprintf("There is no tool %q. There are %s.", c.Name, strings.Join(r.names(), ", ")))
		return nil
	}
	plan, err := t.Plan(c.Input)
	if err != nil {
		fail(sandbox.CodeOf(err), fmt.Sprintf("Not run: %s (%s)", err, sandbox.CodeOf(err)))
		return nil
	}
	change := r.preview(ctx, plan)
	defer func() { r.forget(ctx, change) }()
	input, edited, ran := c.Input, false, "" // ran: what the model has to know of that
	var decision approval.Decision
	for {
		decision, err = r.approve(ctx, c, plan, change, result)
		if u, is := errors.AsType[*tool.Unfit](err); is { // nobody was asked, and nothing ran
			result.Text, result.Failed = u.Result.Text, true
			r.repeated(c, result)
			r.emit(CallDone{ID: c.ID, Tool: c.Name, Path: plan.Path, Code: u.Result.Code, Text: u.Result.Text})
			return nil
		}
		if err != nil || !decision.Allow {
			return err
		}
		if decision.Command == "" || edited && decision.Command == plan.Command {
			break
		}
		if input, err = changed(input, decision.Command); err != nil {
			fail(sandbox.CodeInternal, "Not run: the changed command does not fit")
			return nil
		}
		if edited = edited || strings.TrimSpace(decision.Command) != strings.TrimSpace(plan.Command); edited {
			ran = fmt.Sprintf("[The user changed the command; this is what ran: %s]\n", decision.Command)
		}
		plan.Command = decision.Command
		r.forget(ctx, change)
		if change = r.preview(ctx, plan); change == nil {
			break
		}
		// What the changed command would change was not seen yet.
	}
	if change != nil && change.Command != "" {
		if input, err = changed(input, change.Command); err != nil {
			fail(sandbox.CodeInternal, "Not run: the plan that was shown does not fit")
			return nil
		}
		plan.Command = change.Command
		ran = fmt.Sprintf("[The plan that was shown is what was applied: %s]\n", change.Command) + ran
	}
	if change != nil {
		if err := r.Previewer.Same(ctx, change); err != nil {
			fail(sandbox.CodeNoMatch, fmt.Sprintf("Not run: %v. Make the plan again, look at it, and apply that.", err))
			return nil
		}
	}
	at := r.place(plan)
	r.emit(CallStarted{ID: c.ID, Tool: c.Name, Effect: plan.Effect, Command: plan.Command, Path: plan.Path, URL: plan.URL, Query: plan.Query, Subject: plan.Subject, Edited: edited,
		Provider: at.Provider, Machine: at.ID, Tier: decision.Tier, Why: decision.Reason, Change: change})
	start := time.Now()
	got, err := t.Run(ctx, input, func(o tool.Output) {
		r.emit(CallOutput{ID: c.ID, Stderr: o.Stderr, Data: string(o.Data)})
	})
	if err != nil {
		code := sandbox.CodeOf(err)
		result.Text, result.Failed = ran+"It did not end: "+err.Error(), true
		r.emit(CallDone{ID: c.ID, Tool: c.Name, Code: code, Took: time.Since(start), Text: result.Text})
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	r.mu.Lock()
	r.out.Calls++
	r.mu.Unlock()
	result.Text, result.Failed = ran+got.Text, got.Code != ""
	result.Media, result.Type = got.Media, got.Type
	r.repeated(c, result)
	r.emit(CallDone{ID: c.ID, Tool: c.Name, Code: got.Code, Exit: got.Exit, Took: time.Since(start), Text: got.Text})
	return nil
}

// forget lets go of what a preview made.
func (r *run) forget(ctx context.Context, change *approval.Change) {
	if r.Previewer != nil && change != nil {
		r.Previewer.Forget(ctx, change)
	}
}

// preview says what a command that acts on infrastructure would change.
func (r *run) preview(ctx context.Context, plan tool.Plan) *approval.Change {
	if r.Previewer == nil || plan.Effect != tool.Runs {
		return nil
	}
	return r.Previewer.Preview(ctx, plan)
}

// approve asks whether a planned call may run, and keeps account of refusals.
func (r *run) approve(ctx context.Context, c model.Call, plan tool.Plan, change *approval.Change, result *model.Result) (approval.Decision, error) {
	decision := approval.Decision{Kind: approval.ByPolicy, Reason: "nothing here may approve it"}
	if r.Approver != nil {
		var err error
		req := approval.Request{Tool: c.Name, Plan: plan, Place: r.place(plan), Change: change}
		if plan.Effect == tool.Writes {
			req.Edit = func(ctx context.Context) (tool.Edit, error) { return tool.EditOf(ctx, r.tool(c.Name), c.Input) }
		}
		decision, err = r.Approver.Approve(ctx, req)
		if err != nil {
			return decision, fmt.Errorf("approve %s: %w", c.Name, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	refusal := Refusal{Tool: c.Name, Command: plan.Command, Path: plan.Path, URL: plan.URL, Query: plan.Query, Subject: plan.Subject, Kind: decision.Kind, Tier: decision.Tier, Part: decision.Part,
		Reason: decision.Reason, Hint: decision.Hint, Person: decision.Person(), Change: change}
	if decision.Allow {
		r.ran++
		for i, old := range r.out.Refused {
			r.out.Refused[i].Later = old.Later || old.same(refusal)
		}
		if plan.Effect != tool.Reads {
			r.out.allowed = append(r.out.allowed, refusal)
		}
		return decision, nil
	}
	r.out.Refused = append(r.out.Refused, refusal)
	key := c.Name + "\x00" + c.Input
	r.stubborn = r.stubborn || r.refusals[key] >= refusedSame
	r.refusals[key]++
	result.Text = told(refusal)
	result.Failed = true
	if r.Emit != nil {
		r.Emit(Refused{ID: c.ID, Refusal: refusal})
	}
	return decision, nil
}

// changed puts another command into the input of a call.
func changed(input, command string) (string, error) {
	var args map[string]json.RawMessage
	if err := json.Unmarshal([]byte(input), &args); err != nil {
		return "", err
	}
	text, err := json.Marshal(command)
	if err != nil {
		return "", err
	}
	args["command"] = text
	b, err := json.Marshal(args)
	return string(b), err
}

// place is where a call happens: the user's computer, whatever the sandbox, for
// tools that act from there.
func (r *run) place(plan tool.Plan) approval.Place {
	if plan.Effect == tool.Leaves {
		return approval.Place{Provider: "local", Host: true}
	}
	return r.Place
}

// told is a refusal as the model reads it: an object it can act on.
func told(f Refusal) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct {
		Status  string        `json:"status"`
		Kind    approval.Kind `json:"kind"`
		Tier    approval.Tier `json:"tier,omitempty"`
		Command string        `json:"command,omitempty"`
		Path    string        `json:"path,omitempty"`
		URL     string        `json:"url,omitempty"`
		Query   string        `json:"query,omitempty"`
		Reason  string        `json:"reason"`
		Part    string        `json:"part,omitempty"`
		Hint    string        `json:"hint,omitempty"`
	}{"refused", f.Kind, f.Tier, f.Command, f.Path, f.URL, f.Query, f.Reason, f.Part, f.Hint})
	return b.String() + "Do not try to reach the same by other means; go on without it if you can, and say in your answer what was not done."
}

// repeated notes a result, and tells the model when it goes round in circles.
func (r *run) repeated(c model.Call, result *model.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := c.Name + "\x00" + c.Input + "\x00" + result.Text
	r.same[key]++
	if n := r.same[key]; n >= sameMost {
		r.circling = true
	} else if n >= sameResult {
		result.Text += fmt.Sprintf("\n[This call has now given the same result %d times. Repeating it will not help; try something else, or answer.]", n)
	}
}

func (r *run) tool(name string) tool.Tool {
	for _, t := range r.Tools {
		if t.Name() == name {
			return t
		}
	}
	return nil
}

func (r *run) names() []string {
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name())
	}
	return names
}

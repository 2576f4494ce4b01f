// Package agent is the loop at the heart of talkops: it asks a model, runs the
// tools it calls as far as they are approved, and goes on until it answers.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/tool"
)

// The ends of a run other than an answer, beside the model's and the sandbox's
// errors and the context's.
var (
	ErrTurns    = errors.New("turn limit reached")
	ErrBudget   = errors.New("budget exceeded")
	ErrEmpty    = errors.New("the model gave an empty answer twice")
	ErrFiltered = errors.New("the model provider withheld the answer")
	ErrLength   = errors.New("the answer was cut at the model's output limit")
	ErrRefused  = errors.New("the model went on asking for what is not allowed")
	ErrCircling = errors.New("the model went on repeating a call that changes nothing")
)

// An Agent works on one conversation. It is not safe for concurrent use.
type Agent struct {
	Model      model.Model
	Tools      []tool.Tool
	Approver   approval.Approver // nil refuses every call
	Place      approval.Place    // where the tools work
	Previewer  Previewer         // may be nil
	System     string            // see the function System
	MaxTurns   int               // answers of the model in one Run; 0 is no limit
	MaxCostUSD float64           // of all Runs; 0 is no limit; models without a price cost nothing
	Machine    func() float64    // what the machine has cost until now, which counts towards MaxCostUSD; may be nil
	Emit       func(Event)       // may be nil

	// Keep is told of each message as it joins History, of the cost of each step, and
	// of each call of a step of several as it ends. May be nil.
	Keep func(Kept)

	// Shorten returns a history made shorter when it fills the model's window by
	// more than FullAt. It may be nil: then a conversation ends that is too long.
	Shorten func(ctx context.Context, history []model.Message) ([]model.Message, model.Usage, error)

	// History is the conversation so far. Run appends to it, and leaves it such
	// that another Run can go on, also after an error.
	History []model.Message

	spent float64
	aside float64 // spent in the Run that goes on, but not by its steps
	fill  fill
}

// A Kept is what an Agent adds to its conversation. One of its fields is set.
type Kept struct {
	Message *model.Message
	Result  *model.Result   // of a call; the message with all of its step comes later
	Short   []model.Message // stands for all messages so far
	Usage   *model.Usage    // of a step
	CostUSD float64         // of it
}

// A Previewer says what commands that act on infrastructure would change. It only
// looks.
type Previewer interface {
	// Preview returns nil for a call that is no such command.
	Preview(ctx context.Context, what tool.Plan) *approval.Change

	// Same returns an error if what would run now is not what was shown.
	Same(ctx context.Context, shown *approval.Change) error
	// Forget lets go of what Preview made to find out.
	Forget(ctx context.Context, c *approval.Change)
}

// An Outcome is what a Run came to. It is filled as far as the run went, also
// beside an error.
type Outcome struct {
	Answer  string
	Turns   int
	Calls   int // run, not refused
	Usage   model.Usage
	CostUSD float64
	Refused []Refusal

	allowed []Refusal // what ran, as it would be refused
}

// Then returns what both came to, next after o. The answer is next's unless that
// is empty.
func (o Outcome) Then(next Outcome) Outcome {
	next.Turns += o.Turns
	next.Calls += o.Calls
	next.Usage = o.Usage.Add(next.Usage)
	next.CostUSD += o.CostUSD
	next.Answer = cmp.Or(next.Answer, o.Answer)
	refused := slices.Clone(o.Refused)
	for i := range refused {
		for _, ran := range next.allowed {
			refused[i].Later = refused[i].Later || refused[i].same(ran)
		}
	}
	next.Refused = append(refused, next.Refused...)
	next.allowed = append(slices.Clone(o.allowed), next.allowed...)
	return next
}

// same reports whether both are of one action.
func (r Refusal) same(s Refusal) bool {
	return r.Tool == s.Tool && r.Command == s.Command && r.Path == s.Path && r.URL == s.URL && r.Query == s.Query
}

// A Refusal is a tool call that was not allowed.
type Refusal struct {
	Tool    string        `json:"tool"`
	Command string        `json:"command,omitempty"`
	Path    string        `json:"path,omitempty"`
	URL     string        `json:"url,omitempty"`
	Query   string        `json:"query,omitempty"`
	Subject string        `json:"subject,omitempty"` // what is looked for, and where
	Kind    approval.Kind `json:"kind"`
	Tier    approval.Tier `json:"tier,omitempty"`
	Part    string        `json:"part,omitempty"` // the part of the command that decided
	Reason  string        `json:"reason"`
	Hint    string        `json:"hint,omitempty"`
	Person  bool          `json:"needs_person"`            // only because nobody could be asked
	Later   bool          `json:"allowed_later,omitempty"` // the same action was allowed afterwards

	Change *approval.Change `json:"change,omitempty"` // what it would have changed
}

// Says is what the call is about in a few words, not cleaned.
func (r Refusal) Says() string {
	return tool.Plan{Command: r.Command, Path: r.Path, URL: r.URL, Query: r.Query, Subject: r.Subject}.Says()
}

// NeedsPerson reports whether something was left undone that a person would have
// had to allow.
func (o Outcome) NeedsPerson() bool {
	for _, r := range o.Refused {
		if r.Person && !r.Later {
			return true
		}
	}
	return false
}

const (
	emptyNudge = "Your answer was empty. Go on with the task, or say in words what you did and found."
	cutCalls   = "Not run: your answer reached the output limit, so this call may be incomplete. Send it again in smaller pieces."

	refusedInRow = 3  // refusals without an allowed call in between end a run; those of one step count once
	refusedMost  = 20 // refusals of one run
	refusedSame  = 2  // refusals of one call; asking once more ends the run
	sameResult   = 5  // the same call with the same result so often: the model is told
	sameMost     = 10 // and so often ends the run
)

// A run is the state of one Run.
type run struct {
	*Agent
	out Outcome

	ran      int            // allowed calls
	refusals map[string]int // by call
	same     map[string]int // by call and result
	stubborn bool           // a call was asked for once too often
	circling bool

	mu sync.Mutex // orders events and results of calls that run side by side
}

// Run gives prompt to the model and works until it answers.
func (a *Agent) Run(ctx context.Context, prompt string) (Outcome, error) {
	r := &run{Agent: a, refusals: map[string]int{}, same: map[string]int{}}
	a.Say(model.Message{Role: model.RoleUser, Text: prompt})
	err := r.loop(ctx)
	r.out.CostUSD, a.aside = r.out.CostUSD+a.aside, 0
	return r.out, err
}

func (r *run) loop(ctx context.Context) error {
	empty, inRow, ran := 0, 0, 0
	for {
		answer, err := r.ask(ctx)
		if err != nil {
			return err
		}
		text := strings.TrimSpace(answer.Message.Text)
		switch {
		case answer.Finish == model.FinishFilter:
			return ErrFiltered
		case text == "" && len(answer.Message.Calls) == 0 && answer.Finish != model.FinishLength:
			if empty++; empty > 1 {
				return ErrEmpty
			}
			r.Say(model.Message{Role: model.RoleUser, Text: emptyNudge})
			continue
		}
		empty = 0
		if text != "" || len(answer.Message.Calls) > 0 {
			r.Say(answer.Message)
		}
		if len(answer.Message.Calls) == 0 {
			r.out.Answer = text
			r.emit(Answered{Text: text})
			if answer.Finish == model.FinishLength {
				return ErrLength
			}
			return nil
		}
		r.emit(Step{Text: text})
		before := len(r.out.Refused)
		results, err := r.calls(ctx, answer)
		r.Say(model.Message{Role: model.RoleTool, Results: results})
		if err != nil {
			return err
		}
		if len(r.out.Refused) > before {
			inRow++
		}
		if r.ran > ran {
			inRow = 0
		}
		ran = r.ran
		switch {
		case inRow >= refusedInRow, len(r.out.Refused) >= refusedMost, r.stubborn:
			return ErrRefused
		case r.circling:
			return ErrCircling
		}
	}
}

// ask makes one step of the model, if the limits allow one.
func (r *run) ask(ctx context.Context) (model.Answer, error) {
	if err := ctx.Err(); err != nil {
		return model.Answer{}, context.Cause(ctx)
	}
	if r.MaxTurns > 0 && r.out.Turns >= r.MaxTurns {
		return model.Answer{}, fmt.Errorf("%w: %d", ErrTurns, r.MaxTurns)
	}
	if err := r.Afford(); err != nil {
		return model.Answer{}, err
	}
	if r.full() {
		if err := r.shorten(ctx); ctx.Err() != nil {
			return model.Answer{}, err
		}
	}
	answer, err := r.answer(ctx)
	if errors.Is(err, model.ErrContext) && r.Shorten != nil && r.shorten(ctx) == nil {
		r.emit(Reset{})
		answer, err = r.answer(ctx)
	}
	if err != nil {
		return model.Answer{}, err
	}
	r.out.Turns++
	r.spend(answer.Usage)
	r.fill = fill{answer.Usage.Sum() - answer.Usage.Output, len(r.History)}
	r.emit(Used{Turn: r.out.Turns, Usage: answer.Usage, Total: r.out.Usage, CostUSD: r.out.CostUSD})
	return answer, nil
}

// answer asks the model for one step.
func (r *run) answer(ctx context.Context) (model.Answer, error) {
	req := model.Request{System: r.System, Messages: r.History}
	for _, t := range r.Tools {
		req.Tools = append(req.Tools, model.Tool{Name: t.Name(), Description: t.Description(), Parameters: t.Parameters()})
	}
	return r.Model.Answer(ctx, req, func(d model.Delta) {
		switch d.Kind {
		case model.DeltaText:
			r.emit(Text{Text: d.Text})
		case model.DeltaReasoning:
			r.emit(Reasoning{Text: d.Text})
		case model.DeltaReset:
			r.emit(Reset{})
		case model.DeltaRetry:
			r.emit(Retry{Reason: d.Text, Wait: d.Wait})
		}
	})
}

// Afford returns ErrBudget if there is no money left.
func (a *Agent) Afford() error {
	spent := a.spent
	if a.Machine != nil {
		spent += a.Machine()
	}
	if a.MaxCostUSD > 0 && spent >= a.MaxCostUSD {
		return fmt.Errorf("%w: $%.2f of $%.2f", ErrBudget, spent, a.MaxCostUSD)
	}
	return nil
}

// Spend counts a cost that arose beside the conversation.
func (a *Agent) Spend(usd float64) { a.spent += usd }

// SpendAside is Spend for what is asked of another model during a Run; its Outcome
// holds it.
func (a *Agent) SpendAside(usd float64) {
	a.spent += usd
	a.aside += usd
}

func (r *run) emit(e Event) {
	if r.Emit == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Emit(e)
}

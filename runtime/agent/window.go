package agent

import (
	"context"

	"github.com/talkops-ai/talkops/runtime/model"
)

// FullAt is how much of the model's window a conversation fills before it is made
// shorter.
const FullAt = 0.85

// A fill is how many tokens a conversation took, and of how many messages.
type fill struct{ tokens, messages int }

// Say adds a message to the conversation.
func (a *Agent) Say(m model.Message) {
	a.History = append(a.History, m)
	if a.Keep != nil {
		a.Keep(Kept{Message: &m})
	}
}

// Forget makes the conversation a new one, or one that was kept, of which tokens
// were used at last.
func (a *Agent) Forget(history []model.Message, tokens int) {
	a.History = history
	a.fill = fill{tokens, len(history)}
}

// Filled estimates how many tokens of the model's window the conversation takes.
func (a *Agent) Filled() int {
	n := a.fill.tokens
	if n == 0 {
		n = len(a.System) / bytesPerToken
	}
	for _, m := range a.History[min(a.fill.messages, len(a.History)):] {
		n += size(m) / bytesPerToken
	}
	return n
}

const bytesPerToken = 4

func size(m model.Message) int {
	n := len(m.Text)
	for _, r := range m.Reasoning {
		n += len(r.Text) + len(r.Opaque)
	}
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Input)
	}
	for _, r := range m.Results {
		n += len(r.Text)
	}
	return n
}

// full reports whether the conversation has to be made shorter.
func (r *run) full() bool {
	window := r.Model.Info().Window
	return r.Shorten != nil && window > 0 && float64(r.Filled()) >= FullAt*float64(window)
}

// shorten makes the conversation shorter.
func (r *run) shorten(ctx context.Context) error {
	used, cost, err := r.Compact(ctx)
	r.out.Usage = r.out.Usage.Add(used)
	r.out.CostUSD += cost
	return err
}

// Compact makes the conversation shorter now, and returns what that cost. An error
// leaves it as it was.
func (a *Agent) Compact(ctx context.Context) (model.Usage, float64, error) {
	event := Shortened{Before: a.Filled()}
	if a.Emit != nil {
		a.Emit(Shortening{Tokens: event.Before})
	}
	short, used, err := a.Shorten(ctx, a.History)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cost := used.Cost(a.Model.Info().Price)
	a.Spend(cost)
	if a.Keep != nil && used != (model.Usage{}) {
		a.Keep(Kept{Usage: &used, CostUSD: cost})
	}
	if err != nil {
		event.After, event.Failed = event.Before, err.Error()
	} else {
		a.History, a.fill = short, fill{}
		a.fill.tokens = a.Filled()
		a.fill.messages = len(short)
		event.After = a.fill.tokens
		if a.Keep != nil {
			a.Keep(Kept{Short: short})
		}
	}
	if a.Emit != nil {
		a.Emit(event)
	}
	return used, cost, err
}

// spend counts what a step of the model used.
func (r *run) spend(used model.Usage) {
	cost := used.Cost(r.Model.Info().Price)
	r.Spend(cost)
	r.out.CostUSD += cost
	r.out.Usage = r.out.Usage.Add(used)
	if r.Keep != nil {
		r.Keep(Kept{Usage: &used, CostUSD: cost})
	}
}

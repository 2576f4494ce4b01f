package rest

import "github.com/talkops-ai/talkops/sdk/sandbox"

// Pages goes through a list that comes in pages. The zero value is at its
// beginning.
type Pages struct{ seen map[string]bool }

const mostPages = 1000

// Next takes note of the cursor of the next page. It is an error if that was there
// before or if there have been very many: such a list has no end.
func (p *Pages) Next(op, vendor, cursor string) error {
	if p.seen == nil {
		p.seen = make(map[string]bool)
	}
	if p.seen[cursor] || len(p.seen) >= mostPages {
		return &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: vendor + "'s list does not end"}
	}
	p.seen[cursor] = true
	return nil
}

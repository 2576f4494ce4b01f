package approval

import (
	"context"
	"slices"
	"strings"

	"github.com/talkops-ai/talkops/runtime/tool"
)

// A Doubt is about a command that nothing but an unknown program keeps from
// being allowed.
type Doubt struct {
	Command string
	Dir     string
	Reasons []string
}

// An Opinion answers a Doubt. Anything but true and nil leaves the command to a
// person.
type Opinion func(ctx context.Context, x Doubt) (bool, error)

// doubt returns what may be asked about a refused request: on this computer,
// not in production, with no rule against it, and where unknown programs alone
// decide, called by plain names.
func (p Policy) doubt(req Request, c Context, all []Finding, commands [][]string, d Decision) (Doubt, bool) {
	if p.Opinion == nil || p.Mode != Smart || req.Plan.Effect != tool.Runs || d.Allow || d.Kind != NeedsPerson || c.column(p.environment(commands)) != onHost {
		return Doubt{}, false
	}
	if strings.ContainsAny(req.Plan.Command, "#\n") {
		return Doubt{}, false // what nothing runs speaks to the model alone
	}
	asked := func(r Rule) bool { return r.covers(c) && slices.ContainsFunc(commands, r.command) }
	if _, ok := first(p.Rules.Ask, asked); ok {
		return Doubt{}, false
	}
	x := Doubt{Command: req.Plan.Command, Dir: c.Dir}
	for _, f := range all {
		if p.cell(req, f, onHost) == Allow || p.lifted(req, c, f, moves(commands)) {
			continue
		}
		if f.Tier != T3 || !f.typed || f.unparsed || len(f.words) == 0 || strings.Contains(f.words[0], "/") {
			return Doubt{}, false
		}
		if reason := f.words[0] + " " + f.Reason; !slices.Contains(x.Reasons, reason) {
			x.Reasons = append(x.Reasons, reason)
		}
	}
	return x, len(x.Reasons) > 0
}

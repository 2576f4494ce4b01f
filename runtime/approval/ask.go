package approval

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/talkops-ai/talkops/runtime/tool"
)

// A Choice is what a person may say to a question.
type Choice string

// The choices.
const (
	Once    Choice = "once"    // this call
	Session Choice = "session" // this same call, for the rest of the session
	Always  Choice = "always"  // from now on: a rule in the user's own file
	Refuse  Choice = "refuse"
)

// A Question is a call that needs a person's word.
type Question struct {
	Request
	Why    Decision // what decided that it is asked
	Offers []Choice // what may be said
	Rule   string   // what Always would add to the user's rules

	// Shown is what the call would change in its file; nil if that is not known.
	Shown *tool.Edit
}

// An Answer is what a person says to a Question.
type Answer struct {
	Choice  Choice
	Reason  string // of a refusal, for the model; may be empty
	Command string // to run this instead; it is judged again
}

// Attended asks a person where a Policy alone would refuse. It is an Approver.
type Attended struct {
	Policy   func() Policy // of the moment: the mode may change
	Ask      func(context.Context, Question) (Answer, error)
	Remember func(rule string) error // adds a rule to the user's file; nil: Always is not offered

	mu      sync.Mutex
	granted map[string]bool // for the session
}

// Approve implements Approver. It waits for the person.
func (a *Attended) Approve(ctx context.Context, req Request) (Decision, error) {
	policy := a.Policy()
	d, err := policy.Approve(ctx, req)
	if err != nil || d.Allow || d.Kind == ByPolicy {
		return d, err
	}
	// What it does belongs to what was agreed to: a file may be a link to another by now.
	key := strings.Join([]string{req.Tool, req.Plan.Command, req.Plan.Path, req.Place.ID, string(d.Tier), d.Reason}, "\x00")
	a.mu.Lock()
	granted := a.granted[key]
	a.mu.Unlock()
	if granted && !eachTime(req, d) {
		d.Allow = true
		return d, nil
	}
	d.Hint = ""
	q := Question{Request: req, Why: d, Offers: []Choice{Once, Session}}
	if eachTime(req, d) {
		q.Offers = q.Offers[:1]
	}
	if rule := ruleFor(req, d, policy.Context.Workspace); rule != "" && a.Remember != nil {
		q.Offers, q.Rule = append(q.Offers, Always), rule
	}
	q.Offers = append(q.Offers, Refuse)
	if req.Edit != nil {
		if edit, err := req.Edit(ctx); err == nil {
			q.Shown = &edit
		}
	}
	answer, err := a.Ask(ctx, q)
	if err != nil {
		return Decision{}, err
	}
	if answer.Choice == Refuse || !slices.Contains(q.Offers, answer.Choice) {
		d.Kind, d.Reason = ByPerson, "the user refused it"
		if reason := strings.TrimSpace(answer.Reason); reason != "" {
			d.Reason += ": " + reason
		}
		return d, nil
	}
	if edited := strings.TrimSpace(answer.Command); edited != "" && req.Plan.Effect == tool.Runs && edited != req.Plan.Command {
		req.Plan.Command = answer.Command
		again, err := a.Policy().Approve(ctx, req)
		if err != nil || again.Kind == ByPolicy {
			return again, err
		}
		again.Allow, again.Command = true, answer.Command
		return again, nil
	}
	switch answer.Choice {
	case Session:
		a.mu.Lock()
		if a.granted == nil {
			a.granted = make(map[string]bool)
		}
		a.granted[key] = true
		a.mu.Unlock()
	case Always:
		if err := a.Remember(q.Rule); err != nil {
			return Decision{}, err
		}
	}
	d.Allow = true
	return d, nil
}

// eachTime reports whether a yes holds for one call only: the call acts outside or
// is disguised, or it writes a file that programs obey, and what it writes is
// another text each time.
func eachTime(req Request, d Decision) bool {
	return d.Tier == TX || d.Tier == T4 || req.Plan.Effect == tool.Writes && d.Tier == T3
}

// ruleFor is the rule that would allow exactly this call, or "" where no rule may. A file
// in the workspace has its name there, as the next machine has it elsewhere.
func ruleFor(req Request, d Decision, workspace string) string {
	if eachTime(req, d) || d.Tier == T5 || d.Kind == Unparsed {
		return ""
	}
	text := req.Tool + ": " + req.Plan.Path
	if rel, inside := strings.CutPrefix(path.Clean(req.Plan.Path), path.Clean(workspace)+"/"); inside {
		text = req.Tool + ": " + rel
	}
	if req.Plan.Effect == tool.Runs {
		text = strings.TrimSpace(req.Plan.Command)
		if name, _, ok := strings.Cut(text, ":"); ok && slices.Contains(Tools, name) {
			return "" // it would be read back as a rule for that tool
		}
	}
	if strings.Contains(text, ",") || strings.ContainsAny(text, "'\"\\\n") {
		return "" // it would not be read back the same
	}
	if _, err := ParseRule(text); err != nil || strings.Contains(text, "*") {
		return ""
	}
	return text
}

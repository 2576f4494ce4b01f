// Package approval decides whether a tool call may run. Commands are read with a
// real shell parser and put into tiers by what they do; a table says for each tier
// and place what is allowed, asked for or denied. Nothing is run or sent to decide.
package approval

import (
	"context"

	"github.com/talkops-ai/talkops/runtime/tool"
)

// A Place is where a tool call would happen.
type Place struct {
	Provider   string // "daytona"
	ID         string // the machine
	Host       bool   // this computer
	Disposable bool   // a machine of this session's own, ended with it, that got nothing of the user's
}

// A Request is one tool call that wants to run.
type Request struct {
	Tool  string    // "execute"
	Plan  tool.Plan // what it would do
	Place Place

	// Change is what a command that acts on infrastructure would change; nil for
	// every other call.
	Change *Change

	// Edit says what a call that writes would change in its file; nil for every other
	// call. It looks at the file when it is called.
	Edit func(context.Context) (tool.Edit, error)
}

// A Kind says why a call was refused.
type Kind string

// The kinds of refusal.
const (
	NeedsPerson Kind = "needs_person" // a person could allow it, and there was nobody to ask
	ByPolicy    Kind = "policy"       // a rule, the mode or the "never" class
	Unparsed    Kind = "unparsed"     // it cannot be read
	ByPerson    Kind = "person"       // the person who was asked said no
)

// A Decision answers a Request.
type Decision struct {
	Allow  bool
	Kind   Kind   // of a refusal
	Tier   Tier   // of what decided
	Part   string // the part of a command that decided
	Reason string // one phrase: "acts on a cluster"
	Hint   string // what would allow it; may be empty

	// Command is what to run instead, as a person changed it; empty: as asked.
	Command string
}

// Person reports whether a call was refused only because a person would have to
// say yes.
func (d Decision) Person() bool { return !d.Allow && (d.Kind == NeedsPerson || d.Kind == Unparsed) }

// An Approver is asked before each tool call. It is safe for concurrent use.
type Approver interface {
	Approve(ctx context.Context, req Request) (Decision, error)
}

// Package approval decides whether a tool call may run.
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
	Disposable bool   // a machine of this session's own, ended with it
}

// A Request is one tool call that wants to run.
type Request struct {
	Tool  string    // "execute"
	Plan  tool.Plan // what it would do
	Place Place
}

// A Decision answers a Request.
type Decision struct {
	Allow  bool
	Person bool   // refused only because a person would have to say yes
	Reason string // one sentence: why, and if refused what would allow it
}

// An Approver is asked before each tool call. It is safe for concurrent use.
type Approver interface {
	Approve(ctx context.Context, req Request) (Decision, error)
}

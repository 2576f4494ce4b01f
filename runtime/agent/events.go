package agent

import (
	"time"

	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// An Event tells what an Agent is doing, as it happens. Events come one at a
// time. Their JSON is what stream-json prints.
type Event interface {
	Kind() string // "text"
}

// Text is a piece of what the model says in this step.
type Text struct {
	Text string `json:"text"`
}

// Reasoning is a piece of what the model thinks in this step.
type Reasoning struct {
	Text string `json:"text"`
}

// Reset says that the step starts again: its Text and Reasoning so far are void.
type Reset struct{}

// Retry says that the model is asked again after a wait.
type Retry struct {
	Reason string        `json:"reason"`
	Wait   time.Duration `json:"wait_ns"`
}

// CallStarted says that a tool call was approved and runs now.
type CallStarted struct {
	ID      string      `json:"id"`
	Tool    string      `json:"tool"`
	Effect  tool.Effect `json:"effect"`
	Command string      `json:"command,omitempty"`
	Path    string      `json:"path,omitempty"`
	URL     string      `json:"url,omitempty"`
	Query   string      `json:"query,omitempty"`
	Subject string      `json:"subject,omitempty"` // what is looked for, and where
	Edited  bool        `json:"edited,omitempty"`  // the command is as a person changed it

	// Where it runs and why it may.
	Provider string        `json:"provider"`
	Machine  string        `json:"machine,omitempty"`
	Tier     approval.Tier `json:"tier,omitempty"`
	Why      string        `json:"why,omitempty"`

	Change *approval.Change `json:"change,omitempty"` // what a command that acts on infrastructure changes
}

// Says is what the call is about in a few words, not cleaned.
func (e CallStarted) Says() string {
	return tool.Plan{Command: e.Command, Path: e.Path, URL: e.URL, Query: e.Query, Subject: e.Subject}.Says()
}

// CallOutput is a piece of a running command's output.
type CallOutput struct {
	ID     string `json:"id"`
	Stderr bool   `json:"stderr,omitempty"`
	Data   string `json:"data"`
}

// CallDone says how a started call ended, and Text what the model is told. Calls
// that never started, because they were malformed, have a CallDone too.
type CallDone struct {
	ID   string        `json:"id"`
	Tool string        `json:"tool"`
	Path string        `json:"path,omitempty"` // of one that was never started
	Code sandbox.Code  `json:"code,omitempty"` // "" when it went well
	Exit int           `json:"exit"`
	Took time.Duration `json:"took_ns"`
	Text string        `json:"text"`
}

// Refused says that a call was not allowed.
type Refused struct {
	ID string `json:"id"`
	Refusal
}

// Used says what a step cost, and the run so far.
type Used struct {
	Turn    int         `json:"turn"`
	Usage   model.Usage `json:"usage"` // of this step
	Total   model.Usage `json:"total"`
	CostUSD float64     `json:"cost_usd"` // of the run so far
}

// Step says that a step ended whose text is not the answer, since calls follow.
type Step struct {
	Text string `json:"text,omitempty"`
}

// Answered has the answer of the run.
type Answered struct {
	Text string `json:"text"`
}

// Shortening says that the conversation fills the model's window and is summed up.
type Shortening struct {
	Tokens int `json:"tokens"`
}

// Shortened says how that went. The sizes are estimates, in tokens.
type Shortened struct {
	Before int    `json:"before"`
	After  int    `json:"after"`
	Failed string `json:"failed,omitempty"` // why it is as long as it was
}

// Kind implements Event.
func (Shortening) Kind() string { return "shortening" }

// Kind implements Event.
func (Shortened) Kind() string { return "shortened" }

// Kind implements Event.
func (Text) Kind() string { return "text" }

// Kind implements Event.
func (Reasoning) Kind() string { return "reasoning" }

// Kind implements Event.
func (Reset) Kind() string { return "reset" }

// Kind implements Event.
func (Retry) Kind() string { return "retry" }

// Kind implements Event.
func (CallStarted) Kind() string { return "call_started" }

// Kind implements Event.
func (CallOutput) Kind() string { return "call_output" }

// Kind implements Event.
func (CallDone) Kind() string { return "call_done" }

// Kind implements Event.
func (Refused) Kind() string { return "refused" }

// Kind implements Event.
func (Used) Kind() string { return "usage" }

// Kind implements Event.
func (Step) Kind() string { return "step" }

// Kind implements Event.
func (Answered) Kind() string { return "answer" }

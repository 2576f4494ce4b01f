package headless

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/redact"
	"github.com/talkops-ai/talkops/runtime/rubric"
	"github.com/talkops-ai/talkops/runtime/term"
)

// A Result is how a run without a person ended.
type Result struct {
	Answer  string          `json:"answer"`
	Code    int             `json:"code"`   // the exit code
	Reason  string          `json:"reason"` // a word for it: "done"
	Turns   int             `json:"turns"`
	Usage   model.Usage     `json:"usage"`
	CostUSD float64         `json:"cost_usd"` // of models and sandbox
	Refused []agent.Refusal `json:"refused"`
	Sandbox *Sandbox        `json:"sandbox,omitempty"`
	Work    *Work           `json:"work,omitempty"`   // what was changed in the sandbox; absent if nothing was
	Rubric  *rubric.Report  `json:"rubric,omitempty"` // of a graded run
	Thread  string          `json:"thread,omitempty"` // the conversation, to go on with
	Errors  []string        `json:"errors"`           // all that went wrong, also what did not decide the code
}

// Sandbox says where a run worked.
type Sandbox struct {
	Provider string `json:"provider"`
	ID       string `json:"id"`
	Dir      string `json:"dir"`

	CostUSD float64 `json:"cost_usd,omitempty"` // of this run, an estimate
}

// Work says where that which a run changed in its sandbox is on this computer. Names
// that do not fit into UTF-8 are as near to themselves as they can be.
type Work struct {
	Run       string   `json:"run"` // its id, for talkops sandbox diff, apply and export
	Dir       string   `json:"dir"` // where it is kept
	Changed   string   `json:"changed"`
	Patch     []string `json:"patch,omitempty"`     // files, in the order in which git takes them
	Branch    string   `json:"branch,omitempty"`    // of the project's repository
	Applied   int      `json:"applied,omitempty"`   // changes that were made in the project
	Merged    []string `json:"merged,omitempty"`    // files that hold changes of both sides
	Conflicts []string `json:"conflicts,omitempty"` // files that were not touched
	Aside     []string `json:"aside,omitempty"`     // files that are kept and need a word of the user
}

// NewResult returns the Result of an outcome, with the code and reason still to
// be set.
func NewResult(o agent.Outcome) Result {
	return Result{Answer: o.Answer, Turns: o.Turns, Usage: o.Usage, CostUSD: o.CostUSD, Refused: o.Refused}
}

// cost words what the run cost: "about $0.0712, of which the sandbox $0.0612".
func (r Result) cost() string {
	if r.Sandbox == nil || r.Sandbox.CostUSD == 0 {
		return fmt.Sprintf("$%.4f", r.CostUSD)
	}
	sandbox := fmt.Sprintf("$%.4f", r.Sandbox.CostUSD)
	if sandbox == "$0.0000" {
		sandbox = "under $0.0001"
	}
	return fmt.Sprintf("about $%.4f, of which the sandbox %s", r.CostUSD, sandbox)
}

// Redacted returns r with clean texts and every secret blotted out.
func (r Result) Redacted(with *redact.Redactor) Result {
	r = r.whole()
	if r.Rubric != nil {
		r.Rubric.Explanation = term.Clean(r.Rubric.Explanation)
		for i, c := range r.Rubric.Criteria {
			r.Rubric.Criteria[i].Name, r.Rubric.Criteria[i].Gap = term.Clean(c.Name), term.Clean(c.Gap)
		}
	}
	for i, text := range r.Errors {
		r.Errors[i] = term.Clean(text)
	}
	if r.Work != nil {
		w := *r.Work
		for _, names := range []*[]string{&w.Patch, &w.Merged, &w.Conflicts, &w.Aside} {
			*names = slices.Clone(*names)
			for i, name := range *names {
				(*names)[i] = term.Clean(name)
			}
		}
		r.Work = &w
	}
	if err := redact.Value(with, &r); err != nil {
		return Result{Code: r.Code, Reason: r.Reason, Errors: []string{"the result cannot be shown"}}
	}
	return r
}

// Write writes r as one line of JSON.
func (r Result) Write(w io.Writer) error {
	return writeLine(w, r.whole())
}

// whole returns r with lists that are empty rather than null, and clean texts.
func (r Result) whole() Result {
	r.Answer = term.Clean(r.Answer)
	r.Refused = append([]agent.Refusal{}, r.Refused...)
	r.Errors = append([]string{}, r.Errors...)
	if r.Rubric != nil {
		report := *r.Rubric
		report.Criteria = append([]rubric.Criterion{}, report.Criteria...)
		r.Rubric = &report
	}
	return r
}

// writeLine writes v as one line of JSON in which no CI system finds a command:
// those with "##" are looked for in the middle of a line too.
func writeLine(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(bytes.ReplaceAll(b, []byte("##"), []byte(`#\u0023`)), '\n')
	_, err = w.Write(b)
	return err
}

// event returns e as an object with its kind under "type".
func event(e agent.Event) (json.RawMessage, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return tagged(e.Kind(), b), nil
}

// tagged puts a type in front of the fields of a JSON object.
func tagged(kind string, object []byte) json.RawMessage {
	head := []byte(`{"type":"` + kind + `"`)
	if len(object) > 2 {
		head = append(head, ',')
	}
	return append(head, object[1:]...)
}

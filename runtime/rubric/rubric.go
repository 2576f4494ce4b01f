// Package rubric lets a run grade itself: the agent works, a grader with a
// conversation of its own holds the work to the user's criteria, and what is
// missing goes back to the agent, until it is good enough or enough has been
// tried.
package rubric

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// The ends of a graded run other than a satisfied grader.
var (
	ErrUnmet  = errors.New("the rubric is not met")
	ErrGrader = errors.New("the grader gave no valid verdict")
)

// Status says how a grading, and in the end the run, came out.
type Status string

// The statuses. Revise is never the last one.
const (
	Satisfied Status = "satisfied"
	Revise    Status = "needs_revision"
	Failed    Status = "failed"                 // the criteria cannot be judged or fulfilled at all
	Exhausted Status = "max_iterations_reached" // still not satisfied at the last grading
	Broken    Status = "grader_error"
)

// A Criterion is one demand of the rubric as the grader found it.
type Criterion struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Gap    string `json:"gap,omitempty"` // what is missing, if it did not pass
}

// MaxGradings is the most a Loop may grade.
const MaxGradings = 20

// A Loop is a graded run. Rubric, Agent and Grader must be set.
type Loop struct {
	Rubric   string // the user's criteria
	Gradings int    // at most so many; 0 is 3
	Agent    *agent.Agent
	Grader   model.Model
	Within   time.Duration // for one grading; 0 is 3 minutes

	// Tools are those the grader may look with: those of ls, read_file, glob and
	// grep are taken. Sandbox and Dir confine them to the working directory, and what
	// the Agent may not read without a person's word, they may not either.
	Tools   []tool.Tool
	Sandbox sandbox.Sandbox
	Dir     string

	Mask func(string) string // blots out secrets in the record; may be nil
	Emit func(agent.Event)   // may be nil
}

// An Outcome is what a graded run came to.
type Outcome struct {
	agent.Outcome // of all rounds; Answer is the one kept
	Report
}

// A Report is what the grader said. The zero value is of a run that was not graded.
type Report struct {
	Status      Status      `json:"status,omitempty"`
	Gradings    int         `json:"gradings"`
	Kept        int         `json:"kept"` // the grading whose answer is kept; files are as the last round left them
	Explanation string      `json:"explanation"`
	Criteria    []Criterion `json:"criteria"`
}

// Started says that a grading begins.
type Started struct {
	Grading int `json:"grading"`
	Of      int `json:"of"`
}

// Ended says how a grading came out. The last one carries the status of the run.
type Ended struct {
	Grading     int         `json:"grading"`
	Of          int         `json:"of"`
	Status      Status      `json:"status"`
	Explanation string      `json:"explanation"`
	Criteria    []Criterion `json:"criteria"`
}

// Kind implements agent.Event.
func (Started) Kind() string { return "rubric_start" }

// Kind implements agent.Event.
func (Ended) Kind() string { return "rubric_end" }

// Run gives prompt to the agent and grades what it does. An agent that ends
// without an answer is not graded; its error is returned. The error of a graded
// run is nil, ErrUnmet, ErrGrader, or what ended it from outside.
func (l *Loop) Run(ctx context.Context, prompt string) (Outcome, error) {
	most := l.Gradings
	if most == 0 {
		most = 3
	}
	most = min(most, MaxGradings)
	turns := l.Agent.MaxTurns
	defer func() { l.Agent.MaxTurns = turns }()

	var out Outcome
	best := share{-1, 1}
	start := len(l.Agent.History)
	text := prompt + criteria(l.Rubric)
	for n := 1; ; n++ {
		if turns > 0 {
			left := turns - out.Turns
			if left <= 0 {
				return out, fmt.Errorf("%w: %d", agent.ErrTurns, turns)
			}
			l.Agent.MaxTurns = left
		}
		done, err := l.Agent.Run(ctx, text)
		answer := out.Answer
		out.Outcome = out.Then(done)
		if err != nil {
			return out, err
		}
		l.emit(Started{Grading: n, Of: most})
		v, err := l.grade(ctx, n, l.Agent.History[min(start, len(l.Agent.History)):], &out.Outcome)
		out.Gradings = n
		if err != nil {
			if n > 1 {
				out.Answer = answer // the new one is not judged
			}
			out.Status, out.Explanation = Broken, err.Error()
			l.emit(Ended{Grading: n, Of: most, Status: Broken, Explanation: err.Error(), Criteria: []Criterion{}})
			if ctx.Err() != nil {
				return out, context.Cause(ctx)
			}
			if errors.Is(err, agent.ErrBudget) {
				return out, err
			}
			return out, fmt.Errorf("%w: %w", ErrGrader, err)
		}
		out.Status, out.Explanation, out.Criteria = v.Result, v.Explanation, v.Criteria
		if out.Status == Revise && n == most {
			out.Status = Exhausted
		}
		if s := v.share(); out.Status == Satisfied || s.atLeast(best) {
			best, out.Kept = s, n
		} else {
			out.Answer = answer
		}
		l.emit(Ended{Grading: n, Of: most, Status: out.Status, Explanation: v.Explanation, Criteria: v.Criteria})
		switch out.Status {
		case Satisfied:
			return out, nil
		case Revise:
			text = feedback(v)
		default:
			return out, fmt.Errorf("%w: %s", ErrUnmet, v.open())
		}
	}
}

func (l *Loop) emit(e agent.Event) {
	if l.Emit != nil {
		l.Emit(e)
	}
}

// A share is how many criteria of how many passed.
type share struct{ passed, of int }

// atLeast reports whether s is as good as t. The number of criteria may differ
// from grading to grading.
func (s share) atLeast(t share) bool { return s.passed*t.of >= t.passed*s.of }

// place says where the agent's calls run.
func place(p approval.Place) string {
	if p.Host {
		return "this computer"
	}
	return p.Provider + " " + p.ID
}

package rubric

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A verdict is what the grader answers.
type verdict struct {
	Result      Status      `json:"result"`
	Explanation string      `json:"explanation"`
	Criteria    []Criterion `json:"criteria"`
}

const (
	mostCriteria = 50
	mostVerdict  = 20_000 // characters
)

// parse reads the one JSON object in text. The error tells the grader what is
// wrong with it.
func parse(text string) (verdict, error) {
	if utf8.RuneCountInString(text) > mostVerdict {
		return verdict{}, fmt.Errorf("the answer has more than %d characters", mostVerdict)
	}
	object, err := only(text)
	if err != nil {
		return verdict{}, err
	}
	var v verdict
	dec := json.NewDecoder(bytes.NewReader(object))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return verdict{}, fmt.Errorf("the JSON is not of the form asked for: %w", err)
	}
	return v, v.check()
}

// only returns the one JSON object that stands in text.
func only(text string) (json.RawMessage, error) {
	var found json.RawMessage
	for rest := text; ; {
		i := strings.IndexByte(rest, '{')
		if i < 0 {
			break
		}
		var object json.RawMessage
		dec := json.NewDecoder(strings.NewReader(rest[i:]))
		if err := dec.Decode(&object); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) && found == nil {
				return nil, errors.New("the JSON object is not complete")
			}
			rest = rest[i+1:]
			continue
		}
		if found != nil {
			return nil, errors.New("there is more than one JSON object")
		}
		found, rest = object, rest[i+int(dec.InputOffset()):]
	}
	if found == nil {
		return nil, errors.New("there is no JSON object")
	}
	return found, nil
}

func (v verdict) check() error {
	open := 0
	for i, c := range v.Criteria {
		switch {
		case strings.TrimSpace(c.Name) == "":
			return fmt.Errorf("criterion %d has no name", i+1)
		case !c.Passed && strings.TrimSpace(c.Gap) == "":
			return fmt.Errorf("criterion %q did not pass but has no gap", c.Name)
		case !c.Passed:
			open++
		}
	}
	switch {
	case v.Result != Satisfied && v.Result != Revise && v.Result != Failed:
		return fmt.Errorf("result is %q, not satisfied, needs_revision or failed", v.Result)
	case len(v.Criteria) > mostCriteria:
		return fmt.Errorf("there are more than %d criteria", mostCriteria)
	case v.Result == Satisfied && len(v.Criteria) == 0:
		return errors.New("result is satisfied without any criterion")
	case v.Result == Satisfied && open > 0:
		return errors.New("result is satisfied although a criterion did not pass")
	case v.Result == Revise && open == 0:
		return errors.New("result is needs_revision although every criterion passed")
	case strings.TrimSpace(v.Explanation) == "":
		return errors.New("there is no explanation")
	}
	return nil
}

// share is how many criteria passed; a verdict without criteria passes none.
func (v verdict) share() share {
	s := share{0, max(len(v.Criteria), 1)}
	for _, c := range v.Criteria {
		if c.Passed {
			s.passed++
		}
	}
	return s
}

// open words what is not met.
func (v verdict) open() string {
	var gaps []string
	for _, c := range v.Criteria {
		if !c.Passed {
			gaps = append(gaps, c.Name)
		}
	}
	if len(gaps) == 0 {
		return v.Explanation
	}
	return fmt.Sprintf("%d of %d criteria open: %s", len(gaps), len(v.Criteria), strings.Join(gaps, "; "))
}

// feedback is the message that asks the agent for more.
func feedback(v verdict) string {
	var b strings.Builder
	b.WriteString("[rubric_grader] Your work was graded and is not accepted yet.\n\n" + v.Explanation + "\n\nNot passed:\n")
	for _, c := range v.Criteria {
		if !c.Passed {
			fmt.Fprintf(&b, "- %s: %s\n", c.Name, c.Gap)
		}
	}
	if v.share().passed > 0 {
		b.WriteString("\nPassed; do not break these again:\n")
		for _, c := range v.Criteria {
			if c.Passed {
				fmt.Fprintf(&b, "- %s\n", c.Name)
			}
		}
	}
	b.WriteString("\nDeal with every point that did not pass, then answer again.")
	return b.String()
}

// criteria is what the agent is told of the rubric beside the prompt.
func criteria(rubric string) string {
	return "\n\nThe user's acceptance criteria; the work is graded against them, by evidence in commands and files:\n" + rubric
}

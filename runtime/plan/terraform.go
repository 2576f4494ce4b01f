package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// terraform shows the plan file that is applied, as "terraform show -json" writes
// it in format 1.
func (l *look) terraform(ctx context.Context) error {
	_, words := l.sort([]string{"-var", "-var-file", "-target", "-replace", "-state", "-state-out", "-backup", "-parallelism", "-lock-timeout"})
	if l.verb != "apply" || len(words) == 0 {
		return fmt.Errorf("it makes its own plan; save one with %s plan -out=FILE and apply that, to have it shown", l.program)
	}
	if len(words) > 1 {
		return errors.New("it names more than one plan")
	}
	dir := l.dir
	if d := l.names["directory"]; d != "" {
		dir = absolute(dir, d)
	}
	l.change.File = absolute(dir, words[0])
	sum, err := l.sum(ctx, l.change.File)
	if err != nil {
		return fmt.Errorf("the plan cannot be read: %w", err)
	}
	l.change.SHA256 = sum
	out, _, err := l.ask(ctx, append(slices.Clone(l.global), "show", "-json", "-no-color", words[0])...)
	if err != nil {
		return err
	}
	return l.terraformPlan(out)
}

// terraformPlan reads a plan.
func (l *look) terraformPlan(text []byte) error {
	var plan struct {
		Format  string `json:"format_version"`
		Changes []struct {
			Address string `json:"address"`
			Deposed string `json:"deposed"`
			Change  *struct {
				Actions []string `json:"actions"`
			} `json:"change"`
		} `json:"resource_changes"`
		Errored bool `json:"errored"`
	}
	if err := json.Unmarshal(text, &plan); err != nil {
		return errors.New("what it shows is not a plan")
	}
	if major, _, _ := strings.Cut(plan.Format, "."); major != "1" && major != "0" {
		return fmt.Errorf("the plan is of format %q, which is not known", clip(plan.Format))
	}
	for _, r := range plan.Changes {
		if r.Change == nil {
			continue
		}
		name := r.Address
		if r.Deposed != "" {
			name += " (deposed)"
		}
		switch strings.Join(r.Change.Actions, " ") {
		case "no-op", "read", "":
		case "create":
			l.note("add", name)
		case "update":
			l.note("change", name)
		case "delete":
			l.note("destroy", name)
		case "delete create", "create delete":
			l.note("replace", name)
		default: // "forget" and what is still to come
			l.note("change", name+" ("+strings.Join(r.Change.Actions, ", ")+")")
		}
	}
	l.trim()
	if plan.Errored {
		return errors.New("the plan ended with errors and is not whole")
	}
	return nil
}

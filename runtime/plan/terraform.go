package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// terraform shows the plan file that is applied, as "terraform show -json" writes
// it in format 1.
func (l *look) terraform(ctx context.Context) error {
	options, words := l.sort([]string{"-var", "-var-file", "-target", "-replace", "-state", "-state-out", "-backup", "-parallelism", "-lock-timeout"})
	switch {
	case l.verb != "apply" && len(words) > 0 || len(words) > 1:
		return errors.New("it names more than one plan")
	case len(words) == 0:
		file, err := l.terraformMake(ctx, options)
		if err != nil {
			return err
		}
		words = []string{file}
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

// planOptions are those of an apply that make the plan; applyOptions are those that
// still count when it is applied.
var (
	planOptions  = []string{"-var", "-var-file", "-target", "-replace", "-state", "-refresh", "-refresh-only", "-destroy", "-parallelism", "-lock", "-lock-timeout", "-compact-warnings"}
	applyOptions = []string{"-state", "-state-out", "-backup", "-parallelism", "-lock", "-lock-timeout", "-no-color", "-json", "-compact-warnings"}
)

// terraformMake makes the plan that an apply or destroy would make for itself, and
// sees to it that this plan is the one that is applied.
func (l *look) terraformMake(ctx context.Context, options [][]string) (string, error) {
	for _, o := range options {
		name, _, _ := strings.Cut(o[0], "=")
		if !slices.Contains(planOptions, name) && !slices.Contains(applyOptions, name) && name != "-auto-approve" && name != "-input" {
			return "", fmt.Errorf("it makes its own plan with %s; save one with %s plan -out=FILE and apply that, to have it shown", clip(name), l.program)
		}
	}
	folder, err := l.folder(ctx)
	if err != nil {
		return "", err
	}
	l.change.Folder = folder
	file := path.Join(folder, "plan")
	args := append(slices.Clone(l.global), "plan", "-out="+file, "-input=false", "-no-color")
	if l.verb == "destroy" {
		args = append(args, "-destroy")
	}
	if _, _, err := l.ask(ctx, append(args, keep(options, planOptions...)...)...); err != nil {
		return "", err
	}
	words := append([]string{l.words[0]}, l.global...)
	words = append(append(append(words, "apply"), keep(options, applyOptions...)...), file)
	command := sandbox.Quote(words...)
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		command = name + "=" + sandbox.Quote(l.env[name]) + " " + command
	}
	l.change.Command = l.line[:l.from] + command + l.line[l.to:]
	return file, nil
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

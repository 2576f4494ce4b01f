package redact

import (
	"context"
	"strings"

	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Tools returns tools that do what the given ones do, but tell of no secret.
func (r *Redactor) Tools(tools []tool.Tool) []tool.Tool {
	if r == nil {
		return tools
	}
	all := make([]tool.Tool, len(tools))
	for i, t := range tools {
		all[i] = &discreet{t, r}
	}
	return all
}

// discreet is a tool that tells of no secret.
type discreet struct {
	tool.Tool
	r *Redactor
}

// Plan refuses to write the mark into a file: a secret that was read there would
// be lost.
func (d *discreet) Plan(input string) (tool.Plan, error) {
	plan, err := d.Tool.Plan(input)
	if err == nil && plan.Effect == tool.Writes && strings.Contains(input, Mark) {
		err = sandbox.Errorf(sandbox.CodeInvalidArgument, "%s stands for a secret that you are not shown and is not text of the file; change the lines around it", Mark)
	}
	return plan, err
}

func (d *discreet) Run(ctx context.Context, input string, emit func(tool.Output)) (tool.Result, error) {
	streams := map[bool]*Stream{false: d.r.Stream(), true: d.r.Stream()}
	if emit == nil {
		emit = func(tool.Output) {}
	}
	result, err := d.Tool.Run(ctx, input, func(o tool.Output) {
		if o.Data = streams[o.Stderr].Next(o.Data); len(o.Data) > 0 {
			emit(o)
		}
	})
	for _, stderr := range []bool{false, true} {
		if rest := streams[stderr].Rest(); len(rest) > 0 {
			emit(tool.Output{Stderr: stderr, Data: rest})
		}
	}
	result.Text = d.r.Before(" [line cut", result.Text)
	return result, err
}

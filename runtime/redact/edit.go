package redact

import (
	"context"
	"errors"

	"github.com/talkops-ai/talkops/runtime/tool"
)

// Edit implements tool.Editor: what is shown of a change tells of no secret either.
func (d *discreet) Edit(ctx context.Context, input string) (tool.Edit, error) {
	e, err := tool.EditOf(ctx, d.Tool, input)
	e.Before, e.After = []byte(d.r.Text(string(e.Before))), []byte(d.r.Text(string(e.After)))
	if u, is := errors.AsType[*tool.Unfit](err); is {
		u.Result.Text = d.r.Text(u.Result.Text)
	}
	return e, err
}

package e2b

import (
	"context"
	"encoding/json"
	"maps"
	"path"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A ticket is what Info.Token holds: all that entering the sandbox found out.
type ticket struct {
	Tools  tools  `json:"tools"`
	Run    string `json:"run"`
	Setsid bool   `json:"setsid,omitempty"`
}

// token writes what Resume reads.
func (b *box) token() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, err := json.Marshal(ticket{*b.tools, b.run, b.setsid})
	if err != nil {
		return ""
	}
	return string(data)
}

// Resume gives back the open sandbox spec.ID from its token, working directory
// and environment, without a request. With no token, or one it cannot use, it
// attaches.
func (p Provider) Resume(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	var t ticket
	if json.Unmarshal([]byte(spec.Token), &t) != nil || !path.IsAbs(t.Run) || !path.IsAbs(spec.Dir) || !rest.Trusted(t.Tools.Base) || t.Tools.Access == "" {
		return p.Open(ctx, spec)
	}
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	return &box{api: a, tools: &t.Tools, id: spec.ID, dir: spec.Dir, run: t.Run, setsid: t.Setsid, env: maps.Clone(spec.Env)}, nil
}

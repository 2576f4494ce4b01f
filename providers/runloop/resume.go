package runloop

import (
	"context"
	"encoding/json"
	"maps"
	"path"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A ticket is what Info.Token holds: all that entering the devbox found out.
type ticket struct {
	Run    string `json:"run"`
	Setsid bool   `json:"setsid,omitempty"`
	Idle   bool   `json:"idle,omitempty"`
}

// token writes what Resume reads.
func (b *box) token() string {
	data, err := json.Marshal(ticket{b.run, b.setsid, b.idle})
	if err != nil {
		return ""
	}
	return string(data)
}

// Resume gives back the open devbox spec.ID from its token, working directory
// and environment, without a request. With no token, or one it cannot use, it
// attaches.
func (p Provider) Resume(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	var t ticket
	if json.Unmarshal([]byte(spec.Token), &t) != nil || !path.IsAbs(t.Run) || !path.IsAbs(spec.Dir) {
		return p.Open(ctx, spec)
	}
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	return &box{api: a, id: spec.ID, dir: spec.Dir, run: t.Run, setsid: t.Setsid, idle: t.Idle, env: maps.Clone(spec.Env)}, nil
}

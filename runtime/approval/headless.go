package approval

import (
	"context"

	"github.com/talkops-ai/talkops/runtime/tool"
)

// Unattended approves where there is nobody to ask. Looking is always allowed;
// what changes something is allowed on a machine of the session's own, or
// everywhere with Yolo.
type Unattended struct{ Yolo bool }

// Approve implements Approver. It never waits.
func (u Unattended) Approve(_ context.Context, req Request) (Decision, error) {
	switch {
	case req.Plan.Effect == tool.Reads, req.Place.Disposable, u.Yolo:
		return Decision{Allow: true}, nil
	case req.Place.Host:
		return Decision{Person: true, Reason: "it would change this computer and there is nobody to ask; " +
			"add --yolo to allow it, or --sandbox to work in a machine of its own"}, nil
	}
	return Decision{Person: true, Reason: "it would change a machine that outlives this session and there is nobody to ask; " +
		"add --yolo to allow it"}, nil
}

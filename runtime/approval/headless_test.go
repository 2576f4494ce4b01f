package approval_test

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/tool"
)

func TestUnattended(t *testing.T) {
	host, own, attached := approval.Place{Host: true}, approval.Place{Disposable: true}, approval.Place{Provider: "daytona"}
	for _, row := range []struct {
		name   string
		effect tool.Effect
		place  approval.Place
		yolo   bool
		want   bool
	}{
		{"looking at this computer", tool.Reads, host, false, true},
		{"changing this computer", tool.Writes, host, false, false},
		{"running on this computer", tool.Runs, host, false, false},
		{"running on this computer, with yolo", tool.Runs, host, true, true},
		{"running on a machine of its own", tool.Runs, own, false, true},
		{"running on a machine that stays", tool.Runs, attached, false, false},
		{"an effect nobody named", "", host, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			d, err := approval.Unattended{Yolo: row.yolo}.Approve(t.Context(), approval.Request{Plan: tool.Plan{Effect: row.effect}, Place: row.place})
			if err != nil || d.Allow != row.want {
				t.Fatalf("got %+v, %v", d, err)
			}
			if !d.Allow && (!d.Person || d.Reason == "") {
				t.Errorf("the refusal says too little: %+v", d)
			}
		})
	}
}

package approval_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

var (
	onHost = approval.Context{Place: approval.Place{Host: true}, Dir: "/home/dev/shop", Workspace: "/home/dev/shop", Home: "/home/dev", Own: "/home/dev/.talkops"}
	inBox  = approval.Context{Place: approval.Place{Provider: "daytona", ID: "b", Disposable: true}, Dir: "/workspace", Workspace: "/workspace", Home: "/root"}
)

// TestVerdicts holds the classifier to the table of commands.
func TestVerdicts(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "verdicts.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row struct {
			ID, Local, Box, Cmd, Why string
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		n++
		for at, want := range map[*approval.Context]string{&onHost: row.Local, &inBox: row.Box} {
			got := approval.Judge(row.Cmd, *at, "")
			if string(got.Verdict) != want {
				t.Errorf("%s %q on host %v: %s (%s, %s: %q), want %s: %s", row.ID, row.Cmd, at.Place.Host, got.Verdict, got.Finding.Tier, got.Finding.Reason, got.Finding.Part, want, row.Why)
			}
		}
	}
	if n < 111 {
		t.Errorf("only %d commands", n)
	}
}

//go:build unix

package cmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

// TestTheWindowLeavesNothingBehind looks for what stands twice: the window itself in what
// has scrolled away, after much was printed at once and after the terminal became
// narrower, in front of a question too.
func TestTheWindowLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(execute("a", "seq 1 300"), modeltest.Step{Text: "Counted."}, execute("b", "touch made.txt"), modeltest.Step{Text: "Then not."})
	p := inTerminal(t, 100, 24, srv, nil, "--allow", "execute: seq *")
	once := func(what string) {
		t.Helper()
		for _, text := range []string{"Say what to do;", "May this run?", "THIS COMPUTER  ·"} {
			if n := strings.Count(p.screen(), text); n > 1 {
				t.Errorf("after %s %q stands there %d times:\n%s", what, text, n, p.screen())
			}
		}
	}
	p.await(`THIS COMPUTER`)
	p.say("Count")
	p.await(`Counted\.`)
	p.keys("C-o")
	p.await(`(?s)Output 1, 300 lines.*\n299\n300\n`)
	once("much output")
	for i := range 300 {
		if text := fmt.Sprintf("\n%d\n", i+1); !strings.Contains(p.screen(), text) {
			t.Fatalf("%q is not there", text)
		}
	}
	for _, width := range []string{"70", "45"} {
		p.tmux("resize-window", "-x", width, "-y", "24")
		p.await(`(?m)^─{` + width + `}$`)
		once("a narrower terminal")
		if n := strings.Count(p.tmux("capture-pane", "-p", "-S", "-500"), "─\n"); n != 1 {
			t.Errorf("%d lines above the input at %s:\n%s", n, width, p.screen())
		}
	}
	p.tmux("resize-window", "-x", "100", "-y", "24")
	p.await(`(?m)^─{100}$`)
	p.say("Make it")
	p.await(`May this run\?`)
	p.tmux("resize-window", "-x", "50", "-y", "14")
	p.await(`(?m)^─{50}$`)
	once("a narrower question")
	p.keys("n")
	p.keys("Enter")
	p.await(`Then not\.`)
	p.say("/exit")
	p.await(`ended with 0`)
}

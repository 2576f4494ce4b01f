package tui

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/talkops-ai/talkops/runtime/agent"
)

// TestPiecesBecomeOne sends many pieces: few messages come of them, with all that was
// sent, in order.
func TestPiecesBecomeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []agent.Event
		g := &gatherer{send: func(m tea.Msg) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, m.(eventMsg).Event)
		}}
		for range 1000 {
			g.event(agent.Text{Text: "x"})
		}
		g.event(agent.Step{})
		g.event(agent.CallOutput{ID: "1", Data: "a"})
		g.event(agent.CallOutput{ID: "1", Data: "b"})
		g.event(agent.CallOutput{ID: "1", Stderr: true, Data: "c"})
		g.event(agent.CallOutput{ID: "2", Data: "d"})
		g.event(agent.Text{Text: "last"})
		time.Sleep(2 * frameTime) // nothing more comes: what waits is handed on by itself
		synctest.Wait()
		want := []agent.Event{agent.Text{Text: strings.Repeat("x", 1000)}, agent.Step{}, agent.CallOutput{ID: "1", Data: "ab"},
			agent.CallOutput{ID: "1", Stderr: true, Data: "c"}, agent.CallOutput{ID: "2", Data: "d"}, agent.Text{Text: "last"}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

package tui

import (
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/talkops-ai/talkops/runtime/agent"
)

// frameTime is how long pieces of text are gathered for: what comes faster is not seen
// any sooner.
const frameTime = 16 * time.Millisecond

// A gatherer hands events on to the window, in order. Pieces of text and of output
// that come within one frame become one, so that what is shown costs by the frame, not
// by the piece. It is safe for concurrent use.
type gatherer struct {
	send func(tea.Msg)

	mu    sync.Mutex
	held  agent.Event // a piece that waits for more; nil: none
	timer *time.Timer
}

// event takes an event.
func (g *gatherer) event(e agent.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch held := g.held.(type) {
	case agent.Text:
		if more, ok := e.(agent.Text); ok {
			g.held = agent.Text{Text: held.Text + more.Text}
			return
		}
	case agent.CallOutput:
		if more, ok := e.(agent.CallOutput); ok && more.ID == held.ID && more.Stderr == held.Stderr {
			held.Data += more.Data
			g.held = held
			return
		}
	}
	g.release()
	switch e.(type) {
	case agent.Text, agent.CallOutput:
		g.held = e
		g.timer = time.AfterFunc(frameTime, g.flush)
	default:
		g.send(eventMsg{e})
	}
}

// flush hands on what waits.
func (g *gatherer) flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release()
}

func (g *gatherer) release() {
	if g.held == nil {
		return
	}
	g.timer.Stop()
	g.send(eventMsg{g.held})
	g.held = nil
}

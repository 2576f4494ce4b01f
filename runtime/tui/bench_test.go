package tui

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/talkops-ai/talkops/runtime/agent"
)

// BenchmarkFrame is one piece of an answer and the frame after it, late in a long
// conversation.
func BenchmarkFrame(b *testing.B) {
	for _, messages := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("after-%d-messages", messages), func(b *testing.B) {
			v, printed := long(b, messages)
			words := strings.Fields(document)
			b.ResetTimer()
			for i := range b.N {
				piece := words[i%len(words)] + " "
				if i%60 == 59 {
					piece = "\n\n"
				}
				drain(v, v.event(agent.Text{Text: piece}), printed)
				_ = v.View()
			}
		})
	}
}

// BenchmarkOutput is a line of a command's output and the frame after it.
func BenchmarkOutput(b *testing.B) {
	v, printed := long(b, 10)
	drain(v, v.event(agent.CallStarted{ID: "1", Tool: "execute", Command: "make"}), printed)
	line := strings.Repeat("x", 99) + "\n"
	b.SetBytes(int64(len(line)))
	b.ResetTimer()
	for range b.N {
		drain(v, v.event(agent.CallOutput{ID: "1", Data: line}), printed)
		_ = v.View()
	}
}

// BenchmarkMessages tells the memory that the window keeps for 1,000 messages.
func BenchmarkMessages(b *testing.B) {
	for range b.N {
		var before, after runtime.MemStats
		v, printed := long(b, 0)
		runtime.GC()
		runtime.ReadMemStats(&before)
		say(v, printed, 1000)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)), "B/1000-messages")
		runtime.KeepAlive(v)
	}
}

// long is a window in which that much was said.
func long(b *testing.B, messages int) (*view, *int) {
	v := newView(b.Context(), &Window{Session: &desk{}, Theme: ThemeDark})
	v.send = func(tea.Msg) {}
	printed := new(int)
	v.begun, v.ready = true, true
	v.Update(sized(120, 40))
	say(v, printed, messages)
	return v, printed
}

func say(v *view, printed *int, messages int) {
	for i := range messages {
		drain(v, v.event(agent.Text{Text: fmt.Sprintf("Message **%d** says `something`.\n\n", i)}), printed)
		drain(v, v.event(agent.Answered{}), printed)
	}
}

// drain prints what waits, as the library would.
func drain(v *view, cmd tea.Cmd, printed *int) {
	if cmd != nil {
		*printed++
	}
	for v.printing {
		_, cmd = v.Update(printedMsg{})
		if cmd != nil {
			*printed++
		}
	}
}

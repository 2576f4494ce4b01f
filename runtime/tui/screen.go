package tui

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// A screen is a terminal that tells when the window stands on it. What is printed
// above it before would land on what was there already.
type screen struct {
	terminal
	once   sync.Once
	drawn  func()
	raised atomic.Int64 // lines that the cursor was moved up since the window was drawn
}

// A terminal is what the library takes for one.
type terminal interface {
	io.ReadWriteCloser
	Fd() uintptr
}

// watched makes drawn be called when the window stands on out. Ok is false if that
// cannot be known.
func watched(out io.Writer, drawn func()) (w io.Writer, ok bool) {
	t, ok := out.(terminal)
	if !ok {
		return out, false
	}
	return &screen{terminal: t, drawn: drawn}, true
}

func (s *screen) Write(p []byte) (int, error) {
	n, err := s.terminal.Write(p)
	if bytes.Contains(p, []byte("─")) {
		s.raised.Store(0)
		s.once.Do(func() { go s.drawn() })
	}
	return n, err
}

// raise moves the cursor up, so that it is that many lines further up than the window was
// drawn with.
func (s *screen) raise(lines int) {
	if n := lines - int(s.raised.Load()); n > 0 {
		fmt.Fprintf(s.terminal, "\x1b[%dA", n)
		s.raised.Add(int64(n))
	}
}

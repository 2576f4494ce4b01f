package tui

import (
	"bytes"
	"io"
	"sync"
)

// A screen is a terminal that tells when the window stands on it. What is printed
// above it before would land on what was there already.
type screen struct {
	terminal
	once  sync.Once
	drawn func()
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
		s.once.Do(func() { go s.drawn() })
	}
	return n, err
}

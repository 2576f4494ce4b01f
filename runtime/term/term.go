// Package term is the three streams of a program and what is known of them.
package term

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Streams are the program's input and outputs.
type Streams struct {
	In       io.Reader
	Out      io.Writer
	Err      io.Writer
	InTTY    bool // In is a terminal
	OutTTY   bool
	ErrTTY   bool
	Color    bool // escape sequences for colour are welcome on Err
	ErrWidth int  // columns of Err, 80 if unknown
}

// System returns the process's own streams. getenv tells NO_COLOR and TERM.
func System(getenv func(string) string) *Streams {
	s := &Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
	}
	s.Color = s.ErrTTY && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	s.ErrWidth = 80
	if w, _, err := term.GetSize(int(os.Stderr.Fd())); err == nil && w > 0 {
		s.ErrWidth = w
	}
	return s
}

// Package term is the three streams of a program and what is known of them.
package term

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Streams are the program's input and outputs.
type Streams struct {
	In       io.Reader
	Out      io.Writer
	Err      io.Writer // lines for the reader; if it is a terminal, broken as Fold does
	InTTY    bool      // In is a terminal
	OutTTY   bool
	ErrTTY   bool
	Color    bool // escape sequences for colour are welcome on Err
	ErrWidth int  // columns of Err at the start, 80 if unknown
}

// Raw is Err as it is, for other programs and what they print.
func (s *Streams) Raw() io.Writer {
	if f, ok := s.Err.(*folder); ok {
		return f.w
	}
	return s.Err
}

// OutWidth is how many columns a person who reads Out has now, 0 if it is no terminal.
func (s *Streams) OutWidth() int {
	if !s.OutTTY {
		return 0
	}
	if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w > 0 {
		return w
	}
	return s.Width()
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
	if s.ErrTTY {
		s.Err = &folder{s.Err, s.Width}
	}
	return s
}

// Width is how many columns Err has now.
func (s *Streams) Width() int {
	if f, ok := s.Raw().(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return s.ErrWidth
}

// Wraps reports whether the terminal wraps its lines anew when it becomes narrower, as
// all do but some older ones. The environment tells which one it is.
func Wraps(environ []string) bool {
	is := map[string]string{}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		is[name] = value
	}
	switch {
	case is["TMUX"] != "":
		return true
	case is["XTERM_VERSION"] != "", is["STY"] != "":
		return false
	}
	for _, old := range []string{"linux", "st-", "screen", "putty", "vt"} {
		if strings.HasPrefix(is["TERM"], old) {
			return false
		}
	}
	return true
}

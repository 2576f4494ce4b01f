package cmd

import (
	"bytes"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/runtime/term"
)

// screen is where a command's output goes: as it is into a file or a pipe; onto a
// terminal without credentials and without anything that could steer it. Close
// writes what was held back.
func (a *app) screen(w io.Writer, terminal bool) io.WriteCloser {
	if !terminal {
		return open{w}
	}
	clean := &cleaner{w: w}
	return both{a.redact.Writer(clean), clean}
}

// open is a writer with nothing to close.
type open struct{ io.Writer }

func (open) Close() error { return nil }

// both writes to the first and closes the two in order.
type both struct {
	io.WriteCloser
	then io.Closer
}

func (b both) Close() error {
	err := b.WriteCloser.Close()
	if e := b.then.Close(); err == nil {
		err = e
	}
	return err
}

// heldMax bounds what a cleaner holds back of an escape sequence that does not end.
const heldMax = 4 << 10

// A cleaner hands text on without what steers a terminal. It holds back the start
// of an escape sequence or of a character until the rest of it is there.
type cleaner struct {
	mu   sync.Mutex
	w    io.Writer
	held []byte
}

func (c *cleaner) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = append(c.held, p...)
	n := whole(c.held)
	if len(c.held)-n > heldMax {
		n = len(c.held)
	}
	return len(p), c.put(n)
}

func (c *cleaner) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.put(len(c.held))
}

func (c *cleaner) put(n int) error {
	text := term.Clean(string(c.held[:n]))
	c.held = append(c.held[:0], c.held[n:]...)
	if text == "" {
		return nil
	}
	_, err := io.WriteString(c.w, text)
	return err
}

// whole is how much of text can be judged: up to a carriage return, an escape
// sequence on the last line, or a character, at its end.
func whole(text []byte) int {
	line := bytes.LastIndexByte(text, '\n') + 1
	if at := bytes.IndexAny(text[line:], "\x1b\u0090\u0098\u009b\u009d\u009e\u009f"); at >= 0 {
		return line + at
	}
	end := len(text)
	for i := end - 1; i >= 0 && i >= end-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				end = i
			}
			break
		}
	}
	if end > 0 && text[end-1] == '\r' {
		end--
	}
	return end
}

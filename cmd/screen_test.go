package cmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/redact"
)

// However a command's output is cut, a terminal gets neither a credential nor an
// escape sequence, and a pipe gets every byte.
func TestOutputOnATerminal(t *testing.T) {
	const text = "key=\x1b[31mhunter2hunter2\x1b[0m\r\nname \x1b]0;owned\x07é\u202e hunter2hunter2 \xff\n100 %\r"
	a := &app{redact: redact.New("hunter2hunter2")}
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		w := a.screen(&out, true)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := "key=***secret***\nname é ***secret*** \ufffd\n100 %\n"; out.String() != want {
			t.Errorf("in pieces of %d: got %q, want %q", size, out.String(), want)
		}
	}
	var out bytes.Buffer
	w := a.screen(&out, false)
	if _, err := w.Write([]byte(text)); err != nil || w.Close() != nil || out.String() != text {
		t.Errorf("into a pipe: got %q, %v", out.String(), err)
	}
}

// What can be judged is shown at once, and an escape sequence without an end is
// not waited for for ever.
func TestOutputOnATerminalIsNotHeldBack(t *testing.T) {
	var out bytes.Buffer
	w := (&app{}).screen(&out, true)
	if _, err := w.Write([]byte("Name: ")); err != nil || out.String() != "Name: " {
		t.Errorf("a question: got %q, %v", out.String(), err)
	}
	out.Reset()
	if _, err := w.Write([]byte("\x1b]0;" + strings.Repeat("x", heldMax+1))); err != nil || out.Len() == 0 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("a title without an end: %d bytes, %v", out.Len(), err)
	}
}

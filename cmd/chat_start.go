package cmd

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/workspace"
)

// A opening is a terminal on which a start is shown as it happens: what is written to it
// stays, and below it stands a line that says what is under way, how far it is and for
// how long, and above that line the last of what the setup script prints. It is safe for
// concurrent use.
type opening struct {
	w     io.Writer
	width func() int // of the terminal now
	wraps bool       // it wraps its lines anew when it becomes narrower
	title string     // of the provider
	now   func() time.Time

	mu    sync.Mutex
	at    session.Progress
	since time.Time // of the step
	last  []string  // lines of the setup script
	drawn []int     // columns of the lines on the screen
	stop  chan struct{}
	over  chan struct{}
}

// newOpening shows a start on a terminal of that width until it is closed.
func newOpening(w io.Writer, width func() int, wraps bool, title string) *opening {
	s := &opening{w: w, width: width, wraps: wraps, title: title, now: time.Now, stop: make(chan struct{}), over: make(chan struct{})}
	go s.tick()
	return s
}

// tick lets the time that is shown go on.
func (s *opening) tick() {
	defer close(s.over)
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			s.mu.Lock()
			s.draw()
			s.mu.Unlock()
		}
	}
}

// progress fits session.Options.Progress.
func (s *opening) progress(p session.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Step != s.at.Step {
		s.since = s.now()
	}
	s.at = p
	if p.Files == 0 {
		s.draw() // what goes on is drawn by the clock
	}
}

// Write puts text above the line.
func (s *opening) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	n, err := s.w.Write(p)
	if len(p) > 0 && p[len(p)-1] == '\n' {
		s.draw()
	}
	return n, err
}

// Close takes the line away.
func (s *opening) Close() error {
	select {
	case <-s.stop:
		return nil
	default:
	}
	close(s.stop)
	<-s.over
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.at = session.Progress{}
	return nil
}

func (s *opening) erase() { io.WriteString(s.w, s.away()) }

// away takes the lines from the screen.
func (s *opening) away() string {
	n := 0
	for _, columns := range s.drawn {
		n++
		if width := s.width(); s.wraps && columns > width {
			n += (columns - 1) / width
		}
	}
	s.drawn = s.drawn[:0]
	switch n {
	case 0:
		return ""
	case 1:
		return "\r\x1b[K"
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", n-1)
}

func (s *opening) draw() {
	if s.at.Step == "" {
		return
	}
	text, width := s.away(), s.width()
	if s.at.Step == "set up" {
		for _, l := range s.last {
			l = ansi.Truncate("  "+strings.ReplaceAll(l, "\t", "    "), max(width-1, 1), "…")
			text += l + "\n"
			s.drawn = append(s.drawn, ansi.StringWidth(l))
		}
	}
	line := s.line(width)
	io.WriteString(s.w, text+"\r\x1b[K"+line)
	s.drawn = append(s.drawn, ansi.StringWidth(line))
}

// setupShown is how many lines of a setup script are seen while it runs.
const setupShown = 4

// printed takes a line that the setup script printed. It is drawn by the clock.
func (s *opening) printed(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = append(s.last, line)
	if n := len(s.last); n > setupShown {
		s.last = s.last[n-setupShown:]
	}
}

// line is what is under way, in less than the width.
func (s *opening) line(width int) string {
	took := s.now().Sub(s.since).Round(time.Second)
	text := ""
	switch p := s.at; p.Step {
	case "start", "attach to":
		text = fmt.Sprintf("… creating a %s sandbox", s.title)
		if p.Step == "attach to" {
			text = fmt.Sprintf("… reaching the %s sandbox", s.title)
		}
		if p.State != "" && p.State != "creating" { // that is said
			text += " (" + p.State + ")"
		}
		text += ", " + took.String()
	case "set up":
		text = fmt.Sprintf("… setting up, %s; Ctrl+C ends it", took)
	case "upload to":
		done := 1.0
		if p.OfBytes > 0 {
			done = min(float64(p.Bytes)/float64(p.OfBytes), 1)
		}
		text = fmt.Sprintf("… uploading %s %3d%%, %d of %d entries, %s of %s", bar(done, min(24, max(width/5, 4))), int(done*100), p.Files, p.OfFiles, workspace.Size(p.Bytes), workspace.Size(p.OfBytes))
	}
	return ansi.Truncate(text, max(width-1, 1), "…")
}

// bar is a bar of that many columns.
func bar(share float64, columns int) string {
	full := int(share*float64(columns) + 0.5)
	return strings.Repeat("█", full) + strings.Repeat("░", columns-full)
}

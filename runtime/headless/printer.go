// Package headless prints a run that no person watches: the answer on standard
// output and nothing else there, progress on standard error.
package headless

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/redact"
	"github.com/talkops-ai/talkops/runtime/rubric"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/tool"
)

// Format is what standard output gets.
type Format string

// The formats.
const (
	FormatText       Format = "text"        // the answer
	FormatJSON       Format = "json"        // one object, at the end
	FormatStreamJSON Format = "stream-json" // one object per event, the last of type "result"
)

// ErrFormat means that a Format does not exist.
var ErrFormat = errors.New("unknown output format")

// ParseFormat returns the Format of that name; "" is FormatText.
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case "":
		return FormatText, nil
	case FormatText, FormatJSON, FormatStreamJSON:
		return f, nil
	}
	return "", fmt.Errorf("%w %q: text, json or stream-json", ErrFormat, s)
}

// A Printer prints one run. It is safe for concurrent use; its fields must not
// change once it is in use.
type Printer struct {
	Out, Err io.Writer
	Format   Format           // "" is FormatText
	Place    approval.Place   // named in progress lines
	Quiet    bool             // no progress; errors, refusals and a code other than 0 are still told
	NoStream bool             // withhold pieces of text while they arrive, and what is said between calls
	Redact   *redact.Redactor // blots secrets out of all that is printed; may be nil
	CI       bool             // Out is the log of a CI system: keep it from taking the answer for commands
	Width    func() int       // columns of Out, where the answer is broken between words; nil or 0 if it is no terminal

	mu       sync.Mutex
	failed   error // the first failure to write to Out
	idle     *time.Timer
	since    time.Time // of the last progress line
	finished bool
	stopped  bool // silence is not to be broken

	text, reasoning *redact.Stream // of the step in FormatStreamJSON; nil before the first piece
}

// heartbeat is how long a run may be silent.
const heartbeat = 10 * time.Second

// Event prints e as the format and Quiet say. It fits agent.Agent.Emit.
func (p *Printer) Event(e agent.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Format == FormatStreamJSON {
		p.stream(e)
	}
	switch e := e.(type) {
	case agent.CallStarted:
		where := p.place()
		if e.Effect == tool.Leaves {
			where = "this computer"
		}
		p.line("→ %s [%s] %s", e.Tool, where, p.one(e.Says(), 120))
		if e.Change != nil {
			p.line("  %s", p.one(e.Change.String(), 600))
		}
	case agent.CallDone:
		switch {
		case e.Code != "":
			p.line("  failed: %s", strings.ReplaceAll(string(e.Code), "_", " "))
		case e.Tool == "execute":
			p.line("  exit %d in %s", e.Exit, short(e.Took))
		}
	case agent.Refused:
		p.say("✗ refused %s %s: %s", e.Tool, p.one(e.Says(), 120), p.one(strings.TrimSuffix(e.Reason+"; "+e.Hint, "; "), 300))
		if e.Change != nil {
			p.say("  %s", p.one(e.Change.String(), 600))
		}
	case rubric.Started:
		p.line("grading %d/%d", e.Grading, e.Of)
	case rubric.Ended:
		p.line("rubric %d/%d: %s", e.Grading, e.Of, p.one(graded(e), 300))
	case agent.Retry:
		p.line("  waiting %s: %s", short(e.Wait), p.one(e.Reason, 200))
	case agent.Shortening:
		p.line("the conversation fills the model's window (about %d tokens): summing it up", e.Tokens)
	case agent.Shortened:
		if e.Failed != "" {
			p.say("  the conversation could not be made shorter: %s", p.one(e.Failed, 300))
		} else {
			p.line("  from about %d to %d tokens; decisions, open work and the last steps are kept", e.Before, e.After)
		}
	case agent.Step:
		if e.Text != "" && !p.NoStream {
			p.line("%s", strings.TrimSpace(term.Neutral(e.Text)))
		}
	}
}

// Note prints one line of progress on standard error, unless Quiet.
func (p *Printer) Note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line("%s", strings.TrimSpace(term.Neutral(fmt.Sprintf(format, args...))))
}

// Warn prints one line on standard error, also if Quiet.
func (p *Printer) Warn(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say("%s", strings.TrimSpace(term.Neutral(fmt.Sprintf(format, args...))))
}

// Finish prints the answer or the JSON result, then what went wrong and, as the
// last line on standard error, the code and its word. Its error is that of
// writing to standard output, at any time of the run; then the code is not told,
// as it is no longer how the run ended.
func (p *Printer) Finish(r Result) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = true
	r = r.Redacted(p.Redact)
	if p.idle != nil {
		p.idle.Stop()
	}
	switch p.Format {
	case FormatJSON:
		p.fail(r.Write(p.Out))
	case FormatStreamJSON:
		p.rest()
		b, err := json.Marshal(r.whole())
		if err == nil {
			err = writeLine(p.Out, tagged("result", b))
		}
		p.fail(err)
	default:
		answer := term.Clean(r.Answer)
		if p.CI {
			answer = term.Neutral(answer)
		}
		if answer = strings.TrimRight(answer, "\n"); answer != "" {
			if p.Width != nil {
				answer = term.FoldProse(answer, p.Width()) // which leaves 0 columns alone
			}
			_, err := io.WriteString(p.Out, answer+"\n")
			p.fail(err)
		}
	}
	for _, text := range r.Errors {
		p.say("talkops: %s", strings.TrimSpace(term.Neutral(text)))
	}
	last := fmt.Sprintf("%s (exit %d), %d %s", r.Reason, r.Code, r.Turns, plural(r.Turns, "turn"))
	if cost := r.cost(); r.CostUSD > 0 {
		last += ", " + cost
	}
	switch {
	case p.failed != nil: // the error has the last word
	case r.Code == 0:
		p.line("%s", last)
	default:
		p.say("%s", last)
	}
	return p.failed
}

// graded words how a grading came out: "not met – 1 of 4 criteria open: no SSH rules".
func graded(e rubric.Ended) string {
	var open []string
	for _, c := range e.Criteria {
		if !c.Passed {
			open = append(open, c.Name)
		}
	}
	switch {
	case e.Status == rubric.Satisfied:
		return fmt.Sprintf("met – all %d criteria passed", len(e.Criteria))
	case e.Status == rubric.Broken:
		return "no verdict – " + e.Explanation
	case len(open) == 0:
		return "not met – " + e.Explanation
	}
	return fmt.Sprintf("not met – %d of %d criteria open: %s", len(open), len(e.Criteria), strings.Join(open, "; "))
}

// stream prints e as one object. Pieces of text are held back as far as they may
// be the beginning of a secret.
func (p *Printer) stream(e agent.Event) {
	switch x := e.(type) {
	case agent.Text:
		if p.NoStream {
			return
		}
		if p.text == nil {
			p.text = p.Redact.Stream()
		}
		x.Text = string(p.text.Next([]byte(term.Clean(x.Text))))
		if x.Text == "" {
			return
		}
		e = x
	case agent.Reasoning:
		if p.NoStream {
			return
		}
		if p.reasoning == nil {
			p.reasoning = p.Redact.Stream()
		}
		x.Text = string(p.reasoning.Next([]byte(term.Clean(x.Text))))
		if x.Text == "" {
			return
		}
		e = x
	case agent.Reset:
		p.text, p.reasoning = nil, nil
	case agent.Step:
		p.rest()
		x.Text = term.Clean(x.Text)
		e = x
	case agent.Answered:
		p.rest()
		x.Text = term.Clean(x.Text)
		e = x
	}
	p.write(e)
}

// rest prints what was held back of a step.
func (p *Printer) rest() {
	if p.reasoning != nil {
		if rest := p.reasoning.Rest(); len(rest) > 0 {
			p.write(agent.Reasoning{Text: string(rest)})
		}
	}
	if p.text != nil {
		if rest := p.text.Rest(); len(rest) > 0 {
			p.write(agent.Text{Text: string(rest)})
		}
	}
	p.text, p.reasoning = nil, nil
}

func (p *Printer) write(e agent.Event) {
	b, err := event(e)
	if err == nil {
		err = writeLine(p.Out, json.RawMessage(p.Redact.JSON(b)))
	}
	p.fail(err)
}

func (p *Printer) fail(err error) {
	if p.failed == nil && err != nil {
		p.failed = fmt.Errorf("write standard output: %w", err)
	}
}

// line prints progress, and sees to it that a long silence is broken.
func (p *Printer) line(format string, args ...any) {
	if p.Quiet {
		return
	}
	p.say(format, args...)
	p.since, p.stopped = time.Now(), false
	switch {
	case p.finished:
	case p.idle == nil:
		p.idle = time.AfterFunc(heartbeat, p.beat)
	default:
		p.idle.Reset(heartbeat)
	}
}

func (p *Printer) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished || p.stopped {
		return
	}
	p.say("  … still working, %s", time.Since(p.since).Round(time.Second))
	p.idle.Reset(heartbeat)
}

// say prints a line on standard error. There is nobody to tell if that fails.
func (p *Printer) say(format string, args ...any) {
	_, _ = io.WriteString(p.Err, p.Redact.Text(fmt.Sprintf(format, args...))+"\n")
}

// one returns text on one line of at most width characters, with secrets blotted
// out before it is cut.
func (p *Printer) one(text string, width int) string {
	return oneLine(p.Redact.Text(term.Clean(text)), width)
}

func (p *Printer) place() string {
	if p.Place.Host {
		return "this computer"
	}
	return p.one(strings.TrimSpace(p.Place.Provider+" "+p.Place.ID), 60)
}

func short(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// Stop ends the progress lines of silence, until the next line of progress.
func (p *Printer) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.idle != nil {
		p.idle.Stop()
	}
}

// oneLine returns s on one line of at most width characters.
func oneLine(s string, width int) string {
	r := []rune(strings.Join(strings.Fields(term.Neutral(s)), " "))
	if len(r) > width {
		r = append(r[:width-1], '…')
	}
	return string(r)
}

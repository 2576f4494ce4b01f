package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// ErrNotRecorded means that a replayed session was asked something that its
// recording has no answer to.
var ErrNotRecorded = errors.New("not in the recording")

// Replay returns a Model that gives the answers of a recording in their order,
// with dir as the working directory. It needs no key and no network. What is
// asked must have the recorded shape: the same roles, and results of the same
// tools in the same order. Other texts than the recorded ones are told to report,
// which may be nil, and do not matter otherwise.
func Replay(r io.Reader, dir string, report func(string)) (Model, error) {
	dec := json.NewDecoder(r)
	var head heading
	if err := dec.Decode(&head); err != nil || head.Talkops != recordFormat {
		return nil, fmt.Errorf("replay: not a recording of the kind %q", recordFormat)
	}
	head.Info.Price = Price{} // an answer from a recording costs nothing
	p := &player{info: head.Info, scrub: newScrub(dir, nil), report: report}
	for {
		var turn recordedTurn
		err := dec.Decode(&turn)
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return nil, fmt.Errorf("replay: turn %d: %w", len(p.turns)+1, err)
		}
		p.turns = append(p.turns, turn)
	}
}

type player struct {
	info   Info
	scrub  scrub
	report func(string)
	turns  []recordedTurn

	mu   sync.Mutex
	next int
}

func (p *player) Info() Info { return p.info }

func (p *player) Answer(ctx context.Context, req Request, emit func(Delta)) (Answer, error) {
	if err := ended(ctx); err != nil {
		return Answer{}, err
	}
	turn, err := p.take(req)
	if err != nil {
		return Answer{}, err
	}
	message := p.scrub.message(turn.Message, p.scrub.from)
	if emit != nil {
		for _, r := range message.Reasoning {
			if err := say(ctx, r.Text, DeltaReasoning, emit); err != nil {
				return Answer{}, err
			}
		}
		if err := say(ctx, message.Text, DeltaText, emit); err != nil {
			return Answer{}, err
		}
	}
	return Answer{Message: message, Finish: turn.Finish, Usage: turn.Usage}, nil
}

// take checks req against the next turn and moves on.
func (p *player) take(req Request) (recordedTurn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.next + 1
	if p.next == len(p.turns) {
		return recordedTurn{}, fmt.Errorf("replay: turn %d is %w, which has %d", n, ErrNotRecorded, len(p.turns))
	}
	turn := p.turns[p.next]
	asked := p.scrub.asked(req)
	if got, want := shape(asked), shape(turn.Asked); got != want {
		return recordedTurn{}, fmt.Errorf("replay: turn %d is %w: asked with %s, recorded with %s", n, ErrNotRecorded, got, want)
	}
	if p.next > 0 {
		if err := p.sameCalls(req, p.turns[p.next-1].Message.Calls); err != nil {
			return recordedTurn{}, fmt.Errorf("replay: turn %d is %w: %w", n, ErrNotRecorded, err)
		}
	}
	for i, a := range asked {
		if a.Text != turn.Asked[i].Text {
			p.tell("replay: turn %d: the prompt differs from the recorded one", n)
		}
		for j, r := range a.Results {
			if r.Text != turn.Asked[i].Results[j].Text {
				p.tell("replay: turn %d: the result of %s differs from the recorded one", n, r.Name)
			}
		}
	}
	p.next++
	return turn, nil
}

// sameCalls compares the calls of req's last answer with the recorded ones, the
// working directory aside.
func (p *player) sameCalls(req Request, recorded []Call) error {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if req.Messages[i].Role != RoleAssistant {
			continue
		}
		calls := p.scrub.message(req.Messages[i], p.scrub.to).Calls
		for j, c := range calls {
			if j >= len(recorded) || c.Name != recorded[j].Name || c.Input != recorded[j].Input {
				return fmt.Errorf("the call of %s before it differs", c.Name)
			}
		}
		return nil
	}
	return nil
}

func (p *player) tell(format string, args ...any) {
	if p.report != nil {
		p.report(fmt.Sprintf(format, args...))
	}
}

// shape says in words what was asked: "user" or "results of ls, execute".
func shape(asked []askedMessage) string {
	var parts []string
	for _, a := range asked {
		if len(a.Results) == 0 {
			parts = append(parts, string(a.Role))
			continue
		}
		var names []string
		for _, r := range a.Results {
			names = append(names, r.Name)
		}
		parts = append(parts, "results of "+strings.Join(names, ", "))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", then ")
}

// say emits text in small pieces, as a vendor would.
func say(ctx context.Context, text string, kind DeltaKind, emit func(Delta)) error {
	const size = 12
	runes := []rune(text)
	for len(runes) > 0 {
		if err := ended(ctx); err != nil {
			return err
		}
		n := min(size, len(runes))
		emit(Delta{Kind: kind, Text: string(runes[:n])})
		runes = runes[n:]
	}
	return nil
}

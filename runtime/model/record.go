package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// A recording is JSON lines: one heading, then one line per answer.
type heading struct {
	Talkops string `json:"talkops"` // recordFormat
	Info    Info   `json:"model"`
}

const recordFormat = "recording/1"

// A recordedTurn is one answer and the shape of what was asked.
type recordedTurn struct {
	Turn    int            `json:"turn"`
	Asked   []askedMessage `json:"asked"` // all since the previous answer
	Message Message        `json:"message"`
	Finish  Finish         `json:"finish"`
	Usage   Usage          `json:"usage"`
}

type askedMessage struct {
	Role    Role          `json:"role"`
	Text    string        `json:"text,omitempty"` // of a user, hashed
	Results []askedResult `json:"results,omitempty"`
}

type askedResult struct {
	Name string `json:"name"`
	Text string `json:"text"` // hashed
}

// A Mask blots out what must not be stored.
type Mask interface {
	Text(string) string
	JSON([]byte) []byte // keeps JSON valid
}

// scrub replaces what belongs to one machine or must not be stored.
type scrub struct {
	to, from *strings.Replacer
	mask     Mask // may be nil
}

const placeholder = "{{W}}"

func newScrub(dir string, mask Mask) scrub {
	var to, from []string
	if dir = strings.TrimRight(dir, `/\`); dir != "" {
		if quoted, _ := json.Marshal(dir); string(quoted) != `"`+dir+`"` {
			to = append(to, string(quoted[1:len(quoted)-1]), placeholder)
		}
		to = append(to, dir, placeholder)
		from = append(from, placeholder, dir)
	}
	return scrub{strings.NewReplacer(to...), strings.NewReplacer(from...), mask}
}

// masked returns m without what must not be stored.
func (s scrub) masked(m Message) Message {
	if s.mask == nil {
		return m
	}
	m.Text = s.mask.Text(m.Text)
	m.Reasoning = append([]Reasoning(nil), m.Reasoning...)
	for i := range m.Reasoning {
		m.Reasoning[i].Text = s.mask.Text(m.Reasoning[i].Text)
	}
	m.Calls = append([]Call(nil), m.Calls...)
	for i := range m.Calls {
		if input := m.Calls[i].Input; json.Valid([]byte(input)) {
			m.Calls[i].Input = string(s.mask.JSON([]byte(input)))
		} else {
			m.Calls[i].Input = s.mask.Text(input)
		}
	}
	return m
}

func (s scrub) message(m Message, with *strings.Replacer) Message {
	m.Text = with.Replace(m.Text)
	m.Reasoning = append([]Reasoning(nil), m.Reasoning...)
	for i := range m.Reasoning {
		m.Reasoning[i].Text = with.Replace(m.Reasoning[i].Text)
	}
	m.Calls = append([]Call(nil), m.Calls...)
	for i := range m.Calls {
		m.Calls[i].Input = with.Replace(m.Calls[i].Input)
	}
	return m
}

// asked is the shape of what req adds to the conversation.
func (s scrub) asked(req Request) []askedMessage {
	first := len(req.Messages)
	for first > 0 && req.Messages[first-1].Role != RoleAssistant {
		first--
	}
	var all []askedMessage
	for _, m := range req.Messages[first:] {
		a := askedMessage{Role: m.Role}
		if m.Text != "" {
			a.Text = s.hash(m.Text)
		}
		for _, r := range m.Results {
			a.Results = append(a.Results, askedResult{r.Name, s.hash(r.Text)})
		}
		all = append(all, a)
	}
	return all
}

func (s scrub) hash(text string) string {
	if s.mask != nil {
		text = s.mask.Text(text)
	}
	sum := sha256.Sum256([]byte(s.to.Replace(text)))
	return hex.EncodeToString(sum[:6])
}

// A Recording keeps what models answer, for Replay. It is safe for concurrent use.
type Recording struct {
	scrub scrub

	mu   sync.Mutex
	enc  *json.Encoder
	turn int
}

// NewRecording writes to w. The working directory dir is replaced by a
// placeholder and what mask knows is blotted out; what tools returned is kept as a
// hash only. Mask may be nil.
func NewRecording(w io.Writer, dir string, mask Mask) *Recording {
	return &Recording{enc: json.NewEncoder(w), scrub: newScrub(dir, mask)}
}

// Of returns a Model that answers as m does and keeps each answer. Models of one
// recording are replayed as one.
func (r *Recording) Of(m Model) Model { return &recorder{m, r} }

type recorder struct {
	model Model
	*Recording
}

func (r *recorder) Info() Info { return r.model.Info() }

func (r *recorder) Answer(ctx context.Context, req Request, emit func(Delta)) (Answer, error) {
	answer, err := r.model.Answer(ctx, req, emit)
	if err != nil {
		return answer, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn == 0 {
		r.enc.SetEscapeHTML(false)
		if err := r.enc.Encode(heading{recordFormat, r.model.Info()}); err != nil {
			return Answer{}, fmt.Errorf("record: %w", err)
		}
	}
	r.turn++
	err = r.enc.Encode(recordedTurn{Turn: r.turn, Asked: r.scrub.asked(req),
		Message: r.scrub.message(r.scrub.masked(answer.Message), r.scrub.to), Finish: answer.Finish, Usage: answer.Usage})
	if err != nil {
		return Answer{}, fmt.Errorf("record: %w", err)
	}
	return answer, nil
}

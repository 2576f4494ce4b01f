// Package model holds a conversation with a language model: one interface, and
// one adapter over the library that speaks the vendors' wires.
package model

import (
	"context"
	"time"
)

// A Model answers one step of a conversation. It is safe for concurrent use.
type Model interface {
	Info() Info

	// Answer sends req and returns the complete answer, giving pieces to emit as
	// they arrive. emit is called from the calling goroutine and may be nil.
	// An answer whose stream was cut, or ended without the vendor's finish mark,
	// is an error: no tool call of it may run.
	Answer(ctx context.Context, req Request, emit func(Delta)) (Answer, error)
}

// Info is what is known of a model without asking it.
type Info struct {
	Provider string // "anthropic"
	Name     string // "claude-sonnet-4-5"
	Window   int    // context window in tokens; 0 if unknown
	Price    Price  // zero if unknown
}

// Price is US dollars per million tokens.
type Price struct{ Input, Output, CacheRead, CacheWrite float64 }

// Known reports whether any price is known.
func (p Price) Known() bool { return p != Price{} }

// A Request is one step of a conversation as the model sees it.
type Request struct {
	System   string
	Messages []Message
	Tools    []Tool
}

// Role says who speaks in a Message.
type Role string

// The roles. Results of tools travel as RoleTool.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A Message is one turn. Which fields are set depends on the role: Text for a
// user; Text, Reasoning and Calls for an assistant; Results for a tool.
type Message struct {
	Role      Role        `json:"role"`
	Text      string      `json:"text,omitempty"`
	Reasoning []Reasoning `json:"reasoning,omitempty"`
	Calls     []Call      `json:"calls,omitempty"`
	Results   []Result    `json:"results,omitempty"`
}

// Reasoning is a piece of a model's thinking. Opaque is the vendor's own
// signature or encrypted form, which must go back unchanged.
type Reasoning struct {
	Text   string `json:"text,omitempty"`
	Opaque []byte `json:"opaque,omitempty"`
}

// A Tool is what a model is told of a tool.
type Tool struct {
	Name        string
	Description string
	Parameters  map[string]any // JSON Schema of one object
}

// A Call is one use of a tool. Input is the JSON text exactly as the model sent
// it, which may be malformed.
type Call struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input string `json:"input"`
}

// A Result answers the Call with that ID.
type Result struct {
	CallID string `json:"call_id"`
	Name   string `json:"name"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
	Media  []byte `json:"media,omitempty"` // an image, shown to models that can see; may be nil
	Type   string `json:"type,omitempty"`  // media type of Media
}

// DeltaKind says what a Delta is a piece of.
type DeltaKind int

// The kinds of Delta.
const (
	DeltaText      DeltaKind = iota // a piece of the answer
	DeltaReasoning                  // a piece of the thinking
	DeltaReset                      // the step starts again: forget the text of this step shown so far
	DeltaRetry                      // waiting before another try; Text says why, Wait how long
)

// A Delta is one piece of an answer while it arrives.
type Delta struct {
	Kind DeltaKind
	Text string
	Wait time.Duration
}

// Finish says why an answer ended.
type Finish string

// The reasons.
const (
	FinishStop   Finish = "stop"
	FinishCalls  Finish = "calls"
	FinishLength Finish = "length" // the output limit: the last call, if any, may be cut
	FinishFilter Finish = "filter" // the vendor refused
)

// An Answer is one complete step of a model.
type Answer struct {
	Message Message
	Finish  Finish
	Usage   Usage
}

// Usage counts tokens. Input excludes what was read from or written to a cache.
type Usage struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cache_read"`
	CacheWrite int `json:"cache_write"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// Sum is all tokens of u: for one step, what fills the model's window after it.
func (u Usage) Sum() int { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Cost returns what u costs at p, in US dollars.
func (u Usage) Cost(p Price) float64 {
	return (float64(u.Input)*p.Input + float64(u.Output)*p.Output +
		float64(u.CacheRead)*p.CacheRead + float64(u.CacheWrite)*p.CacheWrite) / 1e6
}

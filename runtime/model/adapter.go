package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/bedrock"
	"charm.land/fantasy/providers/google"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"
)

// Config says which model to open and how to reach it. Choose makes one.
type Config struct {
	Provider  string        // "anthropic", "openai", "gemini", "bedrock", or any name with a BaseURL
	Name      string        // "claude-sonnet-4-5"
	APIKey    string        // may be empty: Ollama, Bedrock with the AWS chain
	KeyVar    string        // the variable APIKey came from, for messages; may be empty
	BaseURL   string        // "" is the vendor's own
	Region    string        // Bedrock; "" leaves it to the AWS configuration
	MaxOutput int           // tokens of one answer; 0 is the catalogue's number, at most 32,000
	UserAgent string        // "talkops/1.2.3"
	Backoff   time.Duration // the first wait before another try; 0 is 300 ms
}

type wire int

const (
	wireOpenAI wire = iota
	wireAnthropic
	wireGoogle
	wireBedrock
)

func (c Config) wire() wire {
	switch c.Provider {
	case "anthropic":
		return wireAnthropic
	case "gemini", "google":
		return wireGoogle
	case "bedrock":
		return wireBedrock
	}
	return wireOpenAI
}

// Open returns the model that c describes. It sends nothing: a key that is
// refused shows with the first Answer.
func Open(_ context.Context, c Config) (Model, error) {
	if c.Name == "" {
		return nil, fmt.Errorf("%w: %s needs a model name", ErrNoModel, c.Provider)
	}
	if c.Provider == "google" {
		c.Provider = "gemini"
	}
	switch {
	case c.wire() == wireOpenAI && c.Provider != "openai" && c.BaseURL == "":
		return nil, fmt.Errorf("%w: %s has no base URL", ErrUnknownProvider, c.Provider)
	case c.wire() == wireAnthropic:
		// The library adds /v1 itself.
		c.BaseURL = strings.TrimSuffix(strings.TrimSuffix(c.BaseURL, "/"), "/v1")
	}
	info, output, ok := catalogued(c.Provider, c.Name, c.Region)
	if !ok {
		info = Info{Provider: c.Provider, Name: c.Name}
	}
	if c.MaxOutput <= 0 {
		c.MaxOutput = 8192
		if output > 0 {
			c.MaxOutput = min(output, 32_000)
		}
	}
	return &vendorModel{conf: c, info: info}, nil
}

// vendorModel speaks to a vendor through fantasy's LanguageModel.
type vendorModel struct {
	conf Config
	info Info
}

func (m *vendorModel) Info() Info { return m.info }

const restarts = 2 // of one step whose stream broke

// Answer implements Model.
func (m *vendorModel) Answer(ctx context.Context, req Request, emit func(Delta)) (Answer, error) {
	if emit == nil {
		emit = func(Delta) {}
	}
	for try := 0; ; try++ {
		shown := false
		answer, err := m.try(ctx, req, func(d Delta) {
			shown = shown || d.Kind == DeltaText || d.Kind == DeltaReasoning
			emit(d)
		})
		if err == nil {
			return answer, nil
		}
		if err := ended(ctx); err != nil {
			return Answer{}, err
		}
		e := m.conf.streamed(err)
		if !e.again() || try == restarts {
			return Answer{}, e
		}
		if shown {
			emit(Delta{Kind: DeltaReset})
		}
		wait := (&courier{conf: m.conf}).backoff(try + 1)
		emit(Delta{Kind: DeltaRetry, Text: e.Error(), Wait: wait})
		if sleep(ctx, wait) != nil {
			return Answer{}, ended(ctx)
		}
	}
}

// finishMark remembers the finish reason as it came over OpenAI's wire. The
// library reports calls whenever it saw any, also if the stream ended early or at
// the output limit.
type finishMark struct {
	mu   sync.Mutex
	used bool
	raw  string
}

func (f *finishMark) mapReason(raw string) fantasy.FinishReason {
	f.mu.Lock()
	f.used, f.raw = true, raw
	f.mu.Unlock()
	return openai.DefaultMapFinishReasonFunc(raw)
}

// try asks once.
func (m *vendorModel) try(ctx context.Context, req Request, emit func(Delta)) (Answer, error) {
	post := &courier{conf: m.conf, emit: emit}
	mark := &finishMark{}
	lm, err := m.open(ctx, post, mark)
	if err != nil {
		return Answer{}, err
	}
	call, err := m.call(req)
	if err != nil {
		return Answer{}, err
	}
	parts, err := lm.Stream(ctx, call)
	if err != nil {
		if post.fail != nil {
			return Answer{}, post.fail
		}
		return Answer{}, err
	}
	var (
		text     strings.Builder
		thoughts []Reasoning
		open     = map[string]int{} // reasoning id to its place in thoughts
		calls    []Call
		inputs   = map[string]*strings.Builder{} // call id to its input as it was streamed
		finish   *fantasy.StreamPart
	)
	for part := range parts {
		switch part.Type {
		case fantasy.StreamPartTypeTextDelta:
			text.WriteString(part.Delta)
			emit(Delta{Kind: DeltaText, Text: part.Delta})
		case fantasy.StreamPartTypeReasoningStart:
			open[part.ID] = len(thoughts)
			thoughts = append(thoughts, Reasoning{Text: part.Delta, Opaque: opaque(part.ProviderMetadata)})
		case fantasy.StreamPartTypeReasoningDelta, fantasy.StreamPartTypeReasoningEnd:
			i, ok := open[part.ID]
			if !ok {
				i, open[part.ID] = len(thoughts), len(thoughts)
				thoughts = append(thoughts, Reasoning{})
			}
			thoughts[i].Text += part.Delta
			if b := opaque(part.ProviderMetadata); b != nil {
				thoughts[i].Opaque = b
			}
			if part.Delta != "" {
				emit(Delta{Kind: DeltaReasoning, Text: part.Delta})
			}
		case fantasy.StreamPartTypeToolInputDelta:
			// Anthropic's library makes an empty object of malformed input, so what
			// was sent is put together here.
			if inputs[part.ID] == nil {
				inputs[part.ID] = &strings.Builder{}
			}
			inputs[part.ID].WriteString(part.Delta)
			inputs[part.ID].WriteString(part.ToolCallInput)
		case fantasy.StreamPartTypeToolCall:
			if !part.ProviderExecuted {
				input := part.ToolCallInput
				if sent := inputs[part.ID]; sent != nil && sent.Len() > 0 {
					input = sent.String()
				}
				calls = append(calls, Call{ID: part.ID, Name: part.ToolCallName, Input: orObject(input)})
			}
		case fantasy.StreamPartTypeError:
			if post.fail != nil {
				return Answer{}, post.fail
			}
			return Answer{}, part.Error
		case fantasy.StreamPartTypeFinish:
			finish = &part
		}
	}
	if err := ended(ctx); err != nil {
		return Answer{}, err
	}
	if post.fail != nil {
		return Answer{}, post.fail
	}
	if finish == nil || mark.used && mark.raw == "" {
		return Answer{}, fmt.Errorf("no finish mark: %w", io.ErrUnexpectedEOF)
	}
	reason, err := finishOf(finish.FinishReason, mark, len(calls))
	if err != nil {
		return Answer{}, err
	}
	u := finish.Usage
	return Answer{
		Message: Message{Role: RoleAssistant, Text: text.String(), Reasoning: thoughts, Calls: calls},
		Finish:  reason,
		Usage: Usage{Input: int(u.InputTokens), Output: int(u.OutputTokens),
			CacheRead: int(u.CacheReadTokens), CacheWrite: int(u.CacheCreationTokens)},
	}, nil
}

func finishOf(reason fantasy.FinishReason, mark *finishMark, calls int) (Finish, error) {
	if mark.used && mark.raw == "length" {
		reason = fantasy.FinishReasonLength
	}
	switch reason {
	case fantasy.FinishReasonLength:
		return FinishLength, nil
	case fantasy.FinishReasonContentFilter:
		return FinishFilter, nil
	case fantasy.FinishReasonError:
		return "", errors.New("the model stopped with an error")
	}
	if calls > 0 {
		return FinishCalls, nil
	}
	return FinishStop, nil
}

func orObject(input string) string {
	if strings.TrimSpace(input) == "" {
		return "{}"
	}
	return input
}

// open makes the library's model for one answer, over that answer's courier.
func (m *vendorModel) open(ctx context.Context, post *courier, mark *finishMark) (fantasy.LanguageModel, error) {
	c, client := m.conf, post.client()
	var (
		p   fantasy.Provider
		err error
	)
	switch c.wire() {
	case wireAnthropic:
		p, err = anthropic.New(anthropic.WithAPIKey(c.APIKey), anthropic.WithBaseURL(c.BaseURL),
			anthropic.WithHTTPClient(client), anthropic.WithUserAgent(c.UserAgent))
	case wireBedrock:
		opts := []bedrock.Option{bedrock.WithHTTPClient(client), bedrock.WithUserAgent(c.UserAgent)}
		if c.APIKey != "" {
			opts = append(opts, bedrock.WithAPIKey(c.APIKey))
		}
		if c.Region != "" {
			opts = append(opts, bedrock.WithRegion(c.Region))
		}
		if c.BaseURL != "" {
			opts = append(opts, bedrock.WithBaseURL(c.BaseURL))
		}
		p, err = bedrock.New(opts...)
	case wireGoogle:
		p, err = google.New(google.WithGeminiAPIKey(c.APIKey), google.WithBaseURL(c.BaseURL),
			google.WithHTTPClient(client), google.WithUserAgent(c.UserAgent))
	default:
		p, err = c.openAI(post, mark)
	}
	if err != nil {
		return nil, err
	}
	return p.LanguageModel(ctx, c.Name)
}

// openAI speaks chat completions, which every compatible server has; OpenAI's own
// service gets its responses wire for the models that know no other.
func (c Config) openAI(post *courier, mark *finishMark) (fantasy.Provider, error) {
	key := c.APIKey
	if key == "" {
		key = "none" // else the library sends whatever OPENAI_API_KEY holds
	}
	reason := openai.WithLanguageModelMapFinishReasonFunc(mark.mapReason)
	if c.Provider == "openai" && c.BaseURL == "" {
		return openai.New(openai.WithAPIKey(key), openai.WithHTTPClient(post.client()), openai.WithUserAgent(c.UserAgent),
			openai.WithBaseURL("https://api.openai.com/v1"), openai.WithLanguageModelOptions(reason),
			openai.WithUseResponsesAPI(), openai.WithResponsesAPIFunc(func(name string) bool {
				return openai.IsResponsesModel(name) && (strings.Contains(name, "codex") || strings.Contains(name, "-pro"))
			}))
	}
	return openaicompat.New(openaicompat.WithName(openaicompat.Name), openaicompat.WithAPIKey(key),
		openaicompat.WithBaseURL(strings.TrimSuffix(c.BaseURL, "/")), openaicompat.WithHTTPClient(post.client()),
		openaicompat.WithUserAgent(c.UserAgent), openaicompat.WithLanguageModelOptions(reason))
}

package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"charm.land/fantasy"
)

// Kinds of error that Choose returns. All are found on this computer.
var (
	ErrNoModel         = errors.New("no model to talk to")
	ErrUnknownProvider = errors.New("unknown model provider")
	ErrNoKey           = errors.New("no key for the model provider")
)

// Kinds of error that Answer returns, beside the context's own.
var (
	ErrAuth        = errors.New("the model provider refused the key")
	ErrRateLimited = errors.New("the model provider limits the rate of requests")
	ErrContext     = errors.New("the conversation is larger than the model's context window")
	ErrUnavailable = errors.New("the model provider cannot be reached or fails")
	ErrIncomplete  = errors.New("the model's answer was cut off")
	ErrRejected    = errors.New("the model provider rejected the request")
)

// An Error is what a vendor said, reduced to what may be shown: no request, no
// header and no key is in it.
type Error struct {
	Kind     error  // one of ErrAuth … ErrRejected
	Provider string // "anthropic"
	Status   int    // of HTTP; 0 if there was none
	Msg      string // the vendor's own words, cleaned; may be empty
	KeyVar   string // with ErrAuth: the variable that holds the key; may be empty

	final bool // every try that is worth one was made
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %v", e.Provider, e.Kind)
	if e.Kind == ErrAuth && e.KeyVar != "" {
		text += " in " + e.KeyVar
	}
	if e.Status != 0 {
		text += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Msg != "" {
		text += ": " + e.Msg
	}
	return text
}

// Unwrap gives the kind.
func (e *Error) Unwrap() error { return e.Kind }

var tooLarge = regexp.MustCompile(`(?i)context.?length|maximum context|context window|prompt is too long|input is too long|input token count|too many tokens|range of input length`)

var badKey = regexp.MustCompile(`(?i)api key not valid|invalid api key|incorrect api key|expired.*credential|credential.*expired`)

// refusal turns a refused HTTP answer into an Error.
func (c Config) refusal(status int, body []byte, header http.Header) *Error {
	e := &Error{Provider: c.Provider, Status: status, Msg: c.clean(vendorMessage(body, header)), final: true}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, badKey.MatchString(e.Msg):
		e.Kind, e.KeyVar = ErrAuth, c.KeyVar
	case status == http.StatusTooManyRequests:
		e.Kind = ErrRateLimited
	case status == http.StatusRequestEntityTooLarge, tooLarge.MatchString(e.Msg):
		e.Kind = ErrContext
	case status >= 500, status == http.StatusRequestTimeout:
		e.Kind = ErrUnavailable
	default:
		e.Kind = ErrRejected
	}
	return e
}

// streamed turns an error that came out of a stream into an Error.
func (c Config) streamed(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := &Error{Provider: c.Provider, Kind: ErrUnavailable}
	p, ok := errors.AsType[*fantasy.ProviderError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), fantasy.IsTransportError(err):
		e.Kind = ErrIncomplete
	case ok && p.IsContextTooLarge():
		e.Kind, e.Msg = ErrContext, c.clean(p.Message)
	case ok && p.AuthError:
		e.Kind, e.Msg = ErrAuth, c.clean(p.Message)
	case ok && p.TransientError:
		e.Msg = c.clean(p.Message)
	case ok && strings.HasPrefix(p.Title, "stream"), ok && strings.HasPrefix(p.Title, "provider"):
		e.Msg = c.clean(p.Message)
	case ok:
		e.Kind, e.Msg = ErrRejected, c.clean(p.Message)
	default:
		e.Msg = c.clean(err.Error())
	}
	return e
}

// again reports whether asking once more may go better.
func (e *Error) again() bool {
	return !e.final && (e.Kind == ErrIncomplete || e.Kind == ErrUnavailable)
}

// vendorMessage finds the sentence meant for people in an error answer.
func vendorMessage(body []byte, header http.Header) string {
	text := strings.TrimSpace(string(body))
	if isPage(header, text) {
		return "it answered with a web page"
	}
	var one struct {
		Message string          `json:"message"`
		Error   json.RawMessage `json:"error"`
	}
	raw := []byte(text)
	var many []json.RawMessage
	if json.Unmarshal(raw, &many) == nil && len(many) > 0 {
		raw = many[0]
	}
	if json.Unmarshal(raw, &one) != nil {
		return text
	}
	var inner struct {
		Message string `json:"message"`
	}
	var plain string
	switch {
	case json.Unmarshal(one.Error, &inner) == nil && inner.Message != "":
		return inner.Message
	case json.Unmarshal(one.Error, &plain) == nil && plain != "":
		return plain
	}
	return one.Message
}

func isPage(header http.Header, text string) bool {
	head := strings.ToLower(text[:min(len(text), 64)])
	return strings.HasPrefix(header.Get("Content-Type"), "text/html") ||
		strings.HasPrefix(head, "<!doctype html") || strings.HasPrefix(head, "<html")
}

var keyShaped = regexp.MustCompile(`\b(sk-|AIza|gsk_|xai-|key-)[A-Za-z0-9_*-]{6,}`)

// clean masks keys, drops control characters and shortens to one line.
func (c Config) clean(s string) string {
	if len(c.APIKey) >= 4 {
		s = strings.ReplaceAll(s, c.APIKey, "***")
	}
	s = keyShaped.ReplaceAllString(s, "***")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 300 {
		s = string(r[:300]) + "…"
	}
	return s
}

// ended returns ctx's error in words if ctx has ended, else nil.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("waiting for the model: %w", context.Cause(ctx))
}

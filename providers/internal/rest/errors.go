package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A StatusError is an answer that refuses the call.
type StatusError struct {
	Status     int
	Code       string        // the service's own code, if any
	Message    string        // the service's own message on one line; may be empty
	RetryAfter time.Duration // how long the service asks to wait; 0 if it does not
}

func (e *StatusError) Error() string {
	text := e.Message
	if text == "" {
		text = strings.ToLower(http.StatusText(e.Status))
	}
	return fmt.Sprintf("%s (%d)", text, e.Status)
}

// CodeOf returns what a status means with most vendors.
func CodeOf(e *StatusError) sandbox.Code {
	switch e.Status {
	case http.StatusPaymentRequired:
		return sandbox.CodeQuota
	case http.StatusUnauthorized:
		return sandbox.CodeUnauthenticated
	case http.StatusBadRequest, http.StatusForbidden:
		if Quota(e.Message) {
			return sandbox.CodeQuota
		}
		if e.Status == http.StatusForbidden {
			return sandbox.CodePermissionDenied
		}
		return sandbox.CodeInvalidArgument
	case http.StatusNotFound:
		return sandbox.CodeNotFound
	case http.StatusConflict, http.StatusUnprocessableEntity:
		return sandbox.CodeInvalidArgument
	case http.StatusGone:
		return sandbox.CodeGone
	case http.StatusRequestEntityTooLarge:
		return sandbox.CodeTooLarge
	case http.StatusTooManyRequests:
		return sandbox.CodeRateLimited
	case http.StatusInsufficientStorage:
		return sandbox.CodeNoSpace
	case http.StatusNotImplemented:
		return sandbox.CodeUnsupported
	case http.StatusRequestTimeout:
		return sandbox.CodeUnavailable
	}
	if e.Status >= 500 {
		return sandbox.CodeUnavailable
	}
	return sandbox.CodeInternal
}

// Quota reports whether a message says that the account may not have more.
func Quota(message string) bool {
	m := strings.ToLower(message)
	for _, phrase := range []string{"quota", "limit exceeded", "limit reached", "exceeds the limit", "insufficient credit", "billing"} {
		if strings.Contains(m, phrase) {
			return true
		}
	}
	return false
}

// statusError reads what resp says of the refusal.
func (c *Client) statusError(resp *http.Response) *StatusError {
	e := &StatusError{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header)}
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var body struct {
		Message any    `json:"message"`
		Error   any    `json:"error"`
		Detail  any    `json:"detail"`
		Code    any    `json:"code"`
		Errors  []any  `json:"errors"`
		Title   string `json:"title"`
	}
	if json.Unmarshal(data, &body) == nil {
		if code, ok := body.Code.(string); ok {
			e.Code = c.Show(code)
		} else {
			e.Code = c.Show(kind(body.Detail))
		}
		if m, ok := body.Error.(map[string]any); ok && e.Code == "" {
			code, _ := m["code"].(string)
			e.Code = c.Show(code)
		}
		for _, v := range []any{body.Message, body.Detail, body.Error, body.Errors, body.Title} {
			if text := message(v); text != "" {
				e.Message = text
				break
			}
		}
	} else if !strings.HasPrefix(strings.TrimSpace(string(data)), "<") {
		e.Message = string(data)
	}
	e.Message = c.Show(e.Message)
	return e
}

// kind finds the code where it is part of the detail: in "error", or in "type" of
// the first thing that is wrong.
func kind(detail any) string {
	field := "error"
	if list, ok := detail.([]any); ok && len(list) > 0 {
		detail, field = list[0], "type"
	}
	if m, ok := detail.(map[string]any); ok {
		text, _ := m[field].(string)
		return text
	}
	return ""
}

// message finds the text in the shapes vendors give it.
func message(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var parts []string
		for _, x := range v {
			if text := message(x); text != "" {
				parts = append(parts, text)
			}
		}
		return strings.Join(parts, "; ")
	case map[string]any:
		for _, key := range []string{"message", "msg", "detail", "error"} {
			if text := message(v[key]); text != "" {
				return text
			}
		}
	}
	return ""
}

// retryAfter reads the wait hint: Retry-After, or Retry-After-<throttler>, in
// seconds or as a date, or Retry-After-Ms. The longest counts.
func retryAfter(h http.Header) time.Duration {
	var longest time.Duration
	for key, values := range h {
		if key != "Retry-After" && !strings.HasPrefix(key, "Retry-After-") {
			continue
		}
		for _, v := range values {
			unit := time.Second
			if key == "Retry-After-Ms" {
				unit = time.Millisecond
			}
			if s, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil && s > 0 && s < 1e6 {
				longest = max(longest, time.Duration(s*float64(unit)))
			} else if t, err := http.ParseTime(v); err == nil {
				longest = max(longest, time.Until(t))
			}
		}
	}
	return longest
}

// Clean makes text from outside safe to show: one line, no control characters,
// valid UTF-8, of bounded length.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
	s = strings.TrimSpace(s)
	const most = 500
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return s
}

// Show makes the service's text safe to show: it is Clean, and what the client's
// headers hold is hidden, should the service repeat it. A secret is hidden before
// the text is cut, which could leave a part of it.
func (c *Client) Show(s string) string {
	if c.Secrets != nil {
		for _, secret := range c.Secrets() {
			if secret != "" {
				s = strings.ReplaceAll(s, secret, "***")
			}
		}
	}
	for _, values := range c.Header {
		for _, v := range values {
			for word := range strings.FieldsSeq(v) {
				if len(word) >= 8 {
					s = strings.ReplaceAll(s, word, "***")
				}
			}
		}
	}
	return Clean(s)
}

// Status returns the HTTP status that err tells of, or 0.
func Status(err error) int {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.Status
	}
	return 0
}

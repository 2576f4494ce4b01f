package abi

import (
	"errors"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// kinds are the codes that cross the wall.
var kinds = map[sandbox.Code]bool{
	sandbox.CodeFileNotFound: true, sandbox.CodePermissionDenied: true, sandbox.CodeIsDirectory: true,
	sandbox.CodeNotADirectory: true, sandbox.CodeNotAFile: true, sandbox.CodeInvalidPath: true,
	sandbox.CodeInvalidArgument: true, sandbox.CodeTooLarge: true, sandbox.CodeNoSpace: true,
	sandbox.CodeTimeout: true, sandbox.CodeCancelled: true, sandbox.CodeGone: true,
	sandbox.CodeNotFound: true, sandbox.CodeUnauthenticated: true, sandbox.CodeQuota: true,
	sandbox.CodeRateLimited: true, sandbox.CodeUnavailable: true, sandbox.CodeUnsupported: true,
	sandbox.CodeInternal: true,
}

// FromError is err as it crosses the wall; nil for nil.
func FromError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	out := &Error{Kind: string(sandbox.CodeOf(err)), Message: err.Error()}
	if e, ok := err.(*sandbox.Error); ok && e.Op != "" {
		plain := *e
		plain.Op = ""
		out.Op, out.Message = e.Op, plain.Error()
	}
	return out
}

// Sandbox is e as the contract has it. A kind that is unknown is internal.
func (e *Error) Sandbox() *sandbox.Error {
	code := sandbox.Code(e.Kind)
	if !kinds[code] {
		code = sandbox.CodeInternal
	}
	out := &sandbox.Error{Code: code, Op: Clean(e.Op, 200), Msg: Clean(e.Message, 2000)}
	if e.RetryAfterMS > 0 {
		out.Err = &WaitError{time.Duration(e.RetryAfterMS) * time.Millisecond}
	}
	return out
}

// A WaitError says how long a vendor asks to wait.
type WaitError struct{ For time.Duration }

func (e *WaitError) Error() string { return "try again in " + e.For.String() }

// Clean makes text from the other side safe to show: one line of at most so many
// characters, without control characters.
func Clean(s string, most int) string {
	out := make([]rune, 0, min(len(s), most))
	for _, r := range s {
		if len(out) == most {
			return string(out) + "…"
		}
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			r = ' '
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			r = unicode.ReplacementChar
		}
		out = append(out, r)
	}
	return string(out)
}

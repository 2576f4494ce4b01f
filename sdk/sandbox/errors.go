package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// Kinds of error, for errors.Is. Beside them stand fs.ErrNotExist,
// fs.ErrPermission, errors.ErrUnsupported, context.DeadlineExceeded and
// context.Canceled.
var (
	ErrNotFound        = errors.New("no such sandbox")     // the sandbox or snapshot does not exist
	ErrUnauthenticated = errors.New("not signed in")       // a credential is missing or refused
	ErrQuota           = errors.New("quota exceeded")      // the account may not have more
	ErrGone            = errors.New("sandbox is gone")     // the machine ended while in use
	ErrUnavailable     = errors.New("service unavailable") // the vendor cannot be reached or fails
	ErrInvalid         = errors.New("invalid argument")    // the call itself is wrong
)

// A Code names what went wrong in one word. It means the same on every provider
// and survives the Wasm wall.
type Code string

// The codes. Each belongs to one kind.
const (
	CodeFileNotFound     Code = "file_not_found"
	CodePermissionDenied Code = "permission_denied"
	CodeIsDirectory      Code = "is_directory"
	CodeNotADirectory    Code = "not_a_directory"
	CodeNotAFile         Code = "not_a_file"
	CodeInvalidPath      Code = "invalid_path"
	CodeInvalidArgument  Code = "invalid_argument"
	CodeInvalidPattern   Code = "invalid_pattern"
	CodeNoMatch          Code = "no_match"
	CodeMultipleMatches  Code = "multiple_matches"
	CodeNoChange         Code = "no_change"
	CodeOutOfRange       Code = "out_of_range"
	CodeTooLarge         Code = "too_large"
	CodeNoSpace          Code = "no_space"
	CodeTimeout          Code = "timeout"
	CodeCancelled        Code = "cancelled"
	CodeGone             Code = "gone"
	CodeNotFound         Code = "not_found"
	CodeUnauthenticated  Code = "unauthenticated"
	CodeQuota            Code = "quota"
	CodeRateLimited      Code = "rate_limited"
	CodeUnavailable      Code = "unavailable"
	CodeUnsupported      Code = "unsupported"
	CodeInternal         Code = "internal"
)

// Kind returns the error that an Error with this code is, or nil for internal.
func (c Code) Kind() error {
	switch c {
	case CodeFileNotFound:
		return fs.ErrNotExist
	case CodePermissionDenied:
		return fs.ErrPermission
	case CodeTimeout:
		return context.DeadlineExceeded
	case CodeCancelled:
		return context.Canceled
	case CodeGone:
		return ErrGone
	case CodeNotFound:
		return ErrNotFound
	case CodeUnauthenticated:
		return ErrUnauthenticated
	case CodeQuota:
		return ErrQuota
	case CodeRateLimited, CodeUnavailable:
		return ErrUnavailable
	case CodeUnsupported:
		return errors.ErrUnsupported
	case CodeInternal, CodeNoSpace, CodeTooLarge:
		return nil
	}
	return ErrInvalid
}

// An Error is a code and what is known beside it. It never carries a request
// body, a header or a credential.
type Error struct {
	Code Code
	Op   string // what was being done: "read /workspace/a.txt"; may be empty
	Msg  string // one phrase: the provider's own message or ours; may be empty
	Err  error  // the cause; may be nil
}

// Errorf returns an Error of that code whose message is formatted; %w sets its
// cause.
func Errorf(code Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Msg: err.Error(), Err: errors.Unwrap(err)}
}

func (e *Error) Error() string {
	var parts []string
	if e.Op != "" {
		parts = append(parts, e.Op)
	}
	switch {
	case e.Msg != "":
		parts = append(parts, e.Msg)
	case e.Err != nil:
		parts = append(parts, e.Err.Error())
	case e.Code.Kind() != nil && e.Code.Kind() != ErrInvalid:
		parts = append(parts, e.Code.Kind().Error())
	default:
		parts = append(parts, strings.ReplaceAll(string(e.Code), "_", " "))
	}
	return strings.Join(parts, ": ")
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	if kind := e.Code.Kind(); kind != nil {
		errs = append(errs, kind)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

// CodeOf returns the code of err: that of the outermost Error in its tree, else
// the one its kind implies, else CodeInternal. CodeOf(nil) is "".
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	for _, row := range []struct {
		kind error
		code Code
	}{
		{context.DeadlineExceeded, CodeTimeout},
		{context.Canceled, CodeCancelled},
		{fs.ErrNotExist, CodeFileNotFound},
		{fs.ErrPermission, CodePermissionDenied},
		{syscall.EISDIR, CodeIsDirectory},
		{syscall.ENOTDIR, CodeNotADirectory},
		{syscall.ENOSPC, CodeNoSpace},
		{syscall.ENAMETOOLONG, CodeInvalidPath},
		{errors.ErrUnsupported, CodeUnsupported},
		{ErrNotFound, CodeNotFound},
		{ErrUnauthenticated, CodeUnauthenticated},
		{ErrQuota, CodeQuota},
		{ErrGone, CodeGone},
		{ErrUnavailable, CodeUnavailable},
		{ErrInvalid, CodeInvalidArgument},
	} {
		if errors.Is(err, row.kind) {
			return row.code
		}
	}
	return CodeInternal
}

// ExitOf returns the status and error with which Exec ends when ctx is done:
// 124 or 130 and an error that is the context's.
func ExitOf(ctx context.Context) (int, error) {
	err := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ExitTimeout, &Error{Code: CodeTimeout, Msg: "the command's time is up", Err: err}
	}
	return ExitCancelled, &Error{Code: CodeCancelled, Msg: "the command was cancelled", Err: err}
}

package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// An Edit is what a call would change in a file.
type Edit struct {
	Path          string
	Before, After []byte
	New           bool   // there is no such file yet
	Gone          bool   // there is none afterwards
	Note          string // instead of a text that cannot be shown: "a directory, with all in it"
}

// An Editor is a Tool that can say what a call would change in a file. It only
// looks.
type Editor interface {
	Edit(ctx context.Context, input string) (Edit, error)
}

// EditOf says what a call of t would change. The error is errors.ErrUnsupported for
// a call that changes no file by itself.
func EditOf(ctx context.Context, t Tool, input string) (Edit, error) {
	for t != nil {
		if e, ok := t.(Editor); ok {
			return e.Edit(ctx, input)
		}
		u, ok := t.(interface{ Unwrap() Tool })
		if !ok {
			break
		}
		t = u.Unwrap()
	}
	return Edit{}, errors.ErrUnsupported
}

// An Unfit is the error of an Edit that cannot be made as the file stands. Result is what
// the model is told of it, as by Run.
type Unfit struct {
	Result Result
	Err    error
}

func (u *Unfit) Error() string { return u.Err.Error() }

func (u *Unfit) Unwrap() error { return u.Err }

// unfit are the codes of such errors. Each tells something of what is in the file.
var unfit = []sandbox.Code{sandbox.CodeNoMatch, sandbox.CodeMultipleMatches, sandbox.CodeNoChange}

// Edit implements Editor. The error may be an *Unfit.
func (f *function[A]) Edit(ctx context.Context, input string) (Edit, error) {
	c, err := f.plan(input)
	if err != nil {
		return Edit{}, err
	}
	if c.edit == nil {
		return Edit{}, errors.ErrUnsupported
	}
	e, err := c.edit(ctx)
	e.Path = c.Path
	if slices.Contains(unfit, sandbox.CodeOf(err)) {
		result, _ := failure(ctx, c.given, err)
		err = &Unfit{result, err}
	}
	return e, err
}

// before reads a file for an Edit.
func (s *set) before(ctx context.Context, name string) (Edit, error) {
	data, err := s.read(ctx, name, s.opts.EditBytes)
	switch code := sandbox.CodeOf(err); {
	case errors.Is(err, fs.ErrNotExist):
		return Edit{New: true}, nil
	case code == sandbox.CodeIsDirectory:
		return Edit{Note: "a directory, with all in it"}, nil
	case code == sandbox.CodeTooLarge:
		return Edit{Note: fmt.Sprintf("a file of more than %d bytes", s.opts.EditBytes)}, nil
	case err != nil:
		return Edit{}, err
	case !isText(data):
		return Edit{Note: fmt.Sprintf("a binary file of %d bytes", len(data))}, nil
	}
	return Edit{Before: data}, nil
}

func isText(data []byte) bool { return bytes.IndexByte(data, 0) < 0 && utf8.Valid(data) }

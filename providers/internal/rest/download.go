package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// ErrWrite marks a failure of the caller's writer.
var ErrWrite = errors.New("the output cannot be written")

// WriteFailed is err, which the caller's writer gave, marked as such.
func WriteFailed(err error) error { return fmt.Errorf("%w: %w", ErrWrite, err) }

// Stalled is the error of what stood still.
func (c *Client) Stalled(op string) error {
	return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: c.Vendor + " does not answer"}
}

// Cut is the error of an answer that broke off with err. One that has a code keeps it.
func Cut(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return Ended(ctx, op)
	}
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		return e
	}
	return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "the connection broke: " + Clean(err.Error())}
}

// A Flow is an answer that must go on: where nothing more comes of it for too long,
// reading it fails. Errors of reading it have the code unavailable.
type Flow struct {
	*http.Response
	op    string
	c     *Client
	alarm *time.Timer
	idle  time.Duration
	still func() bool // it has stood still
	cut   func(error) error
	stop  func()
}

// Flow sends r once. The answer must begin within first and never stand still for
// longer than idle. The caller closes it.
func (c *Client) Flow(ctx context.Context, r Request, first, idle time.Duration) (*Flow, error) {
	watched, cancel := context.WithCancel(ctx)
	f := &Flow{op: r.Op, c: c, alarm: time.AfterFunc(first, cancel), idle: idle}
	f.still = func() bool { return ctx.Err() == nil && watched.Err() != nil }
	f.cut = func(err error) error { return Cut(ctx, r.Op, err) }
	f.stop = func() { f.alarm.Stop(); cancel() }
	once := *c
	once.Attempts = 1
	resp, err := once.Stream(watched, r)
	if err != nil {
		defer f.stop()
		if f.still() {
			return nil, c.Stalled(r.Op)
		}
		return nil, err
	}
	f.Response = resp
	f.alarm.Reset(idle)
	return f, nil
}

// Still reports whether the answer has stood still.
func (f *Flow) Still() bool { return f.still() }

// Read reads the body.
func (f *Flow) Read(p []byte) (int, error) {
	n, err := f.Body.Read(p)
	f.alarm.Reset(f.idle)
	switch {
	case err == nil, err == io.EOF:
	case f.still():
		err = f.c.Stalled(f.op)
	default:
		err = f.cut(err)
	}
	return n, err
}

// Close lets go of the answer.
func (f *Flow) Close() error {
	defer f.stop()
	return f.Body.Close()
}

// From looks at the answer to a request for the bytes of a file from offset on. It
// returns how many bytes of it to leave out, how many follow, negative if that is not
// known, and whether it is the whole file, as the range was not honoured.
func (f *Flow) From(offset int64) (skip, want int64, whole bool, err error) {
	switch f.StatusCode {
	case http.StatusRequestedRangeNotSatisfiable:
		return 0, 0, false, nil
	case http.StatusPartialContent:
		if !Begins(f.Response, offset) {
			return 0, 0, false, f.c.OtherPart(f.op)
		}
		return 0, f.ContentLength, false, nil
	}
	want = f.ContentLength
	if want >= 0 {
		want = max(want-offset, 0)
	}
	return offset, want, true, nil
}

// Begins reports whether an answer says that its first byte is the one at offset.
func Begins(resp *http.Response, offset int64) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(offset, 10)+"-")
}

// OtherPart is the error of an answer that does not begin where it should.
func (c *Client) OtherPart(op string) error {
	return &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: c.Vendor + " sent another part than was asked for"}
}

// Copy leaves skip bytes out and copies the next want bytes to w, or all that come if
// want is negative. It returns how many bytes w took, also when it fails.
func (f *Flow) Copy(w io.Writer, skip, want int64) (n int64, err error) {
	buf := make([]byte, 64<<10)
	for want < 0 || n < want {
		k, err := f.Read(buf)
		part := buf[min(skip, int64(k)):k]
		skip -= int64(k - len(part))
		if want >= 0 {
			part = part[:min(int64(len(part)), want-n)]
		}
		if len(part) > 0 {
			m, werr := w.Write(part)
			n += int64(m)
			if werr != nil {
				return n, WriteFailed(werr)
			}
		}
		switch {
		case err == io.EOF && want >= 0 && n < want:
			return n, f.cut(io.ErrUnexpectedEOF)
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return n, nil
}

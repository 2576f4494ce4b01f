package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Source is the caller's reader: it counts what comes, and remembers its error
// apart from those of the way it takes.
type Source struct {
	R   io.Reader
	N   int64
	Err error
}

func (s *Source) Read(p []byte) (int, error) {
	n, err := s.R.Read(p)
	s.N += int64(n)
	if err != nil && err != io.EOF {
		s.Err = err
	}
	return n, err
}

// Unbounded is c for an upload of any length, which is right as long as it goes on.
func (c *Client) Unbounded() *Client {
	long := *c
	long.Timeout = 24 * time.Hour
	return &long
}

// Upload has send send r with the body, and its media type, that wrap makes of
// source. It returns how many bytes source gave. It fails with the code unavailable
// once nothing more of source has been asked for during silent, and with the error of
// source itself; a source that stands still, such as a terminal, is left behind when
// ctx ends.
func (c *Client) Upload(ctx context.Context, r Request, source io.Reader, silent time.Duration, wrap func(io.Reader) (io.Reader, string), send func(context.Context, Request) error) (int64, error) {
	watched, source, unwatch := Watch(ctx, source, r.Op, c.Vendor, silent)
	defer unwatch()
	from := &Source{R: source}
	body, media := wrap(from)
	pr, pw := io.Pipe()
	r.Body, r.Type = pr, media
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := io.Copy(pw, body)
		pw.CloseWithError(err)
	}()
	// The transport waits for its body, which may be a reader that stands still.
	stop := context.AfterFunc(watched, func() { pr.CloseWithError(watched.Err()) })
	defer stop()
	err := send(watched, r)
	pr.CloseWithError(errors.New("the upload has ended"))
	select {
	case <-done:
	case <-ctx.Done():
		return 0, Ended(ctx, r.Op)
	}
	switch {
	case from.Err != nil:
		return 0, fmt.Errorf("%s: %w", r.Op, from.Err)
	case err != nil && watched.Err() != nil && ctx.Err() == nil:
		return 0, context.Cause(watched)
	}
	return from.N, err
}

// Multipart wraps a file as multipart/form-data, after the field if that has a name.
func Multipart(field, value, file, filename string) func(io.Reader) (io.Reader, string) {
	return func(content io.Reader) (io.Reader, string) {
		return Form(field, value, file, filename, content)
	}
}

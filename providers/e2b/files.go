package e2b

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// fs is how files of the sandbox are read and written.
func (b *box) fs() posix.Files {
	return posix.Files{Shell: b.shell, Exec: b.Exec, Explain: b.explain}
}

// ReadFile copies the file name to w. The daemon reads with the rights of root, so
// whether the sandbox's user may is asked first.
func (b *box) ReadFile(ctx context.Context, name string, w io.Writer) error {
	size, done, err := b.fs().Size(ctx, name, w)
	if done || err != nil {
		return err
	}
	j := &job{box: b, ctx: ctx}
	if err := j.fetch(&stream{file: name, w: w, done: true}, size); err != nil {
		return posix.InOp("read "+name, b.explain(ctx, err))
	}
	return nil
}

// WriteFile makes the file name hold what r gives: it is uploaded to the private
// directory and moved into place by one script.
func (b *box) WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error {
	j := &job{box: b, id: rest.Random()}
	return b.fs().Write(ctx, name, perm, j.file("u"), posix.SizedScript, func(ctx context.Context, private string) (int64, error) {
		return b.upload(ctx, private, r)
	})
}

// upload streams r to the file name, which it replaces. Parents are made. It returns
// how many bytes r gave; negative is unknown.
func (b *box) upload(ctx context.Context, name string, r io.Reader) (int64, error) {
	client := b.client().Unbounded()
	b.mu.Lock()
	forms, old := b.tools.Forms, b.tools.Old
	b.mu.Unlock()
	request := rest.Request{Op: "upload", Method: "POST", Path: "/files", Query: url.Values{"path": {name}}}
	if old {
		request.Query.Set("username", "user")
	}
	wrap := func(r io.Reader) (io.Reader, string) { return r, "application/octet-stream" }
	if forms {
		wrap = rest.Multipart("", "", "file", path.Base(name))
	}
	var answer []struct{}
	send := func(ctx context.Context, r rest.Request) error { return client.JSON(ctx, r, &answer) }
	if !forms && rest.Outside(r) {
		request.Body, request.Type = wrap(r)
		return -1, b.uploaded(ctx, send(ctx, request), len(answer))
	}
	sent, err := client.Upload(ctx, request, r, silentAfter, wrap, send)
	return sent, b.uploaded(ctx, err, len(answer))
}

// uploaded is what came of an upload whose answer names so many files.
func (b *box) uploaded(ctx context.Context, err error, files int) error {
	switch {
	case rest.Status(err) == http.StatusUnauthorized && b.renew(ctx):
		return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "upload", Msg: "the sandbox's access token has changed; the next attempt has the new one", Err: err}
	case err != nil:
		return b.explain(ctx, err)
	case files == 0:
		return &sandbox.Error{Code: sandbox.CodeInternal, Op: "upload", Msg: "E2B's answer names no file"}
	}
	return nil
}

// part delivers what the file of s holds up to end, or less if there is no more, and
// returns how many bytes its writer took, also when it fails.
func (b *box) part(ctx context.Context, s *stream, end int64) (int64, error) {
	offset := s.have
	ask := func(until int64) (*rest.Client, rest.Request) {
		once := b.client()
		once.Attempts = 1
		query := url.Values{"path": {s.file}}
		if once.Header["Authorization"] != nil {
			query.Set("username", "user")
		}
		return once, rest.Request{
			Op: "download", Method: "GET", Path: "/files", Query: query,
			Header: http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", offset, until-1)}, "Accept-Encoding": {"identity"}},
			Accept: []int{http.StatusRequestedRangeNotSatisfiable},
		}
	}
	if n, carried, err := b.carry(ctx, s, min(end, offset+carryMost), ask); carried {
		return n, err
	}
	var f *rest.Flow
	err := b.again(ctx, false, func() (err error) {
		client, request := ask(end)
		f, err = client.Flow(ctx, request, idleAfter, idleAfter)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer f.Close()
	skip, _, whole, err := f.From(offset)
	switch {
	case err != nil:
		return 0, err
	case f.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return 0, nil
	case whole && rest.IsPage(f.Response):
		return 0, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "download", Msg: "E2B answered with a web page"}
	case whole && f.ContentLength >= 0 && (f.ContentLength < end || s.done && f.ContentLength != end):
		return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: fmt.Sprintf("E2B sent %d bytes that are not the file", f.ContentLength)}
	}
	return f.Copy(s.w, skip, end-offset)
}

const (
	carryMost   = 16 << 20 // bytes of one request whose answer goes past the module
	carryWithin = 2 * time.Minute
)

// carry is part where the transport delivers the bytes by itself. Carried is false
// if it cannot, or the service does not honour ranges.
func (b *box) carry(ctx context.Context, s *stream, end int64, ask func(int64) (*rest.Client, rest.Request)) (n int64, carried bool, err error) {
	limited, cancel := context.WithTimeout(ctx, carryWithin)
	defer cancel()
	offset := s.have
	var resp *http.Response
	err = b.again(limited, false, func() error {
		once, request := ask(end)
		resp, n, carried, err = once.Carry(limited, request, s.w, http.StatusPartialContent)
		return err
	})
	switch {
	case !carried:
		return 0, false, nil
	case err != nil:
		if ctx.Err() == nil && limited.Err() != nil {
			err = b.client().Stalled("download")
		}
		return n, true, err
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return 0, true, nil
	case resp.StatusCode != http.StatusPartialContent:
		return 0, false, nil
	case !rest.Begins(resp, offset) || n > end-offset:
		return n, true, b.client().OtherPart("download")
	}
	return n, true, nil
}

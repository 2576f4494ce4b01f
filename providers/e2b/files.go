package e2b

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// errWrite marks a failure of the caller's writer.
var errWrite = errors.New("the output cannot be written")

// ReadFile copies the file name to w. The daemon reads with the rights of root, so
// whether the sandbox's user may is asked first.
func (b *box) ReadFile(ctx context.Context, name string, w io.Writer) error {
	op := "read " + name
	if err := posix.CheckPath(op, name); err != nil {
		return err
	}
	out, exit, err := b.shell(ctx, true, posix.StatScript, name)
	if err != nil {
		return posix.InOp(op, err)
	}
	if exit != 0 {
		return posix.FileError(op, exit, out)
	}
	size, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil {
		return &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "its size cannot be read"}
	}
	if size == 0 {
		// It may be one of those the kernel fills while they are read.
		exit, err := b.Exec(ctx, sandbox.Cmd{Args: []string{"cat", name}, Dir: "/", Stdout: w})
		if err == nil && exit != 0 {
			err = &sandbox.Error{Code: sandbox.CodeInternal, Msg: fmt.Sprintf("cat ended with %d", exit)}
		}
		return posix.InOp(op, err)
	}
	j := &job{box: b, ctx: ctx}
	if err := j.fetch(&stream{file: name, w: w, done: true}, size); err != nil {
		return posix.InOp(op, b.explain(ctx, err))
	}
	return nil
}

// sizedScript is posix.WriteScript for a file that must have $4 bytes; any number
// if that is negative.
const sizedScript = `[ "$4" -lt 0 ] || [ $(($(wc -c <"$1"))) = "$4" ] || exit 96
` + posix.WriteScript

// WriteFile makes the file name hold what r gives: it is uploaded to the private
// directory and moved into place by one script.
func (b *box) WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error {
	op := "write " + name
	if err := posix.CheckTarget(op, name); err != nil {
		return err
	}
	j := &job{box: b, id: rest.Random()}
	moved := false
	defer func() {
		if !moved {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
			defer cancel()
			j.shell(clean, false, `rm -f "$1"`, j.file("u"))
		}
	}()
	counted := &count{r: r}
	if rest.Outside(r) {
		counted.n = -1 // who sends it counts
	} else {
		r = counted
	}
	if err := b.upload(ctx, j.file("u"), r); err != nil {
		return posix.InOp(op, err)
	}
	out, exit, err := b.shell(ctx, false, sizedScript, j.file("u"), name, fmt.Sprintf("%o", perm.Perm()), strconv.FormatInt(counted.n, 10))
	switch {
	case err != nil:
		return posix.InOp(op, err)
	case exit == 96:
		return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("not all of %d bytes arrived", counted.n)}
	case exit != 0:
		return posix.WriteError(op, exit, out)
	}
	moved = true
	return nil
}

// A count is a reader that counts.
type count struct {
	r io.Reader
	n int64
}

func (c *count) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// upload streams r to the file name, which it replaces. Parents are made.
func (b *box) upload(ctx context.Context, name string, r io.Reader) error {
	client := b.client()
	client.Timeout = 24 * time.Hour // an upload of any length is right as long as it goes on
	b.mu.Lock()
	forms, old := b.tools.Forms, b.tools.Old
	b.mu.Unlock()
	request := rest.Request{Op: "upload", Method: "POST", Path: "/files", Query: url.Values{"path": {name}}, Type: "application/octet-stream"}
	if old {
		request.Query.Set("username", "user")
	}
	var answer []struct{}
	if !forms && rest.Outside(r) {
		request.Body = r
		return b.uploaded(ctx, client.JSON(ctx, request, &answer), len(answer))
	}
	watched, r, unwatch := rest.Watch(ctx, r, "upload", "E2B", silentAfter)
	defer unwatch()
	source := &posix.Source{R: r}
	pr, pw := io.Pipe()
	request.Body = pr
	write := func() error { _, err := io.Copy(pw, source); return err }
	if forms {
		form := multipart.NewWriter(pw)
		request.Type = form.FormDataContentType()
		write = func() error {
			part, err := form.CreateFormFile("file", path.Base(name))
			if err == nil {
				_, err = io.Copy(part, source)
			}
			if err == nil {
				err = form.Close()
			}
			return err
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		pw.CloseWithError(write())
	}()
	// The transport waits for its body, which may be a reader that stands still.
	stop := context.AfterFunc(watched, func() { pr.CloseWithError(watched.Err()) })
	defer stop()
	err := client.JSON(watched, request, &answer)
	pr.CloseWithError(errors.New("the upload has ended"))
	select {
	case <-done:
	case <-ctx.Done():
		// A reader that stands still, such as a terminal, is left behind.
		return rest.Ended(ctx, "upload")
	}
	if err != nil && watched.Err() != nil && ctx.Err() == nil {
		err = context.Cause(watched)
	}
	if source.Err != nil {
		return fmt.Errorf("upload: %w", source.Err)
	}
	return b.uploaded(ctx, err, len(answer))
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
	offset, size, w := s.have, end-s.have, s.w
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
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(idleAfter, cancel)
	defer idle.Stop()
	var resp *http.Response
	err := b.again(watched, false, func() error {
		once, request := ask(end)
		var err error
		resp, err = once.Stream(watched, request)
		return err
	})
	if err != nil {
		if ctx.Err() == nil && watched.Err() != nil {
			return 0, stalled
		}
		return 0, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusRequestedRangeNotSatisfiable:
		return 0, nil
	case http.StatusPartialContent:
		if begin := "bytes " + strconv.FormatInt(offset, 10) + "-"; !strings.HasPrefix(resp.Header.Get("Content-Range"), begin) {
			return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: "E2B sent another part than was asked for"}
		}
	default:
		// The range was not honoured: the whole file comes.
		if rest.IsPage(resp) {
			return 0, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "download", Msg: "E2B answered with a web page"}
		}
		if n := resp.ContentLength; n >= 0 && (n < end || s.done && n != end) {
			return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: fmt.Sprintf("E2B sent %d bytes that are not the file", resp.ContentLength)}
		}
		if _, err := io.CopyN(io.Discard, resp.Body, offset); err != nil {
			return 0, cut(ctx, err)
		}
	}
	var n int64
	buf := make([]byte, 64<<10)
	for n < size {
		k, err := resp.Body.Read(buf[:min(int64(len(buf)), size-n)])
		idle.Reset(idleAfter)
		if k > 0 {
			m, werr := w.Write(buf[:k])
			n += int64(m)
			if werr != nil {
				return n, fmt.Errorf("%w: %w", errWrite, werr)
			}
		}
		if err == io.EOF && n < size {
			return n, cut(ctx, io.ErrUnexpectedEOF)
		}
		if err != nil && err != io.EOF {
			return n, cut(ctx, err)
		}
	}
	return n, nil
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
			err = stalled
		}
		return n, true, err
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return 0, true, nil
	case resp.StatusCode != http.StatusPartialContent:
		return 0, false, nil
	case !strings.HasPrefix(resp.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(offset, 10)+"-") || n > end-offset:
		return n, true, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: "E2B sent another part than was asked for"}
	}
	return n, true, nil
}

// stalled is the error of a download that stood still.
var stalled = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "download", Msg: "E2B does not answer"}

// cut is the error of a download that ended early.
func cut(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return rest.Ended(ctx, "download")
	}
	return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "download", Msg: "the connection broke: " + rest.Clean(err.Error())}
}

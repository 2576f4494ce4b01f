package daytona

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

// ReadFile copies the file name to w.
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
	var have int64
	for n := 1; ; n++ {
		got, err := b.part(ctx, name, have, size, w)
		have += got
		if err == nil {
			break
		}
		if got > 0 {
			n = 1
		}
		if sandbox.CodeOf(err) != sandbox.CodeUnavailable || n >= 4 {
			return posix.InOp(op, b.explain(ctx, err))
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return rest.Ended(ctx, op)
		}
	}
	if have < size {
		return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("only %d of %d bytes arrived", have, size)}
	}
	return nil
}

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
	if err := b.upload(ctx, j.file("u"), r); err != nil {
		return posix.InOp(op, err)
	}
	out, exit, err := b.shell(ctx, false, posix.WriteScript, j.file("u"), name, fmt.Sprintf("%o", perm.Perm()))
	if err != nil {
		return posix.InOp(op, err)
	}
	if exit != 0 {
		return posix.WriteError(op, exit, out)
	}
	moved = true
	return nil
}

// upload streams r to the file name, which it replaces. Parents are made.
func (b *box) upload(ctx context.Context, name string, r io.Reader) error {
	// An upload of any length is right as long as it goes on.
	unbounded := *b.tools
	unbounded.Timeout = 24 * time.Hour
	if rest.Outside(r) {
		form, kind := rest.Form("files[0].path", name, "files[0].file", path.Base(name), r)
		return b.explain(ctx, unbounded.JSON(ctx, rest.Request{Op: "upload", Method: "POST", Path: "/files/bulk-upload", Body: form, Type: kind}, nil))
	}
	pr, pw := io.Pipe()
	form := multipart.NewWriter(pw)
	var sent int64
	watched, r, unwatch := rest.Watch(ctx, r, "upload", "Daytona", silentAfter)
	defer unwatch()
	source := &posix.Source{R: r}
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := form.WriteField("files[0].path", name)
		if err == nil {
			var part io.Writer
			if part, err = form.CreateFormFile("files[0].file", path.Base(name)); err == nil {
				sent, err = io.Copy(part, source)
			}
		}
		if err == nil {
			err = form.Close()
		}
		pw.CloseWithError(err)
	}()
	var answer struct {
		Files []struct {
			Bytes *int64 `json:"bytes"`
		} `json:"files"`
	}
	// The transport waits for its body, which may be a reader that stands still.
	stop := context.AfterFunc(watched, func() { pr.CloseWithError(watched.Err()) })
	defer stop()
	err := unbounded.JSON(watched, rest.Request{
		Op: "upload", Method: "POST", Path: "/files/bulk-upload", Body: pr, Type: form.FormDataContentType(),
	}, &answer)
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
	switch {
	case source.Err != nil:
		return fmt.Errorf("upload: %w", source.Err)
	case err != nil:
		return b.explain(ctx, err)
	case len(answer.Files) > 0 && answer.Files[0].Bytes != nil && *answer.Files[0].Bytes != sent:
		return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "upload", Msg: fmt.Sprintf("only %d of %d bytes arrived", *answer.Files[0].Bytes, sent)}
	}
	return nil
}

// download copies the file name from offset on to w and returns how many bytes
// w took, also when it fails.
func (b *box) download(ctx context.Context, name string, offset int64, w io.Writer) (int64, error) {
	return b.part(ctx, name, offset, -1, w)
}

// part is download of a file that has size bytes; negative is unknown. An answer
// that is neither a range nor of that size is not the file.
func (b *box) part(ctx context.Context, name string, offset, size int64, w io.Writer) (int64, error) {
	if n, carried, err := b.carry(ctx, name, offset, w); carried {
		return n, err
	}
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(idleAfter, cancel)
	defer idle.Stop()
	once := *b.tools
	once.Attempts = 1
	resp, err := once.Stream(watched, piece(name, fmt.Sprintf("bytes=%d-", offset)))
	if err != nil {
		if ctx.Err() == nil && watched.Err() != nil {
			return 0, stalled
		}
		return 0, err
	}
	defer resp.Body.Close()
	want := resp.ContentLength
	switch resp.StatusCode {
	case http.StatusRequestedRangeNotSatisfiable:
		return 0, nil
	case http.StatusPartialContent:
		if begin := "bytes " + strconv.FormatInt(offset, 10) + "-"; !strings.HasPrefix(resp.Header.Get("Content-Range"), begin) {
			return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: "Daytona sent another part than was asked for"}
		}
	default:
		// The range was not honoured: the whole file comes.
		if rest.IsPage(resp) {
			return 0, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "download", Msg: "Daytona answered with a web page"}
		}
		if size >= 0 && want >= 0 && want != size {
			return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: fmt.Sprintf("Daytona sent %d bytes that are not the file", want)}
		}
		skipped, err := io.CopyN(io.Discard, resp.Body, offset)
		if err == io.EOF {
			return 0, nil
		}
		if err != nil {
			return 0, cut(ctx, err)
		}
		if want >= 0 {
			want -= skipped
		}
	}
	var n int64
	buf := make([]byte, 64<<10)
	for {
		k, err := resp.Body.Read(buf)
		idle.Reset(idleAfter)
		if k > 0 {
			m, werr := w.Write(buf[:k])
			n += int64(m)
			if werr != nil {
				return n, fmt.Errorf("%w: %w", errWrite, werr)
			}
		}
		if err == io.EOF {
			if want >= 0 && n < want {
				return n, cut(ctx, io.ErrUnexpectedEOF)
			}
			return n, nil
		}
		if err != nil {
			return n, cut(ctx, err)
		}
	}
}

// piece asks for a part of the file name.
func piece(name, bytes string) rest.Request {
	return rest.Request{
		Op: "download", Method: "GET", Path: "/files/download", Query: url.Values{"path": {name}},
		Header: http.Header{"Range": {bytes}, "Accept-Encoding": {"identity"}},
		Accept: []int{http.StatusRequestedRangeNotSatisfiable},
	}
}

const (
	carryMost   = 16 << 20 // bytes of one request whose answer goes past the module
	carryWithin = 2 * time.Minute
)

// carry is part where the transport delivers the bytes by itself. Carried is false
// if it cannot, or the service does not honour ranges.
func (b *box) carry(ctx context.Context, name string, offset int64, w io.Writer) (sum int64, carried bool, err error) {
	limited, cancel := context.WithTimeout(ctx, carryWithin)
	defer cancel()
	once := *b.tools
	once.Attempts = 1
	for {
		resp, n, carried, err := once.Carry(limited, piece(name, fmt.Sprintf("bytes=%d-%d", offset+sum, offset+sum+carryMost-1)), w, http.StatusPartialContent)
		sum += n
		switch {
		case !carried:
			return 0, false, nil
		case err != nil:
			if ctx.Err() == nil && limited.Err() != nil {
				err = stalled
			}
			return sum, true, err
		case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
			return sum, true, nil
		case resp.StatusCode != http.StatusPartialContent && sum == 0:
			return 0, false, nil
		case resp.StatusCode != http.StatusPartialContent, !strings.HasPrefix(resp.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(offset+sum-n, 10)+"-"):
			return sum, true, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: "Daytona sent another part than was asked for"}
		case n < carryMost:
			return sum, true, nil
		}
	}
}

// stalled is the error of a download that stood still.
var stalled = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "download", Msg: "Daytona does not answer"}

// cut is the error of a download that ended early.
func cut(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return rest.Ended(ctx, "download")
	}
	return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "download", Msg: "the connection broke: " + rest.Clean(err.Error())}
}

package langsmith

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/url"
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
	j := newJob(b, "")
	moved := false
	defer func() {
		if !moved {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
			defer cancel()
			j.shell(clean, false, `rm -f "$1"`, j.file("u"))
		}
	}()
	size, err := b.upload(ctx, j.file("u"), r)
	if err != nil {
		return posix.InOp(op, err)
	}
	out, exit, err := b.shell(ctx, false, wholeScript+posix.WriteScript, j.file("u"), name, fmt.Sprintf("%o", perm.Perm()), strconv.FormatInt(size, 10))
	if err != nil {
		return posix.InOp(op, err)
	}
	if exit == exitPart {
		return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "only a part of it arrived"}
	}
	if exit != 0 {
		return posix.WriteError(op, exit, out)
	}
	moved = true
	return nil
}

// wholeScript ends the script with exitPart unless the file $1 has $4 bytes: what
// the service answers to an upload says nothing.
const wholeScript = `[ "$(wc -c <"$1" | tr -d ' ')" = "$4" ] || exit 79
`

const exitPart = 79

// upload makes the private file name hold what r gives, and returns how much that
// was. If the private directory has been deleted, it is made again.
func (b *box) upload(ctx context.Context, name string, r io.Reader) (int64, error) {
	if err := b.awake(ctx); err != nil {
		return 0, err
	}
	begin := int64(-1)
	source, seeks := r.(io.Seeker)
	if seeks {
		if at, err := source.Seek(0, io.SeekCurrent); err == nil {
			begin = at
		}
	}
	sent, err := b.send(ctx, name, r)
	if e, ok := errors.AsType[*rest.StatusError](err); !ok || sandbox.CodeOf(err) == sandbox.CodeGone || !strings.Contains(strings.ToLower(e.Message), "no such file") {
		return sent, err
	}
	if _, _, merr := b.shell(ctx, true, `mkdir -p -m 700 "$1"`, b.run); merr != nil || begin < 0 {
		return sent, err
	}
	if _, serr := source.Seek(begin, io.SeekStart); serr != nil {
		return sent, err
	}
	return b.send(ctx, name, r)
}

// send streams r to the file name, which it replaces, and returns how many bytes r
// gave. No parents are made.
func (b *box) send(ctx context.Context, name string, r io.Reader) (int64, error) {
	pr, pw := io.Pipe()
	form := multipart.NewWriter(pw)
	watched, r, unwatch := rest.Watch(ctx, r, "upload", "LangSmith", silentAfter)
	defer unwatch()
	source := &posix.Source{R: r}
	var sent int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		part, err := form.CreateFormFile("file", "file")
		if err == nil {
			sent, err = io.Copy(part, source)
		}
		if err == nil {
			err = form.Close()
		}
		pw.CloseWithError(err)
	}()
	// An upload of any length is right as long as it goes on.
	// The transport waits for its body, which may be a reader that stands still.
	stop := context.AfterFunc(watched, func() { pr.CloseWithError(watched.Err()) })
	defer stop()
	resp, err := b.data.Stream(watched, rest.Request{
		Op: "upload", Method: "POST", Path: "/upload", Query: url.Values{"path": {name}}, Body: pr, Type: form.FormDataContentType(),
	})
	if err == nil {
		io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
		resp.Body.Close()
	}
	pr.CloseWithError(errors.New("the upload has ended"))
	select {
	case <-done:
	case <-ctx.Done():
		// A reader that stands still, such as a terminal, is left behind.
		return 0, rest.Ended(ctx, "upload")
	}
	if err != nil && watched.Err() != nil && ctx.Err() == nil {
		err = context.Cause(watched)
	}
	switch {
	case source.Err != nil:
		return 0, fmt.Errorf("upload: %w", source.Err)
	case err != nil:
		b.seen.Store(0)
		return 0, b.explain(ctx, err)
	}
	b.seen.Store(time.Now().Unix())
	return sent, nil
}

// part copies the file name from offset on to w and returns how many bytes w
// took, also when it fails. The file has size bytes; negative is unknown. An
// answer that is neither a range nor of that size is not the file.
func (b *box) part(ctx context.Context, name string, offset, size int64, w io.Writer) (int64, error) {
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(idleAfter, cancel)
	defer idle.Stop()
	once := *b.data
	once.Attempts = 1
	resp, err := once.Stream(watched, rest.Request{
		Op: "download", Method: "GET", Path: "/download", Query: url.Values{"path": {name}},
		Header: http.Header{"Range": {fmt.Sprintf("bytes=%d-", offset)}, "Accept-Encoding": {"identity"}},
		Accept: []int{http.StatusRequestedRangeNotSatisfiable},
	})
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
			return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: "LangSmith sent another part than was asked for"}
		}
	default:
		// The range was not honoured: the whole file comes. A file has an ETag.
		if size >= 0 && want >= 0 && want != size || resp.Header.Get("ETag") == "" {
			return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: "LangSmith sent something that is not the file"}
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

// stalled is the error of a download that stood still.
var stalled = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "download", Msg: "LangSmith does not answer"}

// cut is the error of a download that ended early.
func cut(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return rest.Ended(ctx, "download")
	}
	return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "download", Msg: "the connection broke: " + rest.Clean(err.Error())}
}

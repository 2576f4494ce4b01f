package runloop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	pieceMost   = 4 << 20   // a shorter file is kept in memory and may be sent again
	outsideMost = 256 << 10 // the same where more would have to go through a module
)

// errWrite marks a failure of the caller's writer.
var errWrite = errors.New("the output cannot be written")

// ReadFile copies the file name to w.
func (b *box) ReadFile(ctx context.Context, name string, w io.Writer) error {
	op := "read " + name
	if err := posix.CheckPath(op, name); err != nil {
		return err
	}
	out, exit, err := b.shell(ctx, posix.StatScript, name)
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
	if size == 0 || !utf8.ValidString(name) {
		// It may be one of those the kernel fills while they are read, or one whose
		// name no request can carry.
		exit, err := b.Exec(ctx, sandbox.Cmd{Args: []string{"cat", name}, Dir: "/", Stdout: w})
		if err == nil && exit != 0 {
			err = &sandbox.Error{Code: sandbox.CodeInternal, Msg: fmt.Sprintf("cat ended with %d", exit)}
		}
		return posix.InOp(op, err)
	}
	var have int64
	for n := 1; ; n++ {
		got, err := b.download(ctx, name, have, size, w)
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

// placeScript is posix.WriteScript for a file $1 of which $4 bytes were sent; that is
// not known if it is negative.
const placeScript = `[ "$4" -lt 0 ] || [ $(($(wc -c <"$1"))) -eq "$4" ] || exit 80
` + posix.WriteScript

const exitShort = 80

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
			j.remove(ctx, true)
		}
	}()
	sent := &counted{r: r}
	if rest.Outside(r) {
		sent.n = -1 // who sends it counts
	} else {
		r = sent
	}
	if err := b.upload(ctx, j.file("u"), r); err != nil {
		return posix.InOp(op, err)
	}
	out, exit, err := b.shell(ctx, placeScript, j.file("u"), name, fmt.Sprintf("%o", perm.Perm()), strconv.FormatInt(sent.n, 10))
	if err != nil {
		return posix.InOp(op, err)
	}
	if exit == exitShort {
		return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("not all of the %d bytes arrived", sent.n)}
	}
	if exit != 0 {
		return posix.WriteError(op, exit, out)
	}
	moved = true
	return nil
}

// counted counts what is read through it.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// upload makes the file name, whose directory exists, hold what r gives. What
// fits into one piece is sent again if that fails; more is streamed once.
func (b *box) upload(ctx context.Context, name string, r io.Reader) error {
	source := &posix.Source{R: r}
	type head struct {
		data []byte
		err  error
	}
	most := int64(pieceMost)
	if rest.Outside(r) {
		most = outsideMost
	}
	// A reader that stands still, such as a terminal, is left behind.
	began := make(chan head, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(source, most+1))
		began <- head{data, err}
	}()
	var first head
	select {
	case first = <-began:
	case <-ctx.Done():
		return rest.Ended(ctx, "upload")
	}
	if first.err != nil {
		return fmt.Errorf("upload: %w", first.err)
	}
	// The private directory may have been deleted.
	restore := func() { b.shell(ctx, `mkdir -p -m 700 "$1"`, b.run) }
	if int64(len(first.data)) > most {
		restore()
		if rest.Outside(r) {
			form, kind := rest.Form("path", name, "file", path.Base(name), bytes.NewReader(first.data), r)
			unbounded := b.api.Client
			unbounded.Timeout = 24 * time.Hour
			return b.explain(ctx, unbounded.JSON(ctx, rest.Request{Op: "upload", Method: "POST", Path: b.api.path(b.id, "upload_file"), Body: form, Type: kind}, nil))
		}
		return b.send(ctx, name, io.MultiReader(bytes.NewReader(first.data), source), source)
	}
	for n := 1; ; n++ {
		err := b.send(ctx, name, bytes.NewReader(first.data), source)
		code := sandbox.CodeOf(err)
		if n == 1 && absent(err) {
			restore()
			continue
		}
		if err == nil || n >= 4 || code != sandbox.CodeUnavailable && code != sandbox.CodeRateLimited {
			return err
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return rest.Ended(ctx, "upload")
		}
	}
}

// send is one request of upload.
func (b *box) send(ctx context.Context, name string, r io.Reader, source *posix.Source) error {
	pr, pw := io.Pipe()
	form := multipart.NewWriter(pw)
	watched, r, unwatch := rest.Watch(ctx, r, "upload", "Runloop", silentAfter)
	defer unwatch()
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := form.WriteField("path", name)
		if err == nil {
			var part io.Writer
			if part, err = form.CreateFormFile("file", path.Base(name)); err == nil {
				_, err = io.Copy(part, r)
			}
		}
		if err == nil {
			err = form.Close()
		}
		pw.CloseWithError(err)
	}()
	// An upload of any length is right as long as it goes on.
	unbounded := b.api.Client
	unbounded.Timeout = 24 * time.Hour
	// The transport waits for its body, which may be a reader that stands still.
	stop := context.AfterFunc(watched, func() { pr.CloseWithError(watched.Err()) })
	defer stop()
	err := unbounded.JSON(watched, rest.Request{
		Op: "upload", Method: "POST", Path: b.api.path(b.id, "upload_file"), Body: pr, Type: form.FormDataContentType(),
	}, nil)
	pr.CloseWithError(errors.New("the upload has ended"))
	select {
	case <-done:
	case <-ctx.Done():
		return rest.Ended(ctx, "upload")
	}
	if err != nil && watched.Err() != nil && ctx.Err() == nil {
		err = context.Cause(watched)
	}
	if source.Err != nil {
		return fmt.Errorf("upload: %w", source.Err)
	}
	return b.explain(ctx, err)
}

// download copies the file name from offset on to w and returns how many bytes w
// took, also when it fails. Runloop always sends the whole file; one that has not
// the given size, unless that is negative, is not the file.
func (b *box) download(ctx context.Context, name string, offset, size int64, w io.Writer) (int64, error) {
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(idleAfter, cancel)
	defer idle.Stop()
	once := b.api.Client
	once.Attempts = 1
	request := rest.Request{
		Op: "download", Method: "POST", Path: b.api.path(b.id, "download_file"), Retry: rest.Never,
		Header: http.Header{"Accept": {"application/octet-stream"}, "Accept-Encoding": {"identity"}},
		JSON:   map[string]string{"path": name},
	}
	if offset == 0 && size > 0 {
		n, carried, err := carry(ctx, once, request, size, w)
		if carried {
			return n, err
		}
	}
	resp, err := once.Stream(watched, request)
	if err != nil {
		if ctx.Err() == nil && watched.Err() != nil {
			return 0, stalled
		}
		return 0, err
	}
	defer resp.Body.Close()
	want := resp.ContentLength
	if size >= 0 && want >= 0 && want != size {
		return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: fmt.Sprintf("Runloop sent %d bytes that are not the file", want)}
	}
	var n int64
	skip := offset
	buf := make([]byte, 64<<10)
	for {
		k, err := resp.Body.Read(buf)
		idle.Reset(idleAfter)
		part := buf[min(skip, int64(k)):k]
		skip -= int64(k - len(part))
		if len(part) > 0 {
			m, werr := w.Write(part)
			n += int64(m)
			if werr != nil {
				return n, fmt.Errorf("%w: %w", errWrite, werr)
			}
		}
		if err == io.EOF {
			if want >= 0 && n < want-offset {
				return n, cut(ctx, io.ErrUnexpectedEOF)
			}
			return n, nil
		}
		if err != nil {
			if ctx.Err() == nil && watched.Err() != nil {
				return n, stalled
			}
			return n, cut(ctx, err)
		}
	}
}

// carryWithin bounds a download that goes past the module, for each 16 MiB.
const carryWithin = 2 * time.Minute

// carry is download of a whole file where the transport delivers the bytes by
// itself. Carried is false if it cannot.
func carry(ctx context.Context, c rest.Client, request rest.Request, size int64, w io.Writer) (n int64, carried bool, err error) {
	limited, cancel := context.WithTimeout(ctx, carryWithin*time.Duration(1+size>>24))
	defer cancel()
	_, n, carried, err = c.Carry(limited, request, w, http.StatusOK)
	switch {
	case !carried:
		return 0, false, nil
	case err != nil && ctx.Err() == nil && limited.Err() != nil:
		err = stalled
	case err == nil && n != size:
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: fmt.Sprintf("Runloop sent %d bytes that are not the file", n)}
	}
	return n, true, err
}

// absent reports whether err says that there is no such file. Runloop does not
// say how it says so.
func absent(err error) bool {
	e, ok := errors.AsType[*rest.StatusError](err)
	if !ok || sandbox.CodeOf(err) == sandbox.CodeGone {
		return false
	}
	text := strings.ToLower(e.Message)
	return e.Status == http.StatusNotFound || e.Status < 500 && (strings.Contains(text, "not found") || strings.Contains(text, "no such file"))
}

// stalled is the error of a download that stood still.
var stalled = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "download", Msg: "Runloop does not answer"}

// cut is the error of a download that ended early.
func cut(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return rest.Ended(ctx, "download")
	}
	return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "download", Msg: "the connection broke: " + rest.Clean(err.Error())}
}

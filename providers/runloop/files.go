package runloop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	pieceMost   = 4 << 20   // a shorter file is kept in memory and may be sent again
	outsideMost = 256 << 10 // the same where more would have to go through a module
)

// fs is how files of the devbox are read and written.
func (b *box) fs() posix.Files {
	return posix.Files{
		Shell: func(ctx context.Context, _ bool, script string, args ...string) (string, int, error) {
			return b.shell(ctx, script, args...)
		},
		Exec: b.Exec, Explain: b.explain, Text: true,
	}
}

// ReadFile copies the file name to w.
func (b *box) ReadFile(ctx context.Context, name string, w io.Writer) error {
	return b.fs().Read(ctx, name, w, b.download)
}

// WriteFile makes the file name hold what r gives: it is uploaded to the private
// directory and moved into place by one script.
func (b *box) WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error {
	return b.fs().Write(ctx, name, perm, path.Join(b.run, rest.Random()+".u"), posix.SizedScript, func(ctx context.Context, private string) (int64, error) {
		return b.upload(ctx, private, r)
	})
}

// upload makes the file name, whose directory exists, hold what r gives, and returns
// how much that was; negative is unknown. What fits into one piece is sent again if
// that fails; more is streamed once.
func (b *box) upload(ctx context.Context, name string, r io.Reader) (int64, error) {
	source := &rest.Source{R: r}
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
		return 0, rest.Ended(ctx, "upload")
	}
	if first.err != nil {
		return 0, fmt.Errorf("upload: %w", first.err)
	}
	// The private directory may have been deleted.
	restore := func() { b.shell(ctx, `mkdir -p -m 700 "$1"`, b.run) }
	if int64(len(first.data)) > most {
		restore()
		if rest.Outside(r) {
			request := b.uploading()
			request.Body, request.Type = rest.Form("path", name, "file", path.Base(name), bytes.NewReader(first.data), r)
			return -1, b.explain(ctx, b.api.Unbounded().JSON(ctx, request, nil))
		}
		return b.send(ctx, name, io.MultiReader(bytes.NewReader(first.data), source))
	}
	for n := 1; ; n++ {
		sent, err := b.send(ctx, name, bytes.NewReader(first.data))
		code := sandbox.CodeOf(err)
		if n == 1 && absent(err) {
			restore()
			continue
		}
		if err == nil || n >= 4 || code != sandbox.CodeUnavailable && code != sandbox.CodeRateLimited {
			return sent, err
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return 0, rest.Ended(ctx, "upload")
		}
	}
}

func (b *box) uploading() rest.Request {
	return rest.Request{Op: "upload", Method: "POST", Path: b.api.path(b.id, "upload_file")}
}

// send is one request of upload.
func (b *box) send(ctx context.Context, name string, r io.Reader) (int64, error) {
	client := b.api.Unbounded()
	sent, err := client.Upload(ctx, b.uploading(), r, silentAfter, rest.Multipart("path", name, "file", path.Base(name)), func(ctx context.Context, r rest.Request) error {
		return client.JSON(ctx, r, nil)
	})
	return sent, b.explain(ctx, err)
}

// download copies the file name from offset on to w and returns how many bytes w
// took, also when it fails. Runloop always sends the whole file; one that has not
// the given size, unless that is negative, is not the file.
func (b *box) download(ctx context.Context, name string, offset, size int64, w io.Writer) (int64, error) {
	request := rest.Request{
		Op: "download", Method: "POST", Path: b.api.path(b.id, "download_file"), Retry: rest.Never,
		Header: http.Header{"Accept": {"application/octet-stream"}, "Accept-Encoding": {"identity"}},
		JSON:   map[string]string{"path": name},
	}
	if offset == 0 && size > 0 {
		n, carried, err := carry(ctx, b.api.Client, request, size, w)
		if carried {
			return n, err
		}
	}
	f, err := b.api.Flow(ctx, request, idleAfter, idleAfter)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if size >= 0 && f.ContentLength >= 0 && f.ContentLength != size {
		return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: fmt.Sprintf("Runloop sent %d bytes that are not the file", f.ContentLength)}
	}
	skip, want, _, err := f.From(offset)
	if err != nil {
		return 0, err
	}
	return f.Copy(w, skip, want)
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
		err = c.Stalled("download")
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

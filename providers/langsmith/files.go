package langsmith

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// fs is how files of the sandbox are read and written.
func (b *box) fs() posix.Files {
	return posix.Files{Shell: b.shell, Exec: b.Exec, Explain: b.explain}
}

// ReadFile copies the file name to w.
func (b *box) ReadFile(ctx context.Context, name string, w io.Writer) error {
	return b.fs().Read(ctx, name, w, b.part)
}

// WriteFile makes the file name hold what r gives: it is uploaded to the private
// directory and moved into place by one script. What the service answers to an upload
// says nothing.
func (b *box) WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error {
	return b.fs().Write(ctx, name, perm, newJob(b, "").file("u"), posix.SizedScript, func(ctx context.Context, private string) (int64, error) {
		return b.upload(ctx, private, r)
	})
}

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
	request := rest.Request{Op: "upload", Method: "POST", Path: "/upload", Query: url.Values{"path": {name}}}
	sent, err := b.data.Upload(ctx, request, r, silentAfter, rest.Multipart("", "", "file", "file"), func(ctx context.Context, r rest.Request) error {
		resp, err := b.data.Stream(ctx, r)
		if err == nil {
			io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
			resp.Body.Close()
		}
		return err
	})
	if err != nil {
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
	f, err := b.data.Flow(ctx, rest.Request{
		Op: "download", Method: "GET", Path: "/download", Query: url.Values{"path": {name}},
		Header: http.Header{"Range": {fmt.Sprintf("bytes=%d-", offset)}, "Accept-Encoding": {"identity"}},
		Accept: []int{http.StatusRequestedRangeNotSatisfiable},
	}, idleAfter, idleAfter)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	skip, want, whole, err := f.From(offset)
	if err != nil {
		return 0, err
	}
	// A file has an ETag.
	if whole && (size >= 0 && f.ContentLength >= 0 && f.ContentLength != size || f.Header.Get("ETag") == "") {
		return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: "LangSmith sent something that is not the file"}
	}
	return f.Copy(w, skip, want)
}

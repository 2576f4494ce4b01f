package daytona

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

// ReadFile copies the file name to w.
func (b *box) ReadFile(ctx context.Context, name string, w io.Writer) error {
	return b.fs().Read(ctx, name, w, b.part)
}

// WriteFile makes the file name hold what r gives: it is uploaded to the private
// directory and moved into place by one script.
func (b *box) WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error {
	j := &job{box: b, id: rest.Random()}
	return b.fs().Write(ctx, name, perm, j.file("u"), posix.WriteScript, func(ctx context.Context, private string) (int64, error) {
		return b.upload(ctx, private, r)
	})
}

// upload streams r to the file name, which it replaces. Parents are made. It returns
// how many bytes r gave; negative is unknown.
func (b *box) upload(ctx context.Context, name string, r io.Reader) (int64, error) {
	tools := b.tools.Unbounded()
	request := rest.Request{Op: "upload", Method: "POST", Path: "/files/bulk-upload"}
	form := rest.Multipart("files[0].path", name, "files[0].file", path.Base(name))
	if rest.Outside(r) {
		request.Body, request.Type = form(r)
		return -1, b.explain(ctx, tools.JSON(ctx, request, nil))
	}
	var answer struct {
		Files []struct {
			Bytes *int64 `json:"bytes"`
		} `json:"files"`
	}
	sent, err := tools.Upload(ctx, request, r, silentAfter, form, func(ctx context.Context, r rest.Request) error {
		return tools.JSON(ctx, r, &answer)
	})
	if err == nil && len(answer.Files) > 0 && answer.Files[0].Bytes != nil && *answer.Files[0].Bytes != sent {
		return sent, posix.Short("upload", *answer.Files[0].Bytes, sent)
	}
	return sent, b.explain(ctx, err)
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
	f, err := b.tools.Flow(ctx, piece(name, fmt.Sprintf("bytes=%d-", offset)), idleAfter, idleAfter)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	skip, want, whole, err := f.From(offset)
	switch {
	case err != nil:
		return 0, err
	case whole && rest.IsPage(f.Response):
		return 0, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "download", Msg: "Daytona answered with a web page"}
	case whole && size >= 0 && f.ContentLength >= 0 && f.ContentLength != size:
		return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: fmt.Sprintf("Daytona sent %d bytes that are not the file", f.ContentLength)}
	}
	return f.Copy(w, skip, want)
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
				err = b.tools.Stalled("download")
			}
			return sum, true, err
		case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
			return sum, true, nil
		case resp.StatusCode != http.StatusPartialContent && sum == 0:
			return 0, false, nil
		case resp.StatusCode != http.StatusPartialContent, !rest.Begins(resp, offset+sum-n):
			return sum, true, b.tools.OtherPart("download")
		case n < carryMost:
			return sum, true, nil
		}
	}
}

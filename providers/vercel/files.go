package vercel

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	pieceMost     = 8 << 20          // a longer upload comes in pieces of this size
	downloadStill = 30 * time.Second // a download that stands still is asked for again
)

// fs is how files of the sandbox are read and written.
func (b *box) fs() posix.Files {
	return posix.Files{Shell: b.shell, Exec: b.Exec, Explain: b.explain, Text: true}
}

// ReadFile copies the file name to w.
func (b *box) ReadFile(ctx context.Context, name string, w io.Writer) error {
	return b.fs().Read(ctx, name, w, func(ctx context.Context, name string, offset, size int64, w io.Writer) (int64, error) {
		n, err := b.download(ctx, name, offset, w)
		if err == nil && offset+n < size {
			// Nothing but the end of the stream says that it was all.
			err = posix.Short("download", offset+n, size)
		}
		return n, err
	})
}

// placeScript moves a file that came in pieces into place.
const placeScript = joinScript + `join "$1" || exit 1
` + posix.SizedScript

// WriteFile makes the file name hold what r gives: it is uploaded to the private
// directory and moved into place by one script.
func (b *box) WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error {
	return b.fs().Write(ctx, name, perm, newJob(b, "").files()+".u", placeScript, func(ctx context.Context, private string) (int64, error) {
		return b.upload(ctx, private, r)
	})
}

// unpackScript extracts the archive $1, of which $3 bytes were sent, below $2.
const unpackScript = joinScript + `join "$1" || exit 1
[ $(($(wc -c <"$1"))) -eq "$3" ] || exit 80
mkdir -p -- "$2" && cd -- "$2" && tar -xpof "$1" || exit 1
rm -f "$1"`

// Unpack extracts r below dir: the archive is uploaded as a file and tar extracts it
// in the sandbox. What Vercel itself does with links in an archive is not known.
func (b *box) Unpack(ctx context.Context, dir string, r io.Reader) error {
	op := "unpack " + dir
	if err := posix.CheckPath(op, dir); err != nil {
		return err
	}
	if !b.tar {
		return sandbox.Unpack(ctx, struct{ sandbox.Sandbox }{b}, dir, r)
	}
	j := newJob(b, "")
	done := false
	defer func() {
		if !done {
			j.remove(ctx, true)
		}
	}()
	sent, err := b.upload(ctx, j.files()+".t", r)
	if err != nil {
		return posix.InOp(op, err)
	}
	out, exit, err := b.shell(ctx, true, unpackScript, j.files()+".t", dir, strconv.FormatInt(sent, 10))
	switch {
	case err != nil:
		return posix.InOp(op, err)
	case exit != 0:
		return posix.FileError(op, exit, out)
	}
	done = true
	return nil
}

// upload makes the file name hold what r gives, and returns how much that was. More
// than one piece comes to files of its own, which joinScript makes one.
func (b *box) upload(ctx context.Context, name string, r io.Reader) (int64, error) {
	source := &rest.Source{R: r}
	var sent int64
	for n := 0; ; n++ {
		piece, err := next(ctx, source)
		if err != nil {
			return sent, err
		}
		if n > 0 && len(piece) == 0 {
			return sent, nil
		}
		file := name
		if n > 0 {
			file = fmt.Sprintf("%s.%06d", name, n)
		}
		if err := b.send(ctx, file, piece); err != nil {
			return sent, err
		}
		sent += int64(len(piece))
		if len(piece) < pieceMost {
			return sent, nil
		}
	}
}

// next reads a piece. A reader that stands still, such as a terminal, is left behind
// when ctx ends.
func next(ctx context.Context, source *rest.Source) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	got := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(source, pieceMost))
		got <- result{data, err}
	}()
	select {
	case r := <-got:
		if r.err != nil {
			return nil, fmt.Errorf("upload: %w", r.err)
		}
		return r.data, nil
	case <-ctx.Done():
		return nil, rest.Ended(ctx, "upload")
	}
}

// send uploads one file, again if that fails.
func (b *box) send(ctx context.Context, name string, data []byte) error {
	var body bytes.Buffer
	zw, _ := gzip.NewWriterLevel(&body, gzip.BestSpeed)
	tw := tar.NewWriter(zw)
	err := tw.WriteHeader(&tar.Header{
		Name: strings.TrimPrefix(name, "/"), Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(data)), ModTime: time.Now(),
	})
	if err == nil {
		_, err = tw.Write(data)
	}
	if err = errors.Join(err, tw.Close(), zw.Close()); err != nil {
		return &sandbox.Error{Code: sandbox.CodeInternal, Op: "upload", Err: err}
	}
	long := *b.api
	long.Timeout = 10 * time.Minute
	for n := 1; ; n++ {
		err := long.json(ctx, rest.Request{
			Op: "upload", Method: "POST", Path: running(b.session().ID, "fs", "write"), Header: http.Header{"X-Cwd": {"/"}},
			Body: bytes.NewReader(body.Bytes()), Type: "application/gzip", Retry: rest.Never,
		}, nil)
		code := sandbox.CodeOf(err)
		if err == nil || n >= 4 || code != sandbox.CodeUnavailable && code != sandbox.CodeRateLimited {
			return b.explain(ctx, err)
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return rest.Ended(ctx, "upload")
		}
	}
}

// download copies the file name from offset on to w and returns how many bytes w
// took, also when it fails. Vercel always sends the whole file.
func (b *box) download(ctx context.Context, name string, offset int64, w io.Writer) (int64, error) {
	f, err := b.api.flow(ctx, rest.Request{
		Op: "download", Method: "POST", Path: running(b.session().ID, "fs", "read"), Retry: rest.Never,
		Header: http.Header{"Accept-Encoding": {"identity"}},
		JSON:   map[string]string{"path": name},
	}, downloadStill, downloadStill)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if !strings.HasPrefix(f.Header.Get("Content-Type"), "application/octet-stream") {
		return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "download", Msg: "Vercel answered with something that is no file"}
	}
	return f.Copy(w, offset, -1)
}

package workspace

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	// maxPiece is the largest file that comes home as one of many in an archive.
	maxPiece = 256 << 20

	// maxArchived is what a file in an archive may have grown to meanwhile.
	maxArchived = 1 << 30

	// maxEach is what a file read by itself may have grown to.
	maxEach = 64 << 30

	// partSize is what a larger one comes home in.
	partSize = 64 << 20

	// slowest is how many bytes a second a sandbox reads at least.
	slowest = 20 << 20
)

// heard tells that content arrives, or that the sandbox reads so many bytes first.
func (h *Home) heard(arrived, reads int64) {
	if h.Heard != nil {
		h.Heard(arrived, time.Duration(reads/slowest)*time.Second)
	}
}

// add keeps content and returns its checksum.
func (h *Home) add(r io.Reader, most int64) (Entry, error) {
	f, err := os.CreateTemp(filepath.Join(h.Dir, "content"), ".part-*")
	if err != nil {
		return Entry{}, err
	}
	defer os.Remove(f.Name())
	sum, to := sha256.New(), &holed{f: f}
	n, err := io.Copy(io.MultiWriter(to, sum), hearing{h, io.LimitReader(r, most+1)})
	if err == nil && n > most {
		err = errTooMuch
	}
	if err == nil {
		err = to.end()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return Entry{}, err
	}
	e := Entry{Kind: File, Size: n, Sum: "sha256:" + hex.EncodeToString(sum.Sum(nil))}
	return e, os.Rename(f.Name(), h.content(e.Sum))
}

// fetch brings the content of the named files. Their names travel in as many
// batches as command lines of a safe length need; what is large comes by itself.
// What the sandbox could not pack is missing from the result. Where this computer has
// no room for one file, there may be some for the next; the error says so at the end.
func (h *Home) fetch(ctx context.Context, sb sandbox.Sandbox, names []string, tree Tree) (map[string]Entry, error) {
	got := map[string]Entry{}
	isLarge := func(name string) bool { return tree[name].Size > maxPiece }
	large := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isLarge(name) })
	names = slices.DeleteFunc(slices.Clone(names), isLarge)
	var batch []string
	var noRoom error
	size := 0
	for i, name := range names {
		batch, size = append(batch, "./"+name), size+len(name)+8
		if size < sandbox.MaxArg/2 && i < len(names)-1 {
			continue
		}
		err := h.fetchBatch(ctx, sb, batch, got)
		if err == nil || sandbox.CodeOf(err) == sandbox.CodeNoSpace {
			err = h.fetchEach(ctx, sb, batch, got)
		}
		switch {
		case full(err):
			noRoom = err
		case err != nil:
			return got, err
		}
		batch, size = nil, 0
	}
	for _, name := range large {
		e, err := h.fetchLarge(ctx, sb, name, tree[name].Size)
		switch {
		case errors.Is(err, errShort):
		case sandbox.CodeOf(err) == sandbox.CodeNoSpace:
			if err = h.fetchEach(ctx, sb, []string{name}, got); full(err) {
				noRoom = err
			} else if err != nil {
				return got, err
			}
		case full(err):
			noRoom = err
		case err != nil:
			return got, err
		default:
			got[name] = e
		}
	}
	return got, noRoom
}

// fetchEach reads one by one what is missing of names. That works where a full disk
// leaves commands no place for what they print.
func (h *Home) fetchEach(ctx context.Context, sb sandbox.Sandbox, names []string, got map[string]Entry) error {
	var noRoom error
	for _, name := range names {
		name = strings.TrimPrefix(name, "./")
		if _, is := got[name]; is {
			continue
		}
		pr, pw := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			pw.CloseWithError(sb.ReadFile(ctx, path.Join(h.base.Dir, name), pw))
		}()
		e, err := h.add(pr, maxEach)
		pr.CloseWithError(err)
		<-done
		switch {
		case err == nil:
			got[name] = e
		case full(err):
			noRoom = err
		case ctx.Err() != nil, errors.Is(err, sandbox.ErrUnavailable), errors.Is(err, sandbox.ErrGone), errors.Is(err, sandbox.ErrUnauthenticated):
			return err
		}
	}
	return noRoom
}

func (h *Home) fetchBatch(ctx context.Context, sb sandbox.Sandbox, names []string, got map[string]Entry) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := map[string]bool{}
	for _, name := range names {
		asked[strings.TrimPrefix(name, "./")] = true
	}
	pr, pw := io.Pipe()
	done := make(chan struct{})
	var noRoom error
	go func() {
		defer close(done)
		pw.CloseWithError(sandbox.Pack(ctx, sb, h.base.Dir, names, pw, zstandard()))
	}()
	err := func() error {
		for tr := tar.NewReader(pr); ; {
			hd, err := tr.Next()
			if err == io.EOF {
				// What follows the end mark is padding, and Pack's own error.
				_, err := io.Copy(io.Discard, pr)
				if sandbox.CodeOf(err) == sandbox.CodeInternal {
					return nil // tar itself complained: what it lacks is missing from got
				}
				return err
			}
			if err != nil {
				if sandbox.CodeOf(err) == sandbox.CodeInternal && len(got) == 0 {
					return nil
				}
				return err
			}
			name := strings.TrimPrefix(hd.Name, "./")
			if !asked[name] {
				continue // nobody asked for it
			}
			switch hd.Typeflag {
			case tar.TypeReg:
				e, err := h.add(tr, maxArchived)
				if full(err) {
					noRoom = err
					continue
				}
				if err != nil {
					return err
				}
				got[name] = e
			case tar.TypeLink: // the same file under another name
				if e, ok := got[strings.TrimPrefix(hd.Linkname, "./")]; ok {
					got[name] = e
				}
			}
		}
	}()
	if err != nil {
		cancel()
	}
	pr.CloseWithError(err)
	<-done
	if err == nil {
		err = noRoom
	}
	return err
}

// partScript prints which program it compresses with and then a part of a file: the
// $4 mebibytes after the first $3. There is no name that dd could take for an
// operand.
const partScript = `cd -- "$1" || exit 91
z=cat; for c in zstd gzip; do command -v "$c" >/dev/null && z=$c && break; done; echo "$z"
[ "$z" = cat ] || set -- "$1" "$2" "$3" "$4" -1 -c -q
dd bs=1048576 skip="$3" count="$4" < "$2" 2>/dev/null | { shift 4; exec "$z" "$@"; }`

// errShort says that a file was not as long any more as it was when it was looked at.
var errShort = errors.New("it was changed while it was fetched")

// fetchLarge brings the content of a large file, part by part. A part that the
// connection cuts is fetched once more.
func (h *Home) fetchLarge(ctx context.Context, sb sandbox.Sandbox, name string, size int64) (Entry, error) {
	f, err := os.CreateTemp(filepath.Join(h.Dir, "content"), ".part-*")
	if err != nil {
		return Entry{}, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	sum := sha256.New()
	to := &holed{f: f}
	failed := 0
	for to.at < size {
		at := to.at
		state, err := sum.(encoding.BinaryMarshaler).MarshalBinary()
		if err != nil {
			return Entry{}, err
		}
		err = h.fetchPart(ctx, sb, name, at, min(partSize, size-at), io.MultiWriter(to, sum))
		if err == nil {
			failed = 0
			continue
		}
		if failed++; failed > 3 || !errors.Is(err, sandbox.ErrUnavailable) || ctx.Err() != nil {
			return Entry{}, err
		}
		to.at = at
		if err := errors.Join(f.Truncate(at), sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(state)); err != nil {
			return Entry{}, err
		}
	}
	if err := errors.Join(to.end(), f.Close()); err != nil {
		return Entry{}, err
	}
	e := Entry{Kind: File, Size: size, Sum: "sha256:" + hex.EncodeToString(sum.Sum(nil))}
	return e, os.Rename(f.Name(), h.content(e.Sum))
}

func (h *Home) fetchPart(ctx context.Context, sb sandbox.Sandbox, name string, at, size int64, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := h.takePart(pr, w, size)
		if err != nil {
			cancel() // what the sandbox has left to say is of no use
		}
		pr.CloseWithError(err)
		done <- err
	}()
	count := (size + 1<<20 - 1) >> 20
	var stderr bounded
	stderr.most, stderr.over = 1<<16, func(error) {}
	exit, err := sb.Exec(ctx, sandbox.Cmd{
		Args: []string{"/bin/sh", "-c", partScript, "sh", h.base.Dir, "./" + name, fmt.Sprint(at >> 20), fmt.Sprint(count)}, Dir: "/",
		Stdout: pw, Stderr: &stderr,
	})
	pw.CloseWithError(err)
	took := <-done
	switch {
	case took != nil && (err == nil || sandbox.CodeOf(err) == sandbox.CodeCancelled):
		return took
	case err != nil:
		return err
	case exit != 0:
		return fmt.Errorf("%w: %s", errShort, strings.TrimSpace(stderr.buf.String()))
	}
	return nil
}

// takePart reads what partScript prints, and writes size bytes.
func (h *Home) takePart(r io.Reader, w io.Writer, size int64) error {
	br := bufio.NewReaderSize(r, 64<<10)
	program, err := br.ReadString('\n')
	if err != nil {
		return err
	}
	var in io.Reader = br
	for _, c := range codecs() {
		if strings.TrimSpace(program) == c.Program {
			zr, err := c.Reader(br)
			if err != nil {
				return err
			}
			defer zr.Close()
			in = zr
		}
	}
	n, err := io.Copy(w, hearing{h, io.LimitReader(in, size)})
	if err != nil {
		return err
	}
	if n < size {
		return errShort
	}
	// What follows is the part's end mark; a file that grew has more.
	_, err = io.Copy(io.Discard, io.LimitReader(in, partSize))
	return err
}

// A hearing reader tells a home of what arrives.
type hearing struct {
	h *Home
	r io.Reader
}

func (r hearing) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.h.heard(int64(n), 0)
	return n, err
}

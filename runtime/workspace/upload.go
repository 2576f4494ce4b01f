package workspace

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Progress is told how far an upload is.
type Progress func(files int, bytes int64)

// Upload sends the plan's items below dir of sb as one archive. What already
// stands in the sandbox under a name of the plan is left alone if keep says so.
func (p *Plan) Upload(ctx context.Context, sb sandbox.Sandbox, dir string, keep func(name string) bool, progress Progress) error {
	holes := slices.ContainsFunc(p.Items, func(item Item) bool { return item.sparse() && (keep == nil || !keep(item.Name)) })
	if holes {
		var err error
		if holes, err = takesHoles(ctx, sb); err != nil {
			return fmt.Errorf("prepare to send: %w", err)
		}
	}
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		large := bufio.NewWriterSize(pw, 256<<10)
		err := p.write(large, holes, keep, progress)
		if err == nil {
			err = large.Flush()
		}
		pw.CloseWithError(err)
	}()
	err := sandbox.Unpack(ctx, sb, dir, pr, zstandard())
	pr.CloseWithError(fmt.Errorf("the upload has ended"))
	<-done
	return err
}

// write makes the archive. It reads only through the project's own root, so that
// a link put in place meanwhile cannot lead out of it. With holes, those of files
// are in the archive as such.
func (p *Plan) write(w io.Writer, holes bool, keep func(string) bool, progress Progress) error {
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	in := reading{root: root, buf: make([]byte, 128<<10)}
	defer in.close()
	tw := tar.NewWriter(w)
	files, sent := 0, int64(0)
	if p.sent == nil {
		p.sent = Tree{}
	}
	for _, item := range p.Items {
		if keep != nil && keep(item.Name) {
			continue
		}
		h := &tar.Header{Name: item.Name, Mode: int64(item.Mode.Perm()), ModTime: item.Time, Format: tar.FormatPAX}
		switch {
		case item.Mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, item.Name+"/"
			p.sent[item.Name] = Entry{Kind: Dir, Mode: item.Mode.Perm()}
			if err := tw.WriteHeader(h); err != nil {
				return err
			}
			continue
		case item.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, item.Link
			p.sent[item.Name] = Entry{Kind: Link, Target: item.Link}
			if err := tw.WriteHeader(h); err != nil {
				return err
			}
		default:
			sum := sha256.New()
			err := p.writeFile(tw, w, &in, h, item, holes, sum)
			if err != nil && h.Typeflag == tar.TypeReg { // some of it may have left
				p.sent[item.Name] = Entry{Kind: File, Mode: item.Mode.Perm(), Size: h.Size}
			}
			if errors.Is(err, fs.ErrNotExist) {
				p.Skipped[Unreadable] = append(p.Skipped[Unreadable], item.Name) // it went meanwhile
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w", item.Name, err)
			}
			p.sent[item.Name] = Entry{Kind: File, Mode: item.Mode.Perm(), Size: h.Size, Sum: fmt.Sprintf("sha256:%x", sum.Sum(nil))}
		}
		files++
		sent += item.Size
		if progress != nil {
			progress(files, sent)
		}
	}
	return tw.Close()
}

// A reading opens files below a root, which it goes through once for all files of
// a directory that follow one another.
type reading struct {
	root, dir *os.Root
	buf       []byte
	name      string // of dir, which is nil for the root's own
}

func (in *reading) open(name string) (*os.File, error) {
	if dir := path.Dir(name); dir != in.name {
		in.close()
		if dir != "." {
			var err error
			if in.dir, err = in.root.OpenRoot(filepath.FromSlash(dir)); err != nil {
				return nil, err
			}
		}
		in.name = dir
	}
	from := in.root
	if in.dir != nil {
		from = in.dir
	}
	// A pipe put in its place meanwhile would be waited for.
	return from.OpenFile(path.Base(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func (in *reading) close() {
	if in.dir != nil {
		in.dir.Close()
	}
	in.dir, in.name = nil, ""
}

func (p *Plan) writeFile(tw *tar.Writer, w io.Writer, in *reading, h *tar.Header, item Item, holes bool, sum io.Writer) error {
	f, err := in.open(item.Name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fs.ErrNotExist
	}
	h.Typeflag, h.Size, h.ModTime = tar.TypeReg, info.Size(), info.ModTime()
	if item.sparse() {
		if data := extents(f, h.Size); holes && data != nil {
			return writeSparse(tw, w, h, f, data, in.buf, sum)
		}
		p.filled = append(p.filled, item.Name)
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	both := io.MultiWriter(tw, sum)
	n, err := io.CopyBuffer(both, io.LimitReader(f, h.Size), in.buf)
	if err == nil { // it became shorter meanwhile
		_, err = io.CopyBuffer(both, io.LimitReader(zeros{}, h.Size-n), in.buf)
	}
	return err
}

// Existing decides what an attached sandbox keeps: it returns the names of the
// plan that are the same there (they need not be sent) and, each with a phrase that
// says so, those that differ or may, which are left alone. With earlier, which may
// be nil, it is known what was sent there before: what was changed here alone since
// is sent, and what was changed there is told as a change of what was sent.
func (p *Plan) Existing(ctx context.Context, sb sandbox.Sandbox, dir string, earlier *Home) (same map[string]bool, differ map[string]string, err error) {
	// What List leaves out can still be in the way, but what is in it cannot.
	items := map[string]Item{}
	for _, item := range p.Items {
		items[item.Name] = item
	}
	before := map[string]savedEntry{}
	if earlier != nil && earlier.base.Dir == dir {
		before, p.earlier = earlier.base.Sent, earlier
	}
	l, err := list(ctx, sb, dir, `\( `+leftOut(p)+` -prune -o -type d -o ! -type d \)`, func(name string, e *Entry) bool {
		item, ours := items[name]
		was, sent := before[name]
		return ours && item.Size == e.Size || sent && was.Size == e.Size
	})
	if err != nil {
		return nil, nil, err
	}
	there := l.Tree
	same, differ = map[string]bool{}, map[string]string{}
	p.there = map[string]bool{}
	for _, item := range p.Items {
		e, exists := there[item.Name]
		was, sent := before[item.Name]
		s := was.sent(item.Name)
		switch {
		case there.blocks(item.Name):
			differ[item.Name] = leftAlone
		case exists && p.sameThere(item, e):
			same[item.Name] = true
			p.sentAlready(item, e)
		case !exists && (!sent || !p.sameHere(item, s)), sent && s.is(e) && e.Kind == kindOf(item):
		case !sent:
			differ[item.Name] = leftAlone
		case !exists:
			differ[item.Name] = "was deleted in the sandbox, and was not sent again"
			p.sentBefore(item, s)
		case p.sameHere(item, s):
			differ[item.Name] = leftAlone + ", where it was changed"
			p.sentBefore(item, s)
		default:
			differ[item.Name] = leftAlone + ", since it was changed there as well as here"
			p.sentBefore(item, s)
		}
	}
	for name, was := range before {
		if _, ours := items[name]; !ours && was.Kind != Dir && was.sent(name).is(there[name]) {
			differ[name] = "does not go up any more, and stands in the sandbox as it was sent"
		}
	}
	return same, differ, nil
}

const leftAlone = "differs in the sandbox and was left alone"

// blocks reports whether a name is below what is no directory, or one that cannot be
// looked into.
func (t Tree) blocks(name string) bool {
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		if e, is := t[d]; is && e.Kind != Dir {
			return true
		}
	}
	return false
}

// sameThere reports whether what stands in a sandbox is what would be sent.
func (p *Plan) sameThere(item Item, e Entry) bool {
	switch {
	case item.Mode.IsDir():
		return e.Kind == Dir || e.Kind == Closed
	case item.Link != "":
		return e.Kind == Link && e.Target == item.Link
	case e.Kind != File || e.Size != item.Size || (e.Mode&0o111 != 0) != (item.Mode&0o111 != 0):
		return false
	}
	here, err := localSum(filepath.Join(p.Root, filepath.FromSlash(item.Name)), e.Sum)
	return err == nil && here == e.Sum
}

// sentAlready notes an item that stands in the sandbox as it is here.
func (p *Plan) sentAlready(item Item, there Entry) {
	if p.sent == nil {
		p.sent = Tree{}
	}
	if p.there == nil {
		p.there = map[string]bool{}
	}
	p.there[item.Name] = true
	p.countStep(item)
	e := Entry{Kind: File, Mode: item.Mode.Perm(), Size: item.Size}
	switch {
	case item.Mode.IsDir():
		e = Entry{Kind: Dir, Mode: item.Mode.Perm()}
	case item.Link != "":
		e = Entry{Kind: Link, Target: item.Link}
	case strings.HasPrefix(there.Sum, "sha256:"):
		e.Sum = there.Sum
	default:
		var err error
		if e.Sum, err = localSum(filepath.Join(p.Root, filepath.FromSlash(item.Name)), "sha256:"); err != nil {
			return
		}
	}
	p.sent[item.Name] = e
}

// countStep counts what need not be sent, as it is in step.
func (p *Plan) countStep(item Item) {
	if !item.Mode.IsDir() {
		p.inStep++
	}
}

// Below joins a start directory below the root with the sandbox's directory.
func Below(dir, start string) string { return path.Join(dir, filepath.ToSlash(start)) }

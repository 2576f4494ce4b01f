package workspace

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// maxTextDiff is the largest file whose difference is shown line by line.
const maxTextDiff = 8 << 20

// nullID is the object id of nothing.
const nullID = "0000000000000000000000000000000000000000"

// Patch writes the changes as a patch in the form of git, with binary files, that
// git apply takes. Directories, and modes beyond the execute bit, have no place
// in one. left names what could not be written, since the user has changed it
// since it was sent.
func (h *Home) Patch(w io.Writer, changes []Change) (left []Left, err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	// What goes makes room for what comes.
	for _, c := range changes {
		if goes(c) {
			if err := h.patchOne(out, c.Name, c.Was, nil, &left); err != nil {
				return left, err
			}
		}
	}
	for _, c := range changes {
		was, now := c.Was, c.Now
		if goes(c) || was != nil && was.Kind == Dir {
			was = nil
		}
		if now == nil || now.Kind == Dir {
			continue
		}
		if err := h.patchOne(out, c.Name, was, now, &left); err != nil {
			return left, err
		}
	}
	return left, out.Flush()
}

// Steps splits changes for which git needs two patches: links that go (first) to
// make room for directories with others in them (then). Before it takes a patch,
// git looks for links in the way of new files, and looks through those that go.
// Mostly first is empty.
func Steps(changes []Change) (first, then []Change) {
	deep := map[string]bool{} // has a directory in it
	for _, c := range changes {
		if d := path.Dir(path.Dir(c.Name)); c.Now != nil {
			deep[d] = true
		}
	}
	for _, c := range changes {
		if c.Was != nil && c.Was.Kind == Link && c.Now != nil && c.Now.Kind == Dir && deep[c.Name] {
			first = append(first, Change{Name: c.Name, Was: c.Was})
			c.Was = nil
		}
		then = append(then, c)
	}
	return first, then
}

// goes reports whether what was sent goes away, be it for something of another
// kind.
func goes(c Change) bool {
	return c.Was != nil && c.Was.Kind != Dir && (c.Now == nil || c.Now.Kind != c.Was.Kind)
}

func gitMode(e Entry) string {
	switch {
	case e.Kind == Link:
		return "120000"
	case e.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// read opens the content of an entry as git sees it.
func (h *Home) read(e Entry) (io.ReadCloser, int64, error) {
	if e.Kind == Link {
		return io.NopCloser(strings.NewReader(e.Target)), int64(len(e.Target)), nil
	}
	f, err := h.open(e)
	return f, e.Size, err
}

// blobID is the object id that git gives the content of an entry, in a repository
// whose ids have so many digits. It makes sure that the content is what came home.
func (h *Home) blobID(e *Entry, digits int) (string, error) {
	if e == nil {
		return nullID, nil
	}
	r, size, err := h.read(*e)
	if err != nil {
		return "", err
	}
	defer r.Close()
	sum, kept := objectHash(digits), sha256.New()
	fmt.Fprintf(sum, "blob %d\x00", size)
	if _, err := io.Copy(io.MultiWriter(sum, kept), r); err != nil {
		return "", err
	}
	if e.Kind == File && "sha256:"+hex.EncodeToString(kept.Sum(nil)) != e.Sum {
		return "", errDamaged
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func objectHash(digits int) hash.Hash {
	if digits == 2*sha256.Size {
		return sha256.New()
	}
	return sha1.New()
}

// objectID is the object id that git gives a content.
func objectID(data []byte, digits int) string {
	sum := objectHash(digits)
	fmt.Fprintf(sum, "blob %d\x00", len(data))
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil))
}

// text returns the content of an entry if it is to be shown line by line.
func (h *Home) text(e *Entry) ([]byte, bool, error) {
	if e == nil {
		return nil, true, nil
	}
	r, size, err := h.read(*e)
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	if size > maxTextDiff {
		return nil, false, nil
	}
	data, err := io.ReadAll(r)
	return data, bytes.IndexByte(data, 0) < 0, err
}

func (h *Home) patchOne(w *bufio.Writer, name string, was, now *Entry, left *[]Left) error {
	oldID, err := h.blobID(was, len(nullID))
	if errors.Is(err, fs.ErrNotExist) {
		*left = append(*left, Left{Name: name, Why: "it was changed here before it was changed there, so that there is nothing to compare it with"})
		return nil
	}
	var newID string
	if err == nil {
		newID, err = h.blobID(now, len(nullID))
	}
	if errors.Is(err, errDamaged) {
		*left = append(*left, Left{Name: name, Why: errDamaged.Error()})
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		*left = append(*left, Left{Name: name, Why: "its content is not here"})
		return nil
	}
	if err != nil {
		return err
	}
	oldMode, newMode := "", ""
	if was != nil {
		oldMode = gitMode(*was)
	}
	if now != nil {
		newMode = gitMode(*now)
	}
	if oldID == newID && oldMode == newMode {
		return nil // a mode that git does not know
	}
	a, b := quoteName("a/"+name), quoteName("b/"+name)
	fmt.Fprintf(w, "diff --git %s %s\n", a, b)
	mode := ""
	switch {
	case was == nil:
		fmt.Fprintf(w, "new file mode %s\n", newMode)
		a = "/dev/null"
	case now == nil:
		fmt.Fprintf(w, "deleted file mode %s\n", oldMode)
		b = "/dev/null"
	case oldMode != newMode:
		fmt.Fprintf(w, "old mode %s\nnew mode %s\n", oldMode, newMode)
	default:
		mode = " " + newMode
	}
	if oldID == newID {
		return nil
	}
	fmt.Fprintf(w, "index %s..%s%s\n", oldID, newID, mode)
	old, oldText, err := h.text(was)
	if err != nil {
		return err
	}
	data, newText, err := h.text(now)
	if err != nil {
		return err
	}
	if oldText && newText {
		if len(old)+len(data) > 0 {
			fmt.Fprintf(w, "--- %s\n+++ %s\n", a, b)
			_, err = w.Write(hunks(old, data))
		}
		return err
	}
	fmt.Fprintf(w, "GIT binary patch\n")
	for _, e := range []*Entry{now, was} {
		if err := h.literal(w, e); err != nil {
			return err
		}
	}
	return nil
}

// hunks is the difference of two texts without its heading.
func hunks(old, data []byte) []byte {
	text := diff.Diff("a", old, "b", data)
	for range 3 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text
}

// quoteName writes a name as git does where it is unusual.
func quoteName(name string) string {
	plain := true
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(name) {
		switch {
		case c == '"' || c == '\\':
			plain = false
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x21 || c >= 0x7f:
			plain = false
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	if plain {
		return name
	}
	return b.String() + `"`
}

// literal writes the content of an entry as git does for binary files.
func (h *Home) literal(w *bufio.Writer, e *Entry) error {
	var r io.Reader = strings.NewReader("")
	size := int64(0)
	if e != nil {
		f, n, err := h.read(*e)
		if err != nil {
			return err
		}
		defer f.Close()
		r, size = f, n
	}
	fmt.Fprintf(w, "literal %d\n", size)
	lines := &base85{w: w}
	zw := zlib.NewWriter(lines)
	if _, err := io.Copy(zw, r); err != nil {
		return err
	}
	if err := zw.Close(); err != nil {
		return err
	}
	lines.flush()
	return w.WriteByte('\n')
}

// base85 writes lines of up to 52 bytes as git's binary patches have them.
type base85 struct {
	w    *bufio.Writer
	line []byte
}

const digits85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

func (b *base85) Write(p []byte) (int, error) {
	for _, c := range p {
		if b.line = append(b.line, c); len(b.line) == 52 {
			b.flush()
		}
	}
	return len(p), nil
}

func (b *base85) flush() {
	n := len(b.line)
	if n == 0 {
		return
	}
	if n <= 26 {
		b.w.WriteByte(byte('A' + n - 1))
	} else {
		b.w.WriteByte(byte('a' + n - 27))
	}
	for len(b.line)%4 != 0 {
		b.line = append(b.line, 0)
	}
	for i := 0; i < len(b.line); i += 4 {
		v := uint32(b.line[i])<<24 | uint32(b.line[i+1])<<16 | uint32(b.line[i+2])<<8 | uint32(b.line[i+3])
		var five [5]byte
		for j := 4; j >= 0; j-- {
			five[j] = digits85[v%85]
			v /= 85
		}
		b.w.Write(five[:])
	}
	b.w.WriteByte('\n')
	b.line = b.line[:0]
}

// Package trust keeps what the user has approved of projects: for each project
// root, the exact content of every file that has authority there.
package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"
	gotoml "github.com/pelletier/go-toml/v2"
)

// A Project is the part of a project that has authority, as it is now: the bytes
// that are compared are the bytes that are used.
type Project struct {
	Root  string            // links resolved
	Files map[string][]byte // by slash path below Root
	Keys  []string          // the settings that need approval
}

// An Approval is what the user has approved of one project.
type Approval struct {
	Root  string    `toml:"root"`
	Time  time.Time `toml:"approved"`
	Keys  []string  `toml:"keys"`
	Files []File    `toml:"file"`
}

// A File is one approved file.
type File struct {
	Name string `toml:"name"`
	Sum  string `toml:"sha256"`
	// Text is the content, so that a later version can be compared with it. It is
	// missing if the file is large or no text.
	Text string `toml:"text,multiline,omitempty"`
}

// maxText is the most of a file that is kept to compare with.
const maxText = 256 << 10

// A Change is one way in which a project differs from its approval.
type Change struct {
	Name   string // the file; or the setting, if a file asks for one that was not shown
	What   string // "changed", "is new", "is gone", "was not shown"
	Before string // the approved text, if it was kept
	After  []byte
}

func (c Change) String() string { return c.Name + " " + c.What }

// Compare lists how p differs from what was approved. A project with no change is
// trusted.
func (a Approval) Compare(p Project) []Change {
	var list []Change
	approved := map[string]File{}
	for _, f := range a.Files {
		approved[f.Name] = f
		if _, there := p.Files[f.Name]; !there {
			list = append(list, Change{Name: f.Name, What: "is gone", Before: f.Text})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		data := p.Files[name]
		f, known := approved[name]
		switch {
		case !known:
			list = append(list, Change{Name: name, What: "is new", After: data})
		case f.Sum != sum(data):
			list = append(list, Change{Name: name, What: "changed", Before: f.Text, After: data})
		}
	}
	for _, key := range p.Keys {
		if !slices.Contains(a.Keys, key) {
			list = append(list, Change{Name: key, What: "was not shown"})
		}
	}
	return list
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// A Store is the file that holds the approvals. It may be used by several
// processes at once.
type Store struct{ Path string }

// A BrokenError is a store that cannot be read. Nothing is trusted then.
type BrokenError struct {
	Path string
	Err  error
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("the record of approved projects, %s, cannot be used: %v", e.Path, e.Err)
}

func (e *BrokenError) Unwrap() error { return e.Err }

// document is the file's form.
type document struct {
	Projects []Approval `toml:"project"`
}

const heading = "# Projects whose own settings you have approved. See: talkops trust list\n\n"

// List returns every approval, by root. A missing file is none.
func (s Store) List() ([]Approval, error) {
	data, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var doc document
	if err == nil {
		err = gotoml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&doc)
	}
	if err != nil {
		return nil, &BrokenError{s.Path, err}
	}
	slices.SortFunc(doc.Projects, func(a, b Approval) int { return strings.Compare(a.Root, b.Root) })
	return doc.Projects, nil
}

// Find returns the approval of a project root, or nil.
func (s Store) Find(root string) (*Approval, error) {
	list, err := s.List()
	if err != nil {
		return nil, err
	}
	if i := index(list, root); i >= 0 {
		return &list[i], nil
	}
	return nil, nil
}

// index finds root, also under a spelling that only the file system can tell to be
// the same.
func index(list []Approval, root string) int {
	return slices.IndexFunc(list, func(a Approval) bool {
		if a.Root == root {
			return true
		}
		if !strings.EqualFold(a.Root, root) {
			return false
		}
		x, err1 := os.Stat(a.Root)
		y, err2 := os.Stat(root)
		return err1 == nil && err2 == nil && os.SameFile(x, y)
	})
}

// Trusts reports whether p is exactly as it was approved.
func (s Store) Trusts(p Project) (bool, error) {
	a, err := s.Find(p.Root)
	return a != nil && len(p.Files) > 0 && len(a.Compare(p)) == 0, err
}

// Add approves p as it is, in place of what was approved of it before.
func (s Store) Add(p Project, now time.Time) error {
	a := Approval{Root: p.Root, Time: now.UTC().Truncate(time.Second), Keys: slices.Clone(p.Keys)}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		f := File{Name: name, Sum: sum(p.Files[name])}
		if data := p.Files[name]; len(data) <= maxText && isText(data) {
			f.Text = string(data)
		}
		a.Files = append(a.Files, f)
	}
	return s.edit(func(list []Approval) []Approval {
		if i := index(list, p.Root); i >= 0 {
			list[i] = a
			return list
		}
		return append(list, a)
	})
}

// isText reports whether data can be written into the store as it is.
func isText(data []byte) bool {
	return utf8.Valid(data) && !bytes.ContainsFunc(data, func(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r == 0x7f })
}

// Remove takes the approval of root back, and reports whether there was one.
func (s Store) Remove(root string) (bool, error) {
	removed := false
	err := s.edit(func(list []Approval) []Approval {
		i := index(list, root)
		if removed = i >= 0; !removed {
			return list
		}
		return slices.Delete(list, i, i+1)
	})
	return removed, err
}

// edit changes the store under a lock, whole or not at all.
func (s Store) edit(change func([]Approval) []Approval) error {
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return err
	}
	lock := flock.New(s.Path + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock %s: %w", s.Path, err)
	}
	defer lock.Unlock()
	list, err := s.List()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	out.WriteString(heading)
	if err := gotoml.NewEncoder(&out).Encode(document{change(list)}); err != nil {
		return err
	}
	path := s.Path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".trust-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(out.Bytes())
	if err == nil {
		err = tmp.Sync()
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

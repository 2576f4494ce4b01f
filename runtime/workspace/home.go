package workspace

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Run says which session a Home is of.
type Run struct {
	ID       string    `json:"run"`
	Provider string    `json:"provider"`
	Sandbox  string    `json:"sandbox"` // the vendor's id
	Project  string    `json:"project"` // the directory the work is for
	PID      int       `json:"pid"`
	Host     string    `json:"host"`
	Started  time.Time `json:"started"`
	Whole    bool      `json:"whole"`          // everything was brought home at the end
	Taken    time.Time `json:"taken,omitzero"` // when all of it was applied, exported or pulled last; zero: never
}

// A Change is one difference between what was sent and what the sandbox holds.
type Change struct {
	Name string
	Now  *Entry // nil: it is no more
	Was  *Entry // as it was sent; nil: it was not
}

// Left is something that did not come home.
type Left struct {
	Name string
	Why  string
	Lost bool // it is work: the sandbox must be kept for it
	Over bool // it is more than may come home
}

// A Home keeps the work of one session on this computer: a list of changes, the
// content of what is new under names made of its checksum, and what is needed to
// look again. What it holds is whole at every moment. It is not safe for
// concurrent use.
//
// Names and content come from the sandbox. They are data here, and become files
// only by Apply and Pull, which trust none of them.
type Home struct {
	Dir     string
	Run     Run
	Changes []Change // sorted by name
	Left    []Left

	Most int64 // bytes that come home at most; 0: 8 GiB

	// Heard is told as content arrives, so many bytes, and how much longer than that
	// the sandbox may be busy until more does. May be nil.
	Heard func(arrived int64, busy time.Duration)

	base base
	have map[string]held
	last Tree

	earlier  *Home           // of a session in the same sandbox before; may be nil
	baseless map[string]bool // names whose content as it was sent is nowhere

	back []string // names of what was applied that the sandbox has as it was when the session began
}

// A held is the state of a file in the sandbox whose content is here, and the sum
// of that.
type held struct {
	there Entry
	sum   string
}

// A base is what a session began with.
type base struct {
	Dir     string // in the sandbox
	LeftOut string // tests of find
	Tree    map[string]savedEntry
	Blind   []string
	Sent    map[string]savedEntry
}

type savedEntry struct {
	Kind   Kind
	Mode   uint32
	Size   int64
	Sum    string
	Target string
}

func (e Entry) saved() savedEntry {
	return savedEntry{e.Kind, uint32(e.Mode), e.Size, e.Sum, e.Target}
}

func (e savedEntry) entry() Entry {
	return Entry{Kind: e.Kind, Mode: fs.FileMode(e.Mode) & fs.ModePerm, Size: e.Size, Sum: e.Sum, Target: e.Target}
}

const (
	defaultMost = 8 << 30
	maxBaseFile = 64 << 20
)

// NewHome makes the home of a session in the directory name. now is what stands
// below dir of the sandbox when the work begins; plan (which may be nil) was sent
// there before.
func NewHome(name string, run Run, dir string, plan *Plan, now *Listing) (*Home, error) {
	h := &Home{Dir: name, Run: run, have: map[string]held{}, last: now.Tree}
	h.base = base{Dir: dir, LeftOut: leftOut(plan), Tree: map[string]savedEntry{}, Blind: now.Blind, Sent: map[string]savedEntry{}}
	for name, e := range now.Tree {
		h.base.Tree[name] = e.saved()
	}
	if plan != nil {
		h.earlier = plan.earlier
		for name, e := range plan.sent {
			h.base.Sent[name] = e.saved()
		}
	}
	if err := os.MkdirAll(filepath.Join(name, "content"), 0o700); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	err := errors.Join(gob.NewEncoder(zw).Encode(h.base), zw.Close())
	if err == nil {
		err = replace(filepath.Join(name, "base"), b.Bytes())
	}
	if err == nil {
		err = h.write()
	}
	return h, err
}

// OpenHome reads the home of an earlier session.
func OpenHome(name string) (*Home, error) {
	h := &Home{Dir: name, have: map[string]held{}}
	data, err := os.ReadFile(filepath.Join(name, "changes.json"))
	if err != nil {
		return nil, err
	}
	var doc homeDoc
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(name, "changes.json"), err)
	}
	h.Run = doc.Run
	for _, c := range doc.Changes {
		h.Changes = append(h.Changes, Change{string(c.Name), c.Now.entry(), c.Was.entry()})
	}
	for _, name := range doc.Back {
		h.back = append(h.back, string(name))
	}
	for _, l := range doc.Left {
		h.Left = append(h.Left, Left{string(l.Name), l.Why, l.Lost, l.Over})
	}
	return h, nil
}

// Resume reads what is needed to look at the sandbox again.
func (h *Home) Resume() error {
	f, err := os.Open(filepath.Join(h.Dir, "base"))
	if err != nil {
		return err
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err == nil {
		err = gob.NewDecoder(zr).Decode(&h.base)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// A homeDoc is changes.json.
type homeDoc struct {
	Run
	Changes []changeDoc `json:"changes"`
	Back    []rawText   `json:"back,omitempty"`
	Left    []leftDoc   `json:"left,omitempty"`
}

type changeDoc struct {
	Name rawText   `json:"name"`
	Now  *entryDoc `json:"now"`
	Was  *entryDoc `json:"was,omitempty"`
}

type leftDoc struct {
	Name rawText `json:"name"`
	Why  string  `json:"why"`
	Lost bool    `json:"lost,omitempty"`
	Over bool    `json:"over,omitempty"`
}

type entryDoc struct {
	Kind   Kind    `json:"kind"`
	Mode   string  `json:"mode,omitempty"` // octal
	Size   int64   `json:"size,omitempty"`
	Sum    string  `json:"sum,omitempty"`
	Target rawText `json:"target,omitempty"`
}

func (e *Entry) doc() *entryDoc {
	if e == nil {
		return nil
	}
	d := &entryDoc{Kind: e.Kind, Size: e.Size, Sum: e.Sum, Target: rawText(e.Target)}
	if e.Kind != Link {
		d.Mode = fmt.Sprintf("%04o", e.Mode)
	}
	return d
}

func (d *entryDoc) entry() *Entry {
	if d == nil {
		return nil
	}
	var mode uint32
	fmt.Sscanf(d.Mode, "%o", &mode)
	return &Entry{Kind: d.Kind, Mode: fs.FileMode(mode) & fs.ModePerm, Size: d.Size, Sum: d.Sum, Target: string(d.Target)}
}

// rawText is text that may be no UTF-8, which JSON has no strings for.
type rawText string

const hexMark = "hex:"

// MarshalText implements encoding.TextMarshaler.
func (t rawText) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(t)) && !strings.HasPrefix(string(t), hexMark) {
		return []byte(t), nil
	}
	return []byte(hexMark + hex.EncodeToString([]byte(t))), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *rawText) UnmarshalText(data []byte) error {
	if digits, is := strings.CutPrefix(string(data), hexMark); is {
		raw, err := hex.DecodeString(digits)
		*t = rawText(raw)
		return err
	}
	*t = rawText(data)
	return nil
}

// write replaces changes.json.
func (h *Home) write() error {
	doc := homeDoc{Run: h.Run, Changes: []changeDoc{}}
	for _, c := range h.Changes {
		doc.Changes = append(doc.Changes, changeDoc{rawText(c.Name), c.Now.doc(), c.Was.doc()})
	}
	for _, name := range h.back {
		doc.Back = append(doc.Back, rawText(name))
	}
	for _, l := range h.Left {
		doc.Left = append(doc.Left, leftDoc{rawText(l.Name), l.Why, l.Lost, l.Over})
	}
	data, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return err
	}
	return replace(filepath.Join(h.Dir, "changes.json"), append(data, '\n'))
}

// replace writes a private file, whole or not at all.
func replace(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".part-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// An UnseenError names what of a sandbox could not be looked at.
type UnseenError struct{ Line string }

func (e *UnseenError) Error() string { return "not everything could be looked at: " + e.Line }

// A FullError says that there is no room on this computer for what comes home.
type FullError struct {
	Dir string
	Err error
}

func (e *FullError) Error() string { return "there is no room for the work in " + e.Dir }

func (e *FullError) Unwrap() error { return e.Err }

func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// A LostError names work that could not be brought home.
type LostError struct {
	Left  []Left
	Total int // files that changed
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%d of %s did not come, the first is %q: %s", len(e.Left), Count(e.Total, "file"), e.Left[0].Name, e.Left[0].Why)
}

// Bring brings home what differs from what is here. With whole it reads the
// content of every file of the sandbox; else only that of those which changed
// since the last time. What can be had is kept, also beside an error.
func (h *Home) Bring(ctx context.Context, sb sandbox.Sandbox, whole bool) error {
	known, reads := h.last, int64(0)
	if whole {
		for _, e := range known {
			reads += e.Size
		}
		known = nil
	}
	h.heard(0, reads)
	l, err := listBut(ctx, sb, h.base.Dir, h.base.LeftOut, known, func(size int64) {
		reads += size
		h.heard(0, reads)
	})
	if err != nil {
		return err
	}
	h.last = l.Tree
	before := Tree{}
	for name, e := range h.base.Tree {
		before[name] = e.entry()
	}
	changes := Compare(before, l.Tree)
	next := map[string]Change{}
	var left []Left
	var want []string
	over := h.over(changes.Written, l.Tree)
	// What came earlier is better than nothing.
	earlier := func(name string) {
		if old := h.change(name); old != nil && old.Now != nil && old.Now.Kind == File {
			next[name] = *old
		}
	}
	note := func(name string, now *Entry) {
		c := Change{Name: name, Now: now}
		if was, sent := h.base.Sent[name]; sent {
			e := was.entry()
			c.Was = &e
			if now != nil && now.Kind == e.Kind && before[name].Mode == now.Mode {
				now.Mode = e.Mode // nobody changed it there
			}
		}
		next[name] = c
	}
	for _, name := range changes.Written {
		e := l.Tree[name]
		switch e.Kind {
		case Link:
			note(name, &e)
		case File:
			if why := over[name]; why != "" {
				left = append(left, Left{name, why, true, true})
				earlier(name)
				continue
			}
			note(name, &e)
			if !h.holds(name, e) {
				want = append(want, name)
			}
		default:
			left = append(left, Left{Name: name, Why: "not a file, directory or link"})
		}
	}
	for _, name := range changes.Dirs {
		e := l.Tree[name]
		e.Kind = Dir
		note(name, &e)
	}
	for _, name := range slices.Concat(changes.Deleted, changes.Gone) {
		if _, is := next[name]; !is && !h.hidden(name, l.Tree) {
			note(name, nil)
		}
	}
	sums, err := h.fetch(ctx, sb, want, l.Tree)
	for _, name := range want {
		sum, came := sums[name]
		if came {
			h.have[name] = held{l.Tree[name], sum.Sum}
			c := next[name]
			c.Now.Sum, c.Now.Size = sum.Sum, sum.Size
			continue
		}
		delete(next, name)
		earlier(name)
		why := "it could not be read"
		if full(err) {
			why = "the disk of this computer is full"
		}
		left = append(left, Left{Name: name, Why: why, Lost: true})
	}
	for name, c := range next {
		if had, ok := h.have[name]; ok && c.Now != nil && strings.HasPrefix(c.Now.Sum, "cksum:") {
			c.Now.Sum = had.sum
		}
		h.keepBase(ctx, c)
	}
	h.Changes, h.Left = nil, left
	for _, name := range slices.Sorted(maps.Keys(next)) {
		h.Changes = append(h.Changes, next[name])
	}
	h.findBack(next, left, l.Tree)
	if werr := h.write(); werr != nil {
		err = cmp.Or(err, werr)
	}
	if full(err) {
		return &FullError{h.Dir, err}
	}
	if err != nil {
		return err
	}
	for _, line := range l.Blind {
		if !slices.Contains(h.base.Blind, line) {
			return &UnseenError{line}
		}
	}
	if lost := slices.DeleteFunc(slices.Clone(left), func(l Left) bool { return !l.Lost }); len(lost) > 0 {
		return &LostError{lost, len(changes.Written)}
	}
	return nil
}

// over says of files that are more than may come home why they are: of the largest,
// so that all others come. What is here already is none of them.
func (h *Home) over(names []string, tree Tree) map[string]string {
	most := h.Most
	if most <= 0 {
		most = defaultMost
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return tree[name].Kind != File })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(tree[a].Size, tree[b].Size) })
	over, total, here := map[string]string{}, int64(0), map[string]bool{}
	for _, name := range names {
		if here[name] = h.holds(name, tree[name]); here[name] {
			total += tree[name].Size
		}
	}
	for _, name := range names {
		if here[name] {
			continue
		}
		if size := tree[name].Size; size > most-total {
			over[name] = fmt.Sprintf("it has %s, and no more than %s comes home (sync.max_return_bytes)", Size(size), Size(most))
			continue
		}
		total += tree[name].Size
	}
	return over
}

// hidden reports whether name is below a directory that cannot be looked at, so
// that its absence says nothing.
func (h *Home) hidden(name string, now Tree) bool {
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		if now[d].Kind == Closed {
			return true
		}
	}
	return false
}

// Finish says that the work came home whole, and drops what earlier states left.
func (h *Home) Finish() error {
	used := map[string]bool{}
	all := slices.Clone(h.Changes)
	for _, s := range h.stands() {
		all = append(all, Change{Now: s.Now, Was: s.Was})
	}
	for _, c := range all {
		for _, e := range []*Entry{c.Now, c.Was} {
			if e != nil {
				used[digits(e.Sum)] = true
			}
		}
	}
	entries, err := os.ReadDir(filepath.Join(h.Dir, "content"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !used[e.Name()] {
			os.Remove(filepath.Join(h.Dir, "content", e.Name()))
		}
	}
	h.Run.Whole = true
	return h.write()
}

// Take says that all there is has found its place outside of the home.
func (h *Home) Take() error {
	h.Run.Taken = time.Now().UTC().Truncate(time.Second)
	return h.write()
}

// Remove deletes the home. If it is broken off, what is left is no home any more.
func (h *Home) Remove() error {
	if err := os.Remove(filepath.Join(h.Dir, "changes.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(h.Dir)
}

func (h *Home) change(name string) *Change {
	i := sort.Search(len(h.Changes), func(i int) bool { return h.Changes[i].Name >= name })
	if i < len(h.Changes) && h.Changes[i].Name == name {
		return &h.Changes[i]
	}
	return nil
}

// holds reports whether the content of a file is here.
func (h *Home) holds(name string, e Entry) bool {
	if strings.HasPrefix(e.Sum, "sha256:") {
		info, err := os.Lstat(h.content(e.Sum))
		return err == nil && info.Size() == e.Size
	}
	had, ok := h.have[name]
	return ok && e.Sum != "" && had.there.same(e)
}

func digits(sum string) string {
	d := strings.TrimPrefix(sum, "sha256:")
	if _, err := hex.DecodeString(d); err != nil || len(d) != 64 {
		return "none" // it names a file: no one else's words
	}
	return d
}

func (h *Home) content(sum string) string { return filepath.Join(h.Dir, "content", digits(sum)) }

// errDamaged says that content is not what came home.
var errDamaged = errors.New("what is kept of it was damaged on this computer")

// Open opens the content of an entry of a change.
func (h *Home) open(e Entry) (*os.File, error) { return os.Open(h.content(e.Sum)) }

// String counts the changes for people.
func (h *Home) String() string { return Sum(h.Changes) }

// Sum counts changes for people.
func Sum(changes []Change) string {
	written, deleted, dirs := 0, 0, 0
	above := map[string]bool{}
	for _, c := range changes {
		above[path.Dir(c.Name)] = true
	}
	for _, c := range changes {
		switch isDir := c.Now != nil && c.Now.Kind == Dir || c.Now == nil && c.Was != nil && c.Was.Kind == Dir; {
		case isDir && above[c.Name]:
		case isDir:
			dirs++
		case c.Now == nil:
			deleted++
		default:
			written++
		}
	}
	text := fmt.Sprintf("%d written, %d deleted", written, deleted)
	switch {
	case dirs == 1:
		text += ", 1 directory"
	case dirs > 1:
		text += fmt.Sprintf(", %d directories", dirs)
	}
	return text
}

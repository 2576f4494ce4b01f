package workspace

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
)

// A Conflict is a change that was not made, since something newer of the user's
// stands in its place.
type Conflict struct {
	Name   string
	Why    string
	Theirs string // where the sandbox's version of a file is; may be ""
}

// An Outcome says what Apply did, or would do.
type Outcome struct {
	Made      []string // the changes that were made
	Merged    []Merge  // those of them that were made beside the user's own
	Already   []string // those that stand already
	Stands    []string // of those, the ones that are no directories, which come and go with their files
	Conflicts []Conflict
}

// Apply makes the changes to the tree at dir: each one where what stands there is
// what was sent, and no other. A text that the user changed meanwhile gets the
// changes of both, if they are apart; the user's own version is kept. Nothing is
// written through a link or out of dir; a file is replaced whole or not at all.
// Applying twice changes nothing more. What was applied to the project counts as sent from
// then on, and is undone if the sandbox has undone it. With dry it only says what it would do.
func (h *Home) Apply(ctx context.Context, dir string, changes []Change, dry bool) (*Outcome, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	a := applier{h: h, root: root, dry: dry, going: map[string]bool{}, mixed: map[string]*mixture{}}
	if dir == h.Run.Project {
		changes = a.since(changes)
	}
	a.oneName(changes)
	var todo []Change
	for _, c := range changes { // parents before what is in them
		switch why, done, err := a.judge(ctx, c); {
		case ctx.Err() != nil:
			return &a.out, ctx.Err()
		case err != nil: // one name that this computer does not take, or shows, is not all of them
			a.conflict(c, err.Error())
		case why != "":
			a.conflict(c, why)
		case done:
			a.out.Already = append(a.out.Already, c.Name)
			if (c.Now == nil || c.Now.Kind != Dir) && (c.Now != nil || c.Was == nil || c.Was.Kind != Dir) {
				a.out.Stands = append(a.out.Stands, c.Name)
			}
		default:
			todo = append(todo, c)
			if c.Now == nil || c.Was != nil && c.Now.Kind != c.Was.Kind {
				a.going[c.Name] = true
			}
		}
	}
	if !dry {
		err := a.run(todo)
		if dir == h.Run.Project {
			err = errors.Join(err, h.applied(changes, &a.out))
		}
		return &a.out, err
	}
	for _, c := range todo {
		a.out.Made = append(a.out.Made, c.Name)
		if a.mixed[c.Name] != nil {
			a.out.Merged = append(a.out.Merged, Merge{Name: c.Name})
		}
	}
	return &a.out, nil
}

type applier struct {
	h     *Home
	root  *os.Root
	dry   bool
	out   Outcome
	going map[string]bool     // what makes room
	mixed map[string]*mixture // what is merged

	alike map[string][]Change // of changes of several names that some disks take for one
	from  map[string]Change   // by the new name of what the sandbox only spells in another way: the change that ends the old name
	spelt map[string]bool     // old names that have given way to new spellings already
}

func (a *applier) conflict(c Change, why string) {
	if other := a.otherName(c.Name); other != "" && c.Was == nil && why == notSent {
		why = fmt.Sprintf("it is one name with %q on this disk", other)
	}
	theirs := ""
	if !a.dry {
		theirs = a.h.keepTheirs(c)
	}
	a.out.Conflicts = append(a.out.Conflicts, Conflict{c.Name, why, theirs})
}

// local is what stands under a name; nil is nothing.
func (a *applier) local(name string) (*Entry, error) {
	name = filepath.FromSlash(name)
	info, err := a.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e := &Entry{Kind: Other, Mode: info.Mode().Perm()}
	switch {
	case info.IsDir():
		e.Kind = Dir
	case info.Mode()&fs.ModeSymlink != 0:
		e.Kind = Link
		e.Target, err = a.root.Readlink(name)
	case info.Mode().IsRegular():
		e.Kind, e.Size = File, info.Size()
		f, err := a.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, f); err != nil {
			return nil, err
		}
		e.Sum = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	}
	return e, err
}

// noModes is where files have no permissions worth comparing.
const noModes = runtime.GOOS == "windows"

// content compares without modes.
func content(a, b Entry) bool {
	a.Mode, b.Mode = 0, 0
	return a.same(b)
}

// judge says why a change cannot be made, or that it stands already.
func (a *applier) judge(ctx context.Context, c Change) (why string, done bool, err error) {
	for i := range c.Name { // from the top: below a link is another place
		if c.Name[i] != '/' {
			continue
		}
		d := c.Name[:i]
		switch up, err := a.local(d); {
		case err != nil:
			return "", false, err
		case up == nil || up.Kind == Dir:
		case a.going[d]:
			return verdict(c, nil) // what stands there is in another place
		case up.Kind == Link && c.Now != nil:
			return fmt.Sprintf("%q is a link here", d), false, nil
		case c.Now != nil:
			return fmt.Sprintf("%q is no directory here", d), false, nil
		default:
			return "", true, nil // it is not there, nor can it be
		}
	}
	here, err := a.local(c.Name)
	if err != nil {
		return "", false, err
	}
	if a.spelt[c.Name] {
		return "", true, nil
	}
	if old, is := a.from[c.Name]; is {
		// What stands here is what goes, and comes back under the new name.
		why, _, err := verdict(old, here)
		return why, false, err
	}
	why, done, err = verdict(c, here)
	if why != changedHere {
		return why, done, err
	}
	m, why, err := a.mix(ctx, c, here)
	if why == "" && err == nil {
		a.mixed[c.Name] = m
		done = sumOf(m.data) == here.Sum && m.mode == here.Mode
	}
	return why, done, err
}

// Why a change cannot be made as it is.
const (
	changedHere = "it was changed here"
	notSent     = "it stands here and was not sent"
)

func verdict(c Change, here *Entry) (why string, done bool, err error) {
	was, now := c.Was, c.Now
	switch {
	case here == nil && now == nil, was == nil && now == nil:
		return "", true, nil
	case here == nil && was == nil, here == nil && now.Kind == Dir:
		return "", false, nil
	case here == nil:
		return "it was deleted here", false, nil
	case now != nil && now.Kind == Dir && here.Kind == Dir:
		// The mode of a directory that stands is changed only for a change of it.
		return "", noModes || now.Mode == here.Mode || was == nil || was.Kind != Dir || was.Mode != here.Mode, nil
	case now != nil && content(*here, *now):
		same := noModes || now.Kind != File || now.Mode == here.Mode || was != nil && was.Kind == File && was.Mode == now.Mode
		if !same && (was == nil || was.Mode != here.Mode) {
			return "its mode is another here", false, nil
		}
		return "", same, nil
	case was == nil:
		return notSent, false, nil
	case now == nil && was.Kind == Dir && here.Kind == Dir:
		return "", false, nil
	case !content(*here, *was):
		return changedHere, false, nil
	case !noModes && now != nil && now.Kind == File && was.Kind == File && here.Mode != was.Mode && now.Mode != was.Mode && now.Mode != here.Mode:
		return "its mode was changed here", false, nil
	}
	return "", false, nil
}

// run makes the changes, in an order that lets each find its place.
func (a *applier) run(todo []Change) error {
	isDir := func(e *Entry) bool { return e != nil && e.Kind == Dir }
	var steps []func(Change) error
	step := func(when func(Change) bool, do func(Change) error) {
		steps = append(steps, func(c Change) error {
			if when(c) {
				return do(c)
			}
			return nil
		})
	}
	failed := map[string]bool{}
	// Files and links that go; then directories, innermost first.
	step(func(c Change) bool { return goes(c) }, a.remove)
	down := len(steps)
	step(func(c Change) bool { return isDir(c.Was) && !isDir(c.Now) }, a.removeDir)
	step(func(c Change) bool { return isDir(c.Now) }, a.makeDir)
	step(func(c Change) bool { return c.Now != nil && c.Now.Kind == File }, a.putFile)
	step(func(c Change) bool { return c.Now != nil && c.Now.Kind == Link }, a.putLink)
	last := len(steps)
	step(func(c Change) bool { return isDir(c.Now) && !noModes }, a.modeDir)
	for i, do := range steps {
		order := todo
		if i == down || i == last {
			order = slices.Clone(todo)
			slices.Reverse(order)
		}
		for _, c := range order {
			if failed[c.Name] {
				continue
			}
			if err := do(c); err != nil {
				if full(err) {
					return fmt.Errorf("%q: %w", c.Name, err)
				}
				failed[c.Name] = true
				a.conflict(c, err.Error())
			}
		}
	}
	for _, c := range todo {
		if !failed[c.Name] {
			a.out.Made = append(a.out.Made, c.Name)
		}
	}
	return nil
}

// still makes sure that what is about to go is what was judged.
func (a *applier) still(c Change) error {
	here, err := a.local(c.Name)
	if err != nil || here == nil {
		return err
	}
	if m := a.mixed[c.Name]; m != nil {
		if !content(*here, m.here) {
			return errors.New("it is being changed here")
		}
		return nil
	}
	if old, is := a.from[c.Name]; is {
		c = old
	}
	if why, _, err := verdict(c, here); err != nil || why != "" {
		return errors.Join(err, errors.New(why))
	}
	return nil
}

func (a *applier) remove(c Change) error {
	if err := a.still(c); err != nil {
		return err
	}
	return ignoreMissing(a.root.Remove(filepath.FromSlash(c.Name)))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// removeDir removes a directory unless something of the user's is in it.
func (a *applier) removeDir(c Change) error {
	name := filepath.FromSlash(c.Name)
	f, err := a.root.Open(name)
	if err != nil {
		return ignoreMissing(err)
	}
	names, err := f.Readdirnames(1)
	f.Close()
	switch {
	case len(names) > 0 && c.Now == nil:
		return nil
	case len(names) > 0:
		return errors.New("it is a directory here with something in it")
	case err != nil && err != io.EOF:
		return err
	}
	return ignoreMissing(a.root.Remove(name))
}

func (a *applier) makeDir(c Change) error {
	if err := a.parents(c.Name); err != nil {
		return err
	}
	// Its own mode comes when what is in it stands.
	return a.root.MkdirAll(filepath.FromSlash(c.Name), 0o755)
}

func (a *applier) modeDir(c Change) error {
	if c.Was != nil && c.Was.Kind == Dir && c.Was.Mode == c.Now.Mode {
		return nil
	}
	return a.root.Chmod(filepath.FromSlash(c.Name), c.Now.Mode)
}

// parents makes what is missing above a name, and sees that no link stands there.
func (a *applier) parents(name string) error {
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		if info, err := a.root.Lstat(filepath.FromSlash(d)); err == nil && !info.IsDir() {
			return fmt.Errorf("%q is no directory here", d)
		}
	}
	if d := path.Dir(name); d != "." {
		return a.root.MkdirAll(filepath.FromSlash(d), 0o755)
	}
	return nil
}

// part is the name of a file that will take another's place.
func part(name string) string {
	var b [6]byte
	rand.Read(b[:])
	return filepath.FromSlash(path.Join(path.Dir(name), ".talkops-part-"+hex.EncodeToString(b[:])))
}

func (a *applier) putFile(c Change) error {
	if err := a.parents(c.Name); err != nil {
		return err
	}
	mode := c.Now.Mode
	if here, err := a.local(c.Name); err == nil && here != nil && here.Kind == File && c.Was != nil && c.Was.Mode == c.Now.Mode {
		mode = here.Mode // nobody changed it there
	}
	from, err := a.source(c, &mode)
	if err != nil {
		return err
	}
	defer from.Close()
	tmp := part(c.Name)
	to, err := a.root.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer a.root.Remove(tmp)
	sum, holes := sha256.New(), &holed{f: to}
	if _, err = io.Copy(io.MultiWriter(holes, sum), from); err == nil {
		err = holes.end()
	}
	if err == nil && a.mixed[c.Name] == nil && "sha256:"+hex.EncodeToString(sum.Sum(nil)) != c.Now.Sum {
		err = errDamaged
	}
	if err == nil && !noModes {
		err = to.Chmod(mode)
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	if err := a.still(c); err != nil {
		return err
	}
	return a.root.Rename(tmp, filepath.FromSlash(c.Name))
}

// source opens what a file will hold. What is merged has a mode of its own, and the
// user's version is kept before it goes.
func (a *applier) source(c Change, mode *fs.FileMode) (io.ReadCloser, error) {
	m := a.mixed[c.Name]
	if m == nil {
		from, err := a.h.open(*c.Now)
		if err != nil {
			return nil, fmt.Errorf("its content is not here: %w", errors.Unwrap(err))
		}
		return from, nil
	}
	*mode = m.mode
	ours, err := a.content(c.Name, m.here.Sum)
	if err != nil {
		return nil, err
	}
	before, err := a.h.beside("before", c.Name, m.here.Mode, bytes.NewReader(ours))
	if err != nil {
		return nil, fmt.Errorf("keep your version: %w", err)
	}
	a.out.Merged = append(a.out.Merged, Merge{c.Name, before})
	return io.NopCloser(bytes.NewReader(m.data)), nil
}

func (a *applier) putLink(c Change) error {
	if err := a.parents(c.Name); err != nil {
		return err
	}
	tmp := part(c.Name)
	if err := a.root.Symlink(filepath.FromSlash(c.Now.Target), tmp); err != nil {
		return err
	}
	defer a.root.Remove(tmp)
	if err := a.still(c); err != nil {
		return err
	}
	return a.root.Rename(tmp, filepath.FromSlash(c.Name))
}

// Pull writes what is new or changed into dir, which must not exist or be empty.
func (h *Home) Pull(ctx context.Context, dir string, changes []Change) (*Outcome, error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var alone []Change
	for _, c := range changes {
		if c.Now != nil {
			alone = append(alone, Change{Name: c.Name, Now: c.Now})
		}
	}
	return h.Apply(ctx, dir, alone, false)
}

// Deleted are the names of files and links that were sent and are no more.
func Deleted(changes []Change) []string {
	var list []string
	for _, c := range changes {
		if c.Now == nil && (c.Was == nil || c.Was.Kind != Dir) {
			list = append(list, c.Name)
		}
	}
	return list
}

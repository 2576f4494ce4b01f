package workspace

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Sent is one thing of the project as it was sent into a machine whose state was
// kept after that.
type Sent struct {
	Name   rawText `json:"name"`
	Kind   Kind    `json:"kind"`
	Run    bool    `json:"run,omitempty"` // it could be executed
	Size   int64   `json:"size,omitempty"`
	Sum    string  `json:"sum,omitempty"`
	Target rawText `json:"target,omitempty"`
}

// Sent is what Upload sent, by name.
func (p *Plan) Sent() []Sent {
	list := []Sent{}
	if p == nil {
		return list
	}
	for _, name := range slices.Sorted(maps.Keys(p.sent)) {
		list = append(list, p.sent[name].saved().sent(name))
	}
	return list
}

func (e savedEntry) sent(name string) Sent {
	return Sent{rawText(name), e.Kind, e.Kind == File && e.Mode&0o111 != 0, e.Size, e.Sum, rawText(e.Target)}
}

// is reports whether e, of a sandbox or of this computer, is what was sent.
func (s Sent) is(e Entry) bool {
	switch s.Kind {
	case Dir:
		return e.Kind == Dir || e.Kind == Closed
	case Link:
		return e.Kind == Link && e.Target == string(s.Target)
	}
	return e.Kind == File && e.Size == s.Size && s.Sum != "" && e.Sum == s.Sum && (e.Mode&0o111 != 0) == s.Run
}

// A StaleError names something that a script made in a sandbox out of what is not the
// same here any more.
type StaleError struct{ Name string }

func (e *StaleError) Error() string {
	return fmt.Sprintf("the script changed %q, which is not the same here any more", e.Name)
}

// Renew brings what stands below dir of sb up to the plan, which was sent there as
// was, before a script ran. What is deleted here since is deleted there. It returns
// what need not be sent: what is the same there, and what the script made of what is
// the same here. The error is a *StaleError if the script would have to run again.
func (p *Plan) Renew(ctx context.Context, sb sandbox.Sandbox, dir string, was []Sent) (keep map[string]bool, err error) {
	before, items := map[string]Sent{}, map[string]Item{}
	for _, s := range was {
		before[string(s.Name)] = s
	}
	for _, item := range p.Items {
		items[item.Name] = item
	}
	l, err := list(ctx, sb, dir, `\( `+leftOut(p)+` -prune -o -type d -o ! -type d \)`, func(name string, e *Entry) bool {
		s, sent := before[name]
		item, ours := items[name]
		return sent && s.Size == e.Size || ours && item.Size == e.Size
	})
	if err != nil {
		return nil, err
	}
	keep = map[string]bool{}
	p.there = map[string]bool{}
	for _, item := range p.Items {
		s, sent := before[item.Name]
		there, exists := l.Tree[item.Name]
		unchanged := exists && sent && s.is(there) // by the script
		switch {
		case exists && p.sameThere(item, there):
			keep[item.Name] = true
			p.sentAlready(item, there)
		case sent && !unchanged && p.sameHere(item, s):
			keep[item.Name] = true // as the script left it, which may be not at all
			p.sentBefore(item, s)
			p.countStep(item)
		case exists && (!unchanged || there.Kind != kindOf(item)), sent && !exists:
			return nil, &StaleError{item.Name}
		}
	}
	var files, dirs []string
	for _, s := range was {
		name := string(s.Name)
		there, exists := l.Tree[name]
		if _, ours := items[name]; ours || !exists {
			continue
		}
		switch {
		case s.Kind == Dir && there.isDir():
			dirs = append(dirs, name)
		case s.is(there):
			files = append(files, name)
		default:
			return nil, &StaleError{name}
		}
	}
	slices.Reverse(dirs) // sorted, so that what is in a directory goes before it
	if err := remove(ctx, sb, dir, `xargs -0 rm -f --`, files); err != nil {
		return nil, err
	}
	return keep, remove(ctx, sb, dir, `xargs -0 rmdir -- 2>/dev/null || :`, dirs) // what the script put there stays
}

func remove(ctx context.Context, sb sandbox.Sandbox, dir, script string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	var list bytes.Buffer
	for _, name := range names {
		list.WriteString("./" + path.Clean(name) + "\x00")
	}
	exit, err := sb.Exec(ctx, sandbox.Cmd{Args: []string{"/bin/sh", "-c", script}, Dir: dir, Stdin: &list})
	if err == nil && exit != 0 {
		err = fmt.Errorf("the command ended with %d", exit)
	}
	if err != nil {
		return fmt.Errorf("delete what is no more here: %w", err)
	}
	return nil
}

func kindOf(item Item) Kind {
	switch {
	case item.Mode.IsDir():
		return Dir
	case item.Link != "":
		return Link
	}
	return File
}

// sameHere reports whether an item is still what was sent of it.
func (p *Plan) sameHere(item Item, s Sent) bool {
	e := Entry{Kind: kindOf(item), Mode: item.Mode.Perm(), Size: item.Size, Target: item.Link}
	if e.Kind == File && item.Size == s.Size && strings.HasPrefix(s.Sum, "sha256:") {
		var err error
		if e.Sum, err = localSum(filepath.Join(p.Root, filepath.FromSlash(item.Name)), s.Sum); err != nil {
			return false
		}
	}
	return s.is(e)
}

// sentBefore notes an item whose content was sent, though something else stands there.
func (p *Plan) sentBefore(item Item, s Sent) {
	if p.sent == nil {
		p.sent = Tree{}
	}
	if p.there == nil {
		p.there = map[string]bool{}
	}
	p.there[item.Name] = true
	e := Entry{Kind: s.Kind, Size: s.Size, Sum: s.Sum, Target: string(s.Target)}
	if s.Kind != Link {
		e.Mode = item.Mode.Perm()
	}
	p.sent[item.Name] = e
}

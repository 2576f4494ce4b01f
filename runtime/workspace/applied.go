package workspace

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A stand is what Apply left under a name of the project.
type stand struct {
	Now  *Entry // nil: nothing
	Was  *Entry // what was sent; nil: nothing
	Made bool   // by Apply, and not by the user as well
}

type standDoc struct {
	Name rawText   `json:"name"`
	Now  *entryDoc `json:"now"`
	Was  *entryDoc `json:"was,omitempty"`
	Made bool      `json:"made,omitempty"`
}

func same(a, b *Entry) bool { return a == nil && b == nil || a != nil && b != nil && a.same(*b) }

func (h *Home) standsFile() string { return filepath.Join(h.Dir, "applied.json") }

// stands are what was applied to the project so far, by name. It has a file of its own,
// as it may be applied by another process while the session goes on. Of a file that cannot
// be read nothing was applied: then what it names conflicts.
func (h *Home) stands() map[string]stand {
	data, err := os.ReadFile(h.standsFile())
	var docs []standDoc
	if err != nil || json.Unmarshal(data, &docs) != nil {
		return nil
	}
	all := map[string]stand{}
	for _, d := range docs {
		all[string(d.Name)] = stand{d.Now.entry(), d.Was.entry(), d.Made}
	}
	return all
}

// applied notes what stands in the project now as the sandbox had it.
func (h *Home) applied(changes []Change, out *Outcome) error {
	made, there := map[string]bool{}, map[string]bool{}
	for _, name := range out.Made {
		made[name] = true
	}
	for _, name := range out.Already {
		there[name] = true
	}
	all := h.stands()
	if all == nil {
		all = map[string]stand{}
	}
	for _, c := range changes {
		if !made[c.Name] && !there[c.Name] {
			continue
		}
		now := stand{c.Now, c.Was, made[c.Name]}
		if before, is := all[c.Name]; is {
			now.Was, now.Made = before.Was, now.Made || before.Made
		}
		if all[c.Name] = now; same(now.Now, now.Was) {
			delete(all, c.Name) // it is as it was sent
		}
	}
	docs := []standDoc{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		docs = append(docs, standDoc{rawText(name), all[name].Now.doc(), all[name].Was.doc(), all[name].Made})
	}
	data, err := json.MarshalIndent(docs, "", " ")
	if err != nil {
		return err
	}
	return replace(h.standsFile(), append(data, '\n'))
}

// since are changes as they are to be made where some were applied before: each since
// that; where the user took one back, it is the whole change again. What was applied and
// is undone in the sandbox is undone too.
func (a *applier) since(changes []Change) []Change {
	changes = slices.Clone(changes)
	named := map[string]bool{}
	all := a.h.stands()
	for i, c := range changes {
		named[c.Name] = true
		s, is := all[c.Name]
		if !is {
			continue
		}
		here, err := a.local(c.Name)
		if err != nil {
			continue
		}
		changes[i].Was = s.Now
		if here == nil && s.Was == nil || here != nil && s.Was != nil && content(*here, *s.Was) {
			changes[i].Was = s.Was
		}
	}
	for _, c := range a.h.undone() {
		if !named[c.Name] {
			changes = append(changes, c)
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return changes
}

// undone are the changes that take back what was applied, as the sandbox has it no more.
func (h *Home) undone() []Change {
	if len(h.back) == 0 {
		return nil
	}
	var list []Change
	all := h.stands()
	for _, name := range h.back {
		if s, is := all[name]; is && s.Made && !same(s.Now, s.Was) {
			list = append(list, Change{Name: name, Now: s.Was, Was: s.Now})
		}
	}
	return list
}

// Applied reports whether some of the work was applied to the project.
func (h *Home) Applied() bool { return len(h.stands()) > 0 }

// Empty reports whether there is nothing to be done with the work: nothing differs from
// what was sent, and nothing that was applied is to be undone.
func (h *Home) Empty() bool { return len(h.Changes) == 0 && len(h.undone()) == 0 }

// Since are the changes that are new since the work was applied to the project, with
// those that undo what was, sorted by name. Where nothing was applied they are all.
func (h *Home) Since() []Change {
	list, all := h.undone(), h.stands()
	for _, c := range h.Changes {
		if s, is := all[c.Name]; is {
			if same(s.Now, c.Now) {
				continue
			}
			c.Was = s.Now
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Work are all changes with those that undo what was applied, sorted by name, to make them
// in another copy of the project. What can be undone no more is none of them.
func (h *Home) Work() []Change {
	list := slices.DeleteFunc(h.undone(), func(c Change) bool {
		if c.Now == nil || c.Now.Kind != File {
			return false
		}
		_, err := os.Lstat(h.content(c.Now.Sum))
		return err != nil
	})
	list = append(list, h.Changes...)
	slices.SortFunc(list, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// findBack notes which of what was applied is in the sandbox as the session began with it: by the
// names that differ, those that did not come, and what is there.
func (h *Home) findBack(differ map[string]Change, left []Left, now Tree) {
	h.back = nil
	for _, name := range slices.Sorted(maps.Keys(h.stands())) {
		_, is := differ[name]
		missed := slices.ContainsFunc(left, func(l Left) bool { return l.Name == name })
		if !is && !missed && !h.hidden(name, now) {
			h.back = append(h.back, name)
		}
	}
}

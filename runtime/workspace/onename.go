package workspace

import (
	"os"
	"path"
	"path/filepath"
	"slices"
)

// oneName looks for changes whose names are one on the disk of the project, as case or
// the form of accents does not count there.
func (a *applier) oneName(changes []Change) {
	a.alike, a.from, a.spelt = map[string][]Change{}, map[string]Change{}, map[string]bool{}
	for _, c := range changes {
		key := sameName(c.Name)
		a.alike[key] = append(a.alike[key], c)
	}
	listed := map[string][]string{}
	for key, list := range a.alike {
		if len(list) < 2 {
			delete(a.alike, key)
			continue
		}
		for _, c := range list {
			i := slices.IndexFunc(list, func(old Change) bool {
				return old.Now == nil && old.Was != nil && c.Now != nil && c.Was == nil && a.sameThing(old.Name, c.Name)
			})
			switch {
			case i < 0:
			case a.listed(c.Name, listed) && !a.listed(list[i].Name, listed):
				a.spelt[list[i].Name] = true
			default:
				a.from[c.Name] = list[i]
			}
		}
	}
}

// sameThing asks the disk whether two names are of one thing.
func (a *applier) sameThing(one, other string) bool {
	x, err1 := a.root.Lstat(filepath.FromSlash(one))
	y, err2 := a.root.Lstat(filepath.FromSlash(other))
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// listed reports whether directories list every part of a name as it is spelt. What
// they list is kept in known.
func (a *applier) listed(name string, known map[string][]string) bool {
	for ; name != "."; name = path.Dir(name) {
		dir := path.Dir(name)
		names, is := known[dir]
		if !is {
			if f, err := a.root.Open(filepath.FromSlash(dir)); err == nil {
				names, _ = f.Readdirnames(-1)
				f.Close()
			}
			known[dir] = names
		}
		if !slices.Contains(names, path.Base(name)) {
			return false
		}
	}
	return true
}

// otherName is the name of another change that is one with name on this disk; "" if
// there is none.
func (a *applier) otherName(name string) string {
	for _, c := range a.alike[sameName(name)] {
		if c.Name != name && a.sameThing(c.Name, name) {
			return c.Name
		}
	}
	return ""
}

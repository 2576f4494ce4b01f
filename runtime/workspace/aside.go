package workspace

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/talkops-ai/talkops/runtime/obeyed"
)

// An Aside is a change that is kept but not made to the project unless the user
// says so.
type Aside struct {
	Change
	Why   string
	Never bool // not even then
}

// Split tells the changes that may be made to the project from those set aside.
// With all, what is set aside is among the former as far as it is possible. A new
// directory in which all is set aside is so too.
func (h *Home) Split(all bool) (take []Change, aside []Aside) { return Split(h.Changes, all) }

// Split does that with other changes, sorted by name.
func Split(changes []Change, all bool) (take []Change, aside []Aside) {
	filled := map[string]bool{}                  // directories with something that is taken
	kept := map[string]bool{}                    // those with something set aside; true if all of it is for ever
	for _, c := range slices.Backward(changes) { // what is in a directory before it
		why, never := c.aside()
		if forever, is := kept[c.Name]; why == "" && is && !filled[c.Name] && c.Was == nil && c.Now != nil && c.Now.Kind == Dir {
			why, never = "holds only what is set aside", forever
		}
		if up := path.Dir(c.Name); why == "" || all && !never {
			take = append(take, c)
			filled[up] = true
		} else {
			aside = append(aside, Aside{c, why, never})
			forever, is := kept[up]
			kept[up] = never && (forever || !is)
		}
	}
	slices.Reverse(take)
	slices.Reverse(aside)
	return take, aside
}

func (c Change) aside() (why string, never bool) {
	switch {
	case !fs.ValidPath(strings.ToValidUTF8(c.Name, "?")), !filepath.IsLocal(filepath.FromSlash(c.Name)), filepath.Separator == '\\' && strings.Contains(c.Name, `\`):
		return "no name for a file here", true
	case obeyed.Path(c.Name):
		return "acts on this computer", slices.Contains(obeyed.Parts(c.Name), ".git")
	case c.Now != nil && c.Now.Kind == Link && !staysInside(c.Name, c.Now.Target):
		return "leads out of the project", true
	case secretName(c.Name, c.Now != nil && c.Now.Kind == Dir):
		return "may hold secrets", false
	}
	return "", false
}

// staysInside reports whether a link stays in the project whatever stands in the
// directories it names: it may go up only at its beginning.
func staysInside(name, target string) bool {
	if target == "" || path.IsAbs(target) || filepath.IsAbs(target) || strings.ContainsAny(target, "\\") && filepath.Separator == '\\' {
		return false
	}
	up, down := 0, false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if down {
				return false
			}
			up++
		default:
			down = true
		}
	}
	// A link to a directory above would bring .git and the like under another name.
	if up > strings.Count(name, "/") {
		return false
	}
	return !obeyed.Path(path.Join(path.Dir(name), target))
}

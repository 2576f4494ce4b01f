package approval

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Change is what a command that acts on infrastructure would change, as far as
// that can be known before it runs.
type Change struct {
	Program string            `json:"program"`         // "terraform"
	Verb    string            `json:"verb"`            // "apply"
	Names   map[string]string `json:"names,omitempty"` // what it names: a context, namespace, workspace, release

	Known     bool   `json:"known"`             // the counts and items are those of a plan
	Problem   string `json:"problem,omitempty"` // why they are not known
	Added     int    `json:"added"`
	Changed   int    `json:"changed"`
	Replaced  int    `json:"replaced"`
	Destroyed int    `json:"destroyed"`
	Items     []Item `json:"items,omitempty"`
	More      int    `json:"more,omitempty"` // items left out

	File   string `json:"file,omitempty"`   // the plan that is applied
	SHA256 string `json:"sha256,omitempty"` // of it, when it was shown

	// Command is what runs in place of the command that was asked for, so that the
	// plan that was shown is the one that is applied; empty: as asked.
	Command string `json:"command,omitempty"`
	// Folder holds a plan that was made to be shown, and goes with it; empty: none.
	Folder string `json:"-"`
}

// An Item is one thing that would change.
type Item struct {
	Action string `json:"action"` // "add", "change", "replace" or "destroy"
	Name   string `json:"name"`   // as the program calls it
}

// String is the change in one line.
func (c *Change) String() string {
	var b strings.Builder
	b.WriteString("would change: ")
	if c.Known {
		fmt.Fprintf(&b, "%d to add, %d to change, %d to replace, %d to destroy", c.Added, c.Changed, c.Replaced, c.Destroyed)
	} else {
		b.WriteString("not known; " + c.Problem)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Names)) {
		fmt.Fprintf(&b, "; %s %s", name, c.Names[name])
	}
	for i, item := range c.Items {
		fmt.Fprintf(&b, "%s%s %s", map[bool]string{true: ": ", false: ", "}[i == 0], item.Action, item.Name)
	}
	if c.More > 0 {
		fmt.Fprintf(&b, " and %d more", c.More)
	}
	return b.String()
}

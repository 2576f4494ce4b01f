//go:build unix

package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tried brings home what a script did in a sandbox, while another did something here,
// and applies it.
func tried(t *testing.T, files map[string]string, there, here string) (root, box string, h *Home, out *Outcome) {
	t.Helper()
	root, box, sb, h := sent(t, files)
	sh(t, box, there)
	sh(t, root, here)
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	out, err := h.Apply(t.Context(), root, h.Changes, false)
	if err != nil {
		t.Fatal(err)
	}
	return root, box, h, out
}

func TestThingsThatTurnIntoOthers(t *testing.T) {
	files := map[string]string{"file": "f\n", "dir/in": "i\n", "link": "->file", "dlink": "->dir", "m": "m\n"}
	const turn = `rm file; mkdir file; echo x > file/in; rm -r dir; echo d > dir; rm link; echo l > link; rm dlink; mkdir dlink; echo y > dlink/z; `
	for _, row := range []struct {
		name, there, here string
		conflicts         []string // each with why; empty: the trees are the same
	}{
		{"there", turn + "chmod 755 m", "", nil},
		{"on both sides alike", turn, turn, nil},
		{"modes alone", "chmod 750 dir; chmod 600 m", "", nil},
		{"here, while they were changed there", "echo more >> file; echo more >> dir/in; echo n > dir/new", "rm file; mkdir file; rm -r dir; echo d > dir",
			[]string{`dir/in: "dir" is no directory here`, `dir/new: "dir" is no directory here`, "file: it was changed here"}},
		{"into different things", "rm file; mkdir file; echo x > file/in", "rm file; ln -s m file", []string{"file: it was changed here", `file/in: "file" is a link here`}},
		{"a link into a file, and here into another link", "rm link; echo l > link", "ln -sfn m link", []string{"link: it was changed here"}},
		{"modes on both sides", "chmod 700 m", "chmod 600 m", []string{"m: its mode is another here"}},
		{"two forms of one accent, and two cases", "echo c > 'caf\u00e9'; echo d > 'cafe\u0301'; echo A > A; echo a > a", "", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			root, box, h, out := tried(t, files, row.there, row.here)
			var conflicts []string
			for _, c := range out.Conflicts {
				conflicts = append(conflicts, c.Name+": "+c.Why)
			}
			if !slices.Equal(conflicts, row.conflicts) {
				t.Errorf("conflicts %q, want %q", conflicts, row.conflicts)
			}
			if len(row.conflicts) == 0 {
				sameTrees(t, root, box)
			}
			if again, err := h.Apply(t.Context(), root, h.Changes, false); err != nil || len(again.Made) > 0 || len(again.Conflicts) != len(row.conflicts) {
				t.Errorf("once more: %+v, %v", again, err)
			}
		})
	}
}

// A directory of many files under another name, and much that is new.
func TestManyFilesUnderAnotherName(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("old/d%d/f%d", i%30, i)] = fmt.Sprint(i)
	}
	root, box, h, out := tried(t, files, "mv old new; head -c 30000000 /dev/urandom > much", "")
	if len(out.Conflicts) > 0 {
		t.Error(out.Conflicts)
	}
	sameTrees(t, root, box)
	if _, err := os.Stat(filepath.Join(root, "old")); err == nil {
		t.Error("the old directory is left")
	}
	other := lay(t, files)
	patch := filepath.Join(t.TempDir(), "patch")
	f, err := os.Create(patch)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := h.Patch(f, h.Changes); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	f.Close()
	sh(t, other, "git init -q; git apply "+patch)
	os.RemoveAll(filepath.Join(other, ".git"))
	compareTrees(t, other, box, false)
}

// Where two names are one on the disk of the project, what is only spelt in another
// way there is not deleted with its old name. Hard links stand for such a disk.
func TestANewSpellingIsNoDeletion(t *testing.T) {
	for name, row := range map[string]struct {
		there, here string
		made        string
		conflict    string
	}{
		"as it was":      {"mv Makefile makefile", "ln Makefile makefile", "Makefile makefile", ""},
		"changed":        {"mv Makefile makefile; echo more >> makefile", "ln Makefile makefile", "Makefile makefile", ""},
		"the other way":  {"mv lower LOWER", "ln lower LOWER", "LOWER lower", ""},
		"changed here":   {"mv Makefile makefile", "ln Makefile makefile; echo mine >> Makefile", "", "Makefile: it was changed here\nmakefile: it was changed here"},
		"another file":   {"echo new > makefile; echo more >> Makefile", "ln Makefile makefile", "Makefile", `makefile: it is one name with "Makefile" on this disk`},
		"not the same":   {"mv Makefile makefile", "cp Makefile makefile", "Makefile", ""},
		"in a directory": {"mv d D", "mkdir D; ln d/F D/F", "D/F d d/F", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root, box, _, out := tried(t, map[string]string{"Makefile": "all:\n", "lower": "l\n", "d/F": "f\n"}, row.there, row.here)
			conflicts := ""
			for _, c := range out.Conflicts {
				conflicts += c.Name + ": " + c.Why + "\n"
			}
			made := slices.Sorted(slices.Values(out.Made))
			if got := strings.Join(made, " "); got != row.made || strings.TrimSpace(conflicts) != row.conflict {
				t.Errorf("made %q, conflicts %q", got, conflicts)
			}
			if row.conflict == "" {
				sameTrees(t, root, box)
			}
		})
	}
}

// On a disk that takes two cases for one, a new spelling stays when it is applied again.
func TestANewSpellingIsMadeOnce(t *testing.T) {
	probe := lay(t, map[string]string{"a": ""})
	if _, err := os.Lstat(filepath.Join(probe, "A")); err != nil {
		t.Skip("this disk tells two cases apart")
	}
	root, _, h, out := tried(t, map[string]string{"d/Makefile": "all:\n"}, "mv d D; mv D/Makefile D/makefile", "")
	again, err := h.Apply(t.Context(), root, h.Changes, false)
	if err != nil || len(out.Conflicts)+len(again.Conflicts)+len(again.Made) > 0 {
		t.Errorf("applied %+v, then %+v, %v", out, again, err)
	}
	if got := sh(t, root, "echo * */*"); got != "D D/makefile\n" {
		t.Errorf("the project holds %q", got)
	}
}

func TestCount(t *testing.T) {
	for want, row := range map[string]struct {
		n    int
		word string
	}{"1 file": {1, "file"}, "0 files": {0, "file"}, "2 entries": {2, "entry"}, "1 directory": {1, "directory"}, "3 directories": {3, "directory"}, "2 boxes": {2, "box"}, "2 branches": {2, "branch"}} {
		if got := Count(row.n, row.word); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

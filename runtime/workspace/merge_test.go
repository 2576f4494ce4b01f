//go:build unix

package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const ten = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"

func TestTextsThatBothSidesChangedAreMerged(t *testing.T) {
	root, box, sb, h := sent(t, map[string]string{"apart": ten, "same": ten, "clash": ten, "bin": "a\x00" + ten, "mode": ten, "modes": ten, "d/deep": ten, "nl": "1\n2\n3"})
	sh(t, box, `sed -i 's/^9$/box/' apart d/deep mode clash bin modes; sed -i 's/^5$/box/' same clash; chmod 755 mode modes; printf '1\n2\nbox' > nl`)
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	sh(t, root, `sed -i 's/^2$/user/' apart d/deep mode bin modes; sed -i 's/^5$/box/; s/^1$/user/' same; sed -i 's/^5$/user/' clash; chmod 600 modes; printf 'user\n2\n3' > nl`)
	before := tree(t, root, true)
	dry, err := h.Apply(t.Context(), root, h.Changes, true)
	if err != nil {
		t.Fatal(err)
	}
	if after := tree(t, root, true); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("a dry run changed something")
	}
	for _, d := range []string{"theirs", "before"} {
		if _, err := os.Stat(filepath.Join(h.Dir, d)); err == nil {
			t.Errorf("a dry run made %s", d)
		}
	}
	out, err := h.Apply(t.Context(), root, h.Changes, false)
	if err != nil {
		t.Fatal(err)
	}
	var merged []string
	for i, m := range out.Merged {
		merged = append(merged, m.Name)
		if dry.Merged[i].Name != m.Name {
			t.Errorf("it would merge %v, and did %v", dry.Merged, out.Merged)
		}
		mine, err := os.ReadFile(m.Before)
		if err != nil || !strings.Contains(string(mine), "user") || strings.Contains(string(mine), "box") {
			t.Errorf("%s as it was: %q, %v", m.Name, mine, err)
		}
	}
	if want := []string{"apart", "d/deep", "mode", "nl"}; !slices.Equal(merged, want) {
		t.Errorf("merged %q, want %q", merged, want)
	}
	if got, want := sh(t, root, `cat apart nl; stat -c %a mode`), strings.NewReplacer("2\n", "user\n", "9\n", "box\n").Replace(ten)+"user\n2\nbox755\n"; got != want {
		t.Errorf("merged text %q, want %q", got, want)
	}
	for _, c := range out.Conflicts {
		theirs, err := os.ReadFile(c.Theirs)
		if err != nil || !strings.Contains(string(theirs), "box") || strings.Contains(string(theirs), "user") {
			t.Errorf("conflict %q: theirs is %q, %v", c.Name, theirs, err)
		}
	}
	if len(out.Conflicts) != 3 || out.Conflicts[0].Name != "bin" || out.Conflicts[1].Name != "clash" || out.Conflicts[2].Name != "modes" {
		t.Errorf("conflicts %+v", out.Conflicts)
	}
	after := tree(t, root, true)
	for _, name := range []string{"bin", "clash", "modes"} {
		if before[name] != after[name] {
			t.Errorf("%s was touched", name)
		}
	}
	again, err := h.Apply(t.Context(), root, h.Changes, false)
	if err != nil || len(again.Made) != 0 || len(again.Conflicts) != 3 {
		t.Errorf("applied twice: %+v, %v", again, err)
	}
}

// The user may be first: what was sent is found in the last commit.
func TestTextsThatTheUserChangedFirstAreMerged(t *testing.T) {
	root := lay(t, map[string]string{"sub/f": ten, "sub/dirty": ten, "sub/same": ten})
	sh(t, root, `git init -q; git add -A; git commit -qm start; echo uncommitted >> sub/dirty`)
	root = filepath.Join(root, "sub")
	box := t.TempDir()
	h := upload(t, root, box)
	sb := boxAt(t, box, os.Getenv("PATH"))
	sh(t, root, `sed -i 's/^2$/user/' f dirty; echo both > same`)
	sh(t, box, `sed -i 's/^9$/box/' f dirty; echo both > same`)
	for range 2 {
		if err := h.Bring(t.Context(), sb, true); err != nil {
			t.Fatal(err)
		}
	}
	out, err := h.Apply(t.Context(), root, h.Changes, false)
	if err != nil || len(out.Merged) != 1 || len(out.Conflicts) != 1 || out.Conflicts[0].Name != "dirty" || !slices.Equal(out.Already, []string{"same"}) {
		t.Errorf("%+v, %v", out, err)
	}
	if got, want := sh(t, root, "cat f"), strings.NewReplacer("2\n", "user\n", "9\n", "box\n").Replace(ten); got != want {
		t.Errorf("merged text %q, want %q", got, want)
	}
	// What both sides have is not lost when the user takes it back.
	sh(t, root, "git checkout -q same")
	if out, err := h.Apply(t.Context(), root, h.Changes, false); err != nil || sh(t, root, "cat same") != "both\n" {
		t.Errorf("%+v, %v", out, err)
	}
}

// Whatever two sides do to a text, either the result of both is there and stays,
// or the user's file is as it was.
func TestMergingTwiceChangesNothingMore(t *testing.T) {
	done := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		edit := func(text string) string {
			lines := strings.SplitAfter(text, "\n")
			for range 1 + r.IntN(3) {
				i := r.IntN(len(lines))
				lines[i] = []string{"", "x\n", "y\n" + lines[i], lines[i] + lines[i], "z"}[r.IntN(5)]
			}
			return strings.Join(lines, "")
		}
		base := ""
		for range 12 {
			base += []string{"a\n", "b\n", "\n", "c\n"}[r.IntN(4)]
		}
		ours, theirs := edit(base), edit(base)
		root, box, sb, h := sent(t, map[string]string{"f": base})
		os.WriteFile(filepath.Join(box, "f"), []byte(theirs), 0o644)
		if err := h.Bring(t.Context(), sb, true); err != nil {
			t.Fatal(err)
		}
		os.WriteFile(filepath.Join(root, "f"), []byte(ours), 0o644)
		out, err := h.Apply(t.Context(), root, h.Changes, false)
		if err != nil {
			t.Fatal(err)
		}
		first, _ := os.ReadFile(filepath.Join(root, "f"))
		if len(out.Conflicts) > 0 && string(first) != ours {
			t.Errorf("seed %d: a conflict changed %q to %q", seed, ours, first)
		}
		done += len(out.Merged)
		again, err := h.Apply(t.Context(), root, h.Changes, false)
		second, _ := os.ReadFile(filepath.Join(root, "f"))
		if err != nil || len(again.Made) > 0 || string(first) != string(second) || len(again.Conflicts) != len(out.Conflicts) {
			t.Errorf("seed %d: %q, %q and %q make %q, then %q: %+v, %v", seed, ours, base, theirs, first, second, again, err)
		}
	}
	if done < 5 {
		t.Errorf("only %d were merged", done)
	}
}

// One change that this computer does not take leaves the others be.
func TestANameThatCannotStandHereIsAConflictOfItsOwn(t *testing.T) {
	root, box, sb, h := sent(t, map[string]string{"a": "1"})
	sh(t, box, `echo x > a; echo new > z`)
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", 300)
	changes := append(slices.Clone(h.Changes), Change{Name: long, Now: h.Changes[0].Now}, Change{Name: long + "/f", Now: h.Changes[0].Now})
	for _, dry := range []bool{true, false} {
		out, err := h.Apply(t.Context(), root, changes, dry)
		if err != nil || len(out.Made) != 2 || len(out.Conflicts) != 2 {
			t.Errorf("dry=%v: %+v, %v", dry, out, err)
		}
	}
	if got := sh(t, root, `cat a z`); got != "x\nnew\n" {
		t.Errorf("the others: %q", got)
	}
}

// What was damaged where it is kept is put nowhere.
func TestDamagedContentIsNotApplied(t *testing.T) {
	root, box, sb, h := sent(t, map[string]string{"a": "1\n", "b": "1\n"})
	sh(t, box, `echo 2 > a; echo 3 > b`)
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.content(h.Changes[0].Now.Sum), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Tar(io.Discard, h.Changes); !errors.Is(err, errDamaged) {
		t.Errorf("an archive of it: %v", err)
	}
	var patch bytes.Buffer
	if left, err := h.Patch(&patch, h.Changes); err != nil || len(left) != 1 || left[0].Name != "a" || strings.Contains(patch.String(), "a/a") {
		t.Errorf("a patch of it: %+v, %v\n%s", left, err, patch.String())
	}
	sh(t, root, "git init -q; git add -A; git commit -qm start")
	if _, told, err := h.Branch(t.Context(), "work", "m", h.Changes); err != nil || len(told) != 1 || told[0].Name != "a" || !told[0].Lost {
		t.Errorf("a branch of it: %+v, %v", told, err)
	}
	if got := sh(t, root, "git diff --name-only HEAD work; rm -rf .git"); got != "b\n" {
		t.Errorf("the branch changes %q", got)
	}
	out, err := h.Apply(t.Context(), root, h.Changes, false)
	if err != nil || len(out.Made) != 1 || len(out.Conflicts) != 1 || out.Conflicts[0].Name != "a" {
		t.Errorf("%+v, %v", out, err)
	}
	if got := sh(t, root, `cat a b; ls -A`); got != "1\n3\na\nb\n" {
		t.Errorf("the project holds %q", got)
	}
}

//go:build unix

package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// marked are changes in short: A for what is new, M and D.
func marked(changes []Change) string {
	var words []string
	for _, c := range changes {
		mark := "M"
		switch {
		case c.Now == nil:
			mark = "D"
		case c.Was == nil:
			mark = "A"
		}
		words = append(words, mark+" "+c.Name)
	}
	return strings.Join(words, ", ")
}

func bring(t *testing.T, h *Home, box, script string) {
	t.Helper()
	sh(t, box, script)
	if err := h.Bring(t.Context(), boxAt(t, box, os.Getenv("PATH")), true); err != nil {
		t.Fatal(err)
	}
}

func apply(t *testing.T, h *Home, dry bool, conflicts string) *Outcome {
	t.Helper()
	out, err := h.Apply(t.Context(), h.Run.Project, h.Changes, dry)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range out.Conflicts {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, " "); got != conflicts {
		t.Errorf("these conflict (dry %v): %q, want %q: %+v", dry, got, conflicts, out.Conflicts)
	}
	return out
}

// TestWhatIsUndoneInTheSandboxIsUndoneInTheProject applies changes that the sandbox takes
// back later. The second time is another process, after the session.
func TestWhatIsUndoneInTheSandboxIsUndoneInTheProject(t *testing.T) {
	root, box, _, h := sent(t, map[string]string{"changed": ten, "text": ten, "gone": "gone\n", "mode": "m\n", "keep": "k\n"})
	sh(t, root, `printf 'both\n' > both`) // the user makes the same as the sandbox
	bring(t, h, box, `echo new > new; echo mine > mine; echo deleted > deleted; printf 'both\n' > both; sed -i s/5/FIVE/ changed text; rm gone; chmod 755 mode; mkdir -p d/e; echo f > d/e/f; echo K > keep`)
	apply(t, h, false, "")
	if got := marked(h.Since()); got != "" || !h.Applied() {
		t.Errorf("new since it was applied: %s", got)
	}
	sh(t, root, `echo more >> mine; rm deleted; sed -i s/9/user/ text`)
	bring(t, h, box, `rm new mine deleted both; sed -i s/FIVE/5/ changed text; printf 'gone\n' > gone; chmod 644 mode; rm -r d; echo KK > keep`)
	const want = "M changed, D d, D d/e, D d/e/f, D deleted, A gone, M keep, D mine, M mode, D new, M text"
	if got := marked(h.Since()); got != want {
		t.Errorf("new since it was applied: %s, want %s", got, want)
	}
	if err := h.Finish(); err != nil {
		t.Fatal(err)
	}
	h, err := OpenHome(h.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := marked(h.Since()); got != want || h.Empty() {
		t.Errorf("after the session: %s, want %s", got, want)
	}
	before := tree(t, root, true)
	apply(t, h, true, "mine")
	if after := tree(t, root, true); len(after) != len(before) {
		t.Error("a dry run changed something")
	}
	out := apply(t, h, false, "mine")
	if len(out.Merged) != 1 || out.Merged[0].Name != "text" {
		t.Errorf("merged: %+v", out.Merged)
	}
	if got, want := sh(t, root, `ls; cat changed text gone keep both mine; stat -c %a mode`),
		"both\nchanged\ngone\nkeep\nmine\nmode\ntext\n"+ten+strings.Replace(ten, "9", "user", 1)+"gone\nKK\nboth\nmine\nmore\n644\n"; got != want {
		t.Errorf("the project holds\n%s, want\n%s", got, want)
	}
	if got := marked(h.Since()); got != "D mine" {
		t.Errorf("new since it was applied again: %s", got)
	}
}

// TestWhatCannotBeSeenIsNotUndone hides what was applied in the sandbox, and puts something
// in its place that does not come home.
func TestWhatCannotBeSeenIsNotUndone(t *testing.T) {
	root, box, _, h := sent(t, map[string]string{"a": "a\n"})
	bring(t, h, box, `echo one > one; echo two > two`)
	apply(t, h, false, "")
	bring(t, h, box, `rm one; mkfifo one; rm two`)
	apply(t, h, false, "")
	if got := sh(t, root, "ls"); got != "a\none\n" {
		t.Errorf("the project holds %s", got)
	}
}

// TestAPatchHasWhatIsNewSinceItWasApplied makes one that git applies to the project as it
// stands.
func TestAPatchHasWhatIsNewSinceItWasApplied(t *testing.T) {
	root, box, _, h := sent(t, map[string]string{"a": ten})
	bring(t, h, box, `sed -i s/5/FIVE/ a; echo b > b; echo c > c`)
	apply(t, h, false, "")
	bring(t, h, box, `sed -i s/6/SIX/ a; rm b; echo d > d`)
	if err := h.Finish(); err != nil {
		t.Fatal(err)
	}
	var patch bytes.Buffer
	if left, err := h.Patch(&patch, h.Since()); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	file := filepath.Join(t.TempDir(), "p")
	if err := os.WriteFile(file, patch.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	sh(t, root, "git apply "+file)
	if got, want := sh(t, root, "ls; cat a c d"), "a\nc\nd\n"+strings.NewReplacer("5", "FIVE", "6", "SIX").Replace(ten)+"c\nd\n"; got != want {
		t.Errorf("the project holds\n%s, want\n%s", got, want)
	}
}

// TestABranchIsWholeAfterSomeWasApplied makes one on top of a commit that has what was
// applied in part.
func TestABranchIsWholeAfterSomeWasApplied(t *testing.T) {
	root := lay(t, map[string]string{"a": ten, "b": ten})
	sh(t, root, `git init -q; git add -A; git commit -qm start`)
	box := t.TempDir()
	h := upload(t, root, box)
	bring(t, h, box, `sed -i s/5/FIVE/ a b; echo in > committed; echo out > uncommitted; echo x > theirs`)
	apply(t, h, false, "")
	sh(t, root, `git add a committed; echo of the user > theirs; git add theirs; git commit -qm applied`)
	bring(t, h, box, `sed -i s/FIVE/FIFTH/ a; rm committed uncommitted theirs; echo new > new`)
	_, told, err := h.Branch(t.Context(), "work", "work", h.Changes)
	if err != nil || len(told) > 0 {
		t.Fatal(told, err)
	}
	if got, want := sh(t, root, "git ls-tree --name-only work; git show work:a; git show work:b; git show work:theirs"),
		"a\nb\nnew\ntheirs\n"+strings.Replace(ten, "5", "FIFTH", 1)+strings.Replace(ten, "5", "FIVE", 1)+"of the user\n"; got != want {
		t.Errorf("the branch holds\n%s, want\n%s", got, want)
	}
}

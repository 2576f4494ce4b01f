//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What was committed here while the sandbox worked is not taken back by the branch.
func TestABranchKeepsWhatItsCommitHas(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			const ten = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
			root := lay(t, map[string]string{"apart": ten, "lines": ten, "gone": ten, "dirty": ten, "equal": ten, "mode": ten, "still": ten, "bin": "a\x00b"})
			sh(t, root, `git init -q --object-format=`+format+`; git add -A; git commit -qm start; sed -i s/^10/TEN/ dirty; echo u > untracked`)
			box := t.TempDir()
			h := upload(t, root, box)
			sb := boxAt(t, box, os.Getenv("PATH"))
			sh(t, box, `sed -i s/^1$/ONE/ apart lines dirty equal mode still; rm gone; printf 'a\0c' > bin; echo v > untracked; echo n > new`)
			if err := h.Bring(t.Context(), sb, true); err != nil {
				t.Fatal(err)
			}
			sh(t, root, `git checkout -q dirty; sed -i s/^10/TEN/ apart gone; sed -i s/^1$/EINS/ lines; sed -i s/^1$/ONE/ equal; printf 'b\0b' > bin; chmod +x mode; git add -u; git commit -qm more`)
			_, whole, err := h.Branch(t.Context(), "work", "m", h.Changes)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, l := range whole {
				names = append(names, l.Name)
			}
			if want := []string{"bin", "gone", "lines"}; !slices.Equal(names, want) {
				t.Errorf("told of %q, want %q", names, want)
			}
			const one = "ONE\n2\n3\n4\n5\n6\n7\n8\n9\n"
			for name, want := range map[string]string{"apart": one + "TEN\n", "lines": one + "10\n", "dirty": one + "10\n", "equal": one + "10\n", "still": one + "10\n", "bin": "a\x00c", "untracked": "v\n", "new": "n\n"} {
				if got := sh(t, root, `git cat-file blob work:`+name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if got := sh(t, root, `git ls-tree work mode gone | cut -c1-6`); got != "100755\n" {
				t.Errorf("modes: %q, want that of the commit, and no file that is gone", got)
			}
			if _, again, err := h.Branch(t.Context(), "work", "m", h.Changes); err != nil || len(again) != len(whole) {
				t.Errorf("made twice: %v, %v", again, err)
			}
		})
	}
}

// A submodule stays one, and what changed in it is named.
func TestABranchLeavesOtherRepositoriesAlone(t *testing.T) {
	root := lay(t, map[string]string{"f": "1\n", "loose/own": "1\n", "mod/deep/g": "1\n", "mod/h": "1\n"})
	sh(t, root, `for d in loose mod; do (cd $d; git init -q; git add -A; git commit -qm start); done; git init -q; git add f; git update-index --add --cacheinfo "160000,$(git -C mod rev-parse HEAD),mod"; git commit -qm start`)
	box := t.TempDir()
	h := upload(t, root, box)
	sb := boxAt(t, box, os.Getenv("PATH"))
	sh(t, box, `echo 2 > f; echo 2 > loose/own; echo 2 > mod/deep/g; rm mod/h; mkdir mod/new`)
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	_, told, err := h.Branch(t.Context(), "work", "m", h.Changes)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range told {
		if l.Lost {
			names = append(names, l.Name)
		}
	}
	if want := []string{"loose/own", "mod/deep/g", "mod/h"}; !slices.Equal(names, want) {
		t.Errorf("named %q, want %q", names, want)
	}
	if got := sh(t, root, `git diff --name-only HEAD work`); got != "f\n" {
		t.Errorf("the branch changes %q", got)
	}
}

// A work tree, and a submodule, have their repository somewhere else.
func TestABranchOfAWorkTreeAndOfASubmodule(t *testing.T) {
	top := t.TempDir()
	sh(t, top, `git init -q sub; cd sub; echo s > s.txt; printf '*.skip\n' > .gitignore; git add -A; git commit -qm s; cd ..
git init -q main; cd main; echo a > s.txt; cp ../sub/.gitignore .; git add -A; git commit -qm s
git -c protocol.file.allow=always submodule -q add ../sub mod; git commit -qm sub; git worktree add -q ../tree; echo x > ../tree/x.skip; echo x > mod/x.skip`)
	for _, name := range []string{"tree", "main/mod"} {
		t.Run(name, func(t *testing.T) {
			root, box := filepath.Join(top, name), t.TempDir()
			before := sh(t, root, "git status --porcelain; git rev-parse HEAD; ls -A")
			p, err := Make(t.Context(), root, Rules{MaxFileBytes: 10 << 20, Gitignore: true})
			sb := boxAt(t, box, os.Getenv("PATH"))
			if err == nil {
				err = p.Upload(t.Context(), sb, box, nil, nil)
			}
			if err != nil || !slices.Equal(p.Skipped[GitIgnored], []string{"x.skip"}) {
				t.Fatal(p, err)
			}
			h := homeOf(t, sb, root, box, p)
			sh(t, box, "echo new > new; echo more >> s.txt; mkdir deep; echo d > deep/d")
			if err := h.Bring(t.Context(), sb, true); err != nil {
				t.Fatal(err)
			}
			if _, told, err := h.Branch(t.Context(), "work", "m", h.Changes); err != nil || len(told) > 0 {
				t.Fatal(told, err)
			}
			if got := sh(t, root, "git diff --name-status HEAD work"); got != "A\tdeep/d\nA\tnew\nM\ts.txt\n" {
				t.Errorf("the branch changes %q", got)
			}
			if after := sh(t, root, "git status --porcelain; git rev-parse HEAD; ls -A"); after != before {
				t.Errorf("the work tree was %q, is %q", before, after)
			}
			if out, err := h.Apply(t.Context(), root, h.Changes, false); err != nil || len(out.Conflicts) > 0 {
				t.Fatal(out, err)
			}
			if got := sh(t, root, "git add -A; git diff --cached --name-only work"); got != "" {
				t.Errorf("applied, the work tree differs: %q", got)
			}
		})
	}
}

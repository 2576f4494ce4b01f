//go:build unix

package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// homeOf is the home of a session whose sandbox stands at box.
func homeOf(t testing.TB, sb sandbox.Sandbox, project, box string, p *Plan) *Home {
	t.Helper()
	l, err := List(t.Context(), sb, box, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewHome(filepath.Join(t.TempDir(), "run"), Run{Project: project}, box, p, l)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// sent is a project, a sandbox with a copy of it, and the home of the session.
func sent(t testing.TB, files map[string]string) (root, box string, sb sandbox.Sandbox, h *Home) {
	t.Helper()
	root, box = lay(t, files), t.TempDir()
	return root, box, boxAt(t, box, os.Getenv("PATH")), upload(t, root, box)
}

func upload(t testing.TB, root, box string) *Home {
	t.Helper()
	sb := boxAt(t, box, os.Getenv("PATH"))
	p, err := Make(t.Context(), root, Rules{MaxFileBytes: 10 << 20})
	if err == nil {
		err = p.Upload(t.Context(), sb, box, nil, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return homeOf(t, sb, root, box, p)
}

// sh runs a script in a directory.
func sh(t testing.TB, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// tree lists a directory with modes, links and content.
func tree(t testing.TB, dir string, modes bool) map[string]string {
	t.Helper()
	l, err := List(t.Context(), boxAt(t, dir, os.Getenv("PATH")), dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for name, e := range l.Tree {
		e.stamp = ""
		if !modes {
			if e.isDir() {
				continue
			}
			e.Mode &= 0o100
		}
		m[name] = fmt.Sprintf("%+v", e)
	}
	return m
}

func sameTrees(t testing.TB, a, b string) { t.Helper(); compareTrees(t, a, b, true) }

func compareTrees(t testing.TB, a, b string, modes bool) {
	t.Helper()
	got, want := tree(t, a, modes), tree(t, b, modes)
	for name := range got {
		if got[name] != want[name] {
			t.Errorf("%q: %s, want %s", name, got[name], want[name])
		}
	}
	for name := range want {
		if _, is := got[name]; !is {
			t.Errorf("%q is missing, want %s", name, want[name])
		}
	}
}

var start = map[string]string{
	"a.txt": "one\ntwo\nthree\n", "noend": "x", "bin": "a\x00b", "run.sh": "#!/bin/sh\n", "gone": "x\n", "empty": "", "d/e/f": "deep\n", "d/g": "g\n",
	"link": "->a.txt", "wasfile": "file\n", "wasdir/x": "x\n", "waslink": "->a.txt", "void/": "", "sp ace": "x\n", "uml\u00e4ut": "x\n", "q\"uote": "x\n", "crlf": "a\r\nb\r\n", "back\\slash": "x\n", "\xff": "x\n",
}

const work = `printf 'one\n2\nthree\nfour' > a.txt; echo y >> noend; printf 'a\0c' > bin; chmod +x run.sh; rm gone empty; rm -r d/e; mkdir -p new/deep; echo n > new/deep/f; : > new/none
ln -sfn bin link; rm wasfile; mkdir wasfile; echo in > wasfile/in; rm -r wasdir; echo f > wasdir; rm waslink; echo real > waslink; rmdir void; mkdir hollow; chmod 700 hollow
echo s >> 'sp ace'; echo u >> umläut; echo q >> 'q"uote'; printf 'a\r\nc\r\n' > crlf; echo b >> 'back\slash'; echo r > "$(printf '\377')"; mv d/g d/h; ln d/h d/hard
head -c 70000 /dev/urandom > blob; chmod 640 blob; ln -s nowhere dangling; mkdir tests dist; echo t > tests/t; echo d > dist/d; echo i > ignored.log; mkdir node_modules; echo n > node_modules/n; echo nl > "$(printf 'new\nline')"`

func TestEverythingComesBackExactly(t *testing.T) {
	root, box, sb, h := sent(t, start)
	sh(t, box, work)
	if err := h.Bring(t.Context(), sb, true); err != nil || len(h.Left) > 0 {
		t.Fatal(h.Left, err)
	}
	if err := h.Finish(); err != nil {
		t.Fatal(err)
	}
	h, err := OpenHome(h.Dir)
	if err != nil {
		t.Fatal(err)
	}
	take, aside := h.Split(false)
	if len(aside) > 0 {
		t.Errorf("set aside: %v", aside)
	}
	patched := t.TempDir()
	sh(t, root, `cp -a . "`+patched+`"`)
	dry, err := h.Apply(t.Context(), root, take, true)
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Apply(t.Context(), root, take, false)
	if err != nil || len(out.Conflicts) > 0 {
		t.Fatal(out, err)
	}
	if !slices.Equal(dry.Made, out.Made) {
		t.Errorf("it would do %q, and did %q", dry.Made, out.Made)
	}
	os.RemoveAll(filepath.Join(box, "node_modules"))
	sameTrees(t, root, box)
	again, err := h.Apply(t.Context(), root, take, false)
	if err != nil || len(again.Made)+len(again.Conflicts) > 0 {
		t.Errorf("applied twice: %+v, %v", again, err)
	}

	// The patch, with the settings of a user who has everything set otherwise.
	var patch bytes.Buffer
	if left, err := h.Patch(&patch, take); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	file := filepath.Join(t.TempDir(), "p")
	os.WriteFile(file, patch.Bytes(), 0o600)
	for _, repo := range []string{"", "git init -q; git config diff.noprefix true; git config apply.whitespace fix; git config color.ui always; "} {
		dir := t.TempDir()
		sh(t, patched, `cp -a . "`+dir+`"`)
		check := " --whitespace=nowarn"
		sh(t, dir, repo+`git apply`+check+` "`+file+`"; rm -rf .git`)
		compareTrees(t, dir, box, false)
	}
}

func TestNewerWorkOfTheUserIsNeverOverwritten(t *testing.T) {
	root, box, sb, h := sent(t, map[string]string{"edited": "x", "both": "x", "mine": "x", "deleted": "x", "kept": "x", "chmod": "x", "dir/a": "x", "link/a": "x"})
	sh(t, box, `echo box > edited; echo same > both; rm mine; echo box > deleted; echo box > kept; echo box > chmod; echo new > new; rm -r dir; echo box > link/b; mkdir made; echo x > made/x`)
	sh(t, root, `echo user > edited; echo same > both; echo user > mine; rm deleted; chmod 600 chmod; echo user > new; echo user > dir/mine; mv link real; ln -s real link; echo user > made`)
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	before := tree(t, root, true)
	out, err := h.Apply(t.Context(), root, h.Changes, false)
	if err != nil {
		t.Fatal(err)
	}
	var conflicts []string
	for _, c := range out.Conflicts {
		conflicts = append(conflicts, c.Name)
	}
	if want := []string{"deleted", "edited", "link/b", "made", "made/x", "mine", "new"}; !slices.Equal(conflicts, want) {
		t.Errorf("conflicts %q, want %q: %v", conflicts, want, out.Conflicts)
	}
	after := tree(t, root, true)
	for name := range before {
		if before[name] != after[name] && !slices.Contains([]string{"kept", "chmod", "dir/a"}, name) {
			t.Errorf("%q was changed: %s, now %s", name, before[name], after[name])
		}
	}
	if got := sh(t, root, `cat kept chmod; stat -c %a chmod; ls dir`); got != "box\nbox\n600\nmine\n" {
		t.Errorf("after applying: %q", got)
	}
}

func TestWhatActsOnThisComputerIsSetAside(t *testing.T) {
	root, box, sb, h := sent(t, map[string]string{"a": "x"})
	sh(t, box, `mkdir -p .git/hooks .github/workflows .TALKOPS .vscode sub d; echo x > .git/hooks/post-checkout; echo x > .github/workflows/ci.yml; echo x > .github/CODEOWNERS; echo x > .TALKOPS/config.toml
echo x > .envrc; echo x > .vscode/tasks.json; echo TOKEN=1 > sub/.env; echo x > .bashrc; ln -s /etc/passwd abs; ln -s ../../x up; ln -s . here; ln -s here/../../x hidden; ln -s .git/hooks hooks; ln -s ../a d/ok; mkfifo fifo; echo x > su; chmod 4755 su; echo y > a; echo x > '.ſsh'; mkdir sub/.ssh; echo k > sub/.ssh/config; mkdir 'GIT~1'`)
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	take, aside := h.Split(false)
	var kept []string
	for _, a := range aside {
		kept = append(kept, a.Name)
	}
	want := []string{".TALKOPS", ".TALKOPS/config.toml", ".bashrc", ".envrc", ".github/workflows", ".github/workflows/ci.yml", ".vscode", ".vscode/tasks.json", ".ſsh", "GIT~1", "abs", "hidden", "hooks", "sub", "sub/.env", "sub/.ssh", "sub/.ssh/config", "up"}
	if !slices.Equal(kept, want) {
		t.Errorf("set aside %q\nwant %q", kept, want)
	}
	if out, err := h.Apply(t.Context(), root, take, false); err != nil || len(out.Conflicts) > 0 {
		t.Fatal(out, err)
	}
	if got, want := sh(t, root, `find . | LC_ALL=C sort; stat -c %a su`), ".\n./.github\n./.github/CODEOWNERS\n./a\n./d\n./d/ok\n./here\n./su\n755\n"; got != want {
		t.Errorf("applied:\n%s\nwant\n%s", got, want)
	}
	all, never := h.Split(true)
	for _, a := range never {
		if a.Why != "leads out of the project" && a.Name != "hooks" && a.Name != "GIT~1" {
			t.Errorf("%q stays aside: %s", a.Name, a.Why)
		}
	}
	if out, err := h.Apply(t.Context(), root, all, false); err != nil || len(out.Conflicts) > 0 {
		t.Fatal(out, err)
	}
	if got := sh(t, root, `cat .envrc sub/.env; test ! -e abs; test ! -h up`); got != "x\nTOKEN=1\n" {
		t.Errorf("with a word of the user: %q", got)
	}
	if len(h.Left) != 1 || h.Left[0].Name != "fifo" || h.Left[0].Lost {
		t.Errorf("left: %+v", h.Left)
	}
}

// TestADirectoryGoesWithWhatIsSetAside makes directories for what is set aside alone, at
// several levels, and others that hold or held more, or nothing.
func TestADirectoryGoesWithWhatIsSetAside(t *testing.T) {
	root, box, sb, h := sent(t, map[string]string{"a": "x", "held/a": "x", "old/a": "x"})
	sh(t, box, `mkdir -p .github/workflows new/in/deep beside links/in hollow mixed; echo x > .github/workflows/ci.yml; echo x > new/in/deep/.env; echo x > beside/.env; echo x > beside.txt
echo x > old/.env; ln -s /etc links/in/etc; echo x > mixed/.env; ln -s /etc mixed/etc; mkdir -p more/in; echo x > more/in/.env; echo x > more/a; chmod 700 held; echo x > held/.env`)
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		all           bool
		there, asides string
	}{
		{false, ". ./a ./beside.txt ./held ./held/a ./hollow ./more ./more/a ./old ./old/a",
			".github .github/workflows .github/workflows/ci.yml beside beside/.env held/.env links links/in links/in/etc mixed mixed/.env mixed/etc more/in more/in/.env new new/in new/in/deep new/in/deep/.env old/.env"},
		{true, ". ./.github ./.github/workflows ./.github/workflows/ci.yml ./a ./beside ./beside.txt ./beside/.env ./held ./held/.env ./held/a ./hollow ./mixed ./mixed/.env ./more ./more/a ./more/in ./more/in/.env ./new ./new/in ./new/in/deep ./new/in/deep/.env ./old ./old/.env ./old/a",
			"links links/in links/in/etc mixed/etc"},
	} {
		take, aside := h.Split(row.all)
		if len(take)+len(aside) != len(h.Changes) || !slices.IsSortedFunc(take, func(x, y Change) int { return strings.Compare(x.Name, y.Name) }) {
			t.Errorf("%d taken in this order and %d set aside are not all of %d: %v", len(take), len(aside), len(h.Changes), take)
		}
		var names []string
		for _, x := range aside {
			names = append(names, x.Name)
			if forever := strings.HasPrefix(x.Name, "links") || x.Name == "mixed/etc"; x.Never != forever {
				t.Errorf("%q is set aside for ever: %v", x.Name, x.Never)
			}
		}
		if got := strings.Join(names, " "); got != row.asides {
			t.Errorf("set aside\n%s\nwant\n%s", got, row.asides)
		}
		if out, err := h.Apply(t.Context(), root, take, false); err != nil || len(out.Conflicts) > 0 {
			t.Fatal(out, err)
		}
		if got := strings.Join(strings.Fields(sh(t, root, `find . | LC_ALL=C sort`)), " "); got != row.there {
			t.Errorf("applied\n%s\nwant\n%s", got, row.there)
		}
	}
}

func TestABranchTouchesNothingElse(t *testing.T) {
	root := lay(t, start)
	sh(t, root, `git init -q; git config user.name u; git config user.email u@example.com; git config commit.gpgsign true; git config filter.x.clean 'touch ran; cat'; echo '*.txt filter=x' > .git/info/attributes
printf '#!/bin/sh\ntouch "$PWD/ran"\n' > .git/hooks/reference-transaction; chmod +x .git/hooks/reference-transaction; git -c commit.gpgsign=false -c core.hooksPath=/dev/null add -A; git -c commit.gpgsign=false -c core.hooksPath=/dev/null commit -qm start; rm -f ran; echo staged > staged; git add staged; echo dirty >> noend`)
	box := t.TempDir()
	h := upload(t, root, box)
	sb := boxAt(t, box, os.Getenv("PATH"))
	sh(t, box, work)
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	take, _ := h.Split(false)
	const state = `git --no-optional-locks status --porcelain=v2 --branch -z -- ':!ran' | od -c; git rev-parse HEAD; git stash list; cat .git/HEAD; sha256sum .git/index .git/config`
	before := sh(t, root, state+"; rm -f ran")
	os.Remove(filepath.Join(box, "ran"))
	files := tree(t, root, true)
	commit, _, err := h.Branch(t.Context(), "agent/work", "work of a session", take)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(root, "ran")); err == nil {
		t.Error("a program of the repository was run")
	}
	if after := sh(t, root, state+"; rm -f ran"); after != before {
		t.Errorf("the repository's state was\n%s\nand is\n%s", before, after)
	}
	for name, e := range tree(t, root, true) {
		if files[name] != e {
			t.Errorf("%q was changed", name)
		}
	}
	if again, _, err := h.Branch(t.Context(), "agent/work", "another", take); err != nil || again != commit {
		t.Errorf("made twice: %s, %v; want %s", again, err, commit)
	}
	os.RemoveAll(filepath.Join(box, "node_modules"))
	os.Remove(filepath.Join(box, "staged")) // in no commit
	os.Remove(filepath.Join(root, "staged"))
	dir := t.TempDir()
	sh(t, root, `git -c core.hooksPath=/dev/null -c filter.x.clean= worktree add -q "`+dir+`/w" agent/work; rm "`+dir+`/w/.git"`)
	compareTrees(t, filepath.Join(dir, "w"), box, false)
	for _, bad := range []string{"-x", "a..b", "", "a b", "refs/heads/../x"} {
		if _, _, err := h.Branch(t.Context(), bad, "m", take); err == nil {
			t.Errorf("a branch %q was made", bad)
		}
	}
	if _, _, err := h.Branch(t.Context(), "master", "m", take); err == nil && sh(t, root, `git branch --show-current`) == "master\n" {
		t.Error("a branch that exists was moved")
	}
	for _, row := range []struct {
		name string
		can  bool
	}{{"master", false}, {"agent", false}, {"agent/work", false}, {"agent/work" + "/more", false}, {"-x", false}, {"a..b", false}, {"agent/worker", true}, {"other", true}} {
		if err := h.Branchable(t.Context(), row.name); (err == nil) != row.can {
			t.Errorf("Branchable(%q) is %v", row.name, err)
		}
	}
	h.Run.Project = t.TempDir()
	if err := h.Branchable(t.Context(), "other"); !errors.Is(err, ErrNoRepository) {
		t.Errorf("without a repository: %v", err)
	}
}

func TestWorkIsBroughtHomeBitByBit(t *testing.T) {
	_, box, sb, h := sent(t, map[string]string{"a": "1", "b": "2"})
	sh(t, box, `echo x > a; echo new > c`)
	if err := h.Bring(t.Context(), sb, false); err != nil {
		t.Fatal(err)
	}
	if killed, err := OpenHome(h.Dir); err != nil || killed.Run.Whole || killed.String() != "2 written, 0 deleted" {
		t.Errorf("after the first call: %v, %v", killed, err)
	}
	sh(t, box, `printf 1 > a; rm b c; echo d > d`) // a is as it was
	if err := h.Bring(t.Context(), sb, false); err != nil {
		t.Fatal(err)
	}
	if got, want := h.String(), "1 written, 1 deleted"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := h.Finish(); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(filepath.Join(h.Dir, "content")); len(entries) != 2 { // d, and what b was
		t.Errorf("%d contents are kept, want 2", len(entries))
	}
}

// What was applied while a session goes on is no change of the user's when more of it is
// applied later.
func TestWorkIsAppliedAgainAsItGoesOn(t *testing.T) {
	root, box, sb, h := sent(t, map[string]string{"a": "one\ntwo\nthree\nfour\nfive\n", "b": "b\n", "gone": "gone\n", "mine": "mine\n"})
	apply := func(script, want string) *Outcome {
		t.Helper()
		sh(t, box, script)
		if err := h.Bring(t.Context(), sb, true); err != nil {
			t.Fatal(err)
		}
		for _, dry := range []bool{true, false} {
			out, err := h.Apply(t.Context(), root, h.Changes, dry)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, c := range out.Conflicts {
				names = append(names, c.Name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("after %s (dry %v) these conflict: %q, want %q: %+v", script, dry, got, want, out.Conflicts)
			}
			if !dry {
				return out
			}
		}
		return nil
	}
	apply(`sed -i s/one/ONE/ a; echo new > new; rm gone; echo x > mine`, "")
	sh(t, root, `sed -i s/five/FIVE/ a; echo other > mine`) // the user's own, meanwhile
	out := apply(`sed -i s/two/TWO/ a; echo newer > new; echo back > gone; echo y > mine`, "mine")
	if len(out.Merged) != 1 || out.Merged[0].Name != "a" {
		t.Errorf("merged: %+v", out.Merged)
	}
	if got, want := sh(t, root, `cat a new gone mine`), "ONE\nTWO\nthree\nfour\nFIVE\nnewer\nback\nother\n"; got != want {
		t.Errorf("the project holds\n%s, want\n%s", got, want)
	}
	// What the user takes back comes again when it is asked for again.
	sh(t, root, `rm new; printf 'gone\n' > gone`)
	apply(`true`, "mine")
	if got, want := sh(t, root, `cat new gone`), "newer\nback\n"; got != want {
		t.Errorf("the project holds\n%s, want\n%s", got, want)
	}
}

// What a random sandbox did, applied to what it began with, is what it holds.
func TestExportAndApplyGiveTheTreeTheyCameFrom(t *testing.T) {
	seeds := []uint64{124} // a link in whose place comes a directory
	for seed := range uint64(30) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 7))
		name := func() string {
			var parts []string
			for range 1 + r.IntN(3) {
				parts = append(parts, []string{"a", "b", "c d", "é", "x\ny", "'", `\`, "-z", "\xfe"}[r.IntN(9)])
			}
			return strings.Join(parts, "/")
		}
		mutate := func(dir string, n int) {
			for range n {
				p := filepath.Join(dir, name())
				switch r.IntN(8) {
				case 0:
					os.RemoveAll(p)
				case 1:
					os.RemoveAll(p)
					os.MkdirAll(filepath.Dir(p), 0o755)
					os.Symlink([]string{"nowhere", "none", "."}[r.IntN(3)], p) // links in a circle stop git
				case 2:
					os.MkdirAll(p, 0o755)
				case 3:
					if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() {
						os.Chmod(p, []os.FileMode{0o644, 0o755, 0o600, 0o444}[r.IntN(4)])
					}
				case 4:
					os.Rename(p, filepath.Join(dir, name()))
				default:
					os.MkdirAll(filepath.Dir(p), 0o755)
					if info, err := os.Lstat(p); err != nil || info.Mode().IsRegular() {
						os.Remove(p)
						content := strings.Repeat([]string{"line\n", "x", "\x00", "a\r\n"}[r.IntN(4)], r.IntN(30))
						os.WriteFile(p, []byte(content+fmt.Sprint(r.IntN(3))), 0o644)
					}
				}
			}
		}
		root := t.TempDir()
		mutate(root, 40)
		copied, box := t.TempDir(), t.TempDir()
		sh(t, root, `chmod -R u+rwX .`)
		sh(t, root, `cp -a . "`+copied+`"`)
		h := upload(t, root, box)
		sb := boxAt(t, box, os.Getenv("PATH"))
		for range 3 {
			mutate(box, 15)
			if err := h.Bring(t.Context(), sb, false); err != nil {
				t.Fatal(seed, err)
			}
		}
		if err := h.Bring(t.Context(), sb, true); err != nil {
			t.Fatal(seed, err)
		}
		out, err := h.Apply(t.Context(), root, h.Changes, false)
		if err != nil || len(out.Conflicts) > 0 {
			t.Fatalf("seed %d: %+v, %v", seed, out.Conflicts, err)
		}
		sameTrees(t, root, box)
		// Directories without files, which git does not know, would be in its way.
		sh(t, copied, `find . -mindepth 1 -type d -empty -delete`)
		first, then := Steps(h.Changes)
		for _, changes := range [][]Change{first, then} {
			var patch bytes.Buffer
			if left, err := h.Patch(&patch, changes); err != nil || len(left) > 0 {
				t.Fatal(seed, left, err)
			}
			if file := filepath.Join(t.TempDir(), "p"); patch.Len() > 0 {
				os.WriteFile(file, patch.Bytes(), 0o600)
				sh(t, copied, `git apply --whitespace=nowarn "`+file+`"`)
			}
		}
		compareTrees(t, copied, box, false)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestWorkComesHomeFromEveryUserland(t *testing.T) {
	for userland, path := range userlands(t) {
		t.Run(userland, func(t *testing.T) {
			root, box, _, h := sent(t, start)
			sb := boxAt(t, box, path)
			l, err := List(t.Context(), sb, box, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, e := range l.Tree { // as it would have been listed there
				h.base.Tree[name] = e.saved()
			}
			h.last = l.Tree
			sh(t, box, `echo first > a.txt; echo x > later; echo y > gone`)
			if err := h.Bring(t.Context(), sb, false); err != nil {
				t.Fatal(err)
			}
			sh(t, box, work+"; echo second > later")
			for _, whole := range []bool{false, true} {
				if err := h.Bring(t.Context(), sb, whole); err != nil || len(h.Left) > 0 {
					t.Fatal(h.Left, err)
				}
			}
			if h, err = OpenHome(h.Dir); err != nil {
				t.Fatal(err)
			}
			if out, err := h.Apply(t.Context(), root, h.Changes, false); err != nil || len(out.Conflicts) > 0 {
				t.Fatal(out, err)
			}
			os.RemoveAll(filepath.Join(box, "node_modules"))
			sameTrees(t, root, box)
		})
	}
}

// Holes are no data on the way home either.
func TestAFileWithHolesComesHomeWithThem(t *testing.T) {
	root, box, sb, h := sent(t, map[string]string{"a": "x"})
	sh(t, box, `truncate -s 20M image; printf middle | dd of=image bs=1 seek=7000001 conv=notrunc 2>/dev/null; truncate -s 3000001 odd; printf x >> odd`)
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	if out, err := h.Apply(t.Context(), root, h.Changes, false); err != nil || len(out.Made) != 2 {
		t.Fatal(out, err)
	}
	sameTrees(t, root, box)
	for _, name := range []string{"image", "odd"} {
		for _, file := range []string{filepath.Join(root, name), h.content(h.change(name).Now.Sum)} {
			if info, err := os.Stat(file); err != nil || stored(info) > 64<<10 {
				t.Errorf("%s takes %d bytes of the disk: %v", file, stored(info), err)
			}
		}
	}
}

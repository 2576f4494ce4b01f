//go:build unix

package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// lay writes a tree: names ending in "/" are directories, values that begin with
// "->" are links.
func lay(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch target, isLink := strings.CutPrefix(content, "->"); {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(p, 0o755)
		case isLink:
			err = os.Symlink(target, p)
		default:
			err = os.WriteFile(p, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func names(p *Plan) []string {
	var list []string
	for _, item := range p.Items {
		list = append(list, item.Name)
	}
	slices.Sort(list)
	return list
}

var limits = Rules{MaxFileBytes: 10 << 20}

func TestWhatStaysAtHome(t *testing.T) {
	root := lay(t, map[string]string{
		"main.tf": "x", "a/b.yaml": "x", "empty/": "", "new\nline": "x",
		"node_modules/x.js": "x", "a/.terraform/p": "x", "tests/t.py": "x", "dist/o": "x", "x.pyc": "x", ".git/config": "x",
		".env": "x", ".env.example": "x", "id_rsa": "x", "id_rsa.pub": "x", "k/prod.pem": "x", "terraform.tfstate": "x", ".aws/credentials": "x", ".kube/config": "x",
		"SERVER.Key": "x", "id_ecdsa": "x", "id_ecdsa.pub": "x", ".docker/config.json": "x", "config.json": "x", "k/c.PFX": "x", ".git-credentials": "x",
		"plain.tfvars": "size = 3", "secret.tfvars.json": `{"key": "AKIAIOSFODNN7EXAMPLE"}`, "secret.tfvars": `key = "AKIAIOSFODNN7EXAMPLE"`,
		"in": "->main.tf", "dangling": "->nowhere", "out": "->../../etc/passwd", "abs": "->/etc/passwd", "loop": "->loop",
	})
	if err := syscall.Mkfifo(filepath.Join(root, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	big, err := os.Create(filepath.Join(root, "big"))
	if err != nil {
		t.Fatal(err)
	}
	big.Truncate(2 << 30)
	big.Close()
	exact, _ := os.Create(filepath.Join(root, "exact"))
	exact.Truncate(10 << 20)
	exact.Close()

	p, err := Make(t.Context(), root, limits)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".docker", ".env.example", ".kube", "a", "a/b.yaml", "config.json", "dangling", "empty", "exact", "id_ecdsa.pub", "id_rsa.pub", "in", "k", "loop", "main.tf", "new\nline", "plain.tfvars"}
	if got := names(p); !slices.Equal(got, want) {
		t.Errorf("sent %q\nwant %q", got, want)
	}
	for why, want := range map[Reason][]string{
		TooLarge: {"big"}, Outside: {"abs", "out"}, Special: {"fifo"},
		Secret: {".aws/", ".docker/config.json", ".env", ".git-credentials", ".kube/config", "SERVER.Key", "id_ecdsa", "id_rsa", "k/c.PFX", "k/prod.pem", "secret.tfvars", "secret.tfvars.json", "terraform.tfstate"},
	} {
		if got := slices.Sorted(slices.Values(p.Skipped[why])); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", why, got, want)
		}
	}
}

func TestRulesOfTheUser(t *testing.T) {
	root := lay(t, map[string]string{
		"tests/unit/a": "x", "tests/b": "x", "docs/c": "x", "docs/keep": "x", "log/x.log": "x", ".env": "x", ".talkopsignore": "log/\n# no\n*.md\n!README.md\n",
		"a.md": "x", "README.md": "x",
	})
	p, err := Make(t.Context(), root, Rules{MaxFileBytes: 100, Include: []string{"tests/", ".env"}, Exclude: []string{"docs/c"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".talkopsignore", "README.md", "docs", "docs/keep", "tests", "tests/b", "tests/unit", "tests/unit/a"}
	if got := names(p); !slices.Equal(got, want) {
		t.Errorf("sent %q\nwant %q", got, want)
	}
	p, err = Make(t.Context(), root, Rules{MaxFileBytes: 100, AllowSecrets: []string{".env"}})
	if err != nil || !slices.Contains(names(p), ".env") {
		t.Errorf("an allowed secret was not sent: %v", err)
	}
	if _, err := Make(t.Context(), root, Rules{MaxFileBytes: 100, MaxTotalBytes: 3}); err == nil || !strings.Contains(err.Error(), "Largest: ") {
		t.Errorf("a tree over the limit: %v", err)
	}
}

func TestGitDecidesWhatIsIgnoredWithoutRunningAnything(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	root := lay(t, map[string]string{".gitignore": "*.log\ncache/\n", "a.log": "x", "cache/x": "x", "kept": "x", "tests/t": "x", "hook": "#!/bin/sh\n: > \"$(dirname \"$0\")/ran\"\n"})
	os.Chmod(filepath.Join(root, "hook"), 0o755)
	for _, args := range [][]string{{"init", "-q"}, {"add", "tests"}, {"config", "core.fsmonitor", filepath.Join(root, "hook")}} {
		if out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", args, out)
		}
	}
	p, err := Make(t.Context(), root, Rules{MaxFileBytes: 100, Gitignore: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(p), []string{".gitignore", "hook", "kept"}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	if !slices.Equal(p.Tracked, []string{"tests/"}) {
		t.Errorf("tracked and skipped: %q", p.Tracked)
	}
	if _, err := os.Stat(filepath.Join(root, "ran")); err == nil {
		t.Error("a program named by the repository's git configuration was run")
	}
}

func TestUploadAndWayBack(t *testing.T) {
	root := lay(t, map[string]string{"run.sh": "#!/bin/sh\n", "d/f": "x", "empty/": "", "link": "->d/f", "odd\nname": "x", "it's": "x"})
	os.Chmod(filepath.Join(root, "run.sh"), 0o755)
	box := t.TempDir()
	sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{Dir: box, Env: map[string]string{"PATH": os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Make(t.Context(), root, limits)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Upload(t.Context(), sb, box, nil, nil); err != nil {
		t.Fatal(err)
	}
	before, err := List(t.Context(), sb, box, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewHome(filepath.Join(t.TempDir(), "run"), Run{Project: root}, box, p, before)
	if err != nil {
		t.Fatal(err)
	}
	if same, differ, err := p.Existing(t.Context(), sb, box, nil); err != nil || len(same) != 7 || len(differ) != 0 {
		t.Errorf("after an upload: same %v, differ %v, %v", same, differ, err)
	}
	script := `rm "it's"; chmod -x run.sh; echo new > 'dist
x'; mkdir -p build/deep; echo b > build/deep/f; rm link; ln -s run.sh link; mkdir -p .git; echo c > .git/x; echo y >> "odd
name"; echo z > 'back\nslash'`
	if exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"/bin/sh", "-c", script}}); exit != 0 || err != nil {
		t.Fatal(exit, err)
	}
	after, err := List(t.Context(), sb, box, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := Compare(before.Tree, after.Tree)
	if want := []string{`back\nslash`, "build/deep/f", "dist\nx", "link", "odd\nname", "run.sh"}; !slices.Equal(c.Written, want) || !slices.Equal(c.Deleted, []string{"it's"}) || !slices.Equal(c.Dirs, []string{"build", "build/deep"}) {
		t.Errorf("written %q, deleted %q", c.Written, c.Deleted)
	}
	if err := h.Bring(t.Context(), sb, true); err != nil || len(h.Left) > 0 {
		t.Fatal(h.Left, err)
	}
	if got, want := h.String(), "6 written, 1 deleted"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if out, err := h.Apply(t.Context(), root, h.Changes, false); err != nil || len(out.Conflicts) > 0 {
		t.Fatal(out, err)
	}
	os.RemoveAll(filepath.Join(box, ".git"))
	sameTrees(t, root, box)
}

func TestWhatStandsInAnAttachedSandboxIsLeftAlone(t *testing.T) {
	root := lay(t, map[string]string{"file": "x", "history/.bash_history": "x", "full": "x", "sub/f": "x", "sub/new": "x", "gone": "x", "tree/a": "x", "tree/b/c": "x"})
	box := lay(t, map[string]string{"file/": "", "full/.git/config": "theirs", "sub/f": "theirs", "tree": "->sub"})
	sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{Dir: box, Env: map[string]string{"PATH": os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Make(t.Context(), root, limits)
	if err != nil {
		t.Fatal(err)
	}
	same, differ, err := p.Existing(t.Context(), sb, box, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(differ)), []string{"file", "full", "sub/f", "tree", "tree/a", "tree/b", "tree/b/c"}; !slices.Equal(got, want) {
		t.Errorf("left alone: %q, want %q", got, want)
	}
	if got, want := slices.Sorted(maps.Keys(same)), []string{"sub"}; !slices.Equal(got, want) {
		t.Errorf("the same: %q, want %q", got, want)
	}
}

func TestWhatIsNoFileAnyMoreIsSkipped(t *testing.T) {
	root := lay(t, map[string]string{"a": "x", "b": "x"})
	p, err := Make(t.Context(), root, limits)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(root, "a"))
	if out, err := exec.Command("mkfifo", filepath.Join(root, "a")).CombinedOutput(); err != nil {
		t.Skipf("%s: %v", out, err)
	}
	if err := p.write(io.Discard, true, nil, nil); err != nil || !slices.Equal(p.Skipped[Unreadable], []string{"a"}) {
		t.Errorf("skipped %q, %v", p.Skipped[Unreadable], err)
	}
}

// A fullDisk loses the end of what commands print.
type fullDisk struct {
	sandbox.Sandbox
	room  int
	asked *int // how often something is run
}

func (d fullDisk) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	var all bytes.Buffer
	w := cmd.Stdout
	cmd.Stdout = &all
	*d.asked++
	exit, err := d.Sandbox.Exec(ctx, cmd)
	w.Write(all.Bytes()[:min(d.room, all.Len())])
	return exit, err
}

func TestAListThatWasCutIsNoList(t *testing.T) {
	box := lay(t, map[string]string{"a": "x", "b": "x"})
	sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{Dir: box, Env: map[string]string{"PATH": os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := List(t.Context(), sb, box, nil, nil)
	if err != nil || len(whole.Tree) != 2 {
		t.Fatal(whole, err)
	}
	for _, room := range []int{0, 10, 20} {
		asked := 0
		if cut, err := List(t.Context(), fullDisk{sb, room, &asked}, box, nil, nil); sandbox.CodeOf(err) != sandbox.CodeNoSpace {
			t.Errorf("with room for %d bytes: %v, %v; want %s", room, cut, err, sandbox.CodeNoSpace)
		}
		if asked > 3 {
			t.Errorf("with room for %d bytes no more came, and the list was asked for %d times", room, asked)
		}
	}
}

// A filling disk refuses so many commands, as one of which a provider gives a little
// room back every time.
type fillingDisk struct {
	sandbox.Sandbox
	refuse map[string]int // by what the command's script holds
}

func (d fillingDisk) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	for word, n := range d.refuse {
		if strings.Contains(cmd.Args[2], word) && n > 0 {
			d.refuse[word]--
			io.WriteString(cmd.Stdout, "t1\x00f"+strings.Repeat("f", looksAgain+1-n))
			return 1, &sandbox.Error{Code: sandbox.CodeNoSpace, Msg: "output may be lost"}
		}
	}
	return d.Sandbox.Exec(ctx, cmd)
}

func TestAListIsAskedForAgainWhereTheDiskIsFull(t *testing.T) {
	files := map[string]string{}
	for i := range 400 {
		files[fmt.Sprintf("%s-%d", strings.Repeat("n", 60), i)] = "x"
	}
	box := lay(t, files)
	sb := boxAt(t, box, os.Getenv("PATH"))
	for _, row := range []struct {
		known Tree // a list with it asks for checksums by themselves
		looks string
	}{{nil, "printf 'end"}, {Tree{}, "printf 'end"}, {Tree{}, `&& shift || exit 91`}} {
		l, err := List(t.Context(), fillingDisk{sb, map[string]int{row.looks: looksAgain}}, box, nil, row.known)
		if err != nil || len(l.Tree) != len(files) {
			t.Fatalf("refused so often: %v, %v", l, err)
		}
		for name, e := range l.Tree {
			if e.Sum == "" {
				t.Errorf("%s has no checksum", name)
			}
		}
		if _, err := List(t.Context(), fillingDisk{sb, map[string]int{row.looks: looksAgain + 1}}, box, nil, row.known); sandbox.CodeOf(err) != sandbox.CodeNoSpace {
			t.Errorf("refused more often: %v", err)
		}
	}
}

func TestManyChangesComeHome(t *testing.T) {
	box := t.TempDir()
	sb := boxAt(t, box, os.Getenv("PATH"))
	h := homeOf(t, sb, t.TempDir(), box, nil)
	for i := range 1000 {
		name := strings.Repeat("n", 80) + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		os.WriteFile(filepath.Join(box, name), []byte(name), 0o644)
	}
	if err := h.Bring(t.Context(), sb, true); err != nil || len(h.Changes) != 1000 {
		t.Fatal(len(h.Changes), err)
	}
	to := t.TempDir()
	if _, err := h.Pull(t.Context(), to, h.Changes); err != nil {
		t.Fatal(err)
	}
	sameTrees(t, to, box)
}

func TestSumIsThatOfTheTools(t *testing.T) {
	for _, text := range []string{"", "a", "hello\n", strings.Repeat("\x00\xff", 70000)} {
		f := filepath.Join(t.TempDir(), "f")
		os.WriteFile(f, []byte(text), 0o644)
		for _, tool := range []string{"cksum", "sha256sum"} {
			out, err := exec.Command("sh", "-c", tool+` < "$1"`, "sh", f).Output()
			if err != nil {
				t.Skip(err)
			}
			kind := strings.TrimSuffix(tool, "sum") + ":"
			if tool == "cksum" {
				kind = "cksum:"
			}
			got, err := localSum(f, kind)
			if err != nil {
				t.Fatal(err)
			}
			if want := kind + strings.Fields(string(out))[0]; got != want {
				t.Errorf("%.10q: %q, want %q", text, got, want)
			}
		}
	}
}

// A repository may be a partial clone whose configuration names the command that
// fetches what it lacks.
// A repository, submodule or work tree within the project has ignore rules of its own.
func TestWhatGitIgnoresInARepositoryWithinStaysAtHome(t *testing.T) {
	for _, around := range []string{"git init -q", "mkdir .talkops"} {
		root := lay(t, map[string]string{
			"top.log": "", "a/own/keys.json": "", "a/own/code": "", "a/own/out/x": "", "a/own/.gitignore": "keys.json\nout/\n",
			"empty/.git/": "", "empty/x": "",
		})
		sh(t, root, around+"; cd a/own; git init -q; git add .; git commit -qm start; git worktree add -q ../../tree; echo k > ../../tree/keys.json")
		p, err := Make(t.Context(), root, Rules{Gitignore: true, MaxFileBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(p.Skipped[GitIgnored])
		if got, want := p.Skipped[GitIgnored], []string{"a/own/keys.json", "a/own/out/", "tree/keys.json"}; !slices.Equal(got, want) {
			t.Errorf("after %q stay at home %q, want %q", around, got, want)
		}
		if !slices.ContainsFunc(p.Items, func(i Item) bool { return i.Name == "empty/x" }) {
			t.Errorf("after %q, what lies beside an empty .git does not go up", around)
		}
		sh(t, root, "rm -r a/own/.git")
		if _, err := Make(t.Context(), root, Rules{Gitignore: true, MaxFileBytes: 1 << 20}); err == nil || !strings.Contains(err.Error(), `"tree"`) {
			t.Errorf("after %q, a work tree whose repository is gone: %v", around, err)
		}
	}
}

func TestGitMayNotReachOut(t *testing.T) {
	bin, root := t.TempDir(), lay(t, map[string]string{".git/": "", "dist/x": "x"})
	seen := filepath.Join(bin, "seen")
	script := "#!/bin/sh\nenv >> " + sandbox.Quote(seen) + "\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("GIT_SSH_COMMAND", "false")
	if _, err := Make(t.Context(), root, Rules{MaxFileBytes: 100, Gitignore: true}); err != nil {
		t.Fatal(err)
	}
	env, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none"} {
		if n := strings.Count(string(env), want+"\n"); n != 2 {
			t.Errorf("%s was set in %d of 2 calls of git", want, n)
		}
	}
	if strings.Contains(string(env), "GIT_SSH_COMMAND") {
		t.Error("git got a setting of the surroundings")
	}
}

// What was sent before tells which side changed a file since.
func TestAttachingKnowsWhichSideChangedAFile(t *testing.T) {
	const ten = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	files := map[string]string{"same": ten, "here": ten, "there": ten, "both": ten, "lines": ten, "gone there": ten, "gone here": ten, "gone and changed": ten, "d/f": ten, "link": "->same", "mode": ten}
	root, box, sb, first := sent(t, files)
	sh(t, box, `sed -i s/^1$/ONE/ there both lines; rm 'gone there' 'gone and changed'; sed -i s/^1$/ONE/ d/f; chmod +x mode`)
	if err := first.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	if err := first.Finish(); err != nil {
		t.Fatal(err)
	}
	sh(t, root, `sed -i s/^9$/NINE/ here both 'gone and changed'; sed -i s/^1$/EINS/ lines; rm 'gone here'; ln -sfn here link; echo n > new`)

	earlier, err := OpenHome(first.Dir)
	if err == nil {
		err = earlier.Resume()
	}
	if err != nil {
		t.Fatal(err)
	}
	p := planHere(t, root)
	same, differ, err := p.Existing(t.Context(), sb, box, earlier)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(differ)), []string{"both", "d/f", "gone here", "gone there", "lines", "mode", "there"}; !slices.Equal(got, want) {
		t.Errorf("left alone: %q, want %q", differ, want)
	}
	if err := p.Upload(t.Context(), sb, box, func(name string) bool { return same[name] || differ[name] != "" }, nil); err != nil {
		t.Fatal(err)
	}
	var report strings.Builder
	p.Report(&report)
	if want := "1 file in step, 4 sent (50 B)\n"; report.String() != want {
		t.Errorf("the report is %q, want %q", report.String(), want)
	}
	for name, want := range map[string]string{"here": "NINE", "gone and changed": "NINE", "new": "n", "there": "ONE", "both": "ONE"} {
		if data, _ := os.ReadFile(filepath.Join(box, name)); !strings.Contains(string(data), want) {
			t.Errorf("%q holds %q there, want %q in it", name, data, want)
		}
	}

	// What is changed there now is a change of what was sent, and merged where that
	// can be done.
	h := homeOf(t, sb, root, box, p)
	sh(t, box, `sed -i s/^5$/FIVE/ here there both lines d/f; rm link`)
	if err := h.Bring(t.Context(), sb, true); err != nil {
		t.Fatal(err)
	}
	for _, c := range h.Changes {
		if c.Was == nil {
			t.Errorf("%q counts as new", c.Name)
		}
	}
	out, err := h.Apply(t.Context(), root, h.Changes, false)
	if err != nil || len(out.Conflicts) != 1 || out.Conflicts[0].Name != "lines" || len(out.Merged) != 1 || len(out.Made) != 5 {
		t.Errorf("applied: %+v, %v", out, err)
	}
	data, err := os.ReadFile(filepath.Join(root, "both"))
	if want := "ONE\n2\n3\n4\nFIVE\n6\n7\n8\nNINE\n10\n"; err != nil || string(data) != want {
		t.Errorf("both is %q, want %q", data, want)
	}
}

package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrBranchExists says that a branch of that name is there with other content.
var ErrBranchExists = errors.New("a branch of that name exists")

// ErrNoRepository says that the project is in none, so that there are no branches.
var ErrNoRepository = errors.New("not in a git repository")

// Branch makes a branch of the project's repository that holds the changes on
// top of its current commit. Work tree, index, HEAD and every other branch stay
// as they are; no hook, filter or other program of the repository is run. It
// returns the commit. A branch that holds just that already is no error.
//
// Of what was applied, the commit may have that. A text of which it has another version
// gets the sandbox's changes merged into it. told names what could not be merged, so that the branch
// has it as the sandbox has, and, as Lost, what is not in the branch: what belongs
// to a submodule or another repository within the project.
func (h *Home) Branch(ctx context.Context, name, message string, changes []Change) (commit string, told []Left, err error) {
	root := h.Run.Project
	if !inGit(root) {
		return "", nil, fmt.Errorf("%s is %w", root, ErrNoRepository)
	}
	tmp, err := os.MkdirTemp("", "talkops-branch-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(tmp)
	g := plumbing{ctx: ctx, root: root, index: filepath.Join(tmp, "index")}
	ref := "refs/heads/" + name
	if !BranchName(ctx, name) {
		return "", nil, fmt.Errorf("%q is no name for a branch", name)
	}
	prefix, err := g.run(nil, "rev-parse", "--show-prefix")
	if err != nil {
		return "", nil, err
	}
	parent, err := g.run(nil, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err == nil {
		_, err = g.run(nil, "read-tree", parent)
	} else {
		parent = "" // nothing was committed yet
		_, err = g.run(nil, "read-tree", "--empty")
	}
	if err != nil {
		return "", nil, err
	}
	listed, err := g.listed()
	if err != nil {
		return "", nil, err
	}
	undone, err := h.committedBack(listed)
	if err != nil {
		return "", nil, err
	}
	changes, told = ofProject(root, listed, slices.Concat(changes, undone))
	made, whole, err := h.store(&g, tmp, listed, changes)
	if err != nil {
		return "", nil, err
	}
	told = append(told, whole...)
	null := nullID
	if len(parent) == 64 {
		null = strings.Repeat("0", 64)
	}
	var index bytes.Buffer
	for _, c := range changes {
		if goes(c) {
			fmt.Fprintf(&index, "0 %s\t%s%s\x00", null, prefix, c.Name)
		}
	}
	for i, c := range changes {
		if made[i].id != "" {
			fmt.Fprintf(&index, "%s %s\t%s%s\x00", made[i].mode, made[i].id, prefix, c.Name)
		}
	}
	if _, err := g.run(&index, "update-index", "-z", "--index-info"); err != nil {
		return "", nil, err
	}
	tree, err := g.run(nil, "write-tree")
	if err != nil {
		return "", nil, err
	}
	if old, err := g.run(nil, "rev-parse", "--verify", "--quiet", ref+"^{commit}"); err == nil {
		if has, err := g.run(nil, "rev-parse", old+"^{tree}"); err == nil && has == tree {
			return old, told, nil
		}
		return "", nil, fmt.Errorf("%w: %s", ErrBranchExists, name)
	}
	args := []string{"commit-tree", "--no-gpg-sign", tree, "-m", message}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	if commit, err = g.run(nil, args...); err != nil {
		return "", nil, err
	}
	// The null id makes sure that the branch is new.
	_, err = g.run(nil, "update-ref", "--no-deref", "-m", "talkops sandbox export", ref, commit, null)
	return commit, told, err
}

// committedBack are the changes that undo what was applied, of what the commit has.
func (h *Home) committedBack(listed map[string]object) ([]Change, error) {
	var list []Change
	for _, c := range h.undone() {
		stands, there := listed[c.Name]
		if !there || c.Was == nil || c.Was.Kind == Dir {
			continue
		}
		is, err := h.isObject(c.Was, stands, false)
		if err != nil {
			return nil, err
		}
		if is {
			list = append(list, c)
		}
	}
	return list, nil
}

// ofProject tells the changes of the project's own files from those of other
// repositories within.
func ofProject(root string, listed map[string]object, changes []Change) (own []Change, others []Left) {
	within := map[string]string{".": "", "/": ""} // the repository that a directory is in
	var find func(dir string) string
	find = func(dir string) string {
		if other, known := within[dir]; known {
			return other
		}
		other := find(path.Dir(dir))
		if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(dir), ".git")); other == "" && (err == nil || listed[dir].mode == gitlink) {
			other = dir
		}
		within[dir] = other
		return other
	}
	for _, c := range changes {
		other := find(path.Dir(c.Name))
		if listed[c.Name].mode == gitlink {
			other = c.Name
		}
		isDir := (c.Now == nil || c.Now.Kind == Dir) && (c.Was == nil || c.Was.Kind == Dir)
		switch {
		case other == "":
			own = append(own, c)
		case !isDir:
			others = append(others, Left{Name: c.Name, Why: fmt.Sprintf("%q is a repository of its own, whose files cannot be in a branch of this one; they can be applied or pulled", other), Lost: true})
		}
	}
	return own, others
}

// gitlink is the mode that git gives a submodule.
const gitlink = "160000"

// Branchable says why a branch of that name cannot be made in the project of h, before
// anything is done for it; nil if it can.
func (h *Home) Branchable(ctx context.Context, name string) error {
	root := h.Run.Project
	if !inGit(root) {
		return fmt.Errorf("%s is %w", root, ErrNoRepository)
	}
	if !BranchName(ctx, name) {
		return fmt.Errorf("%q is no name for a branch", name)
	}
	// Of a branch a/b there can be neither a nor a/b/c.
	heads, err := git(ctx, root, "for-each-ref", "--format=%(refname)", "refs/heads/")
	if err != nil {
		return err
	}
	for ref := range strings.FieldsSeq(string(heads)) {
		there := strings.TrimPrefix(ref, "refs/heads/")
		switch {
		case there == name:
			return fmt.Errorf("%w: %s", ErrBranchExists, name)
		case strings.HasPrefix(there, name+"/"), strings.HasPrefix(name, there+"/"):
			return fmt.Errorf("there cannot be a branch %s beside %s", name, there)
		}
	}
	return nil
}

// BranchName reports whether a branch can have that name.
func BranchName(ctx context.Context, name string) bool {
	_, err := git(ctx, ".", "check-ref-format", "refs/heads/"+name)
	return !strings.HasPrefix(name, "-") && (err == nil || errors.Is(err, exec.ErrNotFound))
}

// store writes the new content to the repository and returns its objects, in the
// order of the changes.
func (h *Home) store(g *plumbing, tmp string, listed map[string]object, changes []Change) (made []object, whole []Left, err error) {
	made = make([]object, len(changes))
	normal, err := h.lineEnds(g, listed, changes)
	if err != nil {
		return nil, nil, err
	}
	var names bytes.Buffer
	var order []int
	before := h.stands()
	for i, c := range changes {
		stands, there := listed[c.Name]
		if there {
			// Where git does not look at modes, the commit's stays.
			if was := c.Was; was != nil && c.Now != nil && gitMode(*was) == gitMode(*c.Now) && was.Kind == File && stands.mode != "120000" {
				made[i].mode = stands.mode
			}
		}
		var data []byte // instead of what is kept
		if there && c.Was != nil && c.Was.Kind != Dir {
			why := ""
			if data, why, err = h.onto(g, stands, c, before[c.Name].Now, normal[c.Name]); err != nil {
				return nil, nil, err
			}
			if why != "" {
				whole = append(whole, Left{Name: c.Name, Why: why})
			}
		}
		if c.Now == nil || c.Now.Kind == Dir {
			continue
		}
		if made[i].mode == "" {
			made[i].mode = gitMode(*c.Now)
		}
		if _, err := h.blobID(c.Now, len(nullID)); errors.Is(err, errDamaged) {
			whole = append(whole, Left{Name: c.Name, Why: err.Error(), Lost: true})
			continue
		} else if err != nil {
			return nil, nil, fmt.Errorf("%q: %w", c.Name, err)
		}
		name := h.content(c.Now.Sum)
		switch {
		case data != nil:
		case c.Now.Kind == Link:
			data = []byte(c.Now.Target)
		case normal[c.Name]:
			if data, err = h.withoutCR(c.Now); err != nil {
				return nil, nil, err
			}
		}
		if data != nil {
			name = filepath.Join(tmp, fmt.Sprintf("made-%d", i))
			if err := os.WriteFile(name, data, 0o600); err != nil {
				return nil, nil, err
			}
		}
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, nil, err
		}
		fmt.Fprintf(&names, "%s\n", abs)
		order = append(order, i)
	}
	if len(order) == 0 {
		return made, whole, nil
	}
	out, err := g.run(&names, "hash-object", "-w", "--no-filters", "--stdin-paths")
	if err != nil {
		return nil, nil, err
	}
	lines := strings.Split(out, "\n")
	if len(lines) != len(order) {
		return nil, nil, fmt.Errorf("git stored %d of %d files", len(lines), len(order))
	}
	for i, line := range lines {
		made[order[i]].id = line
	}
	return made, whole, nil
}

// isObject reports whether an entry is what git has of it. With normal, git has no CR at
// the ends of its lines.
func (h *Home) isObject(e *Entry, stands object, normal bool) (bool, error) {
	id, err := h.blobID(e, len(stands.id))
	if err != nil || id == stands.id || !normal {
		if errors.Is(err, errDamaged) {
			err = nil // it is told where it counts
		}
		return err == nil && id == stands.id, ignoreMissing(err)
	}
	lf, err := h.withoutCR(e)
	return err == nil && lf != nil && objectID(lf, len(stands.id)) == stands.id, ignoreMissing(err)
}

// onto merges a change into what the commit has under its name. It returns nil if
// the commit has what was sent, what was applied, or what the sandbox has; why says that
// the commit has something else, which cannot be merged.
func (h *Home) onto(g *plumbing, stands object, c Change, applied *Entry, normal bool) (data []byte, why string, err error) {
	for _, e := range []*Entry{c.Was, c.Now, applied} {
		if e == nil || e.Kind == Dir {
			continue
		}
		if is, err := h.isObject(e, stands, normal); err != nil || is {
			return nil, "", err
		}
	}
	const other = "the last commit has another version of it than was sent; in the branch "
	if c.Now == nil {
		return nil, other + "it is deleted", nil
	}
	why = other + "it is the sandbox's alone"
	var texts [3][]byte // the commit's, what was sent, the sandbox's
	for i, e := range []*Entry{nil, c.Was, c.Now} {
		var isText bool
		switch {
		case e == nil:
			texts[i], isText, err = g.text(stands)
		case e.Kind == File:
			texts[i], isText, err = h.text(e)
			if err == nil && isText && normal {
				var lf []byte
				if lf, err = h.withoutCR(e); lf != nil {
					texts[i] = lf
				}
			}
		}
		if err != nil || !isText {
			return nil, why, ignoreMissing(err)
		}
	}
	data, conflict, err := mergeText(g.ctx, texts[0], texts[1], texts[2])
	if err != nil || conflict != "" {
		return nil, why, err
	}
	if data == nil {
		data = []byte{}
	}
	return data, "", nil
}

// An object is what a tree of git has under a name.
type object struct{ mode, id string }

// listed are the objects of the index below the project, by name.
func (g *plumbing) listed() (map[string]object, error) {
	out, err := g.run(nil, "ls-files", "-s", "-z")
	if err != nil {
		return nil, err
	}
	list := map[string]object{}
	for line := range strings.SplitSeq(out, "\x00") {
		if state, name, ok := strings.Cut(line, "\t"); ok {
			if f := strings.Fields(state); len(f) == 3 {
				list[name] = object{f[0], f[1]}
			}
		}
	}
	return list, nil
}

// text reads a file of the repository if it is one whose lines can be merged.
func (g *plumbing) text(o object) ([]byte, bool, error) {
	if o.mode != "100644" && o.mode != "100755" {
		return nil, false, nil
	}
	size, err := g.run(nil, "cat-file", "-s", o.id)
	if n, nerr := strconv.Atoi(size); err != nil || nerr != nil || n > maxTextDiff {
		return nil, false, err
	}
	data, err := git(g.ctx, g.root, "cat-file", "blob", o.id)
	return data, bytes.IndexByte(data, 0) < 0, err
}

// A plumbing runs git with an index of its own.
type plumbing struct {
	ctx         context.Context
	root, index string
}

func (g *plumbing) run(stdin io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(g.ctx, "git", append(slices.Clone(tame), append([]string{"-C", g.root}, args...)...)...)
	cmd.Env = append(gitEnv(), "GIT_INDEX_FILE="+g.index)
	if args[0] == "commit-tree" {
		// Whoever has told git no name still gets the branch.
		for _, who := range []string{"AUTHOR", "COMMITTER"} {
			name, email := g.identity()
			cmd.Env = append(cmd.Env, "GIT_"+who+"_NAME="+name, "GIT_"+who+"_EMAIL="+email)
		}
	}
	cmd.Stdin = stdin
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && stderr.Len() > 0 {
		err = fmt.Errorf("git %s: %s", args[0], firstLine(strings.TrimSpace(stderr.String())))
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

func (g *plumbing) identity() (name, email string) {
	name, err1 := g.run(nil, "config", "user.name")
	email, err2 := g.run(nil, "config", "user.email")
	if err1 != nil || err2 != nil || name == "" || email == "" {
		return "talkops", "talkops@localhost"
	}
	return name, email
}

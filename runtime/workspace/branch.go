package workspace

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrBranchExists says that a branch of that name is there with other content.
var ErrBranchExists = errors.New("a branch of that name exists")

// Branch makes a branch of the project's repository that holds the changes on
// top of its current commit. Work tree, index, HEAD and every other branch stay
// as they are; no hook, filter or other program of the repository is run. It
// returns the commit. A branch that holds just that already is no error.
func (h *Home) Branch(ctx context.Context, name, message string, changes []Change) (commit string, err error) {
	root := h.Run.Project
	if !inGit(root) {
		return "", fmt.Errorf("%s is not in a git repository", root)
	}
	tmp, err := os.MkdirTemp("", "talkops-branch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	g := plumbing{ctx: ctx, root: root, index: filepath.Join(tmp, "index")}
	ref := "refs/heads/" + name
	if _, err := g.run(nil, "check-ref-format", ref); err != nil || strings.HasPrefix(name, "-") {
		return "", fmt.Errorf("%q is no name for a branch", name)
	}
	prefix, err := g.run(nil, "rev-parse", "--show-prefix")
	if err != nil {
		return "", err
	}
	parent, err := g.run(nil, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err == nil {
		_, err = g.run(nil, "read-tree", parent)
	} else {
		parent = "" // nothing was committed yet
		_, err = g.run(nil, "read-tree", "--empty")
	}
	if err != nil {
		return "", err
	}
	ids, err := h.store(&g, tmp, changes)
	if err != nil {
		return "", err
	}
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
		if ids[i] != "" {
			fmt.Fprintf(&index, "%s %s\t%s%s\x00", gitMode(*c.Now), ids[i], prefix, c.Name)
		}
	}
	if _, err := g.run(&index, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	tree, err := g.run(nil, "write-tree")
	if err != nil {
		return "", err
	}
	if old, err := g.run(nil, "rev-parse", "--verify", "--quiet", ref+"^{commit}"); err == nil {
		if has, err := g.run(nil, "rev-parse", old+"^{tree}"); err == nil && has == tree {
			return old, nil
		}
		return "", fmt.Errorf("%w: %s", ErrBranchExists, name)
	}
	args := []string{"commit-tree", "--no-gpg-sign", tree, "-m", message}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	if commit, err = g.run(nil, args...); err != nil {
		return "", err
	}
	// The null id makes sure that the branch is new.
	_, err = g.run(nil, "update-ref", "--no-deref", "-m", "talkops sandbox export", ref, commit, null)
	return commit, err
}

// store writes the new content to the repository as it is and returns the ids,
// in the order of the changes.
func (h *Home) store(g *plumbing, tmp string, changes []Change) ([]string, error) {
	ids := make([]string, len(changes))
	normal, err := h.lineEnds(g, changes)
	if err != nil {
		return nil, err
	}
	var names bytes.Buffer
	var order []int
	for i, c := range changes {
		if c.Now == nil || c.Now.Kind == Dir {
			continue
		}
		name := h.content(c.Now.Sum)
		var made []byte // instead of what is kept
		if c.Now.Kind == Link {
			made = []byte(c.Now.Target)
		} else if normal[c.Name] {
			if made, err = h.withoutCR(c.Now); err != nil {
				return nil, err
			}
		}
		if made != nil {
			name = filepath.Join(tmp, fmt.Sprintf("made-%d", i))
			if err := os.WriteFile(name, made, 0o600); err != nil {
				return nil, err
			}
		}
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&names, "%s\n", abs)
		order = append(order, i)
	}
	if len(order) == 0 {
		return ids, nil
	}
	out, err := g.run(&names, "hash-object", "-w", "--no-filters", "--stdin-paths")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(out, "\n")
	if len(lines) != len(order) {
		return nil, fmt.Errorf("git stored %d of %d files", len(lines), len(order))
	}
	for i, line := range lines {
		ids[order[i]] = line
	}
	return ids, nil
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

// Tar writes what is new or changed as a tar archive.
func (h *Home) Tar(w io.Writer, changes []Change) error {
	tw := tar.NewWriter(w)
	for _, c := range changes {
		if c.Now == nil {
			continue
		}
		hd := &tar.Header{Name: c.Name, Mode: int64(c.Now.Mode), ModTime: h.Run.Started, Format: tar.FormatPAX}
		switch c.Now.Kind {
		case Dir:
			hd.Typeflag, hd.Name = tar.TypeDir, c.Name+"/"
		case Link:
			hd.Typeflag, hd.Linkname, hd.Mode = tar.TypeSymlink, c.Now.Target, 0o777
		default:
			hd.Typeflag, hd.Size = tar.TypeReg, c.Now.Size
		}
		if err := tw.WriteHeader(hd); err != nil {
			return fmt.Errorf("%q: %w", c.Name, err)
		}
		if c.Now.Kind != File {
			continue
		}
		if err := h.copyTo(tw, *c.Now); err != nil {
			return fmt.Errorf("%q: %w", c.Name, err)
		}
	}
	return tw.Close()
}

func (h *Home) copyTo(w io.Writer, e Entry) error {
	f, err := h.open(e)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

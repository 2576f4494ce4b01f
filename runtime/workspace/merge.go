package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// A Merge is a file that both sides changed, with the changes of both in it.
type Merge struct {
	Name   string
	Before string // where the user's own version is kept; "" if nothing was done yet
}

// A mixture is the content of a merge before it is written.
type mixture struct {
	here Entry // what it was made of here
	data []byte
	mode fs.FileMode
}

// mix merges, line by line, what a change made of a text with what the user made
// of it since it was sent. why says that it cannot be done.
func (a *applier) mix(ctx context.Context, c Change, here *Entry) (m *mixture, why string, err error) {
	for _, e := range []*Entry{here, c.Was, c.Now} {
		switch {
		case e == nil || e.Kind != File:
			return nil, "it was changed here", nil
		case e.Size > maxTextDiff:
			return nil, "it was changed here, and is too large to be merged", nil
		}
	}
	m = &mixture{here: *here, mode: here.Mode}
	if !noModes && c.Now.Mode != c.Was.Mode && here.Mode != c.Now.Mode {
		if here.Mode != c.Was.Mode {
			return nil, "its content and its mode were changed here", nil
		}
		m.mode = c.Now.Mode
	}
	ours, err := a.content(c.Name, here.Sum)
	if err != nil {
		return nil, "", err
	}
	base, err := os.ReadFile(a.h.content(c.Was.Sum))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "it was changed here before it was changed there, so that there is nothing to merge by", nil
	}
	if err != nil {
		return nil, "", err
	}
	theirs, err := os.ReadFile(a.h.content(c.Now.Sum))
	if err != nil {
		return nil, "its content is not here", nil
	}
	for _, text := range [][]byte{ours, base, theirs} {
		if bytes.IndexByte(text, 0) >= 0 {
			return nil, "it was changed here, and is no text that could be merged", nil
		}
	}
	m.data, why, err = mergeText(ctx, ours, base, theirs)
	if err != nil || why != "" {
		return nil, why, err
	}
	// Merging once more must change nothing more.
	again, why, err := mergeText(ctx, m.data, base, theirs)
	if err == nil && (why != "" || !bytes.Equal(again, m.data)) {
		why = sameLines
	}
	return m, why, err
}

const sameLines = "it was changed here in the same lines"

// content reads a local file of which the checksum is known.
func (a *applier) content(name, sum string) ([]byte, error) {
	f, err := a.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTextDiff+1))
	if err == nil && sumOf(data) != sum {
		err = errors.New("it is being written to")
	}
	return data, err
}

// mergeText has git merge three texts. Nothing of a repository is read.
func mergeText(ctx context.Context, ours, base, theirs []byte) (data []byte, why string, err error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, "it was changed here, and there is no git to merge it with", nil
	}
	dir, err := os.MkdirTemp("", "talkops-merge-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string][]byte{"ours": ours, "base": base, "theirs": theirs} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, "", err
		}
	}
	cmd := exec.CommandContext(ctx, program, "merge-file", "-p", "-q", "ours", "base", "theirs")
	cmd.Dir, cmd.Env = dir, append(gitEnv(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	data, err = cmd.Output()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return data, "", nil
	case ended && exit.ExitCode() > 0 && exit.ExitCode() < 128:
		return nil, sameLines, nil
	}
	return nil, "", fmt.Errorf("git merge-file: %w", err)
}

// beside keeps content in a directory of the home and returns the path.
func (h *Home) beside(kind, name string, mode fs.FileMode, r io.Reader) (string, error) {
	dir := filepath.Join(h.Dir, kind)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	local := filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o700); err != nil {
		return "", err
	}
	tmp := part(name)
	f, err := root.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer root.Remove(tmp)
	_, err = io.Copy(f, r)
	if err = errors.Join(err, f.Chmod(mode&0o700|0o600), f.Close()); err != nil {
		return "", err
	}
	return filepath.Join(dir, local), root.Rename(tmp, local)
}

// keepTheirs puts the sandbox's version of a file that was not changed here beside
// the saved work, and returns where; "" if that is of no use or cannot be done.
func (h *Home) keepTheirs(c Change) string {
	if c.Now == nil || c.Now.Kind != File {
		return ""
	}
	f, err := h.open(*c.Now)
	if err != nil {
		return ""
	}
	defer f.Close()
	name, err := h.beside("theirs", c.Name, c.Now.Mode, f)
	if err != nil {
		return ""
	}
	return name
}

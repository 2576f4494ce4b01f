package cmd

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// trackedSecrets lists the files of credentials, by their names, in the index of the
// repository around dir, in what is checked out there, and in the revisions among
// words; a certificate without a private key is none. It is false if a word is an
// object by itself, or if that cannot be told. Differ leaves out files that are the
// same in all of them.
func trackedSecrets(home, dir string, words []string, differ bool) ([]string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	top, err := lookGit(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		_, answered := errors.AsType[*exec.ExitError](err)
		return nil, answered && ctx.Err() == nil // no repository, or one without files
	}
	top = strings.TrimRight(top, "\n")
	var all []string
	list := func(args ...string) error {
		names, err := lookGit(ctx, top, args...)
		for name := range strings.SplitSeq(names, "\x00") {
			if at := filepath.Join(top, filepath.FromSlash(name)); name != "" && approval.Secret(home, filepath.ToSlash(at)) && !certified(at) {
				all = append(all, filepath.ToSlash(at))
			}
		}
		return err
	}
	names := []string{"--no-ext-diff", "--no-textconv", "--name-only", "-z"}
	said := false // which revision is meant
	for _, w := range words {
		for part := range strings.SplitSeq(strings.ReplaceAll(w, "...", ".."), "..") {
			r := strings.TrimLeft(part, "^")
			if r == "" || strings.HasPrefix(r, "-") {
				continue
			}
			kind, err := lookGit(ctx, top, "cat-file", "-t", r)
			kind = strings.TrimSpace(kind)
			switch {
			case ctx.Err() != nil, kind == "blob" && !strings.Contains(r, ":"):
				return nil, false
			case err != nil:
				continue // a path, or a word of another meaning
			case kind == "blob": // its name is in the word
			case differ:
				err = list(append(append([]string{"diff"}, names...), r, "--")...)
			default:
				err = list("ls-tree", "-r", "-z", "--name-only", "--full-tree", r)
			}
			if said = true; err != nil {
				return nil, false
			}
		}
	}
	switch {
	case differ:
		if err = list(append([]string{"diff"}, names...)...); err == nil {
			err = list(append([]string{"diff", "--cached"}, names...)...)
		}
	case !said:
		if err = list("ls-files", "-z"); err == nil {
			if _, none := lookGit(ctx, top, "rev-parse", "-q", "--verify", "HEAD"); none == nil {
				err = list("ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD")
			}
		}
	}
	if err != nil || ctx.Err() != nil {
		return nil, false
	}
	return all, true
}

// certified reports whether name is a certificate without a private key.
func certified(name string) bool {
	if !strings.EqualFold(filepath.Ext(name), ".pem") {
		return false
	}
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular() && bare(name)
}

// remotes lists what git's settings say of addresses, those of the user too: each
// name, a space, and its value.
func remotes(dir string) ([]string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := lookGit(ctx, dir, "config", "--includes", "--get-regexp", `^(remote\..*\.(url|pushurl)|url\..*|branch\..*\.(remote|pushremote))$`)
	if e, is := errors.AsType[*exec.ExitError](err); err != nil && (!is || e.ExitCode() != 1 || ctx.Err() != nil) {
		return nil, false
	}
	return strings.Split(strings.TrimRight(out, "\n"), "\n"), true
}

package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// keepBase keeps the content that was sent of a file which changed, as a patch and
// a merge need it: from the project, as long as it still stands there, from its last
// commit, or from an earlier session in the same sandbox.
func (h *Home) keepBase(ctx context.Context, c Change) {
	if c.Was == nil || c.Was.Kind != File || c.Was.Size > maxBaseFile || h.baseless[c.Name] {
		return
	}
	if _, err := os.Lstat(h.content(c.Was.Sum)); err == nil {
		return
	}
	if h.addIf(c.Was.Sum, func() (io.ReadCloser, error) { return h.standing(c) }) || h.addIf(c.Was.Sum, func() (io.ReadCloser, error) { return h.committed(ctx, c) }) || h.earlier != nil && h.addIf(c.Was.Sum, func() (io.ReadCloser, error) { return os.Open(h.earlier.content(c.Was.Sum)) }) {
		return
	}
	if h.baseless == nil {
		h.baseless = map[string]bool{}
	}
	h.baseless[c.Name] = true
}

// addIf keeps content if it has that checksum.
func (h *Home) addIf(sum string, open func() (io.ReadCloser, error)) bool {
	r, err := open()
	if err != nil {
		return false
	}
	defer r.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, io.LimitReader(r, maxBaseFile)); err != nil || "sha256:"+hex.EncodeToString(digest.Sum(nil)) != sum {
		return false
	}
	again, err := open()
	if err != nil {
		return false
	}
	defer again.Close()
	e, err := h.add(again, maxBaseFile)
	return err == nil && e.Sum == sum
}

// standing opens a file of the project that is as large as it was when it was sent.
func (h *Home) standing(c Change) (io.ReadCloser, error) {
	root, err := os.OpenRoot(h.Run.Project)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(filepath.FromSlash(c.Name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() != c.Was.Size {
		f.Close()
		return nil, fs.ErrNotExist
	}
	return f, nil
}

// committed opens what the project's last commit has of a file, if it is as large
// as what was sent.
func (h *Home) committed(ctx context.Context, c Change) (io.ReadCloser, error) {
	if !inGit(h.Run.Project) {
		return nil, fs.ErrNotExist
	}
	blob := "HEAD:./" + c.Name
	size, err := git(ctx, h.Run.Project, "cat-file", "-s", blob)
	if err != nil || strings.TrimSpace(string(size)) != fmt.Sprint(c.Was.Size) {
		return nil, fs.ErrNotExist
	}
	data, err := git(ctx, h.Run.Project, "cat-file", "blob", blob)
	return io.NopCloser(bytes.NewReader(data)), err
}

//go:build !linux

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Settle writes what came home to the disk, so that it outlives a loss of power.
func (h *Home) Settle() error {
	return filepath.WalkDir(h.Dir, func(name string, d fs.DirEntry, err error) error {
		if name == h.Dir && errors.Is(err, fs.ErrNotExist) {
			return nil // it held no work, and was removed
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}

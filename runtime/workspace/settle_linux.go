package workspace

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Settle writes what came home to the disk, so that it outlives a loss of power.
func (h *Home) Settle() error {
	dir, err := os.Open(h.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it held no work, and was removed
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Syncfs(int(dir.Fd()))
}

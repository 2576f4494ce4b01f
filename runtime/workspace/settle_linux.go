package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

// Settle writes what came home to the disk, so that it outlives a loss of power.
func (h *Home) Settle() error {
	dir, err := os.Open(h.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Syncfs(int(dir.Fd()))
}

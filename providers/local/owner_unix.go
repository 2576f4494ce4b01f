//go:build unix

package local

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f the owner of the file it replaces, where that is allowed.
func keepOwner(f *os.File, old fs.FileInfo) {
	if old == nil {
		return
	}
	if stat, ok := old.Sys().(*syscall.Stat_t); ok {
		f.Chown(int(stat.Uid), int(stat.Gid))
	}
}

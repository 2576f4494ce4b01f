//go:build unix

package workspace

import (
	"io/fs"
	"syscall"
)

// stored is how many bytes of disk a file takes; -1 if that is not known.
func stored(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(st.Blocks) * 512
	}
	return -1
}

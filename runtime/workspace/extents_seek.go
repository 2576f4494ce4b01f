//go:build linux || darwin

package workspace

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// extents are the parts of a file that are no holes, in their order; nil if the
// file system does not tell.
func extents(f *os.File, size int64) []extent {
	list := []extent{}
	for at := int64(0); at < size; {
		from, err := f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // nothing but a hole is left
		}
		if err != nil {
			return nil
		}
		to, err := f.Seek(from, unix.SEEK_HOLE)
		if err != nil || to <= from {
			return nil
		}
		list = append(list, extent{from, min(to, size) - from})
		at = to
	}
	return list
}

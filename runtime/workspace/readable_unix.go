//go:build unix

package workspace

import "syscall"

// readable reports whether we may read a file, without opening it.
func readable(name string) bool {
	const read = 4
	return syscall.Access(name, read) == nil
}

//go:build unix

package wasm

import (
	"fmt"
	"os"
	"syscall"
)

// private refuses a directory that somebody else could write: native code is
// loaded from it.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s must belong to you and be writable by you alone", dir)
	}
	return nil
}

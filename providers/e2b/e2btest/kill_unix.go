//go:build unix

package e2btest

import "syscall"

// kill sends SIGKILL, or SIGTERM, to the process pid alone.
func kill(pid int, gently bool) {
	sig := syscall.SIGKILL
	if gently {
		sig = syscall.SIGTERM
	}
	syscall.Kill(pid, sig)
}

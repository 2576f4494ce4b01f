//go:build unix

package runlooptest

import "syscall"

// kill ends the process pid, or the whole group it leads.
func kill(pid int, group bool) {
	if group {
		pid = -pid
	}
	syscall.Kill(pid, syscall.SIGKILL)
}

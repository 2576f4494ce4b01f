//go:build unix

package verceltest

import "syscall"

// kill sends the process pid a signal.
func kill(pid, signal int) { syscall.Kill(pid, syscall.Signal(signal)) }

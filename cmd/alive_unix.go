//go:build unix

package cmd

import "syscall"

// processAlive reports whether a process with that id runs on this computer.
func processAlive(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) != syscall.ESRCH }

package cmd

import "os"

// processAlive reports whether a process with that id runs on this computer.
func processAlive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	p.Release()
	return true
}

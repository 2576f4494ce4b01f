//go:build unix

package cmd

import (
	"os"
	"syscall"
)

// signals are those that stories send.
var signals = map[string]os.Signal{
	"INT": os.Interrupt, "TERM": syscall.SIGTERM, "KILL": os.Kill, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
}

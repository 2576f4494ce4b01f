package wasm

import (
	"os/exec"
	"syscall"
)

// apart keeps a terminal's signals from the helper, and ends it with the thread
// that starts it.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

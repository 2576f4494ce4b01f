package wasm

import (
	"os/exec"
	"syscall"
)

// apart keeps a console's signals from the helper.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

//go:build unix && !linux

package wasm

import (
	"os/exec"
	"syscall"
)

// apart keeps a terminal's signals from the helper.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

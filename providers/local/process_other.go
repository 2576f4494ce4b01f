//go:build !unix

package local

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

const defaultPath = ""

func isolate(*exec.Cmd) {}

// runnable returns nil if name is a file that may be executed.
func runnable(name string) error {
	_, err := exec.LookPath(name)
	return err
}

// statusOfStart returns a shell's status for a program that could not be
// started, or 0 if the program is not the reason.
func statusOfStart(err error) int {
	if errors.Is(err, os.ErrNotExist) {
		return 127
	}
	return 0
}

func exitStatus(state *os.ProcessState) int { return state.ExitCode() & 0xff }

// kill ends the process. Here it cannot be asked first, and its children are
// not known.
func (p *process) kill(time.Duration) {
	p.end.Do(func() { p.cmd.Process.Kill() })
	<-p.done
}

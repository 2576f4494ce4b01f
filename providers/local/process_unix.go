//go:build unix

package local

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// isolate gives the command a session, and so a process group, of its own.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// runnable returns nil if name is a file that may be executed.
func runnable(name string) error {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return syscall.EISDIR
	case info.Mode()&0o111 == 0:
		return os.ErrPermission
	}
	return nil
}

// statusOfStart returns a shell's status for a program that could not be
// started, or 0 if the program is not the reason.
func statusOfStart(err error) int {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return 127
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOEXEC):
		return 126
	}
	return 0
}

func exitStatus(state *os.ProcessState) int {
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// kill ends the process, its group and its descendants: by SIGTERM, and by
// SIGKILL what is left after the grace. It returns when they are gone.
func (p *process) kill(grace time.Duration) {
	p.end.Do(func() {
		group := p.cmd.Process.Pid
		pids := family(group)
		signal(group, pids, syscall.SIGTERM)
		for end := time.Now().Add(grace); time.Now().Before(end) && alive(group, pids); {
			time.Sleep(10 * time.Millisecond)
		}
		for range 200 {
			if !alive(group, pids) {
				break
			}
			pids = append(pids, family(group)...)
			signal(group, pids, syscall.SIGKILL)
			time.Sleep(10 * time.Millisecond)
		}
	})
	<-p.done
}

func signal(group int, pids []int, sig syscall.Signal) {
	syscall.Kill(-group, sig)
	for _, pid := range pids {
		syscall.Kill(pid, sig)
	}
}

// alive reports whether a process of the group or one of pids is left; the dead
// who wait for their parent to notice do not count.
func alive(group int, pids []int) bool {
	table := processes()
	if table == nil {
		return syscall.Kill(-group, 0) == nil
	}
	for pid, p := range table {
		if p.state != 'Z' && p.state != 'X' && (p.group == group || slices.Contains(pids, pid)) {
			return true
		}
	}
	return false
}

// family returns the processes of the session of pid and their descendants, as
// far as the system tells.
func family(pid int) []int {
	table := processes()
	var pids []int
	for id, p := range table {
		if p.session == pid {
			pids = append(pids, id)
		}
	}
	for i := 0; i < len(pids); i++ {
		for id, p := range table {
			if p.parent == pids[i] && !slices.Contains(pids, id) {
				pids = append(pids, id)
			}
		}
	}
	return pids
}

type entry struct {
	state                  byte
	parent, group, session int
}

// processes reads the system's table of processes from /proc; nil if there is
// none.
func processes() map[int]entry {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	if len(names) == 0 {
		return nil
	}
	table := make(map[int]entry, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		// The program's name, in parentheses, may hold anything.
		fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		if len(fields) < 4 {
			continue
		}
		number := func(i int) int { n, _ := strconv.Atoi(string(fields[i])); return n }
		table[pid] = entry{state: fields[0][0], parent: number(1), group: number(2), session: number(3)}
	}
	return table
}

//go:build unix

package machine

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	supported = true
	path      = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	nobody    = 65534
)

// A Running is a started process.
type Running struct {
	cmd    *exec.Cmd
	copies sync.WaitGroup
	exited chan struct{} // the process has ended
	done   chan struct{} // and its output has been copied
	exit   int
	err    error
}

// start starts p, whose Dir and Env are complete.
func start(p Process) (*Running, error) {
	name, err := lookPath(p.Args[0])
	if err != nil {
		return nil, err
	}
	r := &Running{
		cmd:    &exec.Cmd{Path: name, Args: p.Args, Dir: p.Dir, Env: p.Env},
		exited: make(chan struct{}),
		done:   make(chan struct{}),
	}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		r.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	var theirs, ours []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	output := func(w io.Writer) (io.Writer, error) {
		if w == nil {
			return nil, nil
		}
		if f, ok := w.(*os.File); ok {
			return f, nil
		}
		pr, pw, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		theirs, ours = append(theirs, pw), append(ours, pr)
		r.copies.Go(func() { r.copy(w, pr) })
		return pw, nil
	}
	fail := func(err error) (*Running, error) {
		closeAll(theirs)
		closeAll(ours)
		return nil, err
	}
	if r.cmd.Stdout, err = output(p.Stdout); err != nil {
		return fail(err)
	}
	if p.Stderr != nil && p.Stderr == p.Stdout {
		r.cmd.Stderr = r.cmd.Stdout
	} else if r.cmd.Stderr, err = output(p.Stderr); err != nil {
		return fail(err)
	}
	var input *os.File
	switch in := p.Stdin.(type) {
	case nil:
	case *os.File:
		r.cmd.Stdin = in
	default:
		pr, pw, err := os.Pipe()
		if err != nil {
			return fail(err)
		}
		theirs, input = append(theirs, pr), pw
		r.cmd.Stdin = pr
	}
	err = r.cmd.Start()
	closeAll(theirs)
	if err != nil {
		if input != nil {
			input.Close()
		}
		closeAll(ours)
		return nil, err
	}
	if input != nil {
		// A reader that never ends, such as a terminal, must not hold up Wait.
		go func() {
			io.Copy(input, p.Stdin)
			input.Close()
		}()
	}
	go func() {
		err := r.cmd.Wait()
		if input != nil {
			input.Close()
		}
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			r.err = err
		}
		status, _ := r.cmd.ProcessState.Sys().(syscall.WaitStatus)
		r.exit = status.ExitStatus()
		if status.Signaled() {
			r.exit = 128 + int(status.Signal())
		}
		close(r.exited)
		for _, f := range ours {
			f.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		}
		r.copies.Wait()
		close(r.done)
	}()
	return r, nil
}

// copy moves what the process writes to w. Children that outlive the process
// keep the pipe open: once the process has ended, only what can be left in the
// pipe is taken.
func (r *Running) copy(w io.Writer, pr *os.File) {
	defer pr.Close()
	buf := make([]byte, 32<<10)
	left := 64 << 10
	idle := false
	for left > 0 {
		late := false // whether what is read now may have been left in the pipe
		select {
		case <-r.exited:
			late = true
		default:
		}
		n, err := pr.Read(buf)
		if n > 0 {
			idle = false
			if _, werr := w.Write(buf[:n]); werr != nil {
				return
			}
		}
		if late {
			left -= n
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && !idle {
			idle = true
			pr.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			continue
		}
		if err != nil {
			return
		}
	}
}

// lookPath finds a program in the machine's PATH, not in the host's.
func lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for dir := range strings.SplitSeq(path, ":") {
		full := filepath.Join(dir, name)
		if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return full, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// PID returns the process id, which is also that of its group and session.
func (r *Running) PID() int { return r.cmd.Process.Pid }

// Done is closed when the process has ended and its output has been copied.
func (r *Running) Done() <-chan struct{} { return r.done }

// Wait waits for the process to end and for its output, not for its children.
// It returns the exit status, 128 + n for a process ended by signal n.
func (r *Running) Wait() (exit int, err error) {
	<-r.done
	return r.exit, r.err
}

// Kill ends the process, its group and its descendants: by SIGTERM, and by
// SIGKILL what is left after grace. It returns when they are gone.
func (r *Running) Kill(grace time.Duration) {
	pids := family(r.PID())
	if grace > 0 {
		signal(r.PID(), pids, syscall.SIGTERM)
		for end := time.Now().Add(grace); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if !alive(r.PID(), pids) {
				break
			}
		}
	}
	for range 200 {
		if !alive(r.PID(), pids) {
			break
		}
		signal(r.PID(), append(pids, family(r.PID())...), syscall.SIGKILL)
		time.Sleep(10 * time.Millisecond)
	}
	<-r.done
}

func signal(group int, pids []int, sig syscall.Signal) {
	syscall.Kill(-group, sig)
	for _, pid := range pids {
		syscall.Kill(pid, sig)
	}
}

func own(name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(name, nobody, nobody)
}

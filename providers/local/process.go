package local

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// grace is the time between the polite and the forced end of a command.
const grace = 5 * time.Second

// A process is a started command.
type process struct {
	cmd    *exec.Cmd
	copies sync.WaitGroup
	exited chan struct{} // the process has ended
	done   chan struct{} // and its output has been delivered
	err    error         // what waiting for it gave; set before exited is closed
	end    sync.Once
}

// start starts program with the arguments, directory and streams of cmd.
func start(program string, cmd sandbox.Cmd, env []string) (*process, error) {
	p := &process{
		cmd:    &exec.Cmd{Path: program, Args: cmd.Args, Dir: cmd.Dir, Env: env},
		exited: make(chan struct{}),
		done:   make(chan struct{}),
	}
	isolate(p.cmd)
	var theirs, ours []*os.File
	var input *os.File
	fail := func(err error) (*process, error) {
		for _, f := range append(theirs, ours...) {
			f.Close()
		}
		if input != nil {
			input.Close()
		}
		return nil, err
	}
	writers := []io.Writer{cmd.Stdout, cmd.Stderr}
	for i, w := range writers {
		if w == nil {
			continue
		}
		pr, pw, err := os.Pipe()
		if err != nil {
			return fail(err)
		}
		theirs, ours = append(theirs, pw), append(ours, pr)
		if i == 0 {
			p.cmd.Stdout = pw
		} else {
			p.cmd.Stderr = pw
		}
	}
	if cmd.Stdin != nil {
		pr, pw, err := os.Pipe()
		if err != nil {
			return fail(err)
		}
		theirs, input = append(theirs, pr), pw
		p.cmd.Stdin = pr
	}
	if err := p.cmd.Start(); err != nil {
		return fail(err)
	}
	for _, f := range theirs {
		f.Close()
	}
	next := 0
	for _, w := range writers {
		if w != nil {
			pr := ours[next]
			next++
			p.copies.Go(func() { p.copy(w, pr) })
		}
	}
	if input != nil {
		// A reader that never ends, such as a terminal, must not hold up the
		// command: this goroutine is not waited for.
		go func() {
			io.Copy(input, cmd.Stdin)
			input.Close()
		}()
	}
	go func() {
		p.err = p.cmd.Wait()
		if input != nil {
			input.Close()
		}
		close(p.exited)
		for _, f := range ours {
			f.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		}
		p.copies.Wait()
		close(p.done)
	}()
	return p, nil
}

// copy moves what the process writes to w. Children that outlive the process
// keep the pipe open: once the process has ended, only what can be left in the
// pipe is taken. A writer that fails does not stop the process.
func (p *process) copy(w io.Writer, pr *os.File) {
	defer pr.Close()
	buf := make([]byte, 32<<10)
	left := 1 << 20
	idle := false
	for left > 0 {
		n, err := pr.Read(buf)
		if n > 0 {
			idle = false
			if w != nil {
				if _, werr := w.Write(buf[:n]); werr != nil {
					w = nil
				}
			}
		}
		select {
		case <-p.exited:
			left -= n
		default:
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

// status returns how the process ended.
func (p *process) status() (int, error) {
	if _, ok := errors.AsType[*exec.ExitError](p.err); p.err != nil && !ok {
		return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "wait for command", Err: p.err}
	}
	if p.cmd.ProcessState == nil {
		return 0, &sandbox.Error{Code: sandbox.CodeInternal, Msg: "the command's exit status is unknown"}
	}
	return exitStatus(p.cmd.ProcessState), nil
}

// look finds a program as execvp does, in the command's own PATH and directory.
// The status is that of a shell: 127 for what is not there, 126 for what cannot
// be run.
func look(name, path, dir string) (program string, status int, err error) {
	if strings.ContainsRune(name, '/') || filepath.IsAbs(name) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		switch err := runnable(name); {
		case err == nil:
			return name, 0, nil
		case errors.Is(err, os.ErrNotExist):
			return "", 127, errors.New("not found")
		default:
			return "", 126, err
		}
	}
	if path == "" {
		path = defaultPath
	}
	status, err = 127, errors.New("not found")
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		full := filepath.Join(d, name)
		rerr := runnable(full)
		if rerr == nil {
			return full, 0, nil
		}
		if errors.Is(rerr, os.ErrPermission) {
			status, err = 126, rerr
		}
	}
	return "", status, err
}

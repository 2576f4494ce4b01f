// Package local is this computer as a sandbox: commands and files are the
// user's own, and nothing is isolated, created or ended.
package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Provider opens this computer.
type Provider struct{}

// Describe says what the provider is.
func (Provider) Describe() sandbox.Description {
	return sandbox.Description{
		Name:     "local",
		Title:    "Local Machine",
		Features: sandbox.Features{Host: true},
	}
}

// Open returns this computer with spec.Dir, which must exist, as the working
// directory. spec.Env is the whole environment of its commands.
func (Provider) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if spec.ID != "" {
		return nil, &sandbox.Error{
			Code: sandbox.CodeUnsupported,
			Msg:  "local cannot attach to an existing sandbox",
			Err:  errors.ErrUnsupported,
		}
	}
	dir := spec.Dir
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, &sandbox.Error{Code: sandbox.CodeOf(err), Op: "open " + spec.Dir, Err: err}
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fileError("open", spec.Dir, err)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, fileError("open", dir, err)
	} else if !info.IsDir() {
		return nil, &sandbox.Error{Code: sandbox.CodeNotADirectory, Op: "open " + dir}
	}
	return &computer{dir: dir, env: maps.Clone(spec.Env), running: make(map[string]*process)}, nil
}

// Destroy does nothing: this computer is not talkops' to end.
func (Provider) Destroy(context.Context, sandbox.Spec) error { return nil }

// A computer is this machine with a working directory.
type computer struct {
	dir string
	env map[string]string

	mu      sync.Mutex
	running map[string]*process // by Cmd.ID
}

// Info tells the working directory.
func (c *computer) Info() sandbox.Info {
	return sandbox.Info{Provider: "local", ID: "local", Dir: c.dir}
}

// Close does nothing: the computer keeps running.
func (c *computer) Close() error { return nil }

// Exec runs cmd in a session of its own.
func (c *computer) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	if ctx.Err() != nil {
		return sandbox.ExitOf(ctx)
	}
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return 0, sandbox.Errorf(sandbox.CodeInvalidArgument, "no program given")
	}
	if cmd.Dir == "" {
		cmd.Dir = c.dir
	}
	if !filepath.IsAbs(cmd.Dir) {
		return 0, sandbox.Errorf(sandbox.CodeInvalidPath, "working directory %q is not absolute", cmd.Dir)
	}
	if info, err := os.Stat(cmd.Dir); err != nil {
		return 0, fileError("enter", cmd.Dir, err)
	} else if !info.IsDir() {
		return 0, &sandbox.Error{Code: sandbox.CodeNotADirectory, Op: "enter " + cmd.Dir}
	}
	env := make(map[string]string, len(c.env)+len(cmd.Env)+1)
	maps.Copy(env, c.env)
	maps.Copy(env, cmd.Env)
	env["PWD"] = cmd.Dir

	program, status, err := look(cmd.Args[0], env["PATH"], cmd.Dir)
	if err != nil {
		if cmd.Stderr != nil {
			fmt.Fprintf(cmd.Stderr, "%s: %v\n", cmd.Args[0], err)
		}
		return status, nil
	}
	// The lock is held until the command is on record, so that whoever reads its
	// first output can already kill it.
	c.mu.Lock()
	p, err := start(program, cmd, pairs(env))
	if err == nil && cmd.ID != "" {
		c.running[cmd.ID] = p
	}
	c.mu.Unlock()
	if err != nil {
		if status := statusOfStart(err); status != 0 {
			if cmd.Stderr != nil {
				fmt.Fprintf(cmd.Stderr, "%s: %v\n", cmd.Args[0], err)
			}
			return status, nil
		}
		return 0, &sandbox.Error{Code: sandbox.CodeOf(err), Op: "start " + cmd.Args[0], Err: err}
	}
	if cmd.ID != "" {
		defer func() {
			c.mu.Lock()
			delete(c.running, cmd.ID)
			c.mu.Unlock()
		}()
	}
	select {
	case <-p.done:
		return p.status()
	case <-ctx.Done():
		p.kill(grace)
		return sandbox.ExitOf(ctx)
	}
}

// Kill ends the command with that ID. A command that is not running has ended.
func (c *computer) Kill(ctx context.Context, id string) error {
	c.mu.Lock()
	p := c.running[id]
	c.mu.Unlock()
	if p != nil {
		p.kill(grace)
	}
	return nil
}

// pairs returns env as os/exec wants it, sorted.
func pairs(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/runtime/tail"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// unable says why a command of the session's own failed.
func unable(what string, exit int, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: the command ended with %d", what, exit)
}

// setup runs the script as a file of the sandbox, byte for byte as it is here.
func (s *Session) setup(ctx context.Context, dir string) error {
	script := s.opts.Setup
	var out strings.Builder
	exit, err := s.Sandbox.Exec(ctx, sandbox.Cmd{Args: []string{"/bin/sh", "-c", `umask 077; mktemp -d "${TMPDIR:-/tmp}/talkops-setup-XXXXXX"`}, Stdout: &out})
	tmp := strings.TrimSuffix(out.String(), "\n")
	if err != nil || exit != 0 || !path.IsAbs(tmp) {
		return s.fail(ctx, "set up", unable("make a temporary directory", exit, err))
	}
	name := path.Join(tmp, "setup")
	if err := s.Sandbox.WriteFile(ctx, name, bytes.NewReader(script), 0o700); err != nil {
		return s.fail(ctx, "set up", err)
	}
	args := []string{"/bin/sh", name}
	if bytes.HasPrefix(script, []byte("#!")) {
		args = []string{name}
	}
	s.at(Progress{Step: "set up"})
	s.opts.Note("running setup script %s", s.opts.SetupName)
	began := time.Now()
	setupCtx, cancel := ctx, context.CancelFunc(func() {})
	if s.opts.SetupTimeout > 0 {
		setupCtx, cancel = context.WithTimeout(ctx, s.opts.SetupTimeout)
	}
	defer cancel()
	last := &tail.Buffer{}
	w := io.MultiWriter(last, s.opts.Output)
	exit, err = s.Sandbox.Exec(setupCtx, sandbox.Cmd{Args: args, Dir: dir, Stdout: w, Stderr: w})
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("the setup script did not end within %s", s.opts.SetupTimeout)
	case err == nil && exit != 0:
		err = fmt.Errorf("the setup script ended with %d", exit)
	}
	if err != nil {
		err := s.fail(ctx, "set up", err)
		if e, ok := errors.AsType[*StartError](err); ok {
			e.Last = last.Lines(20)
		}
		return err
	}
	s.opts.Note("setup script done in %s", time.Since(began).Round(100*time.Millisecond))
	s.Sandbox.Exec(ctx, sandbox.Cmd{Args: []string{"rm", "-rf", "--", tmp}})
	return nil
}

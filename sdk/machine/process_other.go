//go:build !unix

package machine

import (
	"errors"
	"time"
)

const (
	supported = false
	path      = ""
)

// A Running is a started process.
type Running struct{ done chan struct{} }

func start(Process) (*Running, error) { return nil, errors.ErrUnsupported }

// PID returns the process id.
func (r *Running) PID() int { return 0 }

// Done is closed when the process has ended and its output has been copied.
func (r *Running) Done() <-chan struct{} { return r.done }

// Wait waits for the process to end and returns its exit status.
func (r *Running) Wait() (exit int, err error) { return 0, errors.ErrUnsupported }

// Kill ends the process and all it started.
func (r *Running) Kill(time.Duration) {}

func own(string) error { return nil }

func killStrays(string) {}

// Package sandbox is the contract between talkops and the machines it works in.
//
// A [Provider] opens and ends sandboxes of one kind: this computer, a vendor's
// cloud, or a WebAssembly module. A [Sandbox] is one isolated machine. The two
// types have eight methods between them; everything else a provider can do is an
// optional interface with a package function that falls back, as in io/fs.
//
// The package imports the standard library only.
package sandbox

import (
	"context"
	"io"
	"io/fs"
	"time"
)

// A Provider opens and ends sandboxes of one kind. It holds no state: everything
// it needs arrives in the Spec. It is safe for concurrent use.
type Provider interface {
	// Describe says what the provider is and needs. It does no I/O.
	Describe() Description

	// Open starts a sandbox, or attaches to spec.ID if that is set (starting or
	// resuming the machine when it is stopped). It returns when the sandbox
	// answers commands. A failed Open leaves nothing running that it started,
	// and touches nothing it did not start. An unknown spec.ID is ErrNotFound.
	Open(ctx context.Context, spec Spec) (Sandbox, error)

	// Destroy ends the machine spec.ID without waking it. Ending what is gone
	// succeeds. spec carries the settings the machine was opened with.
	Destroy(ctx context.Context, spec Spec) error
}

// A Sandbox is one isolated machine. Every method is one complete call: when it
// returns, nothing it began is still running, except processes a command
// deliberately left in the background. A Sandbox is safe for concurrent use.
type Sandbox interface {
	// Info tells what the sandbox is. It does no I/O.
	Info() Info

	// Exec runs cmd to completion and returns its exit status (0–255; 128 + n
	// for a process ended by signal n), copying output to cmd.Stdout and
	// cmd.Stderr as it arrives. A non-zero status is not an error. It returns
	// when the command itself has ended; background children do not hold it up.
	//
	// If ctx ends first, the command and all it started are gone when Exec
	// returns: 124 with an error that is context.DeadlineExceeded, or 130 with
	// one that is context.Canceled; output so far has been delivered. A status
	// the provider could not learn is an error, never 0.
	Exec(ctx context.Context, cmd Cmd) (exit int, err error)

	// ReadFile copies the regular file at the absolute path name to w.
	ReadFile(ctx context.Context, name string, w io.Writer) error

	// WriteFile makes the file at the absolute path name hold what r gives,
	// whole or not at all. Parents are made. An existing file keeps its mode, and
	// a symlink stays a link whose target is written; perm is for a new file.
	WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error

	// Close lets go of the sandbox and leaves it running.
	Close() error
}

// Info is what is known of an open sandbox.
type Info struct {
	Provider string    // the provider's name
	ID       string    // the vendor's identity of the machine; never empty
	Dir      string    // the working directory, absolute, links resolved
	Token    string    // opaque; given back in Spec.Token it eases re-attaching
	Expires  time.Time // when the vendor will end the machine; zero if unknown or never
}

// A Cmd is one command. The zero value of every field but Args is useful.
type Cmd struct {
	// ID names the command so that it can be found again after a lost stream and
	// killed by someone who did not start it. The caller chooses it (a UUIDv7);
	// empty, the provider makes one.
	ID string

	// Args is the program and its arguments, taken literally: no shell reads
	// them unless Args[0] is one. No argument may exceed MaxArg bytes.
	Args []string

	Dir   string            // absolute; empty is the sandbox's working directory
	Env   map[string]string // added to the sandbox's own environment
	Stdin io.Reader         // nil is empty, never inherited

	// Stdout and Stderr take the output; nil discards. Both may be written at the
	// same time: a writer given for both must be safe for that.
	Stdout io.Writer
	Stderr io.Writer

	// Unheard, if not nil, is told when the vendor cannot be asked how the command does:
	// since when nothing was heard, and when Exec gives up. Once it can be asked again,
	// since is zero. It may be called by several goroutines, often, and not at all.
	Unheard func(since, until time.Time)
}

// MaxArg is the most bytes one process argument, one environment string, or one
// command line given to a vendor may have. Longer content travels as a file or
// on standard input.
const MaxArg = 96 << 10

// Exit statuses of a command that did not end by itself.
const (
	ExitTimeout   = 124
	ExitCancelled = 130
)

// A Spec says which sandbox is wanted. Fields that a provider has no use for are
// ignored by it; Description.Features tells which those are.
type Spec struct {
	ID       string            // attach to this machine instead of creating one; for Destroy, the machine to end
	Token    string            // Info.Token of an earlier opening; may be empty
	Name     string            // a name for a new machine, unique to the caller; empty: the provider chooses
	Snapshot string            // start from this named snapshot or blueprint
	Image    string            // start from this container image
	Dir      string            // the wanted working directory; empty: Description.Dir
	Env      map[string]string // environment of every command in the sandbox; for a host provider, the whole of it
	Labels   map[string]string // marks a new machine as the caller's
	Lifetime time.Duration     // the vendor ends a new machine after this; 0: the provider's default
	Idle     time.Duration     // the vendor ends or stops a new machine unused for this long; 0: the provider's default
	Settings map[string]string // values of Description.Settings by Setting.Key
	Options  map[string]any    // the provider's own table in the configuration file

	// Created, if not nil, is called as soon as the vendor has given a new machine
	// an identity, before the machine is ready. It is not called on attaching.
	Created func(Info)

	// Progress, if not nil, is told in a few words what a long Open waits for.
	Progress func(string)
}

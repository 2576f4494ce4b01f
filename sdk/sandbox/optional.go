package sandbox

import (
	"context"
	"errors"
	"io"
	"time"
)

// A Lister is a Provider that can find the machines it opened.
type Lister interface {
	// List returns the machines whose labels include those of spec.Labels.
	List(ctx context.Context, spec Spec) ([]Listed, error)
}

// A Listed is one machine as its vendor lists it.
type Listed struct {
	ID      string
	Name    string
	State   string // the vendor's own word: "started"
	Labels  map[string]string
	Created time.Time
	Expires time.Time
}

// An Authenticator is a Provider that can be signed in by more than settings: by
// a file that the vendor's own tool wrote, or a chain of places to look.
type Authenticator interface {
	// SignedIn says whether Open would find a credential with spec.Settings. It
	// reads files at most: no network traffic. The error has CodeUnauthenticated.
	SignedIn(ctx context.Context, spec Spec) error
}

// A Pricer is a Provider that knows its vendor's public price list.
type Pricer interface {
	// Price says what the machine that spec opens costs at the list price, in US
	// dollars an hour while it runs, as if it were busy all the time; 0 if its size or
	// price is not known. It does no I/O.
	Price(spec Spec) float64
}

// A Snapshotter is a Sandbox whose state can be kept and opened again by Spec.Snapshot.
type Snapshotter interface {
	Snapshot(ctx context.Context, name string) error
}

// A SnapshotRemover is a Provider that can remove what a Snapshotter kept.
type SnapshotRemover interface {
	// RemoveSnapshot removes the snapshot spec.Snapshot; of several of one name,
	// all. Removing what is gone succeeds.
	RemoveSnapshot(ctx context.Context, spec Spec) error
}

// An Unpacker is a Sandbox that takes a whole tree at once.
type Unpacker interface {
	// Unpack extracts the uncompressed tar stream r below the absolute directory
	// dir, which it makes if missing.
	Unpack(ctx context.Context, dir string, r io.Reader) error
}

// A Packer is a Sandbox that gives a whole tree at once.
type Packer interface {
	// Pack writes the named entries below dir (relative paths; directories with
	// all they hold) to w as an uncompressed tar stream.
	Pack(ctx context.Context, dir string, names []string, w io.Writer) error
}

// A Killer is a Sandbox that can end a command by its Cmd.ID.
type Killer interface {
	Kill(ctx context.Context, id string) error
}

// An Extender is a Sandbox whose end can be moved.
type Extender interface {
	// Extend makes the vendor keep the machine at least until t, and returns
	// what it promised.
	Extend(ctx context.Context, t time.Time) (time.Time, error)
}

// As returns the first value in x's Unwrap chain that is a T. It lets a
// decorated Sandbox or Provider show the optional interfaces of what it wraps.
func As[T any](x any) (T, bool) {
	for x != nil {
		if t, ok := x.(T); ok {
			return t, true
		}
		switch u := x.(type) {
		case interface{ Unwrap() Sandbox }:
			x = u.Unwrap()
		case interface{ Unwrap() Provider }:
			x = u.Unwrap()
		default:
			x = nil
		}
	}
	var none T
	return none, false
}

// List returns p's machines that carry spec.Labels, or ErrUnsupported.
func List(ctx context.Context, p Provider, spec Spec) ([]Listed, error) {
	if l, ok := As[Lister](p); ok {
		return l.List(ctx, spec)
	}
	return nil, unsupported(p.Describe().Name, "list sandboxes")
}

// Snapshot keeps the state of sb under name, or returns ErrUnsupported.
func Snapshot(ctx context.Context, sb Sandbox, name string) error {
	if s, ok := As[Snapshotter](sb); ok {
		return s.Snapshot(ctx, name)
	}
	return unsupported(sb.Info().Provider, "take snapshots")
}

// RemoveSnapshot removes the snapshot spec.Snapshot of p, or returns ErrUnsupported.
func RemoveSnapshot(ctx context.Context, p Provider, spec Spec) error {
	if r, ok := As[SnapshotRemover](p); ok {
		return r.RemoveSnapshot(ctx, spec)
	}
	return unsupported(p.Describe().Name, "remove snapshots")
}

// Price returns what the machine of p that spec opens costs in US dollars an hour, at
// the vendor's list price; 0 if that is not known.
func Price(p Provider, spec Spec) float64 {
	if r, ok := As[Pricer](p); ok {
		return r.Price(spec)
	}
	return 0
}

// Kill ends the command with that ID and all it started, or returns ErrUnsupported.
func Kill(ctx context.Context, sb Sandbox, id string) error {
	if k, ok := As[Killer](sb); ok {
		return k.Kill(ctx, id)
	}
	return unsupported(sb.Info().Provider, "end a command by its id")
}

// Extend moves the end of sb to t or later, or returns ErrUnsupported.
func Extend(ctx context.Context, sb Sandbox, t time.Time) (time.Time, error) {
	if e, ok := As[Extender](sb); ok {
		return e.Extend(ctx, t)
	}
	return time.Time{}, unsupported(sb.Info().Provider, "extend a sandbox")
}

func unsupported(name, what string) error {
	return &Error{Code: CodeUnsupported, Msg: name + " cannot " + what, Err: errors.ErrUnsupported}
}

// Package session is a sandbox's life: lease, open, fill, set up, use, bring
// back, end.
package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Options say which sandbox is wanted and how it is prepared.
type Options struct {
	Provider sandbox.Provider
	Spec     sandbox.Spec // Created, Labels, Name and Progress are the session's own
	Leases   Leases
	WorkDir  string // where changes are brought home to, one directory a run

	Root      string          // the project
	Start     string          // the current directory below Root
	Plan      *workspace.Plan // what is uploaded; nil: nothing
	Setup     []byte          // script that runs after the upload; empty: none
	SetupName string          // what it is called
	Keep      bool            // leave a fresh machine running
	Warm      *Warm           // keep the state after the setup for later starts; nil: no
	MaxReturn int64           // bytes that come home at most; 0: as workspace has it

	USDPerHour float64 // what the machine costs, an estimate; 0: not known

	CreateTimeout time.Duration
	SetupTimeout  time.Duration

	Note   func(format string, args ...any) // one line of progress or notice
	Warn   func(format string, args ...any) // one line that must be seen
	Output io.Writer                        // what the setup script prints

	// Progress is told how far a start has come, often. Without it, a long upload, and in
	// which state a machine is that starts, are told of by Note. May be nil.
	Progress func(Progress)
}

// A Progress is how far a start has come.
type Progress struct {
	Step           string // "start", "attach to", "upload to", "set up"
	State          string // of a machine that starts, in the vendor's word, as in "pulling snapshot"; may be ""
	Files, OfFiles int    // sent, of the entries that there are
	Bytes, OfBytes int64
}

// at tells how far the start has come.
func (s *Session) at(p Progress) {
	if s.opts.Progress != nil {
		s.opts.Progress(p)
	}
}

// A Session is one open sandbox and what is needed to end it.
type Session struct {
	Sandbox sandbox.Sandbox
	Dir     string // the start directory in the sandbox
	Fresh   bool   // the machine is this session's own

	// Problems are what went wrong without deciding how the session ended.
	Problems []string

	opts     Options
	spec     sandbox.Spec
	lease    Lease
	key      string // what the state after the setup is kept by; empty: it is not
	home     *workspace.Home
	told     string        // the sum of changes that the user was shown last
	changed  chan struct{} // told of every call that may have changed files
	watching chan struct{} // closed when nobody brings changes home on the side any more
	unwatch  context.CancelFunc
	bringing sync.Mutex // one brings changes home
	heart    heart
	from     time.Time // since when the machine of ours is this session's

	ending sync.Mutex
	until  time.Time // when it was ended; zero: it was not
}

// A StartError says at which step a session could not start. Nothing ran on this
// computer instead, and a fresh machine was ended.
type StartError struct {
	Step string // "start", "attach to", "upload to", "set up"
	Name string // the provider's title
	Err  error
	Last []string // the last lines of a setup script
}

func (e *StartError) Error() string {
	return fmt.Sprintf("could not %s a %s sandbox: %v", e.Step, e.Name, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

// endTimeout bounds everything that happens after the work is over.
const endTimeout = 30 * time.Second

// Start opens the sandbox, uploads the project and runs the setup script. If it
// fails, a machine it began is ended before it returns.
func Start(ctx context.Context, opts Options) (*Session, error) {
	d := opts.Provider.Describe()
	s := &Session{opts: opts, spec: opts.Spec, Fresh: opts.Spec.ID == "" && !d.Features.Host}
	if d.Features.Host {
		sb, err := opts.Provider.Open(ctx, s.spec)
		if err != nil {
			return nil, &StartError{Step: "use", Name: d.Title, Err: err}
		}
		s.Sandbox, s.Dir = sb, sb.Info().Dir
		return s, nil
	}

	kept, err := s.warmth(d)
	if err != nil {
		return nil, &StartError{Step: "start", Name: d.Title, Err: err}
	}
	if kept != nil {
		if warm, err := s.startWarm(ctx, *kept); err != nil {
			return nil, err
		} else if warm {
			return s, nil
		}
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// stateSaid is what providers say of a machine that is not ready yet, and no more than that.
var stateSaid = regexp.MustCompile(`^(?:sandbox|devbox) is ([a-z]+(?: [a-z]+)?)$`)

// open makes the machine or attaches to it. If it fails, a machine it began is ended
// before it returns.
func (s *Session) open(ctx context.Context) error {
	opts, d := s.opts, s.opts.Provider.Describe()
	step := "attach to"
	if s.Fresh {
		step = "start"
		if err := s.begin(d); err != nil {
			return &StartError{Step: step, Name: d.Title, Err: err}
		}
	}
	s.spec.Progress = func(text string) {
		if state := stateSaid.FindStringSubmatch(text); state != nil && opts.Progress != nil {
			s.at(Progress{Step: step, State: state[1]})
			return
		}
		opts.Note("%s: %s", d.Title, text)
	}
	openCtx, cancel := ctx, context.CancelFunc(func() {})
	if opts.CreateTimeout > 0 {
		openCtx, cancel = context.WithTimeout(ctx, opts.CreateTimeout)
	}
	began := time.Now()
	s.at(Progress{Step: step})
	sb, err := opts.Provider.Open(openCtx, s.spec)
	cancel()
	if err != nil {
		s.afterFailedOpen(err)
		return &StartError{Step: step, Name: d.Title, Err: err}
	}
	s.Sandbox = &listened{sb, d.Title, opts.Note}
	info := sb.Info()
	if s.Fresh {
		s.lease.ID, s.lease.Token, s.lease.Dir = info.ID, info.Token, info.Dir
		if end, known := endsHere(time.Now(), s.lease.Expires, info.Expires); known {
			s.lease.Expires = end
		} else if !info.Expires.IsZero() {
			opts.Note("the clocks of %s and of this computer differ: by that, the sandbox ends at %s", d.Title, info.Expires.UTC().Format(time.RFC3339))
		}
		if err := opts.Leases.Put(s.lease); err != nil {
			return s.fail(ctx, step, fmt.Errorf("keep a record of the machine: %w", err))
		}
	}
	opts.Note("%s %s is ready after %s, working in %s", d.Title, info.ID, time.Since(began).Round(100*time.Millisecond), info.Dir)
	if want := s.wantedDir(d); want != "" && want != info.Dir {
		opts.Note("the working directory is %s, not %s", info.Dir, want)
	}
	if left := time.Until(info.Expires); !s.Fresh && left > 0 && left < time.Hour {
		opts.Note("this sandbox ends in %s", left.Round(time.Minute))
	}
	return nil
}

func (s *Session) wantedDir(d sandbox.Description) string {
	if s.spec.Dir != "" {
		return s.spec.Dir
	}
	return d.Dir
}

func newRun() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// begin writes the lease of a machine that is about to be asked for.
func (s *Session) begin(d sandbox.Description) error {
	run := newRun()
	host, _ := os.Hostname()
	s.spec.Name = "talkops-" + run
	s.spec.Labels = map[string]string{"app": "talkops", "run": run}
	s.lease = Lease{
		Run: run, Provider: d.Name, Name: s.spec.Name, Project: s.opts.Root, PID: os.Getpid(), Host: host,
		Created: time.Now().UTC().Truncate(time.Second), Price: s.opts.USDPerHour,
	}
	s.ending.Lock()
	s.from, s.until = time.Now(), time.Time{}
	s.ending.Unlock()
	if d.Features.Lifetime {
		s.lease.Expires = s.lease.Created.Add(s.spec.Lifetime)
	}
	if d.Features.Idle {
		s.lease.Idle = s.spec.Idle
	}
	s.spec.Created = func(info sandbox.Info) {
		s.lease.ID, s.lease.Token = info.ID, info.Token
		if err := s.opts.Leases.Put(s.lease); err != nil {
			s.opts.Note("warning: the machine %s is not on record: %v", info.ID, err)
		}
	}
	return s.opts.Leases.Put(s.lease)
}

// afterFailedOpen makes sure that what Open began is gone. The provider has
// ended it already; asking again is cheap and covers its own failure.
//
// Without an id it is only certain that there is no machine if the vendor
// refused: an answer may have been lost, or come after we stopped waiting. Then
// the lease stays, so that the machine can be found by its name.
func (s *Session) afterFailedOpen(err error) {
	switch {
	case !s.Fresh:
	case s.lease.ID != "":
		s.destroy()
	case refused(err):
		s.opts.Leases.Remove(s.lease.Run)
	default:
		s.problem("a machine named %s was perhaps made; to make sure that it is ended: talkops sandbox rm %s", s.lease.Name, s.lease.Name)
	}
}

// refused reports whether err says that no machine was made.
func refused(err error) bool {
	for _, kind := range []error{sandbox.ErrUnauthenticated, sandbox.ErrQuota, sandbox.ErrNotFound, sandbox.ErrInvalid, errors.ErrUnsupported} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// problem tells of something the user must know, also in a quiet run.
func (s *Session) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.Problems = append(s.Problems, text)
	s.opts.Warn("%s", text)
}

// prepare uploads the project and runs the setup script.
func (s *Session) prepare(ctx context.Context) error {
	dir := s.Sandbox.Info().Dir
	if s.opts.Plan != nil {
		if err := s.upload(ctx, dir); err != nil {
			return s.fail(ctx, "upload to", err)
		}
	}
	if len(s.opts.Setup) > 0 {
		if err := s.setup(ctx, dir); err != nil {
			return err
		}
		if err := s.keepWarm(ctx, dir); err != nil {
			return s.fail(ctx, "set up", err)
		}
	}
	return s.begun(ctx, dir)
}

// attached begins the ids of runs in machines that are not their own.
const attached = "attached-"

// begun notes what the work begins with.
func (s *Session) begun(ctx context.Context, dir string) error {
	s.Dir = dir
	if s.opts.Plan != nil {
		s.Dir = workspace.Below(dir, s.opts.Start)
	}
	if s.Dir != dir {
		// The start directory may hold nothing that was sent.
		if exit, err := s.Sandbox.Exec(ctx, sandbox.Cmd{Args: []string{"mkdir", "-p", "--", s.Dir}}); err != nil || exit != 0 {
			return s.fail(ctx, "upload to", unable("make "+s.Dir, exit, err))
		}
	}
	l, err := workspace.List(ctx, s.Sandbox, dir, s.opts.Plan, nil)
	if err != nil {
		return s.fail(ctx, "set up", fmt.Errorf("note what stands in %s: %w", dir, err))
	}
	host, _ := os.Hostname()
	run := workspace.Run{
		ID: s.lease.Run, Provider: s.opts.Provider.Describe().Name, Sandbox: s.Sandbox.Info().ID, Project: s.opts.Root,
		PID: os.Getpid(), Host: host, Started: time.Now().UTC().Truncate(time.Millisecond),
	}
	if run.ID == "" {
		run.ID = attached + newRun()
	}
	if s.home, err = workspace.NewHome(filepath.Join(s.opts.WorkDir, run.ID), run, dir, s.opts.Plan, l); err != nil {
		return s.fail(ctx, "set up", fmt.Errorf("keep the work at home: %w", err))
	}
	s.home.Most = s.opts.MaxReturn
	s.watch()
	if s.Fresh {
		// From here on the machine may hold work, whatever becomes of us.
		s.lease.Unsaved = true
		if err := s.opts.Leases.Put(s.lease); err != nil {
			return s.fail(ctx, "set up", fmt.Errorf("keep a record of the machine: %w", err))
		}
	}
	return nil
}

func (s *Session) upload(ctx context.Context, dir string) error {
	var keep func(string) bool
	if !s.Fresh {
		same, differ, err := s.opts.Plan.Existing(ctx, s.Sandbox, dir, s.earlier())
		if err != nil {
			return err
		}
		keep = func(name string) bool { return same[name] || differ[name] != "" }
		for i, name := range slices.Sorted(maps.Keys(differ)) {
			if i == 20 {
				s.opts.Note("and %d more", len(differ)-i)
				break
			}
			s.opts.Note("%q %s", name, differ[name])
		}
	}
	return s.send(ctx, dir, keep)
}

// earlier is what is on record of the last session that worked on this project in
// this machine; nil if there is none.
func (s *Session) earlier() *workspace.Home {
	var last *workspace.Home
	id, name := s.Sandbox.Info().ID, s.opts.Provider.Describe().Name
	for _, h := range Homes(s.opts.WorkDir) {
		if r := h.Run; r.Sandbox == id && r.Provider == name && r.Project == s.opts.Root && (last == nil || r.Started.After(last.Run.Started)) {
			last = h
		}
	}
	if last == nil || last.Resume() != nil {
		return nil
	}
	return last
}

// send uploads what keep does not leave alone.
func (s *Session) send(ctx context.Context, dir string, keep func(string) bool) error {
	began, said := time.Now(), time.Now()
	progress := func(files int, bytes int64) {
		s.at(Progress{Step: "upload to", Files: files, OfFiles: len(s.opts.Plan.Items), Bytes: bytes, OfBytes: s.opts.Plan.Bytes})
		if s.opts.Progress == nil && time.Since(said) > 3*time.Second {
			said = time.Now()
			s.opts.Note("uploading: %d of %d entries, %s of %s", files, len(s.opts.Plan.Items), workspace.Size(bytes), workspace.Size(s.opts.Plan.Bytes))
		}
	}
	progress(0, 0)
	if err := s.opts.Plan.Upload(ctx, s.Sandbox, dir, keep, progress); err != nil {
		return err
	}
	var report strings.Builder
	s.opts.Plan.Report(&report)
	for i, line := range strings.Split(strings.TrimSpace(report.String()), "\n") {
		if i == 0 {
			word := "uploaded"
			if keep != nil {
				word = "brought up to date"
			}
			line = fmt.Sprintf("%s in %s: %s", word, time.Since(began).Round(100*time.Millisecond), line)
		}
		s.opts.Note("%s", line)
	}
	return nil
}

// fail ends a session that could not start.
func (s *Session) fail(ctx context.Context, step string, err error) error {
	if s.home != nil {
		s.unwatch()
		<-s.watching
		s.home.Remove()
	}
	s.Sandbox.Close()
	if s.Fresh {
		s.destroy()
	}
	return &StartError{Step: step, Name: s.opts.Provider.Describe().Title, Err: err}
}

// Lease returns what is on record of the machine.
func (s *Session) Lease() Lease { return s.lease }

// CostUSD estimates what the machine of ours has cost in this session until now, in US
// dollars; 0 if that is not known. It may be called while the session is in use.
func (s *Session) CostUSD() float64 {
	if s.from.IsZero() {
		return 0
	}
	s.ending.Lock()
	defer s.ending.Unlock()
	until := s.until
	if until.IsZero() {
		until = time.Now()
	}
	return max(until.Sub(s.from), 0).Hours() * s.opts.USDPerHour
}

// over notes that the machine costs no more.
func (s *Session) over() {
	s.ending.Lock()
	defer s.ending.Unlock()
	s.until = time.Now()
}

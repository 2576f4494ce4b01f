// Package cmd is the command line of talkops, and the only place that knows
// everything: it takes the streams, the environment and the signals, and wires
// the rest together.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/redact"
	"github.com/talkops-ai/talkops/runtime/registry"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/wasm/helper"
)

// Version is the release, set when one is built.
var version = "0.1.0-dev"

// An app is one invocation of talkops.
type app struct {
	streams     *term.Streams
	env         func(string) (string, bool)
	environ     []string
	dir         string // current directory
	userHome    string
	home        string // talkops' own directory
	providers   registry.Registry
	loaded      map[string]bool // custom providers among them
	modules     []loadedModule  // to be closed
	providerLog string          // of --provider-log
	logFile     *os.File
	logBroken   *sync.Once // told that logFile lacks lines
	bare        bool       // --sandbox without a name
	redact      *redact.Redactor
	slip        *atomic.Pointer[receipt] // of the run that goes on
	wanders     bool                     // a conversation goes on, and where is not known yet
	moved       bool                     // --sandbox is where a conversation was, not what the user said
}

// Main runs talkops with the process's arguments, environment and streams, and
// returns its exit status. A process that a module is to live in is only that.
func Main() int {
	if helper.Is(os.Args) {
		return helper.Main()
	}
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, "talkops: the current directory cannot be found:", err)
		return 2
	}
	userHome, _ := os.UserHomeDir()
	a := &app{
		streams: term.System(os.Getenv), env: os.LookupEnv, environ: os.Environ(),
		dir: dir, userHome: userHome, home: filepath.Join(userHome, ".talkops"), providers: builtin(),
		slip: new(atomic.Pointer[receipt]),
	}
	if h, _ := a.env("TALKOPS_HOME"); h != "" {
		a.home = a.absolute(h)
	}
	ctx, stop := a.signals()
	defer stop()
	return a.run(ctx, os.Args[1:])
}

// run executes one command line.
func (a *app) run(ctx context.Context, args []string) int {
	defer a.closeModules()
	err := func() error {
		joined, err := a.joinSandbox(args)
		if err != nil && len(args) > 1 && args[0] == "sandbox" && args[1] == "exec" {
			return a.execFailed(err)
		}
		if err != nil {
			return err
		}
		root := a.rootCommand()
		root.SetArgs(joined)
		root.SetIn(a.streams.In)
		root.SetOut(a.streams.Out)
		root.SetErr(a.streams.Err)
		return root.ExecuteContext(ctx)
	}()
	if err != nil && ctx.Err() != nil {
		if s, ok := errors.AsType[*signalError](context.Cause(ctx)); ok {
			if _, ended := errors.AsType[*exitStatus](err); !ended {
				err = s
			}
		}
	}
	status, lines := explain(err)
	a.complain(lines)
	return status
}

// complain prints lines about an error.
func (a *app) complain(lines []string) {
	if len(lines) == 0 {
		return
	}
	if a.redact == nil {
		a.redact = a.redactor(nil)
	}
	for _, line := range lines {
		fmt.Fprintln(a.streams.Err, "talkops:", a.redact.Text(term.Clean(line)))
	}
}

// A signalError is the cause of a context that a signal ended.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string {
	switch e.signal {
	case syscall.SIGINT:
		return "interrupted (SIGINT)"
	case syscall.SIGTERM:
		return "told to end (SIGTERM)"
	case syscall.SIGHUP:
		return "the terminal is gone (SIGHUP)"
	}
	return "ended by " + e.signal.String()
}

// An outputError is the cause of a context that ended because nobody reads our
// standard output any more, or it cannot take more.
type outputError struct{ err error }

func (e *outputError) Error() string { return "standard output: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// A guardedOut is standard output that ends the run when it breaks.
type guardedOut struct {
	w      io.Writer
	broken func(error)
}

func (g *guardedOut) Write(p []byte) (int, error) {
	n, err := g.w.Write(p)
	if err != nil {
		g.broken(err)
	}
	return n, err
}

// signals returns a context that the first INT, TERM or HUP ends in good order.
// A second one ends the process at once and names what is left running.
func (a *app) signals() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	// A write to a closed pipe is an error of that write, after which the sandbox
	// is still ended in good order; the default would end the process at once.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	a.streams.Out = &guardedOut{w: a.streams.Out, broken: func(err error) { cancel(&outputError{err}) }}
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		first := true
		for s := range c {
			sig, _ := s.(syscall.Signal)
			if first {
				first = false
				if sig == syscall.SIGINT && a.streams.ErrTTY && a.streams.InTTY {
					fmt.Fprintln(a.streams.Err) // behind a question, and the terminal's own ^C
				}
				fmt.Fprintln(a.streams.Err, "talkops: ending in good order; once more to leave at once")
				cancel(&signalError{sig})
				continue
			}
			a.nameLeftOvers()
			a.leaveReceipt(&signalError{sig})
			os.Exit(128 + int(sig))
		}
	}()
	return ctx, func() {
		signal.Stop(c)
		close(c)
		<-done
		cancel(nil)
	}
}

// nameLeftOvers says which machines of this process still run.
func (a *app) nameLeftOvers() {
	leases, _ := a.leases().List()
	for _, l := range leases {
		if l.PID != os.Getpid() {
			continue
		}
		id, discard := term.Clean(orName(l)), ""
		if l.Unsaved {
			discard = "--discard "
			fmt.Fprintf(a.streams.Err, "talkops: its work, as far as it did not come home yet: talkops sandbox rescue %s\n", l.Run)
		}
		fmt.Fprintf(a.streams.Err, "talkops: left running: %s sandbox %s. End it with: talkops sandbox rm %s%s; it ends by itself %s\n", l.Provider, id, discard, id, l.Ends())
	}
}

func (a *app) leases() session.Leases { return session.Leases{Dir: filepath.Join(a.home, "leases")} }

// load resolves the configuration for the flags that were given.
func (a *app) load(flags map[string]string, trust config.Trust) (*config.Config, error) {
	if trust == config.Untrusted {
		if v, _ := a.env("TALKOPS_TRUST_PROJECT"); v != "" {
			k := config.Key{Kind: config.Bool}
			yes, err := k.Parse(v)
			if err != nil {
				return nil, &config.Error{Text: "TALKOPS_TRUST_PROJECT: " + err.Error()}
			}
			if yes == true {
				trust = config.Trusted
			}
		}
	}
	return config.Load(config.Sources{
		Home: a.home, Dir: a.dir, UserHome: a.userHome, Env: a.env, Flags: flags, Bare: a.bare, Elsewhere: a.wanders, Trust: trust,
		Providers: append(a.providers.Names(), a.added()...), Approved: a.approved,
	})
}

// warn prints the configuration's warnings.
func (a *app) warn(c *config.Config) {
	for _, w := range c.Warnings {
		fmt.Fprintln(a.streams.Err, "warning:", term.Clean(w))
	}
}

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/headless"
	"github.com/talkops-ai/talkops/runtime/registry"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/thread"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func (a *app) sandboxCommand(flags *given) *cobra.Command {
	c := &cobra.Command{Use: "sandbox", Short: "Work with sandboxes without a model", Args: usage(cobra.NoArgs), RunE: group}
	c.AddCommand(a.changesCommands(flags)...)
	c.AddCommand(a.execCommand(flags), a.checkCommand(flags), a.listCommand(), a.rmCommand(), a.pruneCommand(flags))
	return c
}

// execCommand runs one command in a sandbox.
func (a *app) execCommand(flags *given) *cobra.Command {
	var e execFlags
	c := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARG…]",
		Short: "Run one command in a sandbox; its exit status is ours, 125 if talkops itself fails",
		Example: `  talkops sandbox exec --sandbox daytona -- uname -a
  talkops sandbox exec --sandbox daytona --sandbox-id my-box -- sh -c 'ls | wc -l'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.execFailed(&usageError{"no command: talkops sandbox exec --sandbox NAME -- COMMAND"})
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("receipt") && e.receipt == "" {
				return a.execFailed(&usageError{"--receipt: the name of the file is empty"})
			}
			status, err := a.exec(c, flags, args, e)
			if err != nil {
				return a.execFailed(err)
			}
			if status == 0 {
				return nil
			}
			return &exitStatus{status}
		},
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return a.execFailed(c.Parent().FlagErrorFunc()(c, err))
	})
	c.Flags().BoolVarP(&e.stdin, "stdin", "i", false, "give the command our standard input")
	c.Flags().BoolVarP(&e.quiet, "quiet", "q", false, "no progress on stderr")
	c.Flags().StringVar(&e.receipt, "receipt", "", "also write to a file what left this computer, and what came back, as JSON")
	return c
}

// execFlags are the flags of exec that are not settings.
type execFlags struct {
	stdin, quiet bool
	receipt      string
}

// execFailed tells of an error of talkops itself, whose status no command's can
// be taken for.
func (a *app) execFailed(err error) error {
	status := execStatus(err)
	a.complain(tell(err, status))
	return &exitStatus{status}
}

func execStatus(err error) int {
	if s, ok := errors.AsType[*signalError](err); ok {
		return 128 + int(s.signal)
	}
	return exitExec
}

func (a *app) exec(c *cobra.Command, flags *given, args []string, e execFlags) (status int, err error) {
	cfg, err := a.loadFor(c, flags)
	if err != nil {
		return 0, err
	}
	err = a.withReceipt(c.Context(), cfg, runFlags{receipt: e.receipt}, func(ctx context.Context, f runFlags) error {
		status, err = a.execIn(ctx, cfg, args, e, f.slip)
		switch _, reason := classify(err); {
		case err != nil:
			f.slip.outcome(execStatus(err), reason)
		case status != 0:
			f.slip.outcome(status, "command")
		default:
			f.slip.outcome(0, reason)
		}
		return err
	})
	return status, err
}

// execIn runs the command in a machine that it opens for it.
func (a *app) execIn(ctx context.Context, cfg *config.Config, args []string, e execFlags, slip *receipt) (int, error) {
	if err := a.demandTrust(cfg); err != nil {
		return 0, err
	}
	if !e.quiet {
		a.warn(cfg)
	}
	want, err := a.wantExport(cfg)
	if err != nil {
		return 0, err
	}
	box, err := a.prepare(ctx, cfg)
	if err != nil {
		return 0, err
	}
	slip.opening(box)
	a.redact = a.redactor(cfg, box.secrets...)
	p := &headless.Printer{Out: a.streams.Out, Err: a.streams.Err, Quiet: e.quiet, Redact: a.redact}
	setup := a.redact.Writer(noteWriter{p})
	box.opts.Note, box.opts.Warn, box.opts.Output = p.Note, p.Warn, setup
	box.tell()
	s, err := session.Start(ctx, box.opts)
	setup.Close()
	if err != nil {
		return 0, ended(ctx, err)
	}
	slip.opened(s)
	var in io.Reader
	if e.stdin {
		in = a.streams.In
	}
	stdout, stderr := a.screen(a.streams.Out, a.streams.OutTTY), a.screen(a.streams.Raw(), a.streams.ErrTTY)
	status, err := s.Sandbox.Exec(ctx, sandbox.Cmd{Args: args, Dir: s.Dir, Stdin: in, Stdout: stdout, Stderr: stderr})
	err = ended(ctx, errors.Join(err, stdout.Close(), stderr.Close()))
	if endErr := s.End(ctx); err == nil {
		err = endErr
	}
	work, exportErr := a.exportWork(s, want, p.Note, p.Warn)
	if err == nil {
		err = exportErr
	}
	slip.ended(s, work)
	return status, err
}

// listCommand shows the machines that are ours.
func (a *app) listCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "list", Short: "List the sandboxes that are ours and may still run", Args: usage(cobra.NoArgs),
		Long: `List shows the machines that are on record on this computer. With --all it also asks
every cloud that you are signed in to for machines of talkops, such as those of your
other computers.`,
		Example: "  talkops sandbox list\n  talkops sandbox list --all",
		RunE: func(c *cobra.Command, _ []string) error {
			leases, err := a.leases().List()
			if all {
				others, oerr := a.elsewhere(c.Context(), leases)
				leases, err = append(leases, others...), errors.Join(err, oerr)
			}
			if len(leases) > 0 {
				w := tabwriter.NewWriter(a.streams.Out, 0, 4, 2, ' ', 0)
				fmt.Fprintln(w, "PROVIDER\tID\tAGE\tENDS BY ITSELF\tCOST\tSTATE\tPROJECT")
				cfg, cfgErr := a.load(nil, config.Untrusted)
				for _, l := range leases {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Provider, term.Clean(orName(l)), ageOf(l),
						l.Ends(), spent(cfg, l), state(l), term.Clean(l.Project))
				}
				w.Flush()
				if cfgErr != nil {
					a.warnf("warning: what they cost is not known: %v", cfgErr)
				}
			} else if err == nil {
				fmt.Fprintln(a.streams.Err, "no sandboxes of ours")
			}
			a.noteWarm()
			return err
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also ask the clouds")
	return c
}

// elsewhere finds the machines of talkops that are not on record here.
func (a *app) elsewhere(ctx context.Context, known []session.Lease) ([]session.Lease, error) {
	var errs []error
	if cfg, err := a.load(nil, config.Untrusted); err != nil {
		errs = append(errs, err)
	} else {
		for _, name := range append(a.added(), custom(cfg)...) {
			if err := a.loadProvider(ctx, cfg, name); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var found []session.Lease
	for _, p := range a.providers {
		d := p.Describe()
		if _, ok := sandbox.As[sandbox.Lister](p); !ok || d.Features.Host {
			continue
		}
		settings, err := registry.Settings(ctx, p, a.env)
		if err != nil {
			continue // not signed in
		}
		wg.Go(func() {
			list, err := sandbox.List(ctx, p, sandbox.Spec{Settings: settings, Labels: map[string]string{"app": "talkops"}})
			mu.Lock()
			defer mu.Unlock()
			if err != nil && !errors.Is(err, errors.ErrUnsupported) {
				errs = append(errs, fmt.Errorf("%s: %w", d.Title, err))
			}
			for _, m := range list {
				if slices.ContainsFunc(known, func(l session.Lease) bool {
					return l.Provider == d.Name && (l.ID == m.ID || l.ID == "" && (l.Name == m.Name || l.Run == m.Labels["run"]))
				}) {
					continue
				}
				found = append(found, session.Lease{Provider: d.Name, ID: m.ID, Name: m.Name, Created: m.Created, Expires: m.Expires, Project: "not on record here", Price: sandbox.Price(p, sandbox.Spec{Settings: settings})})
			}
		})
	}
	wg.Wait()
	return found, errors.Join(errs...)
}

// ageOf is how long ago a machine was made; "-" if that is not known, or not yet by the
// clock here.
func ageOf(l session.Lease) string {
	if since := time.Since(l.Created).Round(time.Second); !l.Created.IsZero() && since >= 0 {
		return since.String()
	}
	return "-"
}

func orName(l session.Lease) string {
	if l.ID != "" {
		return l.ID
	}
	return l.Name
}

func state(l session.Lease) string {
	switch {
	case l.Host == "":
		return "of another computer"
	case l.Kept:
		return "kept"
	case alive(l):
		return "in use"
	case l.Unsaved:
		return "left over, may hold unsaved work"
	case l.ID == "":
		return "perhaps never made"
	}
	return "left over"
}

// alive reports whether the process that holds a lease still runs here.
func alive(l session.Lease) bool {
	host, _ := os.Hostname()
	return l.Host == host && processAlive(l.PID)
}

// noteOrphans says how many machines earlier runs left, for how long, and what that
// costs where it is known. The machine of the conversation that goes on is none of
// them; on may be nil.
func (a *app) noteOrphans(cfg *config.Config, on *thread.Thread) {
	leases, err := a.leases().List()
	if err != nil {
		fmt.Fprintln(a.streams.Err, "warning:", term.Clean(err.Error()))
	}
	n, usd, oldest := 0, 0.0, time.Duration(0)
	for _, l := range leases {
		if !l.Kept && !alive(l) && (on == nil || l.ID == "" || l.ID != on.Machine.ID) {
			n++
			cost, _ := cost(cfg, l)
			usd += cost
			oldest = max(oldest, time.Since(l.Created))
		}
	}
	if n == 0 {
		return
	}
	noun := "sandboxes"
	if n == 1 {
		noun = "sandbox"
	}
	text := fmt.Sprintf("%d %s of earlier runs may still run, begun up to %s ago", n, noun, oldest.Round(time.Second))
	if usd > 0 {
		text += ", " + dollars(usd)
	}
	fmt.Fprintf(a.streams.Err, "%s; see: talkops sandbox list\n", text)
}

// rmCommand ends machines of ours.
func (a *app) rmCommand() *cobra.Command {
	var discard, force bool
	c := &cobra.Command{
		Use: "rm ID…", Short: "End sandboxes that are ours", Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, ids []string) error {
			leases, err := a.leases().List()
			if err != nil {
				fmt.Fprintln(a.streams.Err, "warning:", term.Clean(err.Error()))
			}
			for _, id := range ids {
				lease, ok := find(leases, id)
				switch {
				case !ok:
					return &usageError{fmt.Sprintf("no sandbox %q of ours; see: talkops sandbox list", id)}
				case alive(lease) && !lease.Kept && !force:
					return &usageError{fmt.Sprintf("sandbox %s is in use by process %d; add --force if that is another program", id, lease.PID)}
				case lease.Unsaved && !discard:
					return &usageError{fmt.Sprintf("sandbox %s may hold work that was not saved; add --discard to end it all the same", id)}
				}
				if err := a.end(c.Context(), lease); err != nil {
					return stillRuns(lease, err)
				}
				fmt.Fprintln(a.streams.Out, term.Clean(id))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&force, "force", false, "end it although the process that holds it seems to run")
	c.Flags().BoolVar(&discard, "discard", false, "end it although it holds unsaved work")
	return c
}

func find(leases []session.Lease, id string) (session.Lease, bool) {
	for _, l := range leases {
		if id != "" && (l.ID == id || l.Name == id || l.Run == id) {
			return l, true
		}
	}
	return session.Lease{}, false
}

// stillRuns says that a machine could not be ended.
func stillRuns(l session.Lease, err error) error {
	if ends := l.Ends(); errors.Is(err, sandbox.ErrUnavailable) && ends != "never" {
		return fmt.Errorf("end sandbox %s: %w; it ends by itself %s", orName(l), err, ends)
	}
	return fmt.Errorf("end sandbox %s: %w", orName(l), err)
}

// endWithin bounds the wait for a vendor to end a machine.
const endWithin = 2 * time.Minute

// end destroys the machine of a lease with the provider that opened it. A vendor that
// takes long is told of.
func (a *app) end(ctx context.Context, lease session.Lease) error {
	if err := a.knowProvider(ctx, lease.Provider); err != nil {
		return err
	}
	p := a.providers.Find(lease.Provider)
	if p == nil {
		return fmt.Errorf("its provider %q is not known", lease.Provider)
	}
	settings, err := registry.Settings(ctx, p, a.env)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	var wait sync.WaitGroup
	wait.Go(func() {
		began, t := time.Now(), time.NewTicker(5*time.Second)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				a.warnf("waiting for %s to end %s, %s so far, %s at most", p.Describe().Title, term.Clean(orName(lease)), time.Since(began).Round(time.Second), endWithin)
			}
		}
	})
	err = session.EndLease(ctx, p, lease, settings)
	cancel()
	wait.Wait()
	if err != nil {
		return err
	}
	return a.leases().Remove(lease.Run)
}

// errNotTried is why a machine was not ended whose vendor could not be reached for
// another one.
var errNotTried error = &sandbox.Error{Code: sandbox.CodeUnavailable, Msg: "not tried, as its cloud did not answer before"}

// pruneCommand ends what earlier runs left.
func (a *app) pruneCommand(flags *given) *cobra.Command {
	var discard, dry, warm bool
	c := &cobra.Command{
		Use: "prune", Short: "End the sandboxes that earlier runs left", Args: usage(cobra.NoArgs),
		Long: `Prune ends the machines of runs that are no more: killed, crashed, or cut off. It
leaves alone what is in use, what was kept on purpose, and, without --discard, what may
hold work that was not saved. Then it removes saved work past saved.max_age or
saved.max_bytes that was applied, exported or pulled; with --discard also such that was
not, which it names otherwise. Snapshots that were kept for warm starts go when they are
older than a week, or all with --warm.`,
		Example: "  talkops sandbox prune --dry-run\n  talkops sandbox prune",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.loadFor(c, flags)
			if err != nil {
				return err
			}
			leases, err := a.leases().List()
			if err != nil {
				fmt.Fprintln(a.streams.Err, "warning:", term.Clean(err.Error()))
			}
			var errs []error
			ended, left := 0, 0
			down := map[string]bool{} // providers that did not answer
			for _, l := range leases {
				switch {
				case l.Kept, alive(l):
					continue
				case l.Unsaved && !discard:
					fmt.Fprintf(a.streams.Err, "%s may hold work that was not saved; add --discard to end it all the same\n", term.Clean(orName(l)))
					left++
					continue
				}
				if !dry {
					err := errNotTried
					if !down[l.Provider] {
						err = a.end(c.Context(), l)
						down[l.Provider] = errors.Is(err, sandbox.ErrUnavailable)
					}
					if err != nil {
						errs = append(errs, stillRuns(l, err))
						continue
					}
				}
				fmt.Fprintln(a.streams.Out, term.Clean(orName(l)))
				ended++
			}
			n, err := a.pruneSaved(cfg, dry, discard)
			if err != nil {
				errs = append(errs, err)
			}
			m, err := a.pruneWarm(c.Context(), dry, warm)
			if err != nil {
				errs = append(errs, err)
			}
			if ended+left+n+m+len(errs) == 0 {
				fmt.Fprintln(a.streams.Err, "nothing was left")
			}
			return errors.Join(errs...)
		},
	}
	c.Flags().BoolVar(&discard, "discard", false, "also what holds work that was not saved, and saved work that nobody took")
	c.Flags().BoolVar(&warm, "warm", false, "also every snapshot that was kept for warm starts")
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what would be ended and removed")
	return c
}

package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/registry"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// changesCommands are the ways back: what runs changed in their sandboxes.
func (a *app) changesCommands(flags *given) []*cobra.Command {
	return []*cobra.Command{a.planCommand(flags), a.diffCommand(flags), a.pullCommand(flags), a.applyCommand(flags), a.exportCommand(flags), a.rescueCommand(flags)}
}

const runHelp = `

RUN is the id of a run or of its sandbox; without it, the last run of this project counts.`

const allHelp = "also what was set aside: what may hold secrets, and what acts on this computer"

// warnf tells a line on standard error.
func (a *app) warnf(format string, args ...any) {
	fmt.Fprintln(a.streams.Err, term.Clean(fmt.Sprintf(format, args...)))
}

// homes are the kept works of runs, oldest first. What is on record of a run only
// since its machine was kept is none.
func (a *app) homes() []*workspace.Home {
	list := slices.DeleteFunc(session.Homes(a.savedDir()), func(h *workspace.Home) bool { return h.Run.Whole && h.Empty() })
	slices.SortStableFunc(list, func(x, y *workspace.Home) int { return x.Run.Started.Compare(y.Run.Started) })
	return list
}

// homeNamed is the work of a run, by its ID or that of its sandbox; a run of which
// nothing came home has to be named by its own. It is nil if nothing is kept of it.
func (a *app) homeNamed(run string) *workspace.Home {
	for _, h := range slices.Backward(a.homes()) {
		if h.Run.ID == run || h.Run.Sandbox == run || "talkops-"+h.Run.ID == run {
			return h
		}
	}
	for _, h := range session.Homes(a.savedDir()) {
		if h.Run.ID == run {
			return h
		}
	}
	return nil
}

// homeOf finds the work of the run that is named, or of the project's last.
func (a *app) homeOf(c *cobra.Command, flags *given, run string) (*workspace.Home, error) {
	if run != "" {
		if h := a.homeNamed(run); h != nil {
			return h, a.sayUnfinished(h)
		}
		return nil, &usageError{fmt.Sprintf("no work of a run %q is kept; see: talkops sandbox rescue", run)}
	}
	list := a.homes()
	slices.Reverse(list)
	cfg, err := a.loadFor(c, flags)
	if err != nil {
		return nil, err
	}
	for _, h := range list {
		if h.Run.Project == cfg.Root && (h.Run.Whole || !h.Empty()) {
			return h, a.sayUnfinished(h)
		}
	}
	return nil, &usageError{"no work of a run of this project is kept; those of others: talkops sandbox rescue"}
}

// sayUnfinished says when there may be more than what is here.
func (a *app) sayUnfinished(h *workspace.Home) error {
	switch {
	case h.Run.Whole:
	case a.running(h):
		a.warnf("run %s goes on; this is what it had changed after its last call", h.Run.ID)
	default:
		a.warnf("run %s was broken off; this is what came home until then. To look for more: talkops sandbox rescue %s", h.Run.ID, h.Run.ID)
	}
	return nil
}

func (a *app) running(h *workspace.Home) bool {
	return !h.Run.Whole && alive(session.Lease{Host: h.Run.Host, PID: h.Run.PID})
}

// optionalRun takes the name of a run before n more arguments.
func optionalRun(n int) cobra.PositionalArgs { return usage(cobra.RangeArgs(n, n+1)) }

func runOf(args []string, n int) string {
	if len(args) > n {
		return args[0]
	}
	return ""
}

func (a *app) sayAside(h *workspace.Home, aside []workspace.Aside) {
	for _, x := range leaves(aside) {
		if x.Never {
			a.warnf("left out: %q: it %s", x.Name, x.Why)
		} else {
			a.warnf("set aside: %q: it %s; --all takes it too", x.Name, x.Why)
		}
	}
	for _, l := range h.Left {
		if l.Over && !h.Run.Whole {
			a.warnf("not here: %q: %s; as long as the sandbox is there: talkops sandbox rescue --no-limit %s", l.Name, l.Why, h.Run.ID)
		} else {
			a.warnf("not here: %q: %s", l.Name, l.Why)
		}
	}
}

// planCommand shows what an upload would send.
func (a *app) planCommand(flags *given) *cobra.Command {
	var list bool
	c := &cobra.Command{
		Use: "plan", Short: "Show what would leave this computer, without starting anything", Args: usage(cobra.NoArgs),
		Example: "  talkops sandbox plan\n  talkops sandbox plan --files",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.loadFor(c, flags)
			if err != nil {
				return err
			}
			a.warn(cfg)
			if !cfg.Sandbox.SyncWorkspace {
				fmt.Fprintln(a.streams.Out, "nothing: sync_workspace is off")
				return nil
			}
			plan, err := a.planUpload(c.Context(), cfg)
			if err != nil {
				return err
			}
			if list {
				for _, item := range plan.Items {
					fmt.Fprintf(a.streams.Out, "%s %10d %s\n", item.Mode, item.Size, quoted(item.Name))
				}
				return nil
			}
			fmt.Fprintf(a.streams.Out, "from %s: ", term.Clean(cfg.Root))
			plan.Report(a.streams.Out)
			for _, name := range cfg.Sandbox.Env {
				fmt.Fprintf(a.streams.Out, "the variable %s\n", term.Clean(name))
			}
			if len(cfg.Sandbox.Setup) > 0 {
				fmt.Fprintf(a.streams.Out, "the setup script %s\n", term.Clean(cfg.Sandbox.SetupScript))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&list, "files", false, "name every file, directory and link")
	return c
}

// planUpload plans what goes up from the project.
func (a *app) planUpload(ctx context.Context, cfg *config.Config) (*workspace.Plan, error) {
	if cfg.Unbounded {
		return nil, &usageError{fmt.Sprintf("%s is your home directory or above it, not a project: it is not uploaded. Change to a project, or set sync_workspace = false", cfg.Root)}
	}
	plan, err := workspace.Make(ctx, cfg.Root, workspace.Rules{
		Include: cfg.Sync.Include, Exclude: cfg.Sync.Exclude, AllowSecrets: cfg.Sync.AllowSecrets,
		Gitignore: cfg.Sync.Gitignore, MaxFileBytes: cfg.Sync.MaxFileBytes, MaxTotalBytes: cfg.Sync.MaxTotalBytes,
	})
	if _, tooLarge := errors.AsType[*workspace.SizeError](err); err != nil && !tooLarge && ctx.Err() == nil {
		err = &usageError{"plan the upload: " + err.Error()}
	}
	return plan, err
}

// quoted is a name that is safe to show.
func quoted(name string) string {
	if q := fmt.Sprintf("%q", name); q != `"`+name+`"` {
		return q
	}
	return name
}

func (a *app) diffCommand(flags *given) *cobra.Command {
	var stat, all bool
	c := &cobra.Command{
		Use: "diff [RUN]", Short: "Show what a run changed in its sandbox", Args: optionalRun(0), Long: "Diff shows what a run changed, as a patch that git apply takes." + runHelp,
		Example: "  talkops sandbox diff --stat\n  talkops sandbox diff > work.patch",
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.homeOf(c, flags, runOf(args, 0))
			if err != nil {
				return err
			}
			take, aside := h.Split(all)
			a.sayAside(h, aside)
			if stat {
				return a.stat(h, take)
			}
			return a.paged(c.Context(), func(w io.Writer) error {
				left, err := h.Patch(w, take)
				for _, l := range left {
					a.warnf("%q is not shown: %s", l.Name, l.Why)
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&stat, "stat", false, "count lines instead of showing them")
	c.Flags().BoolVar(&all, "all", false, allHelp)
	return c
}

// paged shows a patch: as it is to a file or pipe, and to a person in colours and
// through a pager, with nothing in it that acts on the terminal.
func (a *app) paged(ctx context.Context, write func(io.Writer) error) error {
	if !a.streams.OutTTY {
		return write(a.streams.Out)
	}
	var out io.Writer = a.streams.Out
	wait := func() error { return nil }
	if less, err := exec.LookPath("less"); err == nil {
		cmd := exec.CommandContext(ctx, less, "-FRX")
		cmd.Stdout, cmd.Stderr = a.streams.Out, a.streams.Raw()
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return err
		}
		out = in
		wait = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	}
	screen := &screen{w: out, color: a.streams.Color}
	err := errors.Join(write(screen), screen.flush())
	if werr := wait(); werr != nil {
		return werr
	}
	if errors.Is(err, os.ErrClosed) || err != nil && strings.Contains(err.Error(), "broken pipe") {
		return nil // the reader has seen enough
	}
	return err
}

// A screen takes the lines of a patch and makes them fit to be seen.
type screen struct {
	w     io.Writer
	color bool
	rest  []byte
}

func (s *screen) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for {
		i := bytes.IndexByte(s.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		if err := s.line(string(s.rest[:i])); err != nil {
			return 0, err
		}
		s.rest = s.rest[i+1:]
	}
}

func (s *screen) line(text string) error {
	color := ""
	switch {
	case strings.HasPrefix(text, "diff "), strings.HasPrefix(text, "+++ "), strings.HasPrefix(text, "--- "):
		color = "\x1b[1m"
	case strings.HasPrefix(text, "@@"):
		color = "\x1b[36m"
	case strings.HasPrefix(text, "+"):
		color = "\x1b[32m"
	case strings.HasPrefix(text, "-"):
		color = "\x1b[31m"
	}
	text = term.Clean(text)
	if s.color && color != "" {
		text = color + text + "\x1b[0m"
	}
	_, err := io.WriteString(s.w, text+"\n")
	return err
}

func (s *screen) flush() error {
	if len(s.rest) == 0 {
		return nil
	}
	return s.line(string(s.rest))
}

func (a *app) pullCommand(flags *given) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "pull [RUN] DIR", Short: "Write the files that a run made or changed into a new directory", Args: optionalRun(1),
		Long: "Pull writes what is new or changed into DIR, which must not exist or be empty." + runHelp, Example: "  talkops sandbox pull ../work",
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.homeOf(c, flags, runOf(args, 1))
			if err != nil {
				return err
			}
			take, aside := h.Split(all)
			a.sayAside(h, aside)
			dir := a.absolute(args[len(args)-1])
			out, err := h.Pull(c.Context(), dir, take)
			if err != nil {
				return &usageError{"pull: " + err.Error()}
			}
			for _, name := range workspace.Deleted(take) {
				a.warnf("deleted in the sandbox: %q", name)
			}
			fmt.Fprintf(a.streams.Out, "%s in %s\n", things(slices.Concat(out.Made, out.Already), take), term.Clean(dir))
			if err := conflicts(h, out, a.warnf); err != nil {
				return err
			}
			took(h, aside, nil, a.warnf)
			return nil
		},
	}
	c.Flags().BoolVar(&all, "all", false, allHelp)
	return c
}

// things counts the named files and directories of changes.
func things(names []string, changes []workspace.Change) string {
	isDir := map[string]bool{}
	for _, c := range changes {
		isDir[c.Name] = c.Now != nil && c.Now.Kind == workspace.Dir
	}
	dirs := 0
	for _, name := range names {
		if isDir[name] {
			dirs++
		}
	}
	text := workspace.Count(len(names)-dirs, "file")
	if dirs > 0 {
		text += ", " + workspace.Count(dirs, "directory")
	}
	return text
}

func (a *app) applyCommand(flags *given) *cobra.Command {
	var dry, all bool
	c := &cobra.Command{
		Use: "apply [RUN]", Short: "Make a run's changes in the project", Args: optionalRun(0),
		Long: `Apply makes the changes of a run in its project: modes, links, empty directories and
binary files too. A text that you changed since the run began is merged with the run's,
line by line, if the changes are apart; your own version is kept. If they are not, your
file is not touched: it is told as a conflict with the path of the sandbox's version, the
others are applied, and the exit status is 6. Applying twice changes nothing more.` + runHelp,
		Example: "  talkops sandbox apply --dry-run\n  talkops sandbox apply",
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.homeOf(c, flags, runOf(args, 0))
			if err != nil {
				return err
			}
			take, aside := h.Split(all)
			a.sayAside(h, aside)
			out, err := h.Apply(c.Context(), h.Run.Project, take, dry)
			if err != nil {
				return &exportError{"not everything was applied", err}
			}
			for _, name := range out.Made {
				fmt.Fprintln(a.streams.Out, quoted(name))
			}
			word := "made"
			if dry {
				word = "to be made"
			}
			a.warnf("%s %s in %s, %d there already", workspace.Count(len(out.Made), "change"), word, h.Run.Project, len(out.Already))
			sayMerged(out, a.warnf)
			if err := conflicts(h, out, a.warnf); err != nil || dry {
				return err
			}
			took(h, aside, nil, a.warnf)
			return nil
		},
	}
	c.Flags().BoolVarP(&dry, "dry-run", "n", false, "only say what would be done")
	c.Flags().BoolVar(&all, "all", false, allHelp)
	return c
}

func (a *app) exportCommand(flags *given) *cobra.Command {
	var patch, branch, tarFile string
	var all bool
	c := &cobra.Command{
		Use: "export [RUN] (--patch FILE | --branch NAME | --tar FILE)", Short: "Write a run's changes as a patch, a git branch or an archive", Args: optionalRun(0),
		Long: `Export writes what a run changed. A branch is made on top of the current commit; work
tree, index and every other branch stay as they are. An archive holds what is new or
changed; the names of what was deleted go into FILE.deleted, each ended by NUL.` + runHelp,
		Example: "  talkops sandbox export --branch agent/work\n  talkops sandbox export --patch work.patch",
		RunE: func(c *cobra.Command, args []string) error {
			given := 0
			for _, text := range []string{patch, branch, tarFile} {
				if text != "" {
					given++
				}
			}
			if given != 1 {
				return &usageError{"export: give one of --patch FILE, --branch NAME, --tar FILE"}
			}
			h, err := a.homeOf(c, flags, runOf(args, 0))
			if err != nil {
				return err
			}
			take, aside := h.Split(all)
			a.sayAside(h, aside)
			var left []workspace.Left
			switch {
			case patch != "":
				files, missing, err := writePatch(h, a.absolute(patch), take, a.warnf)
				if err != nil {
					return &exportError{"the patch was not written", err}
				}
				if len(files) > 1 {
					fmt.Fprintln(a.streams.Out, term.Clean(patch+".first"))
				}
				left = missing
				fmt.Fprintln(a.streams.Out, term.Clean(patch))
			case branch != "":
				commit, told, err := h.Branch(c.Context(), branch, "Work of talkops run "+h.Run.ID, take)
				if err != nil {
					return &exportError{"the branch was not made", err}
				}
				left = sayBranch(told, a.warnf)
				fmt.Fprintln(a.streams.Out, term.Clean(branch), commit)
			default:
				if err := a.exportTar(h, a.absolute(tarFile), take); err != nil {
					return &exportError{"the archive was not written", err}
				}
				fmt.Fprintln(a.streams.Out, term.Clean(tarFile))
			}
			took(h, aside, left, a.warnf)
			return nil
		},
	}
	c.Flags().StringVar(&patch, "patch", "", "write a patch that git apply takes")
	c.Flags().StringVar(&branch, "branch", "", "make a branch in the project's repository")
	c.Flags().StringVar(&tarFile, "tar", "", "write a tar archive")
	c.Flags().BoolVar(&all, "all", false, allHelp)
	return c
}

func (a *app) exportTar(h *workspace.Home, file string, changes []workspace.Change) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".talkops-tar-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(h.Tar(f, changes), f.Close()); err != nil {
		return err
	}
	if gone := workspace.Deleted(changes); len(gone) > 0 {
		if err := os.WriteFile(file+".deleted", []byte(strings.Join(gone, "\x00")+"\x00"), 0o600); err != nil {
			return err
		}
	}
	return os.Rename(f.Name(), file)
}

func (a *app) rescueCommand(flags *given) *cobra.Command {
	var unlimited bool
	c := &cobra.Command{
		Use: "rescue [RUN]", Short: "List the work that runs left, or get that of one", Args: optionalRun(0),
		Long: `Rescue lists the work of runs that is kept on this computer, also of those that were
killed. With RUN it looks for more in the run's sandbox, as long as that is there, and
writes a patch of all there is. What is more than sync.max_return_bytes stays there, the
largest files first, unless --no-limit is given.`,
		Example: "  talkops sandbox rescue\n  talkops sandbox rescue 0123456789ab",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listWork()
			}
			most := int64(0) // as by default, if the settings cannot be read
			if cfg, err := a.loadFor(c, flags); err == nil {
				most = cfg.Sync.MaxReturnBytes
			}
			if unlimited {
				most = math.MaxInt64
			}
			return a.rescue(c.Context(), args[0], most)
		},
	}
	c.Flags().BoolVar(&unlimited, "no-limit", false, "also what is more than sync.max_return_bytes")
	return c
}

func (a *app) listWork() error {
	homes := a.homes()
	w := tabwriter.NewWriter(a.streams.Out, 0, 4, 2, ' ', 0)
	n := 0
	for _, h := range homes {
		state := "whole"
		switch {
		case a.running(h):
			state = "in use"
		case !h.Run.Whole:
			state = "broken off"
		}
		if n++; n == 1 {
			fmt.Fprintln(w, "RUN\tAGE\tPROVIDER\tSTATE\tCHANGES\tPROJECT")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", term.Clean(h.Run.ID), time.Since(h.Run.Started).Round(time.Second), term.Clean(h.Run.Provider), state, h, quoted(h.Run.Project))
	}
	if n == 0 {
		a.warnf("no work of earlier runs is kept")
	}
	entries, _ := os.ReadDir(a.savedDir())
	for _, e := range entries {
		if _, err := workspace.OpenHome(filepath.Join(a.savedDir(), e.Name())); err != nil && e.IsDir() && !errors.Is(err, os.ErrNotExist) {
			a.warnf("not in this list, since it cannot be read: %v; the files are below %s", err, filepath.Join(a.savedDir(), e.Name(), "content"))
		}
	}
	return w.Flush()
}

// rescue gets the work of a run, of which at most so many bytes come home.
func (a *app) rescue(ctx context.Context, run string, most int64) error {
	h := a.homeNamed(run)
	if h == nil {
		return &usageError{fmt.Sprintf("no work of a run %q is kept; see: talkops sandbox rescue", run)}
	}
	if a.running(h) {
		return &usageError{fmt.Sprintf("run %s goes on in process %d; its work comes home when it ends", run, h.Run.PID)}
	}
	h.Most = most
	leases, err := a.leases().List()
	if err != nil {
		a.warnf("warning: %v", err)
	}
	var missed error
	if lease, ok := find(leases, h.Run.ID); ok && !h.Run.Whole && lease.ID != "" {
		missed = a.lookAgain(ctx, lease, h)
	} else if !h.Run.Whole {
		a.warnf("the sandbox is no more on record; this is what came home before the run was broken off")
	}
	take, aside := h.Split(false)
	a.sayAside(h, aside)
	if len(h.Changes) > 0 {
		file := filepath.Join(h.Dir, "changes.patch")
		files, _, err := writePatch(h, file, take, a.warnf)
		if err != nil {
			return &exportError{"the patch was not written", err}
		}
		for _, file := range files {
			fmt.Fprintln(a.streams.Out, term.Clean(file))
		}
	}
	if !h.Empty() {
		a.warnf("%s; to make the changes in %s: talkops sandbox apply %s", h, h.Run.Project, h.Run.ID)
	} else {
		a.warnf("run %s has no changes to be made", h.Run.ID)
	}
	if lost, is := errors.AsType[*workspace.LostError](missed); is {
		return &exportError{"some of the work is in the sandbox alone", lost}
	}
	if missed != nil {
		return &exportError{"there may be more in the sandbox, which could not be looked at", missed}
	}
	return nil
}

// lookAgain brings home what the machine of a run still holds.
func (a *app) lookAgain(ctx context.Context, lease session.Lease, h *workspace.Home) error {
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
	err = session.Rescue(ctx, p, lease, settings, a.leases(), h)
	if errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrNotFound) {
		a.warnf("the sandbox is gone; this is what came home before")
		return nil
	}
	if err != nil {
		return err
	}
	a.warnf("the sandbox holds nothing that is not here; to end it: talkops sandbox rm %s", lease.ID)
	return nil
}

package cmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/trust"
	"github.com/talkops-ai/talkops/runtime/workspace"
)

// approvals is the record of approved projects.
func (a *app) approvals() trust.Store { return trust.Store{Path: filepath.Join(a.home, "trust.toml")} }

// approved reports whether the user has approved a project as it is.
func (a *app) approved(root string, files map[string][]byte, keys []string) (bool, error) {
	return a.approvals().Trusts(trust.Project{Root: root, Files: files, Keys: keys})
}

// An untrustedError lists what an untrusted project asks for.
type untrustedError struct {
	file    string
	wants   []string
	changed []string // how it differs from what was approved; none: it never was
	broken  error    // why the file cannot be used
	module  string   // what has to be agreed to on its own
}

func (e *untrustedError) Error() string {
	if e.broken != nil {
		return "this project's own settings cannot be used: " + e.broken.Error()
	}
	what := "this project is not trusted"
	if e.file != "" {
		what = fmt.Sprintf("this project's %s is not trusted", e.file)
	}
	if len(e.changed) > 0 {
		what = "this project is not as you approved it: " + strings.Join(e.changed, ", ") + "; it is not trusted"
	}
	return what + " and would: " + strings.Join(e.wants, "; ")
}

// demandTrust ends a run whose project asks for more than it may.
func (a *app) demandTrust(c *config.Config) error {
	if len(c.Untrusted) == 0 {
		return nil
	}
	e := &untrustedError{file: c.Files.Project, broken: c.Broken}
	for _, w := range c.Untrusted {
		e.wants = append(e.wants, term.Visible(w))
	}
	if _, err := os.Lstat(e.file); err != nil {
		e.file = "" // your own file names a script of the project
	}
	if old, err := a.approvals().Find(c.Root); err == nil && old != nil {
		for _, change := range old.Compare(trust.Project{Root: c.Root, Files: c.Authority}) {
			e.changed = append(e.changed, change.String())
		}
	}
	return e
}

// settleTrust asks the person at the terminal about a project that asks for more
// than it may, before anything is started, and resolves the settings anew. A
// project's file that cannot be read is left out with a warning.
func (a *app) settleTrust(c *cobra.Command, flags *given, cfg *config.Config) (*config.Config, error) {
	if len(cfg.Untrusted) == 0 {
		return cfg, nil
	}
	e := a.demandTrust(cfg)
	if cfg.Broken != nil {
		fmt.Fprintf(a.streams.Err, "warning: %s; they are left out\n", term.Clean(e.Error()))
		return a.load(flags.values(c), config.Ignored)
	}
	p, err := a.projectAt(nil)
	if err != nil {
		return nil, err
	}
	now := trust.Project{Root: p.Root, Files: p.Files, Keys: p.Keys()}
	before, err := a.approvals().Find(p.Root)
	if err != nil {
		return nil, &config.Error{Text: err.Error()}
	}
	var text bytes.Buffer
	describe(&text, p, now, before)
	io.WriteString(a.streams.Err, term.Clean(text.String()))
	answer, err := a.ask(c.Context(), "Trust it, ignore its settings this time, or quit? [t/i/Q] ")
	if err != nil {
		return nil, err
	}
	switch answer {
	case "t", "trust":
		if err := a.approvals().Add(now, time.Now()); err != nil {
			return nil, err
		}
		cfg, err := a.load(flags.values(c), config.Untrusted)
		if err == nil {
			err = a.demandTrust(cfg) // it may have changed meanwhile
		}
		return cfg, err
	case "i", "ignore":
		return a.load(flags.values(c), config.Ignored)
	}
	return nil, &exitStatus{exitUntrusted}
}

func (a *app) trustCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "trust", Short: "Approve what a project's own settings ask for", Args: usage(cobra.NoArgs), RunE: group,
		Long: `A project's .talkops/config.toml may choose a sandbox, a model or a setup script only
with your approval. It is given to the exact content of that file and of those it names:
when one of them changes, it has to be given anew.`,
		Example: "  talkops trust add\n  talkops trust list\n  talkops trust revoke ~/src/shop",
	}
	c.AddCommand(a.trustAddCommand(), a.trustListCommand(), a.trustRevokeCommand())
	return c
}

func (a *app) trustAddCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "add [DIR]", Short: "Show what a project asks for, and approve it", Args: usage(cobra.MaximumNArgs(1)),
		Long: `Add shows what the project's own files ask for, or how they differ from what you
approved before, and asks. Nothing of the project is run, and nothing is sent anywhere.`,
		Example: "  talkops trust add\n  talkops trust add ~/src/shop",
		RunE: func(c *cobra.Command, args []string) error {
			p, err := a.projectAt(args)
			if err != nil {
				return err
			}
			for _, w := range p.Warnings {
				fmt.Fprintln(a.streams.Err, "warning:", term.Clean(w))
			}
			if len(p.Files) == 0 {
				fmt.Fprintf(a.streams.Err, "%s has no settings of its own: there is nothing to approve.\n", term.Clean(p.Root))
				return nil
			}
			now := trust.Project{Root: p.Root, Files: p.Files, Keys: p.Keys()}
			before, err := a.approvals().Find(p.Root)
			if err != nil {
				return &config.Error{Text: err.Error()}
			}
			if before != nil && len(before.Compare(now)) == 0 {
				fmt.Fprintf(a.streams.Err, "%s is as you approved it on %s.\n", term.Clean(p.Root), day(before.Time))
				return nil
			}
			var text bytes.Buffer
			describe(&text, p, now, before)
			io.WriteString(a.streams.Err, term.Clean(text.String())) // where the question is put
			if !yes {
				if err := a.confirm(c.Context(), "Approve this?"); err != nil {
					return err
				}
			}
			if err := a.approvals().Add(now, time.Now()); err != nil {
				return err
			}
			fmt.Fprintf(a.streams.Err, "Approved. From the next start on these settings hold in %s, until one of the files changes.\n", term.Clean(p.Root))
			return nil
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "approve without asking; needed where there is no terminal")
	return c
}

// projectAt reads the project at the directory that was named, or at the current
// one.
func (a *app) projectAt(args []string) (*config.Project, error) {
	dir := a.dir
	if len(args) > 0 {
		dir = a.absolute(args[0])
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, &usageError{"there is no directory " + args[0]}
		}
	}
	return config.ReadProject(config.Sources{Home: a.home, Dir: dir, UserHome: a.userHome, Env: a.env, Providers: a.providers.Names()})
}

func (a *app) absolute(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(a.dir, name)
}

// describe says all that is approved: each effect, and each file, or how it
// differs from what was approved before.
func describe(w io.Writer, p *config.Project, now trust.Project, before *trust.Approval) {
	effects := func() {
		if len(p.Asks) == 0 {
			fmt.Fprintln(w, "Its settings ask for nothing that needs your approval.")
			return
		}
		fmt.Fprintln(w, "Its settings would:")
		for _, ask := range p.Asks {
			fmt.Fprintf(w, "  %s\n", strings.Join(strings.Fields(term.Visible(ask.Effect)), " "))
		}
	}
	fmt.Fprintf(w, "%s\n", onLine(p.Root))
	if before != nil {
		fmt.Fprintf(w, "It differs from what you approved on %s.\n", day(before.Time))
	}
	effects()
	shown := 0
	changes := map[string]trust.Change{}
	if before != nil {
		for _, c := range before.Compare(now) {
			changes[c.Name] = c
			if c.What == "is gone" {
				fmt.Fprintf(w, "\n%s is gone\n", onLine(c.Name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		data := p.Files[name]
		change, changed := changes[name]
		name = onLine(name)
		var text string
		switch {
		case before != nil && !changed:
			text = fmt.Sprintf("%s is unchanged\n", name)
		case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 || len(data) > maxShown:
			text = fmt.Sprintf("%s, %s, is not shown here: look at it yourself\n", name, workspace.Size(int64(len(data))))
		case change.Before != "":
			if text = trust.Diff(name, term.Visible(change.Before), term.Visible(string(data))); text == "" {
				text = name + " differs in nothing that can be seen\n"
			}
		default:
			text = listing(fmt.Sprintf("%s, %s:\n", name, workspace.Size(int64(len(data)))), string(data))
		}
		fmt.Fprintf(w, "\n%s", text)
		shown += strings.Count(text, "\n") + len(text)/80
		if text := strings.ReplaceAll(string(data), "\r\n", "\n"); term.Clean(text) != text {
			fmt.Fprintf(w, "%s holds characters that steer a terminal or cannot be seen; they are written out here, as <U+001B>\n", name)
		}
	}
	fmt.Fprintln(w)
	if shown > maxScroll && len(p.Asks) > 0 {
		fmt.Fprint(w, "All of this, once more in short: ")
		effects()
		fmt.Fprintln(w)
	}
}

// maxScroll is how many lines of files may stand between what they ask for and the
// question.
const maxScroll = 30

// listing is text behind a heading, with a mark before each line. Many empty lines
// are one.
func listing(heading, text string) string {
	var b strings.Builder
	b.WriteString(heading)
	empty := 0
	flush := func() {
		if empty > 3 {
			fmt.Fprintf(&b, "  | (%d empty lines)\n", empty)
		} else {
			b.WriteString(strings.Repeat("  |\n", empty))
		}
		empty = 0
	}
	// What a terminal takes for the end of a line, or hides, is written out.
	for line := range strings.Lines(term.Visible(text)) {
		if line = strings.TrimRight(line, " \t\n"); line == "" {
			empty++
			continue
		}
		flush()
		fmt.Fprintf(&b, "  | %s\n", line)
	}
	flush()
	return b.String()
}

// onLine is a name with nothing in it that ends a line.
func onLine(name string) string {
	return strings.ReplaceAll(term.Clean(name), "\n", "\u240a")
}

// maxShown is the most of a file that is shown.
const maxShown = 64 << 10

// confirm asks the person at the terminal. Without a terminal, and with any answer
// but yes, it is an error.
func (a *app) confirm(ctx context.Context, question string) error {
	if !a.streams.InTTY {
		return &usageError{"there is no terminal to ask on; look at what is shown, then add --yes"}
	}
	answer, err := a.ask(ctx, question+" [y/N] ")
	if err != nil {
		return err
	}
	if answer != "y" && answer != "yes" {
		return errDeclined
	}
	return nil
}

var errDeclined = errors.New("nothing was approved")

// ask puts a question and returns the line that is typed, in lower case.
func (a *app) ask(ctx context.Context, question string) (string, error) {
	line, err := a.askText(ctx, question)
	return strings.ToLower(line), err
}

// askText puts a question and returns the line that is typed.
func (a *app) askText(ctx context.Context, question string) (string, error) {
	fmt.Fprint(a.streams.Err, question)
	typed := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.streams.In).ReadString('\n')
		typed <- line
	}()
	select {
	case line := <-typed:
		return strings.TrimSpace(line), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func day(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func (a *app) trustListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the projects you approved, and whether they are still the same", Args: usage(cobra.NoArgs),
		Example: "  talkops trust list",
		RunE: func(*cobra.Command, []string) error {
			list, err := a.approvals().List()
			if err != nil {
				return &config.Error{Text: err.Error()}
			}
			if len(list) == 0 {
				fmt.Fprintln(a.streams.Err, "no project is approved")
				return nil
			}
			w := tabwriter.NewWriter(a.streams.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "PROJECT\tAPPROVED\tNOW")
			for _, p := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\n", term.Clean(p.Root), day(p.Time), term.Clean(a.compared(p)))
			}
			return w.Flush()
		},
	}
}

// compared says how a project stands to its approval.
func (a *app) compared(old trust.Approval) string {
	if info, err := os.Stat(old.Root); err != nil || !info.IsDir() {
		return "the directory is gone"
	}
	p, err := a.projectAt([]string{old.Root})
	if err != nil {
		return "changed: " + err.Error()
	}
	if p.Root != old.Root {
		return "belongs to " + p.Root
	}
	changes := old.Compare(trust.Project{Root: p.Root, Files: p.Files, Keys: p.Keys()})
	if len(changes) == 0 {
		return "as approved"
	}
	var words []string
	for _, c := range changes {
		words = append(words, c.String())
	}
	return "not trusted: " + strings.Join(words, ", ")
}

func (a *app) trustRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke [DIR]", Short: "Take the approval of a project back", Args: usage(cobra.MaximumNArgs(1)),
		Example: "  talkops trust revoke\n  talkops trust revoke ~/src/shop",
		RunE: func(_ *cobra.Command, args []string) error {
			// The project may be gone, or broken: the name is enough.
			dir := a.dir
			if len(args) > 0 {
				dir = a.absolute(args[0])
			}
			for at := real(dir); ; at = filepath.Dir(at) {
				removed, err := a.approvals().Remove(at)
				if err != nil {
					if _, broken := errors.AsType[*trust.BrokenError](err); broken {
						return &config.Error{Text: err.Error()}
					}
					return err
				}
				if removed {
					fmt.Fprintf(a.streams.Err, "Revoked. From the next start on %s is not trusted.\n", term.Clean(at))
					return nil
				}
				if at == filepath.Dir(at) || len(args) > 0 {
					return &usageError{fmt.Sprintf("%s is not approved; see: talkops trust list", dir)}
				}
			}
		},
	}
}

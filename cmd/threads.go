package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/thread"
	"github.com/talkops-ai/talkops/runtime/workspace"
)

// threads is where conversations are kept, without secrets.
func (a *app) threads() thread.Store {
	return thread.Store{Dir: filepath.Join(a.home, "threads"), Mask: func(line []byte) []byte { return a.redact.JSON(line) }}
}

func (a *app) threadsCommand(flags *given) *cobra.Command {
	c := &cobra.Command{Use: "threads", Short: "Conversations that are kept on this computer", Args: usage(cobra.NoArgs), RunE: group}
	c.AddCommand(a.threadsListCommand(flags), a.threadsShowCommand(), a.threadsDeleteCommand())
	return c
}

// A threadRow is a conversation as list --json shows it.
type threadRow struct {
	ID       string    `json:"id"`
	Project  string    `json:"project"`
	Started  time.Time `json:"started"`
	Last     time.Time `json:"last"`
	Messages int       `json:"messages"`
	Prompts  int       `json:"prompts"`
	Provider string    `json:"provider"`
	Sandbox  string    `json:"sandbox,omitempty"`
	Model    string    `json:"model,omitempty"`
	CostUSD  float64   `json:"cost_usd"`
	Title    string    `json:"title"`
	Lost     string    `json:"lost,omitempty"`
}

func row(t *thread.Thread) threadRow {
	return threadRow{
		ID: t.ID, Project: t.Project, Started: t.Started, Last: t.Last, Messages: len(t.Messages), Prompts: t.Turns, Provider: t.Machine.Provider, Sandbox: t.Machine.ID,
		Model: t.Model, CostUSD: t.CostUSD, Title: term.Clean(asTyped(t.Title)), Lost: t.Lost,
	}
}

func (a *app) threadsListCommand(flags *given) *cobra.Command {
	var all, asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List this project's conversations, the last first", Args: usage(cobra.NoArgs), Example: "  talkops threads list\n  talkops threads list --all --json",
		RunE: func(c *cobra.Command, _ []string) error {
			project := ""
			if !all {
				cfg, err := a.loadFor(c, flags)
				if err != nil {
					return err
				}
				project = cfg.Root
			}
			list := a.conversations(project)
			if asJSON {
				rows := []threadRow{}
				for _, t := range list {
					rows = append(rows, row(t))
				}
				enc := json.NewEncoder(a.streams.Out)
				enc.SetIndent("", "  ")
				return enc.Encode(rows)
			}
			if len(list) == 0 {
				a.warnf("no conversations are kept")
				return nil
			}
			w := tabwriter.NewWriter(a.streams.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tAGE\tPROMPTS\tPLACE\tBEGINS WITH")
			for _, t := range list {
				title := term.Clean(asTyped(t.Title))
				if r := []rune(title); len(r) > 60 {
					title = string(r[:59]) + "…"
				}
				if all {
					title += "  (" + term.Clean(t.Project) + ")"
				}
				fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", t.ID, age(t.Last), t.Turns, term.Clean(t.Machine.Provider), title)
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&all, "all", false, "those of every project")
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// age is how long ago something was, in one unit.
func age(t time.Time) string {
	d := time.Since(t)
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// conversations are those of a project, or all of them if it is "".
func (a *app) conversations(project string) []*thread.Thread {
	all, err := a.threads().List()
	if err != nil {
		a.warnf("warning: %v", err)
	}
	var list []*thread.Thread
	for _, t := range all {
		if project == "" || t.Project == project {
			list = append(list, t)
		}
	}
	return list
}

func (a *app) threadsShowCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show ID", Short: "Show a conversation", Args: usage(cobra.ExactArgs(1)), Example: "  talkops threads show 20260102-150405-0a1b2c3d",
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := a.threads().Read(args[0])
			if err != nil {
				return threadError(err)
			}
			if asJSON {
				enc := json.NewEncoder(a.streams.Out)
				enc.SetIndent("", "  ")
				return enc.Encode(struct {
					threadRow
					History []model.Message `json:"history"`
				}{row(t), t.Messages})
			}
			fmt.Fprint(a.streams.Out, transcript(t))
			if t.Lost != "" {
				a.warnf("%s", t.Lost)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON, with what tools gave")
	return c
}

// transcript is a conversation as Markdown.
func transcript(t *thread.Thread) string {
	var b strings.Builder
	place := t.Machine.Provider
	if t.Machine.ID != "" {
		place += " " + t.Machine.ID
	}
	fmt.Fprintf(&b, "# %s\n\n%s, %s, %s\n", t.ID, t.Project, t.Started.Local().Format("2006-01-02 15:04"), place)
	for _, m := range t.Messages {
		switch m.Role {
		case model.RoleUser:
			fmt.Fprintf(&b, "\n## You\n\n%s\n", m.Text)
		case model.RoleAssistant:
			fmt.Fprintf(&b, "\n## talkops\n\n")
			if m.Text != "" {
				b.WriteString(m.Text + "\n")
			}
			for _, c := range m.Calls {
				fmt.Fprintf(&b, "\n    %s %s\n", c.Name, strings.ReplaceAll(c.Input, "\n", " "))
			}
		}
	}
	return term.Clean(b.String())
}

func (a *app) threadsDeleteCommand() *cobra.Command {
	var all, yes bool
	c := &cobra.Command{
		Use: "delete ID…", Short: "Delete conversations", Example: "  talkops threads delete 20260102-150405-0a1b2c3d\n  talkops threads delete --all --yes",
		Args: func(_ *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return &usageError{"threads delete: name conversations, or give --all"}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			s := a.threads()
			if all {
				for _, t := range a.conversations("") {
					args = append(args, t.ID)
				}
				if len(args) == 0 {
					a.warnf("no conversations are kept")
					return nil
				}
				if !yes {
					if err := a.confirm(c.Context(), "Delete "+workspace.Count(len(args), "conversation")+"?"); err != nil {
						return err
					}
				}
			}
			var errs []error
			for _, id := range args {
				whole, err := s.Find(id)
				if err == nil {
					err = s.Delete(whole)
				}
				if err != nil {
					errs = append(errs, threadError(err))
					continue
				}
				fmt.Fprintln(a.streams.Out, whole)
			}
			return errors.Join(errs...)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "all of every project")
	c.Flags().BoolVar(&yes, "yes", false, "without a question")
	return c
}

// tidyThreads deletes conversations that are older than the settings say, once a day,
// and says so. The one that goes on stays.
func (a *app) tidyThreads(cfg *config.Config, goesOn *thread.Thread) {
	mark := filepath.Join(a.threads().Dir, tidied)
	if info, err := os.Stat(mark); err == nil && time.Since(info.ModTime()) < 24*time.Hour {
		return
	}
	if os.WriteFile(mark, nil, 0o600) != nil {
		return // nothing is kept yet
	}
	now := time.Now()
	os.Chtimes(mark, now, now)
	but := ""
	if goesOn != nil {
		but = goesOn.ID
	}
	most, _ := cfg.Value("threads.max_age").Value.(time.Duration)
	gone, err := a.threads().Prune(now.Add(-most), but)
	if err != nil {
		a.warnf("warning: old conversations: %v", err)
	}
	if len(gone) > 0 {
		a.warnf("removed: %s that nobody went on with for %s (threads.max_age)", workspace.Count(len(gone), "conversation"), workspace.Count(int(most.Hours()/24), "day"))
	}
}

// threadError makes what a person can mend an error of usage.
func threadError(err error) error {
	switch {
	case errors.Is(err, thread.ErrNone):
		return &usageError{err.Error() + "; see: talkops threads list --all"}
	case errors.Is(err, thread.ErrInUse), errors.Is(err, thread.ErrBroken):
		return &usageError{err.Error()}
	}
	return err
}

// A keeper writes down what an agent adds to its conversation.
type keeper struct {
	w    *thread.Writer // nil: it is not kept
	warn func(format string, args ...any)
	told bool
}

// begin starts to keep a new conversation. One that cannot be kept goes on, and
// that is said.
func (a *app) begin(cfg *config.Config, m model.Info, prompt bool, warn func(string, ...any)) *keeper {
	k := &keeper{warn: warn}
	w, err := a.threads().Begin(thread.Head{Project: cfg.Root, Started: time.Now(), Model: m.Provider + ":" + m.Name, Prompt: prompt})
	if err != nil {
		k.failed(err)
		return k
	}
	k.w = w
	return k
}

func (k *keeper) failed(err error) {
	if err != nil && !k.told {
		k.told = true
		k.warn("this conversation is not kept any more, so that it cannot be resumed: %v", err)
	}
}

// keep fits agent.Agent.Keep.
func (k *keeper) keep(x agent.Kept) {
	if k.w == nil {
		return
	}
	switch {
	case x.Message != nil:
		k.failed(k.w.Message(*x.Message))
	case x.Result != nil:
		k.failed(k.w.Result(*x.Result))
	case x.Short != nil:
		k.failed(k.w.Compact(x.Short))
	case x.Usage != nil:
		k.failed(k.w.Used(thread.Used{Usage: *x.Usage, CostUSD: x.CostUSD}))
	}
}

// at says where the conversation works.
func (k *keeper) at(s *session.Session, host bool) {
	if k.w == nil {
		return
	}
	info := s.Sandbox.Info()
	m := thread.Machine{Provider: info.Provider, Dir: s.Dir}
	if !host {
		m.ID, m.Run, m.Fresh, m.Expires = info.ID, s.Lease().Run, s.Fresh, s.Expires()
		if h := s.Home(); h != nil {
			m.Work = h.Run.ID
		}
	}
	k.failed(k.w.Machine(m))
}

// id is "" if the conversation is not kept.
func (k *keeper) id() string {
	if k.w == nil {
		return ""
	}
	return k.w.Head.ID
}

func (k *keeper) close() {
	if k.w != nil {
		k.w.Close()
	}
}

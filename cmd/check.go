package cmd

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/conform"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// checkCommand holds a provider to the contract.
func (a *app) checkCommand(flags *given) *cobra.Command {
	return &cobra.Command{
		Use:   "check NAME",
		Short: "Check a provider against the sandbox contract, with whatever service it is set up for",
		Long: `Check opens a sandbox of the provider as it is configured, holds it to every rule
of the contract, ends it, and prints a table. On a cloud this makes a few short-lived
machines on your account.`,
		Example: "  talkops sandbox check local\n  talkops sandbox check daytona",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{"name one provider: talkops sandbox check NAME; see: talkops provider list"}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			values := flags.values(c)
			values["sandbox"] = args[0]
			cfg, err := a.load(values, 0)
			if err != nil {
				return err
			}
			cfg.Sandbox.SyncWorkspace = false
			box, err := a.prepare(ctx, cfg)
			if err != nil {
				return err
			}
			spec := box.opts.Spec
			if box.host {
				dir, remove, err := scratch()
				if err != nil {
					return err
				}
				defer remove()
				spec.Dir = dir
			}
			return a.conform(ctx, box.opts.Provider, spec, !box.host)
		},
	}
}

// conform holds a provider to the contract, prints how each rule came out, and for
// a metered one what it cost.
func (a *app) conform(ctx context.Context, p sandbox.Provider, spec sandbox.Spec, metered bool) error {
	spec.Labels = map[string]string{"app": "talkops", "run": "check"}
	spec.Lifetime, spec.Idle = time.Hour, 15*time.Minute
	w := tabwriter.NewWriter(a.streams.Out, 6, 4, 2, ' ', 0)
	count := map[conform.Verdict]int{}
	cost := &meter{Provider: p, began: make(map[string]time.Time)}
	err := conform.Run(ctx, conform.Target{Provider: cost, Spec: spec}, func(r conform.Result) {
		count[r.Verdict]++
		fmt.Fprintf(w, "%s\t%s\t%.1fs\t%s", r.Rule.ID, r.Verdict, r.Took.Seconds(), r.Rule.Say)
		if r.Detail != "" {
			fmt.Fprintf(w, " (%s)", term.Clean(r.Detail))
		}
		fmt.Fprintln(w)
		w.Flush()
	})
	if metered {
		fmt.Fprintln(a.streams.Out, cost)
	}
	if err != nil {
		return ended(ctx, err)
	}
	fmt.Fprintf(a.streams.Out, "%d passed, %d failed, %d skipped\n", count[conform.Pass], count[conform.Fail], count[conform.Skip])
	if count[conform.Fail] > 0 {
		return &exitStatus{exitError}
	}
	return nil
}

// A meter counts the machines that its provider makes and how long they live.
type meter struct {
	sandbox.Provider

	mu    sync.Mutex
	made  int
	lived time.Duration
	began map[string]time.Time // of the machines that live
}

// Unwrap shows the optional interfaces of the provider.
func (m *meter) Unwrap() sandbox.Provider { return m.Provider }

func (m *meter) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	id, told := "", spec.Created
	spec.Created = func(i sandbox.Info) {
		id = i.ID
		m.mu.Lock()
		m.made++
		m.began[id] = time.Now()
		m.mu.Unlock()
		if told != nil {
			told(i)
		}
	}
	sb, err := m.Provider.Open(ctx, spec)
	if err != nil {
		m.ended(id) // a failed opening ends what it made
	}
	return sb, err
}

func (m *meter) Destroy(ctx context.Context, spec sandbox.Spec) error {
	err := m.Provider.Destroy(ctx, spec)
	if err == nil {
		m.ended(spec.ID)
	}
	return err
}

func (m *meter) ended(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if began, lives := m.began[id]; lives {
		m.lived += time.Since(began)
		delete(m.began, id)
	}
}

func (m *meter) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := fmt.Sprintf("made: %s, which lived %v in all", workspace.Count(m.made, "machine"), m.lived.Round(time.Second))
	if left := slices.Sorted(maps.Keys(m.began)); len(left) > 0 {
		text += "; not ended: " + strings.Join(left, ", ")
	}
	return text
}

// scratch makes a temporary directory and gives the way to remove it.
func scratch() (string, func(), error) {
	dir, err := os.MkdirTemp("", "talkops-check-")
	if err != nil {
		return "", nil, err
	}
	return dir, func() { os.RemoveAll(dir) }, nil
}

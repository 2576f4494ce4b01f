package cmd

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/headless"
	"github.com/talkops-ai/talkops/sdk/conform"
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
			spec.Labels = map[string]string{"app": "talkops", "run": "check"}
			spec.Lifetime, spec.Idle = time.Hour, 15*time.Minute
			w := tabwriter.NewWriter(a.streams.Out, 6, 4, 2, ' ', 0)
			count := map[conform.Verdict]int{}
			err = conform.Run(ctx, conform.Target{Provider: box.opts.Provider, Spec: spec}, func(r conform.Result) {
				count[r.Verdict]++
				fmt.Fprintf(w, "%s\t%s\t%.1fs\t%s", r.Rule.ID, r.Verdict, r.Took.Seconds(), r.Rule.Say)
				if r.Detail != "" {
					fmt.Fprintf(w, " (%s)", headless.Clean(r.Detail))
				}
				fmt.Fprintln(w)
				w.Flush()
			})
			if err != nil {
				return ended(ctx, err)
			}
			fmt.Fprintf(a.streams.Out, "%d passed, %d failed, %d skipped\n", count[conform.Pass], count[conform.Fail], count[conform.Skip])
			if count[conform.Fail] > 0 {
				return &exitStatus{exitError}
			}
			return nil
		},
	}
}

// scratch makes a temporary directory and gives the way to remove it.
func scratch() (string, func(), error) {
	dir, err := os.MkdirTemp("", "talkops-check-")
	if err != nil {
		return "", nil, err
	}
	return dir, func() { os.RemoveAll(dir) }, nil
}

package cmd

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/registry"
)

func (a *app) providerCommand() *cobra.Command {
	c := &cobra.Command{Use: "provider", Short: "Look at sandbox providers", Args: usage(cobra.NoArgs), RunE: group}
	c.AddCommand(&cobra.Command{
		Use: "list", Short: "List every provider: ready, or what to do to sign in", Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(a.streams.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tPROVIDER\tSTATUS\tDEFAULT FOLDER")
			for _, p := range a.providers {
				d := p.Describe()
				status := "ready"
				if _, err := registry.Settings(c.Context(), p, a.env); err != nil {
					status = err.Error()
				}
				dir := d.Dir
				if dir == "" {
					dir = "the current folder"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", d.Name, d.Title, status, dir)
			}
			return w.Flush()
		},
	})
	return c
}

package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/headless"
)

func (a *app) configCommand(flags *given) *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Show and change settings", Args: usage(cobra.NoArgs), RunE: group}
	var origin, asJSON bool
	show := &cobra.Command{
		Use: "show", Short: "Show every setting", Args: usage(cobra.NoArgs), Example: "  talkops config show --origin",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.loadFor(c, flags)
			if err != nil {
				return err
			}
			a.warn(cfg)
			for _, u := range cfg.Untrusted {
				fmt.Fprintf(a.streams.Err, "warning: the untrusted project file would: %s\n", headless.Clean(u))
			}
			if asJSON {
				return showJSON(a.streams.Out, cfg)
			}
			return show(a.streams.Out, cfg, origin)
		},
	}
	show.Flags().BoolVar(&origin, "origin", false, "say where each value comes from and what it hides")
	show.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.AddCommand(show)

	c.AddCommand(&cobra.Command{
		Use: "get KEY", Short: "Print one value", Args: usage(cobra.ExactArgs(1)), Example: "  talkops config get sandbox.provider",
		RunE: func(c *cobra.Command, args []string) error {
			key, err := lookup(args[0])
			if err != nil {
				return err
			}
			cfg, err := a.loadFor(c, flags)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.streams.Out, config.Format(cfg.Value(key.Name).Value))
			return nil
		},
	})
	c.AddCommand(&cobra.Command{
		Use: "set KEY VALUE", Short: "Write a value to your own file", Args: usage(cobra.ExactArgs(2)), Example: "  talkops config set sandbox.provider daytona",
		RunE: func(c *cobra.Command, args []string) error {
			key, err := lookup(args[0])
			if err != nil {
				return err
			}
			text := args[1]
			if key.Name == "sandbox.provider" {
				text = strings.ToLower(strings.TrimSpace(text))
				if !slices.Contains(a.providers.Names(), text) {
					return config.Unknown(args[1], a.providers.Names(), "", a.home)
				}
			}
			value, err := key.Parse(text)
			if err != nil {
				return &config.Error{Text: fmt.Sprintf("%s: %v", key.Name, err)}
			}
			cfg, err := a.loadFor(c, flags)
			if err != nil {
				return err
			}
			if err := config.Set(cfg.Files.User, key, value); err != nil {
				return err
			}
			return a.saved(c, flags, key, "Saved.")
		},
	})
	c.AddCommand(&cobra.Command{
		Use: "unset KEY", Aliases: []string{"reset"}, Short: "Remove a value from your own file", Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			key, err := lookup(args[0])
			if err != nil {
				return err
			}
			cfg, err := a.loadFor(c, flags)
			if err != nil {
				return err
			}
			removed, err := config.Unset(cfg.Files.User, key)
			if err != nil {
				return err
			}
			if !removed {
				return a.saved(c, flags, key, "It was not set.")
			}
			return a.saved(c, flags, key, "Removed.")
		},
	})
	c.AddCommand(&cobra.Command{
		Use: "path", Short: "Name the files in use", Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.loadFor(c, flags)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.streams.Out, cfg.Files.User)
			if cfg.Files.Project != "" {
				fmt.Fprintln(a.streams.Out, cfg.Files.Project)
			}
			return nil
		},
	})
	return c
}

func lookup(name string) (config.Key, error) {
	key, ok := config.Lookup(name)
	if !ok {
		return key, &usageError{fmt.Sprintf("unknown setting %q; see: talkops config show", name)}
	}
	return key, nil
}

// saved says what holds from now on.
func (a *app) saved(c *cobra.Command, flags *given, key config.Key, what string) error {
	cfg, err := a.loadFor(c, flags)
	if err != nil {
		return err
	}
	v := cfg.Value(key.Name)
	if v.Origin.Layer > config.LayerUser {
		fmt.Fprintf(a.streams.Err, "%s But %s=%s (%s) still wins.\n", what, key.Name, config.Format(v.Value), v.Origin)
		return nil
	}
	fmt.Fprintf(a.streams.Err, "%s The next session will use %s = %s.\n", what, key.Name, shown(v.Value))
	return nil
}

func shown(v any) string {
	if s := config.Format(v); s != "" {
		return headless.Clean(s)
	}
	return "(none)"
}

func show(out io.Writer, cfg *config.Config, origin bool) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, v := range cfg.Values {
		if !origin {
			fmt.Fprintf(w, "%s\t%s\n", v.Key.Name, shown(v.Value))
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Key.Name, shown(v.Value), v.Origin)
		for _, h := range v.Hidden {
			if h.Origin.Layer != config.LayerDefault {
				fmt.Fprintf(w, "\t  hides %s\t%s\n", shown(h.Value), h.Origin)
			}
		}
	}
	return w.Flush()
}

func showJSON(out io.Writer, cfg *config.Config) error {
	type row struct {
		Key    string `json:"key"`
		Value  any    `json:"value"`
		Origin string `json:"origin"`
	}
	var rows []row
	for _, v := range cfg.Values {
		value := v.Value
		if v.Key.Kind == config.Duration && value != nil {
			value = config.Format(value)
		}
		rows = append(rows, row{v.Key.Name, value, v.Origin.String()})
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(rows)
}

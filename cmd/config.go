package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/registry"
	"github.com/talkops-ai/talkops/runtime/term"
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
				fmt.Fprintf(a.streams.Err, "warning: the untrusted project file would: %s\n", term.Clean(u))
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
		Long: `Set writes one value to your own file, wherever you are. Comments and everything else in
the file stay as they are. A list is written with commas, or as ["a, b", "c"] where an item
holds one; a duration as 90s, 10m or 2h.`,
		RunE: func(c *cobra.Command, args []string) error {
			key, err := lookup(args[0])
			if err != nil {
				return err
			}
			text := args[1]
			if key.Name == "sandbox.provider" {
				text = strings.ToLower(strings.TrimSpace(text))
				if names := append(a.providers.Names(), a.added()...); !slices.Contains(names, text) && !a.isCustom(text) {
					return config.Unknown(args[1], names, "", a.home)
				}
			}
			value, err := key.Parse(text)
			if err == nil {
				err = acceptable(key, value)
			}
			if err != nil {
				return &config.Error{Text: fmt.Sprintf("%s: %v", key.Name, err)}
			}
			if err := config.Set(a.userFile(), key, value); err != nil {
				return err
			}
			a.saved(c, flags, key, "Saved")
			return nil
		},
	})
	c.AddCommand(&cobra.Command{
		Use: "unset KEY", Aliases: []string{"reset"}, Short: "Remove a value from your own file", Args: usage(cobra.ExactArgs(1)),
		Example: "  talkops config unset sandbox.provider",
		RunE: func(c *cobra.Command, args []string) error {
			key, err := lookup(args[0])
			if err != nil {
				return err
			}
			removed, err := config.Unset(a.userFile(), key)
			if err != nil {
				return err
			}
			what := "Removed"
			if !removed {
				what = "It was not set"
			}
			a.saved(c, flags, key, what)
			return nil
		},
	})
	c.AddCommand(&cobra.Command{
		Use: "path", Short: "Name the files in use", Args: usage(cobra.NoArgs), Example: "  talkops config path",
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
	c.AddCommand(a.configEditCommand())
	c.AddCommand(&cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the file, for editors", Args: usage(cobra.NoArgs),
		Example: "  talkops config schema > ~/.talkops/config.schema.json",
		RunE: func(*cobra.Command, []string) error {
			enc := json.NewEncoder(a.streams.Out)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			return enc.Encode(config.Schema(a.providers.Names()))
		},
	})
	return c
}

// userFile is the user's own configuration file.
func (a *app) userFile() string { return filepath.Join(a.home, "config.toml") }

// acceptable judges a value beyond its type.
func acceptable(key config.Key, value any) error {
	text, _ := value.(string)
	switch {
	case key.Kind == config.String && text == "":
		return fmt.Errorf("the value is empty; to remove it: talkops config unset %s", key.Name)
	case strings.HasSuffix(key.Name, ".working_dir") && !strings.HasPrefix(text, "/"):
		return fmt.Errorf("%q is not an absolute path", text)
	case key.Name == "sandbox.env":
		for _, name := range value.([]string) {
			if strings.ContainsAny(name, "= ") {
				return fmt.Errorf("give the names of variables, not their values")
			}
		}
	}
	return nil
}

func lookup(name string) (config.Key, error) {
	key, ok := config.Lookup(name)
	if !ok {
		return key, &usageError{fmt.Sprintf("unknown setting %q; see: talkops config show", name)}
	}
	return key, nil
}

// saved says what holds from now on, and when.
func (a *app) saved(c *cobra.Command, flags *given, key config.Key, what string) {
	cfg, err := a.loadFor(c, flags)
	if err != nil {
		fmt.Fprintf(a.streams.Err, "%s. But the next session cannot start: %s\n", what, term.Clean(err.Error()))
		return
	}
	v := cfg.Value(key.Name)
	if v.Origin.Layer > config.LayerUser {
		fmt.Fprintf(a.streams.Err, "%s, but %s = %s (%s) still wins.\n", what, key.Name, shown(v.Value), term.Clean(v.Origin.String()))
		return
	}
	fmt.Fprintf(a.streams.Err, "%s. The next session will use %s = %s; one that runs stays as it is.\n", what, key.Name, shown(v.Value))
	if p := a.providers.Find(cfg.Sandbox.Provider); key.Name == "sandbox.provider" && p != nil {
		if _, err := registry.Settings(c.Context(), p, a.env); err != nil {
			fmt.Fprintf(a.streams.Err, "It cannot be used yet: %s\n", term.Clean(err.Error()))
		}
	}
}

func shown(v any) string {
	if s := config.Format(v); s != "" {
		return term.Clean(s)
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
	type hidden struct {
		Value  any    `json:"value"`
		Origin string `json:"origin"`
	}
	type row struct {
		Key    string   `json:"key"`
		Value  any      `json:"value"` // null: not set
		Origin string   `json:"origin"`
		Hides  []hidden `json:"hides,omitempty"`
	}
	plain := func(k config.Key, v any) any {
		if k.Kind == config.Duration && v != nil {
			return config.Format(v)
		}
		return v
	}
	rows := []row{}
	for _, v := range cfg.Values {
		r := row{Key: v.Key.Name, Value: plain(v.Key, v.Value), Origin: v.Origin.String()}
		for _, h := range v.Hidden {
			if h.Origin.Layer != config.LayerDefault {
				r.Hides = append(r.Hides, hidden{plain(v.Key, h.Value), h.Origin.String()})
			}
		}
		rows = append(rows, r)
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(rows)
}

package cmd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/hostfuncs"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/registry"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/wasm"
	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/practice"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func (a *app) providerCommand(flags *given) *cobra.Command {
	c := &cobra.Command{Use: "provider", Short: "Look at sandbox providers, and add your own", Args: usage(cobra.NoArgs), RunE: group,
		Long: `A provider of your own is one WebAssembly file, written in any language that compiles
to it. It has no files and no network but what you grant it, and never sees your keys.`,
		Example: "  talkops provider list\n  talkops provider new acme && cd acme && talkops provider build\n  talkops provider check --practice acme.wasm\n  talkops provider add acme.wasm",
	}
	c.AddCommand(a.providerListCommand(flags), a.providerInspectCommand(), a.providerCheckCommand(), a.providerAddCommand(), a.providerNewCommand(), a.providerBuildCommand(), a.providerSchemaCommand())
	return c
}

func (a *app) providerListCommand(flags *given) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List every provider: ready, or what to do to sign in", Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(a.streams.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tPROVIDER\tSTATUS\tDEFAULT FOLDER")
			broken := map[string]string{}
			names := a.providers.Names()
			if cfg, err := a.loadFor(c, flags); err == nil {
				for _, name := range append(a.added(), custom(cfg)...) {
					if !slices.Contains(names, name) {
						names = append(names, name)
					}
					if err := a.loadProvider(c.Context(), cfg, name); err != nil {
						broken[name] = err.Error()
					}
				}
			}
			for _, name := range names {
				p := a.providers.Find(name)
				if why, isBroken := broken[name]; isBroken || p == nil {
					fmt.Fprintf(w, "%s\t%s\t%s\t\n", term.Clean(name), "a module", term.Clean("broken: "+why))
					continue
				}
				d := p.Describe()
				status := "ready"
				if _, err := registry.Settings(c.Context(), p, a.env); err != nil {
					status = err.Error()
				}
				dir := d.Dir
				switch {
				case d.Features.Host:
					dir = "the current folder"
				case dir == "":
					dir = "the box's own"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", d.Name, term.Clean(d.Title), term.Clean(status), term.Clean(dir))
			}
			return w.Flush()
		},
	}
}

// custom lists the names of configured modules.
func custom(cfg *config.Config) []string {
	var names []string
	for name, p := range cfg.Providers {
		if p.Backend != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func oneFile(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return &usageError{"name one .wasm file: talkops provider " + verb + " FILE"}
		}
		return nil
	}
}

func (a *app) providerInspectCommand() *cobra.Command {
	return &cobra.Command{
		Use: "inspect FILE", Short: "Show what a module is, without running any of it", Args: oneFile("inspect"),
		Example: "  talkops provider inspect acme.wasm",
		RunE: func(_ *cobra.Command, args []string) error {
			m, _, err := wasm.Read(a.absolute(args[0]))
			if err != nil {
				return told(err)
			}
			fmt.Fprint(a.streams.Out, term.Clean(tellModule(m, nil)))
			return nil
		},
	}
}

// described is a loaded module that tells of itself.
type described interface {
	About() (abi.Description, *wasm.Module)
}

// ask loads a module without any grant, to hear what it asks for.
func (a *app) askModule(ctx context.Context, file string) (abi.Description, *wasm.Module, error) {
	p, err := a.loadModule(ctx, wasm.Config{Name: strings.TrimSuffix(filepath.Base(file), ".wasm"), File: file})
	if err != nil {
		return abi.Description{}, nil, err
	}
	defer p.Close()
	d, _ := sandbox.As[described](p)
	about, m := d.About()
	return about, m, nil
}

func (a *app) providerCheckCommand() *cobra.Command {
	var hosts []string
	var onPractice, log bool
	c := &cobra.Command{
		Use: "check FILE", Short: "Check a module: its form, and with a service the whole contract", Args: oneFile("check"),
		Long: `Check looks at the module's form and asks it what it is. With --practice it is then held
to every rule of the sandbox contract with the practice service, whose address and key it
gets as its settings api_url and api_key; with --allow-host the same with your service,
with settings from the environment. That makes a few short-lived machines there.`,
		Example: "  talkops provider check acme.wasm\n  talkops provider check --practice acme.wasm\n  talkops provider check --allow-host api.acme.example acme.wasm",
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			file := a.absolute(args[0])
			about, m, err := a.askModule(ctx, file)
			if err != nil {
				return err
			}
			fmt.Fprint(a.streams.Out, term.Clean(tellModule(m, &about)))
			if !m.Has(abi.Kill) {
				fmt.Fprintf(a.streams.Out, "  warning: it has no %s: a command that it does not end itself when cancelled goes on\n", abi.Kill)
			}
			if !onPractice && len(hosts) == 0 {
				fmt.Fprintln(a.streams.Out, "Its form is right. To hold it to the contract: --practice, or --allow-host with your service.")
				return nil
			}
			env := a.env
			if onPractice {
				s, err := practice.Start(practice.Config{StartDelay: 300 * time.Millisecond})
				if err != nil {
					return err
				}
				defer s.Close()
				hosts = append(hosts, s.URL())
				env = practiceEnv(about, s.Settings(), a.env)
			}
			list, err := hostfuncs.ParseHosts(hosts)
			if err != nil {
				return &usageError{"--allow-host: " + err.Error()}
			}
			conf := wasm.Config{Name: m.Name, File: file, SHA256: m.SHA256, Grant: hostfuncs.Grant{Hosts: list}}
			for _, s := range about.Settings {
				conf.Env = append(conf.Env, s.Env...)
			}
			if log {
				conf.Log = func(r hostfuncs.Record) {
					if r.Event != "call" {
						fmt.Fprintln(a.streams.Err, term.Clean(r.String()))
					}
				}
			}
			p, err := a.loadModule(ctx, conf)
			if err != nil {
				return err
			}
			settings, err := registry.Settings(ctx, p, env)
			if err != nil {
				return err
			}
			return a.conform(ctx, p, sandbox.Spec{Settings: settings}, false)
		},
	}
	c.Flags().BoolVar(&onPractice, "practice", false, "with the practice service, on this computer")
	c.Flags().StringArrayVar(&hosts, "allow-host", nil, "a host the module may reach (repeatable)")
	c.Flags().BoolVar(&log, "log", false, "show the module's requests and log lines")
	return c
}

// practiceEnv gives a module's settings api_key and api_url the practice service's
// values.
func practiceEnv(about abi.Description, values map[string]string, env func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, s := range about.Settings {
			if v, ok := values[s.Key]; ok && slices.Contains(s.Env, name) {
				return v, true
			}
		}
		return env(name)
	}
}

// providerName says why a name cannot be a provider's, or "".
func providerName(name string) string {
	switch {
	case name == "" || len(name) > 40 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || name[0] == '-':
		return fmt.Sprintf("%q cannot be a provider's name: use lower case letters, digits and '-'", name)
	case builtin().Find(name) != nil:
		return fmt.Sprintf("%q is a built-in provider; choose another name", name)
	}
	return ""
}

func (a *app) providerSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of every message between talkops and a module", Args: usage(cobra.NoArgs),
		Example: "  talkops provider schema > abi.json",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.streams.Out, abi.Schema())
			return err
		},
	}
}

func (a *app) providerAddCommand() *cobra.Command {
	var yes bool
	var name string
	var hosts []string
	c := &cobra.Command{
		Use: "add FILE", Short: "Show what a module asks for, and take it in", Args: oneFile("add"),
		Long: `Add shows what a module is and asks for, and asks you. It is then copied to talkops' own
directory, and its exact bytes are what may run from then on, with --sandbox NAME. The
same accepts the new bytes of a module that config.toml names.`,
		Example: "  talkops provider add acme.wasm",
		RunE: func(c *cobra.Command, args []string) error {
			file := a.absolute(args[0])
			about, m, err := a.askModule(c.Context(), file)
			if err != nil {
				return err
			}
			if name == "" {
				name = about.Name
			}
			if why := providerName(name); why != "" {
				return &usageError{why + "; --name NAME gives it another"}
			}
			about.Hosts = append(about.Hosts, hosts...)
			if _, err := hostfuncs.ParseHosts(about.Hosts); err != nil {
				return &usageError{"a host it asks for: " + err.Error()}
			}
			fmt.Fprint(a.streams.Err, term.Clean(tellModule(m, &about)))
			l, err := a.locks()
			if err != nil {
				return err
			}
			if old, ok := l[a.installed(name)]; ok && old.SHA256 != m.SHA256 {
				fmt.Fprintf(a.streams.Err, "It takes the place of the module you added on %s (sha256 %s).\n", day(old.Time), old.SHA256)
			}
			if !yes {
				if err := a.confirm(c.Context(), "Allow this, as the provider "+name+"?"); err != nil {
					return err
				}
			}
			again, data, err := wasm.Read(file)
			if err != nil || again.SHA256 != m.SHA256 {
				return &usageError{args[0] + " changed while you looked at it; nothing was added"}
			}
			to := a.installed(name)
			if file != to {
				if err := replace(to, data); err != nil {
					return fmt.Errorf("copy the module: %w", err)
				}
			}
			entry := agreed{SHA256: m.SHA256, Name: name, Hosts: about.Hosts, Asks: wishes(about)}
			for _, s := range about.Settings {
				entry.Env = append(entry.Env, s.Env...)
			}
			if err := a.agree(to, entry); err != nil {
				return err
			}
			if _, named := l[file]; named && file != to {
				if err := a.agree(file, agreed{SHA256: m.SHA256, Asks: wishes(about)}); err != nil {
					return err
				}
			}
			fmt.Fprintf(a.streams.Err, "Added. Use it with: talkops --sandbox %s\n", name)
			return nil
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "allow without asking; needed where there is no terminal")
	c.Flags().StringVar(&name, "name", "", "the provider's name; else what the module calls itself")
	c.Flags().StringArrayVar(&hosts, "allow-host", nil, "one more host it may reach (repeatable)")
	return c
}

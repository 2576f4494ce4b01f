package cmd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/talkops-ai/talkops/providers"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/registry"
)

func builtin() registry.Registry { return providers.Builtin() }

const rootHelp = `talkops is an AI agent for DevOps work. Every command it runs and every file it
edits can stay inside a disposable remote sandbox.

Give it a task with -p, or pipe one in. Without --sandbox it works on this
computer, where commands and edits need --yolo.`

const rootExample = `  talkops -p "Why does scripts/check.sh fail?"
  talkops --sandbox daytona -p "Run pytest and summarize any failures"
  git diff | talkops -p "Review this change"
  talkops provider list`

// rootCommand builds the tree of commands.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "talkops", Short: "An AI agent for DevOps work, in a sandbox", Long: rootHelp, Example: rootExample,
		Version: version, SilenceErrors: true, SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Sprintf("%q is not a command; to give a task, use: talkops -p %q", args[0], strings.Join(args, " "))}
			}
			return nil
		},
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{fmt.Sprintf("%v; see: %s --help", err, c.CommandPath())}
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	flags := settingFlags(root.PersistentFlags(), "sandbox", "sandbox-id", "sandbox-snapshot-name", "sandbox-setup", "sandbox-env", "sandbox-export", "keep-sandbox")
	root.PersistentFlags().Bool("trust-project", false, "use the project's .talkops/config.toml for this run")
	root.PersistentFlags().Bool("ignore-project-config", false, "leave the project's .talkops/config.toml out")
	root.PersistentFlags().StringVar(&a.providerLog, "provider-log", "", "a file that gets a line of JSON for everything a provider module does, without secrets")
	root.PersistentFlags().BoolFunc("no-color", "no colours, as with NO_COLOR", func(value string) error {
		off, err := strconv.ParseBool(value)
		if err == nil && off {
			a.streams.Color = false
		}
		return err
	})
	a.addRun(root, flags)
	root.AddCommand(a.configCommand(flags), a.sandboxCommand(flags), a.providerCommand(flags), a.approveCommand(flags), a.trustCommand(), a.threadsCommand(flags), a.doctorCommand(flags))
	return root
}

// usage makes a wrong number of arguments an error of usage.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return &usageError{fmt.Sprintf("%v; see: %s --help", err, c.CommandPath())}
		}
		return nil
	}
}

// group shows the help of a command that only has subcommands.
func group(c *cobra.Command, _ []string) error { return c.Help() }

// A given collects the settings given by flag.
type given struct{ set []*pflag.FlagSet }

// settingFlags declares flags of settings, by name.
func settingFlags(fs *pflag.FlagSet, names ...string) *given {
	g := &given{set: []*pflag.FlagSet{fs}}
	g.declare(fs, names...)
	return g
}

func (g *given) declare(fs *pflag.FlagSet, names ...string) {
	for _, k := range config.Keys() {
		for _, name := range names {
			if k.Flag != name {
				continue
			}
			switch k.Kind {
			case config.Bool:
				fs.Bool(name, false, k.Help)
			case config.List:
				fs.StringArray(name, nil, k.Help+" (repeatable)")
			default:
				help := k.Help
				if len(k.Enum) > 0 {
					help += ": " + strings.Join(k.Enum, ", ")
				}
				fs.String(name, "", help)
			}
		}
	}
}

// values returns the flags that were given, as the configuration takes them.
func (g *given) values(c *cobra.Command) map[string]string {
	m := map[string]string{}
	for _, k := range config.Keys() {
		f := c.Flags().Lookup(k.Flag)
		if k.Flag == "" || f == nil || !f.Changed {
			continue
		}
		m[k.Flag] = f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			m[k.Flag] = config.Format(list.GetSlice())
		}
		if k.Kind == config.Bool && m[k.Flag] == "false" {
			delete(m, k.Flag)
		}
	}
	return m
}

// loadFor resolves the configuration for a command.
func (a *app) loadFor(c *cobra.Command, g *given) (*config.Config, error) {
	a.wanders = c.Flags().Changed("resume") && !a.moved
	trust := config.Untrusted
	yes, _ := c.Flags().GetBool("trust-project")
	no, _ := c.Flags().GetBool("ignore-project-config")
	switch {
	case yes && no:
		return nil, &usageError{"--trust-project and --ignore-project-config: choose one"}
	case yes:
		trust = config.Trusted
	case no:
		trust = config.Ignored
	}
	if id := c.Flags().Lookup("sandbox-id"); id != nil && id.Changed && strings.TrimSpace(id.Value.String()) == "" {
		return nil, &usageError{"--sandbox-id is given but empty; leave it out for a new sandbox"}
	}
	return a.load(g.values(c), trust)
}

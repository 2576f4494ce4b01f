package cmd

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/tool"
)

// approveCommand tells what would be decided about a command.
func (a *app) approveCommand(flags *given) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "approve -- COMMAND",
		Short: "Say whether a command would be allowed, and why; nothing is run",
		Long: `Approve judges a command as a headless run would, with your rules and settings: on this
computer, or with --sandbox in a fresh machine. It ends with 0 if the command would run
and with 4 if not.`,
		Example: "  talkops approve -- 'terraform plan | tee plan.txt'\n  talkops approve --sandbox daytona -- rm -rf node_modules",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || strings.TrimSpace(strings.Join(args, " ")) == "" {
				return &usageError{"give a command after --, as in: talkops approve -- 'rm -rf build'"}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := a.loadFor(c, flags)
			if err != nil {
				return err
			}
			if err := a.loadProvider(c.Context(), cfg, cfg.Sandbox.Provider); err != nil {
				return err
			}
			p := a.providers.Find(cfg.Sandbox.Provider)
			if p == nil {
				return config.Unknown(cfg.Sandbox.Provider, a.providers.Names(), cfg.Value("sandbox.provider").Origin.Where, a.home)
			}
			mode, err := f.mode(cfg)
			if err != nil {
				return err
			}
			if mode == "" {
				mode = approval.Smart
			}
			d := p.Describe()
			place := approval.Place{Provider: d.Name, Host: d.Features.Host, Disposable: !d.Features.Host && cfg.Sandbox.ID == "" && !cfg.Sandbox.Keep && len(cfg.Sandbox.Env) == 0}
			dir := d.Dir
			if place.Host {
				dir = a.dir
			}
			if _, err := approval.ParseRules(cfg.Approval.Allow, cfg.Approval.Ask, cfg.Approval.Deny); err != nil {
				return &usageError{err.Error()}
			}
			line := strings.Join(args, " ")
			policy := a.policy(cfg, mode, place, dir, "")
			decision, err := policy.Approve(c.Context(), approval.Request{
				Tool: "execute", Plan: tool.Plan{Effect: tool.Runs, Command: line, Path: dir}, Place: place,
			})
			if err != nil {
				return err
			}
			verdict := "allow"
			switch {
			case decision.Kind == approval.ByPolicy:
				verdict = "deny"
			case !decision.Allow:
				verdict = "ask"
			}
			where := "on this computer"
			if !place.Host {
				where = "in a sandbox of " + d.Name
			}
			fmt.Fprintf(a.streams.Out, "%s  %s, %s, mode %s: %s\n", verdict, tierOf(decision), where, mode, term.Clean(decision.Reason))
			if part := strings.TrimSpace(decision.Part); part != "" && part != line {
				fmt.Fprintf(a.streams.Out, "  because of: %s\n", term.Clean(part))
			}
			if !decision.Allow {
				return &exitStatus{exitRefused}
			}
			return nil
		},
	}
	flags.declare(c.Flags(), "approval-mode", "allow", "deny")
	c.Flags().BoolVar(&f.smart, "smart", false, "judge as with --smart (the default here)")
	c.Flags().BoolVarP(&f.yolo, "yolo", "y", false, "judge as with --yolo")
	return c
}

func tierOf(d approval.Decision) string {
	if d.Tier == "" {
		return string(approval.T0)
	}
	return string(d.Tier)
}

// mode is the approval mode that was chosen, or empty.
func (f runFlags) mode(cfg *config.Config) (approval.Mode, error) {
	set := cfg.Value("approval.mode")
	chosen := approval.Mode("")
	if set.Origin.Layer == config.LayerFlag {
		chosen = approval.Mode(cfg.Approval.Mode)
	}
	for _, flag := range []struct {
		given bool
		mode  approval.Mode
	}{{f.smart, approval.Smart}, {f.yolo, approval.Yolo}} {
		if !flag.given {
			continue
		}
		if chosen != "" && chosen != flag.mode {
			return "", &usageError{"--smart, --yolo and --approval-mode: choose one approval mode"}
		}
		chosen = flag.mode
	}
	if chosen == "" {
		chosen = approval.Mode(cfg.Approval.Mode)
	}
	return chosen, nil
}

// policy decides about tool calls in a run without a person. Without a mode the
// place chooses it. Dir is the working directory of the sandbox, logs a directory
// on this computer that may be read.
func (a *app) policy(cfg *config.Config, mode approval.Mode, place approval.Place, dir, logs string) approval.Policy {
	if mode == "" {
		mode = approval.Manual
		if place.Disposable {
			mode = approval.Smart
		}
	}
	rules, _ := approval.ParseRules(slices.Concat(cfg.Approval.Allow, serverRules(cfg)), cfg.Approval.Ask, cfg.Approval.Deny) // checked before
	p := approval.Policy{
		Mode: mode, Rules: rules, Environment: cfg.Approval.Environment, Production: cfg.Approval.Production,
		Context: approval.Context{Place: place, Dir: dir, Workspace: dir, Project: real(cfg.Root)},
	}
	if !place.Host {
		return p
	}
	p.Context.Workspace = real(cfg.Root)
	p.Context.Home, _ = a.env("HOME")
	p.Context.Own, p.Context.Real, p.Context.GitRuns, p.Context.Composes = a.home, real, gitRuns, composes
	root := p.Context.Workspace
	p.Context.Embeds = func() bool { return embeds(root) }
	p.Context.Imports = imports
	if len(cfg.Hooks) > 0 || len(cfg.Servers) > 0 {
		p.Context.Sways = cfg.Sways
	}
	p.Context.Foreign = foreign
	cache, _ := a.env("GOMODCACHE")
	if cache == "" {
		at, _ := a.env("GOPATH")
		if at == "" {
			at = filepath.Join(p.Context.Home, "go")
		}
		cache = filepath.Join(at, "pkg", "mod")
	}
	p.Context.GoReaches = func(dir string) bool { return goReaches(dir, cache) }
	p.Context.GoNewer = func(dir string) bool { return goNewer(dir, cache) }
	p.Context.Linked = linked
	p.Context.LinksBelow = func(dir string) bool { return linksBelow(root, dir) }
	home := p.Context.Home
	p.Context.Tracked = func(dir string, words []string, differ bool) ([]string, bool) {
		return trackedSecrets(home, dir, words, differ)
	}
	p.Context.Remotes = remotes
	search, _ := a.env("PATH")
	p.Context.Local = func(name string, wrote bool) bool { return ofProject(root, search, name, wrote) }
	var environ []string
	for name, value := range a.hostEnv() {
		environ = append(environ, name+"="+value)
	}
	slices.Sort(environ)
	p.Context.GitRuns = func(dir string) bool { return pathLeads(root, search) && gitStarts(dir) || gitRuns(dir) }
	p.Context.Leads = func() []string { return leads(root, environ) } // anew: files may be there since
	p.Context.Exported = func(name string) bool { _, is := a.env(name); return is }
	p.Context.LinksOut = func() bool { return linksOut(root) }
	p.Context.Secrets = func() []string { return secretsBelow(p.Context.Home, root) }
	p.Context.Dashed = func() bool { return named(root, dashed) || namedIndex(root, dashed) }
	p.Context.Spaced = func() bool { return named(root, approval.Splits) || namedIndex(root, approval.Splits) }
	if logs != "" {
		p.Context.Logs = real(logs)
	}
	for _, name := range []string{"AWS_PROFILE", "TF_WORKSPACE"} {
		if v, _ := a.env(name); v != "" && p.Environment == "" && p.Names(v) {
			p.Environment = approval.Production
		}
	}
	return p
}

// real resolves the links in an absolute path as far as it exists, and where a link
// leads to what is not there yet, as far as that goes: what is written there is made.
func real(name string) string {
	name = followed(name)
	rest := ""
	for at := name; ; at = filepath.Dir(at) {
		if r, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(r, rest)
		}
		if at == filepath.Dir(at) {
			return name
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// mostLinks is how many links a path may lead through.
const mostLinks = 255

// followed puts what links lead to in the place of each link of an absolute path.
func followed(name string) string {
	const sep = string(filepath.Separator)
	parts := func(p string) []string { return strings.Split(strings.TrimPrefix(p, filepath.VolumeName(p)), sep) }
	name = filepath.Clean(name)
	at, left, links := filepath.VolumeName(name)+sep, parts(name), 0
	for len(left) > 0 {
		next := filepath.Join(at, left[0]) // at holds no link: up is the directory above
		left = left[1:]
		to, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > mostLinks {
			return filepath.Join(append([]string{next}, left...)...)
		}
		to = filepath.FromSlash(to)
		if filepath.IsAbs(to) {
			at = filepath.VolumeName(to) + sep
		}
		left = append(parts(to), left...)
	}
	return at
}

// ofProject reports whether a search for a program along the directories of PATH comes
// to one in root before it comes to the system's; of directories that depend on where
// the shell is, commands are not given any. Wrote says that there may be more files by then.
func ofProject(root, search, name string, wrote bool) bool {
	for _, dir := range filepath.SplitList(absolutePath(search)) {
		if at := real(dir); at == root || strings.HasPrefix(at, root+string(filepath.Separator)) {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil || wrote {
				return true
			}
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			to := real(filepath.Join(dir, name)) // a link may lead into the project
			return strings.HasPrefix(to, root+string(filepath.Separator)) || chosenLater(dir, to) && chooses(root)
		}
	}
	return false
}

// leads lists the variables of the environment by which programs may find what they obey,
// or start, below root: those that hold a path there, and those that name files from
// wherever the program is. Some say no more than where the project is.
func leads(root string, environ []string) []string {
	var all []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "", "_", "PWD", "OLDPWD", "INIT_CWD", "VIRTUAL_ENV", "CONDA_PREFIX", "DIRENV_DIR", "DIRENV_FILE", "GITHUB_WORKSPACE", "CI_PROJECT_DIR", "WORKSPACE", "BUILD_SOURCESDIRECTORY":
			continue
		}
		// In options, too: "--require ./x.js", "-javaagent:/src/shop/x.jar".
		if dotted.MatchString(value) || strings.Contains(value+"/", root+string(filepath.Separator)) || slices.ContainsFunc(filepath.SplitList(value), func(item string) bool {
			at := real(item)
			switch {
			case filepath.IsAbs(item):
				return at == root || strings.HasPrefix(at, root+string(filepath.Separator)) || name == "PATH" && chosenLater(item, at) && chooses(root)
			case item == "": // to python and others it is where they are
				return slices.Contains([]string{"PYTHONPATH", "PERL5LIB", "CLASSPATH"}, name)
			}
			return pathLike.MatchString(name) && !strings.Contains(item, "://")
		}) {
			all = append(all, name)
		}
	}
	return all
}

// pathLeads reports whether programs are looked for below root.
func pathLeads(root, search string) bool {
	return len(leads(root, []string{"PATH=" + absolutePath(search)})) > 0
}

// dotted finds a path that begins where the program is.
var dotted = regexp.MustCompile(`(?:^|[\s:;=,|"'@])\.\.?/`)

// pathLike matches names of variables that hold paths.
var pathLike = regexp.MustCompile(`(?:PATH|CONFIG|CONFIG_FILE|CREDENTIALS_FILE|_DIR|_HOME|_PLUGINS|GOENV|COMPOSE_FILE|RC)$`)

// chosenLater reports whether a program is one of a manager of versions, which starts
// another that it looks for when it runs.
func chosenLater(dir, to string) bool {
	for _, at := range []string{dir, to} {
		// As tfenv does, which has a script of the program's own name.
		parts := strings.Split(filepath.ToSlash(at), "/")
		if slices.Contains(parts, "installs") {
			continue // what mise and asdf installed is itself
		}
		if slices.ContainsFunc(parts, func(part string) bool {
			part = strings.TrimPrefix(part, ".")
			return strings.HasSuffix(part, "env") && part != "env" && part != "venv" || slices.Contains([]string{"volta", "proto", "mise", "asdf", "rtx", "aquaproj-aqua"}, part)
		}) {
			return true
		}
	}
	return filepath.Base(dir) == "shims" || slices.Contains([]string{"mise", "rtx", "asdf", "proto-shim", "volta-shim", "aqua-proxy"}, filepath.Base(to))
}

// chooses reports whether a file below root may name code for managers of versions to run or
// load, not the release of a program alone. All that mise reads may, as commands of ours run
// with CI set, by which it takes what it finds for trusted.
func chooses(root string) bool {
	return named(root, func(name string) bool {
		lower := strings.ToLower(name)
		base := filepath.Base(lower)
		switch {
		case base == ".prototools", base == ".volta", base == "aqua.yaml", base == "aqua.yml", base == ".aqua.yaml", base == ".aqua.yml",
			(strings.Contains(lower, "mise") || strings.Contains(lower, "rtx")) && strings.HasSuffix(base, ".toml"):
			return true
		case base != ".tool-versions" && !(strings.HasPrefix(base, ".") && strings.HasSuffix(base, "-version")):
			return false
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		return err != nil || strings.ContainsAny(string(data), ":{") || strings.Contains(string(data), "..")
	})
}

// linksOut reports whether a link below root leads out of it. A tree that is too
// large to look through counts as one that has such a link.
func linksOut(root string) bool {
	const most = 200_000
	seen, out := 0, false
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > most {
			return fs.SkipAll
		}
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return nil // what cannot be listed cannot be read that way either
		}
		to := real(name)
		for _, dir := range []string{"/usr/", "/bin/", "/lib/", "/nix/store/", "/opt/homebrew/"} { // programs, as of a virtual environment
			if strings.HasPrefix(to, dir) {
				return nil
			}
		}
		if to != root && !strings.HasPrefix(to, root+string(filepath.Separator)) {
			out = true
			return fs.SkipAll
		}
		return nil
	})
	return out || err != nil || seen > most
}

// linksBelow reports whether a link at or below dir leads out of root. A tree that is
// too large to look through counts as one that has such a link.
func linksBelow(root, dir string) bool {
	const most = 200_000
	seen, out := 0, false
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > most {
			return fs.SkipAll
		}
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		if to := real(name); to != root && !strings.HasPrefix(to, root+string(filepath.Separator)) {
			out = true
			return fs.SkipAll
		}
		return nil
	})
	return out || err != nil || seen > most
}

// linked reports whether name is a link, or a directory with one. A tree that is too
// large to look through counts as one that has a link.
func linked(name string) bool {
	const most = 100_000
	seen, found := 0, false
	_ = filepath.WalkDir(name, func(_ string, d fs.DirEntry, err error) error {
		if seen++; seen > most || err == nil && d.Type()&fs.ModeSymlink != 0 {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// dashed reports whether a path has a name that programs take for an option.
func dashed(name string) bool { return strings.Contains("/"+name, "/-") }

// named reports whether the path of a file below root, git's own left aside, is one of
// those that is tells. A tree that is too large to look through counts as one that has.
func named(root string, is func(name string) bool) bool {
	const most = 200_000
	seen, found := 0, false
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > most {
			return fs.SkipAll
		}
		if err != nil {
			return nil
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if rel, err := filepath.Rel(root, name); err == nil && rel != "." && is(filepath.ToSlash(rel)) {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found || err != nil || seen > most
}

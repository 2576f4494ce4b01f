package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tables reads the per-provider tables.
func (c *Config) tables(src Sources, user, project *file) error {
	if project != nil && src.Trust != Trusted {
		for _, a := range providerAsks(project) {
			c.Untrusted = append(c.Untrusted, a.Effect)
			if name, ok := strings.CutSuffix(strings.TrimPrefix(a.Key, "sandbox.providers."), ".backend"); ok {
				c.modules = append(c.modules, name)
			}
		}
	}
	for _, f := range []*file{user, project} {
		if f == nil {
			continue
		}
		own := f == user || src.Trust == Trusted
		providers, _ := f.k.Get("sandboxes.providers").(map[string]any)
		for name, v := range providers {
			at := "sandboxes.providers." + name
			t, isTable := v.(map[string]any)
			if !isTable {
				continue // reported by checkKeys
			}
			if !own {
				continue
			}
			p := c.Providers[name] // tables of both files merge
			if err := c.grants(&p, f, f == user, at, t, src); err != nil {
				return err
			}
			for key, to := range map[string]*string{"backend": &p.Backend, "working_dir": &p.WorkingDir} {
				if v, set := t[key]; set {
					text, isText := v.(string)
					if !isText || text == "" {
						return errorf("%s: %s.%s must be a string", f.at(at+"."+key), at, key)
					}
					*to = text
				}
			}
			if o, set := t["options"]; set {
				options, isTable := o.(map[string]any)
				if !isTable {
					return errorf("%s: %s.options must be a table", f.at(at+".options"), at)
				}
				merged := maps.Clone(p.Options)
				if merged == nil {
					merged = map[string]any{}
				}
				maps.Copy(merged, options)
				p.Options = merged
			}
			if p.WorkingDir != "" && !strings.HasPrefix(p.WorkingDir, "/") {
				return errorf("%s: working_dir %q must be an absolute path", f.at(at+".working_dir"), p.WorkingDir)
			}
			if p.Backend != "" {
				if module, _, python := strings.Cut(p.Backend, ":"); python && len(module) > 1 && !strings.ContainsAny(module, `/\`) || strings.HasSuffix(p.Backend, ".py") {
					return errorf("%s: %s.backend = %q names a Python class. talkops loads WebAssembly providers: build one and give the path of its .wasm file; working_dir and options can stay as they are", f.at(at+".backend"), at, p.Backend)
				}
				if _, here := t["backend"]; here {
					p.Backend = expand(p.Backend, src.UserHome, filepath.Dir(f.path))
					p.Project, p.Where = f != user, f.at(at+".backend")
				}
			}
			c.Providers[name] = p
		}
		models, _ := f.k.Get("model.providers").(map[string]any)
		for name, v := range models {
			if f != user {
				c.warnf("%s: model.providers is yours to set, not a project's; ignored", f.at("model.providers."+name))
				continue
			}
			t, _ := v.(map[string]any)
			var e Endpoint
			for key, to := range map[string]*string{"base_url": &e.BaseURL, "api_key_env": &e.APIKeyEnv} {
				if v, set := t[key]; set {
					text, isText := v.(string)
					if !isText || text == "" {
						return errorf("%s: model.providers.%s.%s must be a string", f.at("model.providers."+name+"."+key), name, key)
					}
					*to = text
				}
			}
			if c.Model.Providers == nil {
				c.Model.Providers = map[string]Endpoint{}
			}
			c.Model.Providers[name] = e
		}
	}
	return nil
}

// tableValues lists the settings that stand in tables of the files, so that they are
// shown like every other.
func (c *Config) tableValues(trusted bool, user, project *file) {
	for _, pattern := range TableKeys() {
		table, _, _ := strings.Cut(pattern.Paths[0], ".<name>")
		var names []string
		for _, f := range []*file{user, project} {
			if f == nil {
				continue
			}
			t, _ := f.k.Get(table).(map[string]any)
			for name := range t {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		slices.Sort(names)
		for _, name := range names {
			k := pattern.of(name)
			v := Value{Key: k}
			if l, set, err := fromFile(k, user, LayerUser); set && err == nil {
				v.Value, v.Origin = l.value, l.Origin
			}
			if l, set, err := fromFile(k, project, LayerProject); set && err == nil && trusted && k.Scope != ScopeUser {
				if v.Value != nil {
					v.Hidden = []Hidden{{v.Value, v.Origin}}
				}
				v.Value, v.Origin = l.value, l.Origin
			}
			if v.Value != nil {
				c.Values = append(c.Values, v)
			}
		}
	}
}

// expand makes a path of a file absolute: "~" is the home directory, and a
// relative one lies below base.
func expand(p, home, base string) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		return filepath.Join(home, p[1:])
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(base, p)
}

// Value returns the resolved setting of that name.
func (c *Config) Value(name string) Value {
	for _, v := range c.Values {
		if v.Key.Name == name {
			return v
		}
	}
	return Value{}
}

func (c *Config) text(name string) string { s, _ := c.Value(name).Value.(string); return s }
func (c *Config) truth(name string) bool  { b, _ := c.Value(name).Value.(bool); return b }
func (c *Config) span(name string) time.Duration {
	d, _ := c.Value(name).Value.(time.Duration)
	return d
}
func (c *Config) whole(name string) int64           { n, _ := c.Value(name).Value.(int64); return n }
func (c *Config) words(name string) (list []string) { list, _ = c.Value(name).Value.([]string); return }

// fill turns the resolved values into the plain fields.
func (c *Config) fill(src Sources) error {
	if err := c.chooseProvider(src); err != nil {
		return err
	}
	s := &c.Sandbox
	s.ID, s.Snapshot, s.Image = c.text("sandbox.id"), c.text("sandbox.snapshot_name"), c.text("sandbox.image")
	s.Export = c.text("sandbox.export")
	s.SyncWorkspace, s.Keep, s.Require = c.truth("sandbox.sync_workspace"), c.truth("sandbox.keep"), c.truth("sandbox.require")
	s.Warm = c.truth("sandbox.warm")
	s.CreateTimeout, s.SetupTimeout = c.span("sandbox.create_timeout"), c.span("sandbox.setup_timeout")
	s.MaxLifetime, s.IdleTimeout = c.span("sandbox.max_lifetime"), c.span("sandbox.idle_timeout")
	s.Env = c.words("sandbox.env")
	for _, name := range s.Env {
		if name == "" || strings.ContainsAny(name, "= \x00") {
			return errorf("%s: %q is not the name of a variable", c.Value("sandbox.env").Origin, name)
		}
	}
	if s.Provider != "local" {
		if err := c.setupScript(src); err != nil {
			return err
		}
	}
	c.Sync = Sync{
		Include: c.words("sync.include"), Exclude: c.words("sync.exclude"), AllowSecrets: c.words("sync.allow_secrets"),
		Gitignore: c.truth("sync.gitignore"), MaxFileBytes: c.whole("sync.max_file_bytes"), MaxTotalBytes: c.whole("sync.max_total_bytes"),
		MaxReturnBytes: c.whole("sync.max_return_bytes"),
	}
	c.Tools = Tools{c.span("tools.exec_timeout"), c.span("tools.exec_timeout_max"), int(c.whole("tools.output_bytes"))}
	c.Model.Name = c.text("model.default")
	c.Model.Explicit = c.Value("model.default").Origin.Layer >= LayerAlias
	cost, _ := c.Value("run.max_cost_usd").Value.(float64)
	c.Run = Run{int(c.whole("run.max_turns")), c.span("run.timeout"), cost, c.text("run.output")}
	c.Rubric = Rubric{int(c.whole("rubric.max_iterations")), c.text("rubric.model")}
	c.Approval = Approval{
		Mode: c.text("approval.mode"), Allow: c.words("approval.allow"), Ask: c.words("approval.ask"), Deny: c.words("approval.deny"),
		Environment: c.text("approval.environment"), Production: c.words("approval.production"),
		Model: c.text("approval.model"),
	}
	c.Saved = Saved{c.span("saved.max_age"), c.whole("saved.max_bytes")}
	c.Web = Web{c.text("web.search_provider"), c.text("web.searxng_url"), c.words("web.allow_hosts")}
	return nil
}

// chooseProvider judges the provider that holds.
func (c *Config) chooseProvider(src Sources) error {
	i := slices.IndexFunc(c.Values, func(v Value) bool { return v.Key.Name == "sandbox.provider" })
	v := &c.Values[i]
	raw, _ := v.Value.(string)
	name := strings.ToLower(strings.TrimSpace(raw))
	where := v.Origin.Where
	known := slices.Clone(src.Providers)
	for n, p := range c.Providers {
		if p.Backend != "" && !slices.Contains(known, n) {
			known = append(known, n)
		}
	}
	switch {
	case name == "":
		return errorf(`%s is set but empty. Use "local" to run on this computer, or unset it.`, where)
	case src.Bare && (name == "local" || v.Origin.Layer == LayerDefault):
		if v.Origin.Layer == LayerDefault {
			return errorf("--sandbox alone uses your saved default, but none is set. Run: talkops --sandbox %[1]s, or: talkops config set sandbox.provider %[1]s", remote(src.Providers))
		}
		return errorf("--sandbox alone uses your saved default, which is \"local\" (%[2]s). Run: talkops --sandbox %[1]s, or: talkops config set sandbox.provider %[1]s", remote(src.Providers), v.Origin)
	case src.Trust == Untrusted && c.wants(name):
		// Whoever demands trust says so.
	case !slices.Contains(known, name):
		if v.Origin.Layer == LayerAlias {
			return errorf("SANDBOX_PROVIDER is set to %q, which talkops does not know. Unset it, or override it with TALKOPS_SANDBOX_PROVIDER or --sandbox.", raw)
		}
		return Unknown(raw, known, where, src.Home)
	}
	v.Value = name
	c.Sandbox.Provider = name
	return nil
}

// wants reports whether an untrusted project names a module of that name.
func (c *Config) wants(name string) bool {
	return slices.Contains(c.modules, name)
}

// remote names a provider for examples.
func remote(known []string) string {
	for _, name := range known {
		if name != "local" {
			return name
		}
	}
	return "NAME"
}

// Unknown is the error for a provider name that is not in known.
func Unknown(name string, known []string, where, home string) error {
	text := fmt.Sprintf("Unknown sandbox %q", name)
	if where != "" {
		text += " (" + where + ")"
	}
	text += "."
	if near := nearest(strings.ToLower(strings.TrimSpace(name)), known); near != "" {
		text += fmt.Sprintf(" Did you mean %s?", near)
	}
	return &Error{text + " Known: " + strings.Join(known, ", ") + ". A provider of your own is a .wasm file: talkops provider add FILE, or its name in " + filepath.Join(home, "config.toml") + "."}
}

// setupScript takes the script that holds.
func (c *Config) setupScript(src Sources) error {
	v := c.Value("sandbox.setup_script_path")
	name, _ := v.Value.(string)
	if name == "" {
		return nil
	}
	s, read := c.scripts[v.Origin.Layer]
	if !read {
		s = c.readScript(src, name, v.Origin)
	}
	if s.err != nil {
		return s.err
	}
	if s.name != "" && v.Origin.Layer < LayerAlias && src.Trust != Trusted {
		c.Untrusted = append(c.Untrusted, effect("sandbox.setup_script_path", name))
		return nil
	}
	c.Sandbox.SetupScript, c.Sandbox.Setup = s.path, s.data
	return nil
}

// conflicts finds settings that cannot hold together, before anything starts.
func (c *Config) conflicts(src Sources) error {
	_, setup := src.Flags["sandbox-setup"]
	_, keep := src.Flags["keep-sandbox"]
	_, export := src.Flags["sandbox-export"]
	s := c.Sandbox
	switch {
	case s.Provider == "local" && s.Require:
		return errorf("a sandbox is demanded (%s); add --sandbox <provider>.", c.Value("sandbox.require").Origin)
	case s.ID != "" && s.Provider == "local":
		return errorf("%s needs a sandbox: add --sandbox <provider>, or set one with: talkops config set sandbox.provider <provider>", idSource(c))
	case setup && s.Provider == "local":
		return errorf("--sandbox-setup runs inside a sandbox; this run is local. Nothing was executed.")
	case (keep || export) && s.Provider == "local" && !src.Elsewhere:
		return errorf("there is no sandbox to keep: this run is local.")
	case s.ID != "" && c.Value("sandbox.snapshot_name").Origin.Layer >= LayerAlias && s.Snapshot != "":
		return errorf("--sandbox-id attaches to an existing sandbox; --sandbox-snapshot-name creates one. Use only one.")
	}
	return nil
}

func idSource(c *Config) string {
	if o := c.Value("sandbox.id").Origin; o.Where != "" {
		return o.Where
	}
	return "--sandbox-id"
}

// Package config resolves every setting from its layers (defaults, user file,
// project file, environment, flags) into one plain Config, each value with its
// origin.
package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

// An Error is a setting that cannot be used. Its text names the value and its
// source and says what to do.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

func errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Trust says what the project's own file may do in this run.
type Trust int

// The ways to treat a project file.
const (
	Untrusted Trust = iota // it may only narrow
	Trusted                // --trust-project
	Ignored                // --ignore-project-config
)

// Sources is where settings come from.
type Sources struct {
	Home      string                      // talkops' own directory
	Dir       string                      // the current directory
	UserHome  string                      // the user's home directory; may be empty
	Env       func(string) (string, bool) // the environment
	Flags     map[string]string           // given flags by long name, without dashes
	Bare      bool                        // --sandbox was given without a name
	Elsewhere bool                        // a conversation goes on, perhaps in another sandbox than is said here
	Trust     Trust
	Providers []string // known provider names
	// Approved reports whether the user has approved the project at root with
	// exactly these files and with these keys. Nil: nothing is approved. It is asked
	// only of a project that is not trusted already.
	Approved func(root string, files map[string][]byte, keys []string) (bool, error)
}

// A Layer is one place settings come from, lowest first.
type Layer int

// The layers.
const (
	LayerDefault Layer = iota
	LayerUser
	LayerProject
	LayerAlias
	LayerEnv
	LayerFlag
)

func (l Layer) String() string {
	return [...]string{"default", "user file", "project file", "environment", "environment", "flag"}[l]
}

// An Origin is where one value was set.
type Origin struct {
	Layer Layer
	Where string // "--sandbox", "TALKOPS_SANDBOX_PROVIDER", "…/config.toml:3"
}

func (o Origin) String() string {
	if o.Where == "" {
		return o.Layer.String()
	}
	return o.Layer.String() + " " + o.Where
}

// A Value is one resolved setting.
type Value struct {
	Key    Key
	Value  any // nil: not set
	Origin Origin
	Hidden []Hidden // lower layers that also set it, highest first
}

// A Hidden value was set but does not hold.
type Hidden struct {
	Value  any
	Origin Origin
}

// Config is every setting, resolved.
type Config struct {
	Root      string // the project root, links resolved
	Start     string // the current directory below Root, "." at the root
	IsProject bool   // Root holds .talkops or .git
	Unbounded bool   // Root is the home directory, one above it, or "/"
	Alone     bool   // the user chose to leave out what the project says

	Sandbox   Sandbox
	Sync      Sync
	Tools     Tools
	Model     Model
	Run       Run
	Rubric    Rubric
	Approval  Approval
	Web       Web
	Saved     Saved
	Providers map[string]Provider // sandboxes.providers.<name>
	Hooks     []Hook              // by name
	Servers   []Server            // by name

	Values    []Value
	Warnings  []string
	modules   []string // names of providers that an untrusted project has modules for
	Untrusted []string // what the untrusted project file asks for that would change the outcome
	Files     Files
	Authority map[string][]byte // as Project.Files
	Broken    error             // why an untrusted project's file cannot be used; it is in Untrusted too

	scripts map[Layer]script // setup scripts that were named by a file
	inside  map[string]bool  // entries of the user's own file that start a program of the project
	named   map[string]named // what of the project the words of commands name
	obeys   map[string]bool  // whether a command, its words joined by NUL, is the project's
	unread  []error          // files of the project that commands name, which cannot be read
	would   string           // a file, as a slash path below Root, that is taken to be there
}

// Files are the configuration files, whether they exist or not.
type Files struct{ User, Project string }

// Sandbox holds the settings of sandboxes.
type Sandbox struct {
	Provider, ID, Snapshot, Image      string
	SetupScript                        string // its path; empty: none
	Export                             string // "ask", "patch", "patch:FILE", "branch:NAME", "apply", "none"
	Setup                              []byte // its content, which is what runs
	SyncWorkspace, Keep, Require, Warm bool
	CreateTimeout, SetupTimeout        time.Duration
	MaxLifetime, IdleTimeout           time.Duration
	Env                                []string
}

// Sync says what is uploaded.
type Sync struct {
	Include, Exclude, AllowSecrets []string
	Gitignore                      bool
	MaxFileBytes, MaxTotalBytes    int64
	MaxReturnBytes                 int64 // of what comes back
}

// Saved bounds the work of runs that is kept on this computer.
type Saved struct {
	MaxAge   time.Duration
	MaxBytes int64
}

// Tools holds the limits of the model's tools.
type Tools struct {
	ExecTimeout, ExecTimeoutMax time.Duration
	OutputBytes                 int
}

// Model holds the settings of models.
type Model struct {
	Name      string // provider:name; empty: choose
	Explicit  bool   // given by flag or environment
	Providers map[string]Endpoint
}

// An Endpoint is a model server the user has named.
type Endpoint struct{ BaseURL, APIKeyEnv string }

// Run holds the limits of a headless run.
type Run struct {
	MaxTurns   int
	Timeout    time.Duration
	MaxCostUSD float64 // 0: none
	Output     string
}

// Approval says who decides about tool calls.
type Approval struct {
	Mode             string // empty: by the place
	Allow, Ask, Deny []string
	Environment      string // "production", "development" or empty
	Model            string // provider:name; empty: none is asked
	Production       []string
}

// Web holds the settings of the tools that look things up on the web.
type Web struct {
	SearchProvider string // empty: the first that has its key or address
	SearxngURL     string
	AllowHosts     []string
}

// Rubric says how a graded run is graded.
type Rubric struct {
	MaxIterations int
	Model         string // provider:name; empty: the run's own
}

// A Provider is one [sandboxes.providers.<name>] table.
type Provider struct {
	Backend    string // path of a .wasm file; empty for a built-in provider's own options
	WorkingDir string
	Options    map[string]any

	SHA256     string      // what the module's bytes must be
	AllowHosts []string    // where it may connect
	AllowPaths []AllowPath // folders of this computer it may use
	Env        []string    // variables it may be given
	MemoryMB   int         // 0: the default
	Limits     Limits
	USDPerHour *float64 // what one of its sandboxes costs the user; nil: they did not say
	Project    bool     // Backend comes from the project's file
	Where      string   // where Backend stands
}

// Limits bound a module; 0 is the default.
type Limits struct{ Concurrency, CompileSeconds, LogKB, HTTPInlineKB int }

// An AllowPath grants a module a folder under a name.
type AllowPath struct {
	Name, Path string
	Write      bool
}

// Load resolves all settings. The error is an *Error.
func Load(src Sources) (*Config, error) {
	c := &Config{Providers: map[string]Provider{}, Alone: src.Trust == Ignored}
	c.findRoot(src)
	user, project, err := c.readFiles(src)
	if err != nil {
		return nil, err
	}
	if c.Broken != nil {
		if src.Trust == Trusted {
			return nil, c.Broken
		}
		c.Untrusted = append(c.Untrusted, "be read, but cannot: "+c.Broken.Error())
	}
	c.readAuthority(src, user, project)
	if src.Trust == Untrusted && c.Broken == nil && len(c.Authority) > 0 && src.Approved != nil {
		p := Project{Asks: c.asks(user, project)}
		approved, err := src.Approved(c.Root, c.Authority, p.Keys())
		if err != nil {
			return nil, &Error{err.Error()}
		}
		if approved {
			src.Trust = Trusted
		}
	}
	for _, f := range []*file{user, project} {
		if err := c.checkKeys(f, f == user || src.Trust == Trusted); err != nil {
			return nil, err
		}
	}
	for _, k := range Keys() {
		v, err := c.resolve(k, src, user, project)
		if err != nil {
			return nil, err
		}
		c.Values = append(c.Values, v)
	}
	if err := c.tables(src, user, project); err != nil {
		return nil, err
	}
	if err := c.fillPrograms(src, user, project); err != nil {
		return nil, err
	}
	c.tableValues(src.Trust == Trusted, user, project)
	if err := c.fill(src); err != nil {
		return nil, err
	}
	return c, c.conflicts(src)
}

// findRoot finds the project root: the nearest directory that holds .talkops or
// .git, but never the home directory or one above it.
func (c *Config) findRoot(src Sources) {
	dir := src.Dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	home := src.UserHome
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	tooWide := func(d string) bool {
		return d == filepath.Dir(d) || home != "" && (d == home || strings.HasPrefix(home, strings.TrimSuffix(d, "/")+"/"))
	}
	c.Root, c.Start = dir, "."
	c.Unbounded = tooWide(dir)
	for d := dir; !tooWide(d); d = filepath.Dir(d) {
		for _, mark := range []string{".talkops", ".git"} {
			if p := filepath.Join(d, mark); exists(p) && !same(p, src.Home) {
				c.Root, c.IsProject = d, true
				c.Start, _ = filepath.Rel(d, dir)
				return
			}
		}
	}
}

func exists(p string) bool { _, err := os.Lstat(p); return err == nil }

func same(a, b string) bool {
	x, err1 := filepath.EvalSymlinks(a)
	y, err2 := filepath.EvalSymlinks(b)
	return err1 == nil && err2 == nil && x == y
}

// layered is a value one layer gives.
type layered struct {
	value any
	Origin
}

// resolve decides one key.
func (c *Config) resolve(k Key, src Sources, user, project *file) (Value, error) {
	var found []layered // lowest first
	if k.Default != nil {
		found = append(found, layered{k.Default, Origin{LayerDefault, ""}})
	}
	l, ok, err := fromFile(k, user, LayerUser)
	if err != nil {
		return Value{}, err
	}
	if ok {
		found = append(found, l)
	}
	var above []layered
	for i := len(k.Env) - 1; i >= 0; i-- {
		text, set := src.Env(k.Env[i])
		if !set || text == "" && k.Name != "sandbox.provider" {
			continue
		}
		layer := LayerEnv
		if i > 0 {
			layer = LayerAlias
		}
		above = append(above, layered{text, Origin{layer, k.Env[i]}})
	}
	if text, given := src.Flags[k.Flag]; given && k.Flag != "" {
		above = append(above, layered{text, Origin{LayerFlag, "--" + k.Flag}})
	}
	if p, ok, err := fromFile(k, project, LayerProject); err != nil {
		switch {
		case k.Scope == ScopeUser:
			c.Warnings = append(c.Warnings, fmt.Sprintf("%v; it is yours to set, not a project's; ignored", err))
		case src.Trust == Trusted:
			return Value{}, err
		default:
			c.Untrusted = append(c.Untrusted, err.Error())
		}
	} else if ok {
		if c.projectMay(k, p, found, len(above) > 0, src.Trust) {
			if k.Joins && len(found) > 0 {
				p.value = slices.Concat(found[len(found)-1].value.([]string), p.value.([]string))
			}
			found = append(found, p)
		}
	}
	for _, l := range above {
		if text, isText := l.value.(string); isText && k.Joins && len(found) > 0 && found[len(found)-1].Layer > LayerDefault {
			list, err := k.Parse(text)
			if err != nil {
				return Value{}, errorf("%s: %v", l.Where, err)
			}
			l.value = slices.Concat(found[len(found)-1].value.([]string), list.([]string))
		}
		found = append(found, l)
	}

	// The layers meet in koanf, lowest first; the last that sets the key holds.
	merged := koanf.New("\x00")
	for _, l := range found {
		if err := merged.Load(confmap.Provider(map[string]any{k.Name: l.value}, "\x00"), nil); err != nil {
			return Value{}, err
		}
	}
	v := Value{Key: k, Value: merged.Get(k.Name)}
	for i := len(found) - 1; i >= 0; i-- {
		l := found[i]
		if i == len(found)-1 {
			v.Origin = l.Origin
			if text, isText := l.value.(string); isText && l.Layer >= LayerAlias {
				parsed, err := k.Parse(text)
				if err != nil {
					return Value{}, errorf("%s: %v", l.Where, err)
				}
				v.Value = parsed
			}
		} else {
			v.Hidden = append(v.Hidden, Hidden{l.value, l.Origin})
		}
	}
	return v, nil
}

// projectMay decides whether the project's value counts, and notes why if not.
func (c *Config) projectMay(k Key, p layered, below []layered, overridden bool, trust Trust) bool {
	var old any
	if len(below) > 0 {
		old = below[len(below)-1].value
	}
	if k.Scope == ScopeUser {
		c.warnf("%s: %s is yours to set, not a project's; ignored", p.Where, k.Name)
		return false
	}
	if k.narrows(p.value, old) {
		return true
	}
	switch {
	case k.Scope == ScopeFreeLower || k.Scope == ScopeFreeTrue || k.Scope == ScopeFreeStricter:
		c.warnf("%s: a project may only make %s stricter; ignored", p.Where, k.Name)
		return false
	case trust == Trusted:
		return true
	case overridden || Format(p.value) == Format(old):
		c.warnf("%s: %s is ignored: the project is not trusted", p.Where, k.Name)
		return false
	}
	c.Untrusted = append(c.Untrusted, effect(k.Name, Format(p.value)))
	return false
}

// effect says in plain words what a project's value would do.
func effect(key, value string) string {
	value = clip(value)
	switch key {
	case "sandbox.provider":
		return fmt.Sprintf("use sandbox %q", value)
	case "sandbox.setup_script_path":
		return fmt.Sprintf("run %s in the sandbox", value)
	case "sandbox.env":
		return fmt.Sprintf("pass %s to the sandbox", value)
	case "sandbox.warm":
		return "keep what the setup script made as a snapshot at the vendor"
	case "sandbox.sync_workspace":
		return "upload the project"
	case "sync.include":
		return fmt.Sprintf("upload also %s", value)
	case "model.default":
		return fmt.Sprintf("send the work to the model %q", value)
	}
	return fmt.Sprintf("set %s to %q", key, value)
}

// fromFile reads a key from a file, whichever way it is spelled there.
func fromFile(k Key, f *file, layer Layer) (layered, bool, error) {
	if f == nil {
		return layered{}, false, nil
	}
	var got layered
	ok := false
	for _, p := range k.Paths {
		if !f.k.Exists(p) {
			continue
		}
		v, err := k.decode(f.k.Get(p))
		if err != nil {
			return layered{}, false, errorf("%s: %s: %v", f.at(p), p, err)
		}
		if ok && Format(v) != Format(got.value) {
			return layered{}, false, errorf("%s: %s = %q (line %d) and %s = %q (line %d) contradict each other", f.path,
				last(k.Paths[0]), Format(got.value), f.lines[k.Paths[0]], last(p), Format(v), f.lines[p])
		}
		if !ok {
			got, ok = layered{v, Origin{layer, f.at(p)}}, true
		}
	}
	return got, ok, nil
}

func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// providerKeys are the keys of a [sandboxes.providers.<name>] table.
var providerKeys = []string{"backend", "working_dir", "options", "sha256"}

// grantKeys are those that say what a module may touch, and what a sandbox costs: the
// user's own.
var grantKeys = []string{"allow_hosts", "allow_paths", "env", "memory_mb", "limits", "usd_per_hour"}

// checkKeys reports keys that mean nothing: an error where a misspelling could
// weaken isolation, else a warning.
func (c *Config) checkKeys(f *file, strict bool) error {
	if f == nil {
		return nil
	}
	known := map[string]bool{}
	var words []string
	for _, k := range Keys() {
		for _, p := range k.Paths {
			known[p] = true
			words = append(words, p)
		}
	}
	groups := tables()
	paths := make([]string, 0, len(f.lines))
	for p := range f.lines {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	for _, p := range paths {
		parts := strings.Split(p, ".")
		switch {
		case known[p]:
			continue
		case groups[p], p == "sandboxes.providers", p == "model.providers", p == "mcp", slices.Contains(programTables, p), programEntry(parts):
			if _, isTable := f.k.Get(p).(map[string]any); !isTable {
				if err := c.complain(strict, "%s: %s must be a table", f.at(p), p); err != nil {
					return err
				}
			}
			continue
		case len(parts) >= 3 && parts[0] == "sandboxes" && parts[1] == "providers":
			if len(parts) == 3 {
				if _, isTable := f.k.Get(p).(map[string]any); isTable {
					continue
				}
				if err := c.complain(strict, "%s: %s must be a table", f.at(p), p); err != nil {
					return err
				}
				continue
			}
			if slices.Contains(providerKeys, parts[3]) || slices.Contains(grantKeys, parts[3]) {
				continue
			}
		case programKey(p):
			continue
		case len(parts) >= 3 && parts[0] == "model" && parts[1] == "providers":
			if len(parts) == 3 || len(parts) == 4 && (parts[3] == "base_url" || parts[3] == "api_key_env") {
				continue
			}
		}
		text := fmt.Sprintf("%s: unknown key %s", f.at(p), clip(p))
		if near := nearest(p, words); near != "" {
			text += fmt.Sprintf("; did you mean %s?", near)
		}
		if slices.Contains([]string{"sandboxes", "approval", "sync"}, parts[0]) {
			if err := c.complain(strict, "%s", text); err != nil {
				return err
			}
			continue
		}
		c.warnf("%s", text)
	}
	return nil
}

// programEntry reports whether a path is that of an entry of a table of programs.
func programEntry(parts []string) bool {
	return slices.Contains(programTables, strings.Join(parts[:len(parts)-1], "."))
}

// programKey reports whether a path is that of a setting in such an entry.
func programKey(p string) bool {
	_, known := Lookup(p)
	return known && slices.ContainsFunc(programTables, func(t string) bool { return strings.HasPrefix(p, t+".") })
}

func (c *Config) complain(strict bool, format string, args ...any) error {
	if strict {
		return errorf(format, args...)
	}
	if len(c.Untrusted) < maxWarnings {
		c.Untrusted = append(c.Untrusted, "be read, but cannot: "+fmt.Sprintf(format, args...))
	}
	return nil
}

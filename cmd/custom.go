package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/hostfuncs"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/wasm"
	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// An agreed module is one whose exact bytes the user has accepted.
type agreed struct {
	SHA256 string    `json:"sha256"`
	Name   string    `json:"name,omitempty"` // as in --sandbox NAME, of one that was added
	Hosts  []string  `json:"allow_hosts,omitempty"`
	Env    []string  `json:"env,omitempty"`
	Asks   []string  `json:"asks,omitempty"` // what the module asked for then, see wishes
	Time   time.Time `json:"time"`
}

// locks are the agreed modules by their files.
type locks map[string]agreed

func (a *app) lockFile() string             { return filepath.Join(a.home, "providers.lock") }
func (a *app) providersDir() string         { return filepath.Join(a.home, "providers") }
func (a *app) moduleCache() string          { return filepath.Join(a.home, "cache", "wasm") }
func (a *app) installed(name string) string { return filepath.Join(a.providersDir(), name+".wasm") }

// locks reads what was agreed to.
func (a *app) locks() (locks, error) {
	l := locks{}
	data, err := os.ReadFile(a.lockFile())
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil {
		return nil, &config.Error{Text: fmt.Sprintf("%s cannot be read: %v. Mend or remove it; modules have to be agreed to anew then.", a.lockFile(), err)}
	}
	return l, nil
}

// agree records that the module in file is the one the user wants.
func (a *app) agree(file string, entry agreed) error {
	l, err := a.locks()
	if err != nil {
		return err
	}
	entry.Time = time.Now().UTC().Truncate(time.Second)
	l[file] = entry
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return replace(a.lockFile(), append(data, '\n'))
}

// replace makes the user's own file hold data, whole or not at all.
func replace(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// added lists the names of the modules in talkops' own directory, whether they
// were agreed to or only dropped there.
func (a *app) added() []string {
	files, _ := os.ReadDir(filepath.Dir(a.installed("x")))
	var names []string
	for _, f := range files {
		if name, module := strings.CutSuffix(f.Name(), ".wasm"); module && providerName(name) == "" {
			names = append(names, name)
		}
	}
	return names
}

// loadProvider makes the custom provider of that name, if there is one, one of
// a.providers. It runs nothing of a module that nobody agreed to.
func (a *app) loadProvider(ctx context.Context, cfg *config.Config, name string) error {
	own := cfg.Providers[name]
	c := wasm.Config{Name: name, File: own.Backend, SHA256: own.SHA256, Env: own.Env, Limits: limits(own)}
	hosts := own.AllowHosts
	var asked []string // nil: the user's own file says what it may
	builtin := builtin().Find(name) != nil
	switch {
	case a.loaded[name]:
		return nil
	case own.Backend != "" && own.Project && builtin:
		return &config.Error{Text: fmt.Sprintf("%s: a project cannot put a module in the place of the built-in provider %q", own.Where, name)}
	case own.Backend != "":
		if builtin {
			fmt.Fprintf(a.streams.Err, "%s: %s takes the place of the built-in provider %q.\n", term.Clean(own.Where), term.Clean(own.Backend), name)
		}
		if own.SHA256 == "" || own.Project {
			entry, err := a.pinned(own)
			if err != nil {
				return err
			}
			c.SHA256 = entry.SHA256
			if own.Project {
				asked = append([]string{}, entry.Asks...)
				if len(hosts) == 0 && len(own.Env) == 0 {
					hosts, c.Env = entry.Hosts, entry.Env
				}
			}
		}
	case builtin:
		return nil
	default:
		file := a.installed(name)
		if _, err := os.Stat(file); err != nil {
			return nil // an unknown name is told by who asked
		}
		l, err := a.locks()
		if err != nil {
			return err
		}
		entry, ok := l[file]
		if !ok {
			return &config.Error{Text: fmt.Sprintf("%s.wasm was found in %s but never approved. Look at it and allow it: talkops provider add %s", name, a.providersDir(), file)}
		}
		if own.SHA256 != "" && !strings.EqualFold(own.SHA256, entry.SHA256) {
			return &config.Error{Text: fmt.Sprintf("sandboxes.providers.%s.sha256 is %s, and the module that was added has %s", name, own.SHA256, entry.SHA256)}
		}
		c.File, c.SHA256, asked = file, entry.SHA256, append([]string{}, entry.Asks...)
		if len(hosts) == 0 { // else the user's own file says it
			hosts = entry.Hosts
		}
		if len(c.Env) == 0 {
			c.Env = entry.Env
		}
	}
	list, err := hostfuncs.ParseHosts(hosts)
	if err != nil {
		return &config.Error{Text: fmt.Sprintf("sandboxes.providers.%s.allow_hosts: %v", name, err)}
	}
	c.Grant.Hosts, c.Grant.State = list, filepath.Join(a.home, "state", name+".json")
	for _, p := range own.AllowPaths {
		if err := hostfuncs.CheckFolder(p.Path, a.userHome, a.home); err != nil {
			return &config.Error{Text: fmt.Sprintf("sandboxes.providers.%s.allow_paths: %v; it cannot be given to a module", name, err)}
		}
		c.Grant.Folders = append(c.Grant.Folders, hostfuncs.Folder{Name: p.Name, Path: p.Path, Write: p.Write})
	}
	p, err := a.loadModule(ctx, c)
	if err != nil {
		return err
	}
	if d, _ := sandbox.As[described](p); asked != nil {
		about, _ := d.About()
		for _, want := range wishes(about) {
			if !slices.Contains(asked, want) {
				return &config.Error{Text: fmt.Sprintf("%s asks for %s, which it did not when you approved it. To look at it and accept that: talkops provider add %s", filepath.Base(c.File), want, c.File)}
			}
		}
	}
	a.providers = append(slices.DeleteFunc(slices.Clone(a.providers), func(q sandbox.Provider) bool { return q.Describe().Name == name }), p)
	if a.loaded == nil {
		a.loaded = map[string]bool{}
	}
	a.loaded[name] = true
	return nil
}

// wishes lists what a module asks for: hosts, and settings with their variables.
func wishes(d abi.Description) []string {
	var list []string
	for _, h := range d.Hosts {
		list = append(list, "the host "+abi.Clean(h, 100))
	}
	for _, s := range d.Settings {
		kind := "the setting"
		if s.Secret {
			kind = "the secret"
		}
		for _, name := range s.Env {
			list = append(list, kind+" "+abi.Clean(name, 100))
		}
	}
	slices.Sort(list)
	return list
}

// limits are the user's bounds for a module.
func limits(own config.Provider) wasm.Limits {
	l := own.Limits
	return wasm.Limits{
		MemoryMB: own.MemoryMB, AtOnce: l.Concurrency, Compile: time.Duration(l.CompileSeconds) * time.Second,
		LogKB: l.LogKB, InlineKB: l.HTTPInlineKB,
	}
}

// A loadedModule can be used until it is closed.
type loadedModule interface {
	sandbox.Provider
	io.Closer
}

// closeModules ends the processes of the modules.
func (a *app) closeModules() {
	for _, m := range a.modules {
		m.Close()
	}
	a.modules = nil
	if a.logFile != nil {
		a.logFile.Close()
	}
}

// logModules returns what writes the log of --provider-log, or nil: a line of JSON
// for everything that a module does.
func (a *app) logModules() (func(hostfuncs.Record), error) {
	if a.providerLog == "" {
		return nil, nil
	}
	if a.logFile == nil {
		f, err := os.OpenFile(a.absolute(a.providerLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, &usageError{"--provider-log: " + err.Error()}
		}
		a.logFile, a.logBroken = f, &sync.Once{}
	}
	file, once := a.logFile, a.logBroken
	return func(r hostfuncs.Record) {
		line, err := json.Marshal(r)
		if err == nil {
			_, err = file.Write(append(line, '\n')) // one write, so that lines stay whole
		}
		if err != nil {
			once.Do(func() {
				fmt.Fprintln(a.streams.Err, "warning: --provider-log lacks lines:", term.Clean(err.Error()))
			})
		}
	}, nil
}

// loadModule loads a module; what is wrong with it is told as it stands. It is
// closed when talkops ends, or before.
func (a *app) loadModule(ctx context.Context, c wasm.Config) (loadedModule, error) {
	log, err := a.logModules()
	if err != nil {
		return nil, err
	}
	if also := c.Log; log != nil && also != nil {
		c.Log = func(r hostfuncs.Record) { log(r); also(r) }
	} else if log != nil {
		c.Log = log
	}
	c.Cache = a.moduleCache()
	c.Waiting = func(text string) { fmt.Fprintln(a.streams.Err, term.Clean(text)) }
	p, err := wasm.Load(ctx, c)
	if err != nil {
		return nil, told(err)
	}
	if d, _ := sandbox.As[described](p); d != nil {
		if about, _ := d.About(); seen(about) != "" {
			p.Close()
			return nil, &config.Error{Text: fmt.Sprintf("%s asks to see the value of %s, whose name says that it is a secret. This is a fault of the module, which has to declare it so; tell its author.", filepath.Base(c.File), seen(about))}
		}
	}
	a.modules = append(a.modules, p)
	if err := wasm.Prune(c.Cache, unusedCode, mostCode); err != nil {
		fmt.Fprintln(a.streams.Err, "warning:", term.Clean(err.Error()))
	}
	return p, nil
}

// seen is a variable whose name says that it holds a secret, and that a module
// wants as a setting it sees, or "".
func seen(d abi.Description) string {
	for _, s := range d.Settings {
		for _, name := range s.Env {
			if !s.Secret && telling(name) {
				return abi.Clean(name, 100)
			}
		}
	}
	return ""
}

// The native code of modules is kept for their next use, so long and so many
// bytes of it.
const (
	unusedCode = 60 * 24 * time.Hour
	mostCode   = 256 << 20
)

// told makes what is wrong with a module an error of usage.
func told(err error) error {
	_, isBad := errors.AsType[*wasm.BadModule](err)
	_, isChanged := errors.AsType[*wasm.ChangedError](err)
	if isBad || isChanged {
		return &config.Error{Text: err.Error()}
	}
	return err
}

// pinned is what the bytes of a configured module must be: what they were at the
// first use. One that a project names must have been agreed to.
func (a *app) pinned(own config.Provider) (agreed, error) {
	l, err := a.locks()
	if err != nil {
		return agreed{}, err
	}
	entry, known := l[own.Backend]
	if known && !own.Project {
		return entry, nil
	}
	m, _, err := wasm.Read(own.Backend)
	if err != nil {
		return agreed{}, told(err)
	}
	if !own.Project {
		entry = agreed{SHA256: m.SHA256}
		return entry, a.agree(own.Backend, entry)
	}
	if own.SHA256 != "" && own.SHA256 != m.SHA256 {
		return agreed{}, told(&wasm.ChangedError{File: own.Backend, Want: own.SHA256, Got: m.SHA256})
	}
	for _, entry := range l {
		if entry.SHA256 == m.SHA256 && entry.Name != "" { // rights were shown and granted
			return entry, nil
		}
	}
	return agreed{}, &untrustedError{file: own.Where, wants: []string{fmt.Sprintf("run the module %s, which you have not agreed to", own.Backend)}, module: own.Backend}
}

// tellModule writes what a module is and asks for.
func tellModule(m *wasm.Module, d *abi.Description) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d bytes, sha256 %s\n", m.Name, m.Size, m.SHA256)
	fmt.Fprintf(&b, "  speaks provider ABI %d; needs at least %d MiB of memory\n", m.ABI, max(1, (m.MinPages+15)>>4))
	var can []string
	for _, e := range abi.Optional() {
		if m.Has(e) {
			can = append(can, e)
		}
	}
	fmt.Fprintf(&b, "  optional functions: %s\n", orNone(can))
	fmt.Fprintf(&b, "  uses of talkops: %s\n", orNone(m.Imports))
	for _, w := range m.Warnings {
		fmt.Fprintf(&b, "  warning: it %s\n", w)
	}
	if d == nil {
		return b.String()
	}
	fmt.Fprintf(&b, "It calls itself %s (%s).\n", abi.Clean(d.Name, 60), strings.TrimSpace(abi.Clean(d.Title, 60)+" "+abi.Clean(d.Version, 30)))
	fmt.Fprintf(&b, "  asks to reach: %s\n", orNone(d.Hosts))
	for _, s := range d.Settings {
		kind := "a setting, whose value it sees"
		if s.Secret {
			kind = "a secret it can send to those hosts but never sees"
		}
		fmt.Fprintf(&b, "  asks for %s (%s): %s\n", orNone(s.Env), kind, abi.Clean(s.Help, 100))
	}
	return b.String()
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	var clean []string
	for _, s := range list {
		clean = append(clean, abi.Clean(s, 100))
	}
	return strings.Join(clean, ", ")
}

// isCustom reports whether the user or the project has a provider of that name.
// Whether it may be used is judged when it is.
func (a *app) isCustom(name string) bool {
	cfg, err := config.Load(config.Sources{
		Home: a.home, Dir: a.dir, UserHome: a.userHome, Env: func(string) (string, bool) { return "", false },
		Trust: config.Trusted, Providers: append(a.providers.Names(), a.added()...),
	})
	if err != nil {
		return true // the error is told when the settings are needed
	}
	_, err = os.Stat(a.installed(name))
	return cfg.Providers[name].Backend != "" || err == nil
}

// knowProvider loads the custom provider of that name outside a run.
func (a *app) knowProvider(ctx context.Context, name string) error {
	if builtin().Find(name) != nil {
		return nil
	}
	cfg, err := a.load(nil, config.Untrusted)
	if err != nil {
		return err
	}
	return a.loadProvider(ctx, cfg, name)
}

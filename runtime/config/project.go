package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A Project is what a project's own files ask for.
type Project struct {
	Root string
	// Files are the files that have authority: the project's settings and the files
	// they name. The keys are slash paths below Root. Each is read once; these bytes
	// are the ones that are used.
	Files    map[string][]byte
	Asks     []Ask // what needs the user's approval
	Warnings []string
}

// An Ask is one setting of a project that needs the user's approval.
type Ask struct{ Key, Effect string }

// Keys lists the settings that need approval, each once.
func (p *Project) Keys() []string {
	var list []string
	for _, a := range p.Asks {
		if !slices.Contains(list, a.Key) {
			list = append(list, a.Key)
		}
	}
	slices.Sort(list)
	return list
}

// A script is a setup script, read.
type script struct {
	name string // slash path below the project root; empty: it lies elsewhere
	path string
	data []byte
	err  error
}

// ReadProject reads what the project around src.Dir asks for, whatever the
// environment and the flags override of it. The error is an *Error: the files
// cannot be approved as they are.
func ReadProject(src Sources) (*Project, error) {
	c := &Config{Providers: map[string]Provider{}}
	c.findRoot(src)
	user, project, err := c.readFiles(src)
	if err != nil {
		return nil, err
	}
	if c.Unbounded {
		return nil, errorf("%s is your home directory or above it, not a project", c.Root)
	}
	if c.Broken != nil {
		return nil, c.Broken
	}
	c.readAuthority(src, user, project)
	for _, s := range c.scripts {
		if s.err != nil {
			return nil, s.err
		}
	}
	if len(c.unread) > 0 {
		return nil, errorf("%v", c.unread[0])
	}
	if err := c.checkKeys(project, true); err != nil {
		return nil, err
	}
	p := &Project{Root: c.Root, Files: c.Authority}
	for _, k := range Keys() {
		v, set, err := fromFile(k, project, LayerProject)
		if err != nil {
			return nil, err
		}
		switch {
		case !set:
		case k.Scope == ScopeUser:
			c.warnf("%s: %s is yours to set, not a project's; ignored", v.Where, k.Name)
		}
	}
	p.Asks, p.Warnings = c.asks(user, project), c.Warnings
	return p, nil
}

// readFiles reads the user's and the project's file. A project's file that cannot
// be used is noted in c.Broken.
func (c *Config) readFiles(src Sources) (user, project *file, err error) {
	c.Files.User = filepath.Join(src.Home, "config.toml")
	if user, err = readFile(c.Files.User); err != nil {
		return nil, nil, err
	}
	if c.Unbounded {
		return user, nil, nil
	}
	c.Files.Project = filepath.Join(c.Root, projectFile)
	if same(c.Files.Project, c.Files.User) {
		c.Files.Project = ""
		return user, nil, nil
	}
	if src.Trust == Ignored {
		return user, nil, nil
	}
	data, err := readBelow(c.Root, projectFile, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return user, nil, nil
	}
	if err == nil {
		project, err = parse(c.Files.Project, data)
	} else {
		err = errorf("%s: %v", c.Files.Project, err)
	}
	if err != nil {
		c.Broken = err
		return user, nil, nil
	}
	c.Authority = map[string][]byte{filepath.ToSlash(projectFile): data}
	return user, project, nil
}

// projectFile is the settings file of a project, below its root.
var projectFile = filepath.Join(".talkops", "config.toml")

// readAuthority reads every other file that has authority in a start.
func (c *Config) readAuthority(src Sources, user, project *file) {
	c.readPrograms(user, project)
	c.scripts = map[Layer]script{}
	k, _ := Lookup("sandbox.setup_script_path")
	for _, from := range []struct {
		f     *file
		layer Layer
	}{{user, LayerUser}, {project, LayerProject}} {
		v, set, err := fromFile(k, from.f, from.layer)
		if name, _ := v.value.(string); err != nil || !set || name == "" {
			continue // judged when it is resolved
		} else if s := c.readScript(src, name, v.Origin); s.name != "" || from.layer == LayerProject {
			c.scripts[from.layer] = s
			if s.err == nil {
				if c.Authority == nil {
					c.Authority = map[string][]byte{}
				}
				c.Authority[s.name] = s.data
			}
		}
	}
}

// maxScript is the most bytes a setup script may have.
const maxScript = 10 << 20

// readScript reads the setup script that is called name at that origin.
func (c *Config) readScript(src Sources, name string, from Origin) script {
	base := src.Dir
	if from.Layer == LayerProject {
		base = c.Root
	}
	s := script{path: expand(name, src.UserHome, base)}
	real := s.path
	if r, err := filepath.EvalSymlinks(real); err == nil {
		real = r
	}
	below, inside := s.path, within(c.Root, s.path)
	if !inside && within(c.Root, real) {
		below, inside = real, true // the way there leads through links
	}
	fail := func(err error) script {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			s.err = errorf("setup script not found: %s (from %s; looked in %s)", name, from, base)
		case errors.Is(err, errLeaves):
			s.err = errorf("%s: setup script %s lies outside the project", from.Where, name)
		case errors.Is(err, fs.ErrPermission):
			s.err = errorf("setup script %s (from %s) is not readable", name, from)
		default:
			s.err = errorf("setup script %s (from %s) %v", name, from, err)
		}
		return s
	}
	var err error
	switch {
	case from.Layer == LayerProject && !inside:
		return fail(errLeaves)
	case from.Layer == LayerProject || inside && within(c.Root, real):
		rel, _ := filepath.Rel(c.Root, below)
		s.name = filepath.ToSlash(rel)
		s.data, err = readBelow(c.Root, rel, maxScript)
	default:
		s.data, err = readRegular(os.OpenFile(s.path, os.O_RDONLY|syscall.O_NONBLOCK, 0))(maxScript)
	}
	if err == nil && len(s.data) == 0 {
		err = errors.New("is empty")
	}
	if err != nil {
		return fail(err)
	}
	return s
}

func within(root, p string) bool {
	return p == root || strings.HasPrefix(p, strings.TrimSuffix(root, string(filepath.Separator))+string(filepath.Separator))
}

// errLeaves is a path that leaves the project.
var errLeaves = errors.New("leads out of the project")

// readBelow reads a file of at most limit bytes without leaving root, whatever
// links there are.
func readBelow(root, name string, limit int64) ([]byte, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	info, err := r.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	if err == nil {
		return readRegular(r.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0))(limit)
	}
	p, isPath := errors.AsType[*fs.PathError](err)
	if isPath && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		if _, isErrno := errors.AsType[syscall.Errno](err); !isErrno {
			return nil, errLeaves
		}
		return nil, p.Err
	}
	return nil, err
}

// readRegular reads an opened file whole, if it is a regular one of at most limit
// bytes.
func readRegular(f *os.File, err error) func(limit int64) ([]byte, error) {
	return func(limit int64) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, errors.New("is not a regular file")
		}
		data, err := io.ReadAll(io.LimitReader(f, limit+1))
		if err == nil && int64(len(data)) > limit {
			err = fmt.Errorf("is larger than %d KiB", limit>>10)
		}
		return data, err
	}
}

// asks lists what the project asks for, from whatever it sets.
func (c *Config) asks(user, project *file) []Ask {
	var list []Ask
	for _, k := range Keys() {
		v, set, err := fromFile(k, project, LayerProject)
		if err == nil && set && (k.Scope == ScopeTrust || k.Scope == ScopeFreeFalse && v.value == true) {
			list = append(list, Ask{k.Name, effect(k.Name, Format(v.value))})
		}
	}
	if s, has := c.scripts[LayerUser]; has {
		list = append(list, Ask{"sandbox.setup_script_path", effect("sandbox.setup_script_path", s.name)})
	}
	return slices.Concat(list, providerAsks(project), c.programAsks(user, project))
}

// providerAsks lists what a project's provider tables would do.
func providerAsks(project *file) []Ask {
	if project == nil {
		return nil
	}
	var list []Ask
	providers, _ := project.k.Get("sandboxes.providers").(map[string]any)
	for name, v := range providers {
		t, _ := v.(map[string]any)
		for _, key := range providerKeys {
			value, set := t[key]
			if !set {
				continue
			}
			text := fmt.Sprintf("give the sandbox provider %q options of the project", name)
			switch key {
			case "backend":
				text = fmt.Sprintf("load the sandbox provider %q from %s", name, clip(fmt.Sprint(value)))
			case "sha256":
				text = fmt.Sprintf("pin the module of the sandbox provider %q", name)
			case "working_dir":
				text = fmt.Sprintf("work in %s in sandboxes of %q", clip(fmt.Sprint(value)), name)
			}
			list = append(list, Ask{"sandbox.providers." + name + "." + key, text})
		}
	}
	slices.SortFunc(list, func(a, b Ask) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// clip shortens what a project wrote to what fits in a message.
func clip(s string) string {
	const most = 200
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// maxWarnings bounds what one configuration can make us say.
const maxWarnings = 20

// warnf notes a warning.
func (c *Config) warnf(format string, args ...any) {
	switch n := len(c.Warnings); {
	case n < maxWarnings:
		c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
	case n == maxWarnings:
		c.Warnings = append(c.Warnings, "there are more warnings of this kind")
	}
}

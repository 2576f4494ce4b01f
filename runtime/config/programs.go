package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Hook is one [hooks.<name>] table: a program that runs on this computer at a
// certain moment.
type Hook struct {
	Name    string
	Event   string // as in the setting's Enum
	Command []string
	Tools   []string // of the events around a tool; empty: all tools
	Timeout time.Duration
	Where   string // where its command stands
}

// A Server is one [mcp.servers.<name>] table: a server of the Model Context
// Protocol, either a program that runs on this computer or an address.
type Server struct {
	Name     string
	Command  []string
	URL      string
	Env      []string // variables its program is given beside the usual ones
	TokenEnv string   // the variable whose value is sent to URL as a bearer token
	Allow    []string // tools that need no question
	Timeout  time.Duration
	Where    string // where its command or address stands

	// Apart says that its program is the user's own and must not start in a project:
	// what it looks for in its directory, as npx does, would be the project's.
	Apart bool
}

// programTables are the tables whose entries start programs on this computer, by
// the path of the table.
var programTables = []string{"hooks", "mcp.servers"}

// maxProgram is the most bytes a file of the project may have that a command names.
const maxProgram = 10 << 20

// programs returns the commands in a file's tables of programs, by the path of
// the entry.
func programs(f *file) map[string][]string {
	all := map[string][]string{}
	if f == nil {
		return all
	}
	for _, table := range programTables {
		entries, _ := f.k.Get(table).(map[string]any)
		for name, v := range entries {
			t, _ := v.(map[string]any)
			list, isList := t["command"].([]any)
			var words []string
			if text, isText := t["command"].(string); !isList && isText {
				list = []any{text} // it will not do, but is to be shown
			}
			for _, w := range list {
				text, _ := w.(string)
				words = append(words, text)
			}
			all[table+"."+name] = words
		}
	}
	return all
}

// A named is what a word of a command names in the project.
type named struct {
	name   string // slash path below the root
	target string // of a link that leads out of the project; else empty
	dir    bool
}

// readPrograms reads the files of the project that commands name, whichever file
// the command stands in. The words are taken from where the commands run, the
// project's root.
func (c *Config) readPrograms(user, project *file) {
	if c.Unbounded {
		return
	}
	c.inside, c.named, c.obeys = map[string]bool{}, map[string]named{}, map[string]bool{}
	for _, f := range []*file{user, project} {
		for at, words := range programs(f) {
			line := strings.Join(words, "\x00")
			c.obeys[line] = c.obeys[line] || f == project
			for i, w := range words {
				parts := append(c.parts(i, w), c.imported(words[:i], w)...)
				if i == 0 {
					parts = append(parts, c.led(words, f == user)...)
				}
				for _, part := range parts {
					n, ok := c.below(part)
					if !ok {
						continue
					}
					data, err := c.content(n)
					if err != nil {
						c.unread = append(c.unread, fmt.Errorf("%s: %s names %s: %w", f.at(at+".command"), at, part, err))
						continue
					}
					if c.Authority == nil {
						c.Authority = map[string][]byte{}
					}
					c.Authority[n.name] = data
					c.named[part] = n
					if f == user {
						c.inside[at] = true
					}
				}
			}
		}
	}
}

// content is what is approved of what a command names: a file's bytes; where a link
// leads that leaves the project; of a directory only that it is one.
func (c *Config) content(n named) ([]byte, error) {
	switch {
	case n.target != "":
		return []byte("a link to " + n.target + "\n"), nil
	case n.dir:
		return []byte("a directory\n"), nil
	}
	return readBelow(c.Root, filepath.FromSlash(n.name), maxProgram)
}

// parts are the texts in a word of a command that may name a file of the project:
// the word itself, or else what of it is the name of a program there, as in the
// text for a shell or in --require=./x.js. A first word without a slash is looked
// for along PATH.
func (c *Config) parts(i int, word string) []string {
	if i == 0 && filepath.Base(word) == word {
		return nil
	}
	if _, ok := c.below(word); ok {
		return []string{word}
	}
	var list []string
	for _, part := range strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`=:,;&|<>()[]{}$!\\", r) }) {
		for _, p := range []string{part, strings.TrimLeft(part, "-@")} {
			n, ok := c.below(p)
			if len(p) > 2 && !ok && strings.HasPrefix(part, "-") {
				p = part[2:] // -r./x.js
				n, ok = c.below(p)
			}
			if ok && !n.dir && (n.target != "" || c.code(n.name)) && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// imported are the files of the project that python takes for the module a word names:
// it looks for them where it starts before it looks anywhere else.
func (c *Config) imported(before []string, word string) []string {
	if name, joined := strings.CutPrefix(word, "-m"); joined && name != "" {
		word = name
	} else if len(before) == 0 || before[len(before)-1] != "-m" {
		return nil
	}
	if !slices.ContainsFunc(before, func(w string) bool { return strings.HasPrefix(filepath.Base(w), "py") }) {
		return nil
	}
	first, _, _ := strings.Cut(word, ".")
	whole := strings.ReplaceAll(word, ".", "/")
	list := []string{first + "/__init__.py", whole + ".py", whole + "/__init__.py", whole + "/__main__.py"}
	if plainName(first) {
		list = append(list, c.glob(first+".*")...)
	}
	return slices.DeleteFunc(list, func(name string) bool {
		n, ok := c.below(name)
		return !ok || n.dir || !c.code(n.name) && n.target == "" && filepath.Ext(name) != ".pyc"
	})
}

// code reports whether a file of the project is a program, by its mode, its first
// bytes or its name.
func (c *Config) code(name string) bool {
	if ext := path.Ext(name); c.would != "" && name == c.would && (ext == "" || slices.Contains(codeNames, strings.ToLower(ext))) {
		return true // it is not there yet
	}
	at := filepath.Join(c.Root, filepath.FromSlash(name))
	info, err := os.Stat(at)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if info.Mode()&0o111 != 0 || slices.Contains(codeNames, strings.ToLower(filepath.Ext(name))) {
		return true
	}
	f, err := os.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 2)
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == "#!"
}

// codeNames are the endings of the names of programs that something else runs.
var codeNames = []string{".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".rb", ".pl", ".pm", ".php", ".lua", ".awk", ".jq", ".ps1", ".bat", ".cmd",
	".jar", ".wasm", ".go", ".mk", ".so", ".dylib", ".exe", ".sed", ".tcl", ".exs", ".groovy", ".kts"}

// below returns what a word of a command names in the project, whatever links lead
// there, or out of it from there. A directory counts if the word is a path.
func (c *Config) below(word string) (named, bool) {
	if word == "" || strings.ContainsRune(word, 0) {
		return named{}, false
	}
	p := filepath.Join(c.Root, word) // no shell is there to expand a ~
	if filepath.IsAbs(word) {
		p = filepath.Clean(word)
	}
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		return named{name: c.would}, c.wouldBe(p)
	}
	info, err := os.Stat(real)
	if err != nil || real == c.Root {
		return named{}, false
	}
	if within(c.Root, real) {
		if info.IsDir() && !strings.ContainsAny(word, `/\`) {
			return named{}, false
		}
		rel, err := filepath.Rel(c.Root, real)
		return named{name: filepath.ToSlash(rel), dir: info.IsDir()}, err == nil
	}
	for at := p; at != filepath.Dir(at); at = filepath.Dir(at) {
		if dir, err := filepath.EvalSymlinks(filepath.Dir(at)); err == nil && within(c.Root, dir) {
			rel, err := filepath.Rel(c.Root, filepath.Join(dir, strings.TrimPrefix(p, filepath.Dir(at))))
			return named{name: filepath.ToSlash(rel), target: real}, err == nil
		}
	}
	return named{}, false
}

// programAsks lists what the programs of a project's file, and those of the user's
// that lie in the project, would do.
func (c *Config) programAsks(user, project *file) []Ask {
	var list []Ask
	add := func(at string, words []string, f *file) {
		table, _ := f.k.Get(at).(map[string]any)
		if len(words) == 0 && table["url"] == nil {
			return // told when it is read
		}
		text := fmt.Sprintf("start %s on this computer", clip(strings.Join(strings.Fields(strings.Join(words, " ")), " ")))
		if len(words) == 0 {
			text = fmt.Sprintf("connect this computer to %s", clip(fmt.Sprint(table["url"])))
		}
		list = append(list, Ask{at, text})
		if env, err := (Key{Kind: List}).decode(f.k.Get(at + ".env")); err == nil && f == project && len(env.([]string)) > 0 {
			list = append(list, Ask{at + ".env", fmt.Sprintf("pass %s to it", clip(strings.Join(env.([]string), ", ")))})
		}
	}
	for at, words := range programs(project) {
		add(at, words, project)
	}
	for at, words := range programs(user) {
		if c.inside[at] {
			add(at, words, user)
		}
	}
	slices.SortFunc(list, func(a, b Ask) int { return strings.Compare(a.Key, b.Key) })
	return slices.Compact(list)
}

// fillPrograms reads the tables of hooks and servers. Entries of the user's own
// file win over a project's of the same name.
func (c *Config) fillPrograms(src Sources, user, project *file) error {
	trusted := src.Trust == Trusted
	if !trusted {
		for _, a := range c.programAsks(user, project) {
			c.Untrusted = append(c.Untrusted, a.Effect)
		}
	} else if len(c.unread) > 0 {
		return errorf("%v", c.unread[0])
	}
	seen := map[string]bool{}
	for _, f := range []*file{user, project} {
		if f == nil || f == project && !trusted {
			continue
		}
		for _, table := range programTables {
			entries, isTable := f.k.Get(table).(map[string]any)
			if !isTable {
				continue // reported by checkKeys
			}
			for name := range entries {
				at := table + "." + name
				if f == user && c.inside[at] && !trusted {
					continue // asked for as a project's
				}
				if seen[at] {
					c.warnf("%s: %s is in your own file too; the project's is ignored", f.at(at), at)
					continue
				}
				seen[at] = true
				if err := c.program(f, f == user, table, name); err != nil {
					return err
				}
			}
		}
	}
	slices.SortFunc(c.Hooks, func(a, b Hook) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// program reads one entry of a table of programs.
func (c *Config) program(f *file, own bool, table, name string) error {
	at := table + "." + name
	values := map[string]any{}
	for _, pattern := range TableKeys() {
		k := pattern.of(name)
		prefix := at + "."
		if !strings.HasPrefix(k.Name, prefix) {
			continue
		}
		v, set, err := fromFile(k, f, LayerUser)
		if err != nil {
			return err
		}
		if set && !own && k.Scope == ScopeUser {
			c.warnf("%s: %s is yours to set, not a project's; ignored", v.Where, k.Name)
			continue
		}
		if !set {
			v.value = k.Default
		}
		values[strings.TrimPrefix(k.Name, prefix)] = v.value
	}
	words := func(key string) []string { list, _ := values[key].([]string); return list }
	text := func(key string) string { s, _ := values[key].(string); return s }
	span, _ := values["timeout"].(time.Duration)
	command, where := words("command"), f.at(at)
	if !plainName(name) {
		return errorf("%s: %s: the name may hold letters, digits, _ and -", where, at)
	}
	if len(command) > 0 && command[0] == "" {
		return errorf("%s: %s.command names no program", where, at)
	}
	if table == "hooks" {
		h := Hook{name, text("event"), command, words("tools"), span, where}
		if h.Event == "" || len(h.Command) == 0 {
			return errorf("%s: %s needs an event and a command", where, at)
		}
		c.Hooks = append(c.Hooks, h)
		return nil
	}
	s := Server{name, command, text("url"), words("env"), text("token_env"), words("allow"), span, where, own && !c.inside[at]}
	if (s.URL == "") == (len(s.Command) == 0) {
		return errorf("%s: %s needs either a command or a url", where, at)
	}
	if s.URL != "" {
		if err := serverURL(s.URL); err != nil {
			return errorf("%s: %s.url: %v", where, at, err)
		}
	}
	c.Servers = append(c.Servers, s)
	return nil
}

// serverURL judges the address of a server.
func serverURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("%q is not an address", raw)
	case u.User != nil:
		return errors.New("it must not hold a user or password")
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && u.Hostname() == "localhost":
		return nil
	case u.Scheme == "http": // 127.acme.example is a host like every other
		if at, err := netip.ParseAddr(u.Hostname()); err == nil && at.IsLoopback() {
			return nil
		}
	}
	return fmt.Errorf("%q must be https, except on this computer", raw)
}

// Place puts the approved bytes of the project's files that a command names into
// dir, and returns the command with those files' names in place of the project's:
// what was approved is what runs, whatever the project holds by then. A file that
// was not there to be approved is an error, and so is one that is named inside a
// word, as in the text for a shell, and has changed.
func (c *Config) Place(command []string, dir string) ([]string, error) {
	placed := slices.Clone(command)
	for _, name := range c.led(command, !c.obeys[strings.Join(command, "\x00")]) {
		n, approved := c.named[name]
		if now, _ := c.below(name); !approved || now != n {
			return nil, fmt.Errorf("%s was not there when the settings were read", name)
		}
		if data, err := c.content(n); err != nil || !bytes.Equal(data, c.Authority[n.name]) {
			return nil, fmt.Errorf("%s has changed since the settings were read", name)
		}
	}
	for i, w := range command {
		for _, part := range c.parts(i, w) {
			now, _ := c.below(part)
			n, approved := c.named[part]
			switch {
			case !approved:
				return nil, fmt.Errorf("%s was not there when the settings were read", part)
			case part == w && n.target == "" && !n.dir:
				continue // its approved bytes are used
			case now != n:
				return nil, fmt.Errorf("%s is not what it was when the settings were read", part)
			}
			if data, err := c.content(n); err != nil || !bytes.Equal(data, c.Authority[n.name]) {
				return nil, fmt.Errorf("%s has changed since the settings were read", part)
			}
		}
		n, approved := c.named[w]
		switch {
		case !approved || n.dir || i == 0 && filepath.Base(w) == w:
			continue
		case n.target != "":
			placed[i] = n.target
			continue
		}
		placed[i] = filepath.Join(dir, filepath.FromSlash(n.name))
		if _, err := os.Lstat(placed[i]); err == nil {
			continue // of an earlier start
		}
		if err := os.MkdirAll(filepath.Dir(placed[i]), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(placed[i], c.Authority[n.name], 0o700); err != nil {
			return nil, err
		}
	}
	return placed, nil
}

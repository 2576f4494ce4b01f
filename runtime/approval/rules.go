package approval

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Rule names tool calls: commands by their words, other tools by a path.
//
//	terraform plan *       the command terraform plan, with any further words
//	make test              exactly that
//	write_file: docs/*     the tool write_file in that directory
//	fetch_url: *.acme.com  the tool fetch_url at the hosts below acme.com
//	mcp: docs/search       the tool search of the MCP server docs
//	in /src/shop: make     make, in the project of that directory only
//	in sandboxes of /src/shop: make    and never on the user's computer
//
// A * in a word stands for any text without a space, as the last word for any
// number of words. A rule for commands is held against complete simple commands
// as the shell would run them, never against text.
type Rule struct {
	text  string
	in    string // the only project it is for; empty: all
	boxed bool   // as one that allows it is not for the user's computer
	tool  string // "execute" for commands
	words []string
}

// ParseRule reads a rule.
func ParseRule(text string) (Rule, error) {
	r := Rule{text: strings.TrimSpace(text), tool: "execute"}
	rest := r.text
	if project, rule, is := strings.Cut(rest, ": "); is {
		for _, begins := range []string{"in ", inSandboxes} {
			if dir, is := strings.CutPrefix(project, begins); is && strings.HasPrefix(dir, "/") {
				r.in, r.boxed, rest = path.Clean(dir), begins == inSandboxes, strings.TrimSpace(rule)
			}
		}
	}
	if rest == "" {
		return r, fmt.Errorf("a rule is empty")
	}
	if name, pattern, ok := strings.Cut(rest, ":"); ok && slices.Contains(Tools, name) && name != "execute" {
		r.tool, r.words = name, []string{strings.TrimSpace(pattern)}
		if r.words[0] == "" {
			return r, fmt.Errorf("the rule %q names no path", r.text)
		}
		return r, nil
	}
	r.words = strings.Fields(strings.TrimPrefix(rest, "execute:"))
	if len(r.words) == 0 || r.words[0] == "*" {
		return r, fmt.Errorf("the rule %q names no program; use --approval-mode yolo to allow everything", r.text)
	}
	if strings.ContainsAny(rest, "|;&<>`$()") {
		return r, fmt.Errorf("the rule %q is not one simple command", r.text)
	}
	return r, nil
}

// Tools are the tools that rules may name.
var Tools = []string{"ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute", "fetch_url", "web_search", "mcp"}

func (r Rule) String() string { return r.text }

// inSandboxes is how a rule begins that is for a project's sandboxes only.
const inSandboxes = "in sandboxes of "

// RuleIn is the text of a rule that is for one project only, on the user's computer as
// well if host, or false where the directory's name cannot be part of one.
func RuleIn(project, rule string, host bool) (string, bool) {
	begins := inSandboxes
	if host {
		begins = "in "
	}
	return begins + project + ": " + rule, path.IsAbs(project) && !strings.ContainsAny(project, ",:*'\"\\\n")
}

// holds reports whether the rule, as one that allows, is for a project at a place.
func (r Rule) holds(project string, at Place) bool {
	return (r.in == "" || r.in == path.Clean(project)) && !(r.boxed && at.Host)
}

// covers reports whether the rule, as one that asks or denies, is for a project: also for
// one that lies in the project that it names, as a directory with a .talkops of its own.
func (r Rule) covers(c Context) bool {
	project := path.Clean(c.Project)
	return r.in == "" || below(r.in, project) || c.Real != nil && below(c.Real(r.in), project)
}

// exact reports whether the rule stands for one command only.
func (r Rule) exact() bool { return !strings.Contains(r.text, "*") }

// command reports whether the rule is for the command of these words. A word that
// is not known is "" and is only met by *.
func (r Rule) command(words []string) bool {
	if r.tool != "execute" || len(words) == 0 {
		return false
	}
	for i, p := range r.words {
		if p == "*" && i == len(r.words)-1 {
			return true
		}
		if i >= len(words) || !star(p, words[i]) && !(i == 0 && star(p, path.Base(words[i]))) {
			return false
		}
	}
	return len(words) == len(r.words)
}

// allows reports whether the rule, as one that allows, is for the command of these
// words. On the user's computer the name of a program stands for that of the system,
// not for a file elsewhere that is called the same; and a * does not lead up and out
// of the directory that it stands in.
func (r Rule) allows(words []string, host bool) bool {
	if !r.command(words) {
		return false
	}
	for i, p := range r.words {
		if i < len(words) && strings.Contains(p, "*") && (strings.Contains(p, "/") && climbs(words[i]) || !sameHost(p, words[i], network(path.Base(words[0])))) {
			return false
		}
	}
	elsewhere := strings.Contains(words[0], "/") && !slices.Contains(standard, path.Dir(words[0]))
	return !host || !elsewhere || strings.Contains(r.words[0], "/") && star(r.words[0], words[0])
}

// stays reports whether the files that a command names by a * of the rule lie, with links
// resolved, in the directory that the * stands in, and those that the rule spells out in
// the workspace, if they seem to. Moved says that the shell goes to
// another directory first, where the rule's words may mean other files. The program itself
// may be a link to one of the system, as in .venv/bin.
func (r Rule) stays(c Context, words []string, moved bool) bool {
	if c.Real == nil || !c.Place.Host {
		return true
	}
	at := func(name string) string {
		if !path.IsAbs(name) {
			name = path.Join(c.Dir, name)
		}
		return c.Real(path.Clean(name))
	}
	for i, p := range r.words {
		if i == 0 || i >= len(words) || strings.Contains(p, "://") {
			continue
		}
		name := words[i]
		if option, value, is := strings.Cut(p, "="); is && strings.HasPrefix(p, "-") && !strings.Contains(option, "*") {
			p, name = value, strings.TrimPrefix(name, option+"=")
		}
		open := strings.Index(p, "*")
		if lies := path.Join(c.Dir, name); open < 0 && !path.IsAbs(name) && below(c.Workspace, lies) && !below(c.Workspace, at(name)) {
			return false // a link by now
		}
		if open < 0 || !strings.Contains(p[:open], "/") {
			continue
		}
		if moved && !path.IsAbs(p) || !below(at(p[:strings.LastIndex(p[:open], "/")+1]), at(name)) {
			return false
		}
	}
	return true
}

// hosts matches what stands for a host in an address: a name, and maybe a port.
var hosts = regexp.MustCompile(`^([A-Za-z0-9.-]+)(?::\d+)?$`)

// sameHost reports whether an address is at the host that a pattern names: a * at the
// end of the host stands for a port and what follows, not for more of the name, and
// one in it for nothing that ends it. Bare says that an address may have no scheme.
func sameHost(pattern, text string, bare bool) bool {
	scheme, p, is := strings.Cut(pattern, "://")
	_, at, also := strings.Cut(text, "://")
	switch {
	case !is && (!bare || strings.HasPrefix(pattern, "-") || !strings.Contains(strings.TrimLeft(pattern, "*"), ".") || strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, ".")):
		return true // no address
	case !is:
		p, at, also = pattern, text, true
	case strings.Contains(scheme, "*"):
		return true // it is for other words as well
	}
	if !also {
		return false
	}
	end := func(s string) int {
		if i := strings.IndexAny(s, "/?#"); i >= 0 {
			return i
		}
		return len(s)
	}
	name, host := p[:end(p)], at[:end(at)]
	if !strings.Contains(name, "*") {
		return name == host
	}
	m := hosts.FindStringSubmatch(host)
	if m == nil {
		return false
	}
	if open := strings.TrimRight(name, "*"); open != "" {
		name = strings.TrimSuffix(open, ":")
	}
	return star(name, m[1]) || star(name, host)
}

// climbs reports whether a path goes up.
func climbs(name string) bool { return slices.Contains(strings.Split(name, "/"), "..") }

// file reports whether the rule is for a tool at a path.
func (r Rule) file(tool, workspace, name string) bool {
	if r.tool != tool {
		return false
	}
	p := r.words[0]
	if !path.IsAbs(p) {
		p = path.Join(workspace, p)
	}
	if dir, ok := strings.CutSuffix(p, "/*"); ok && below(dir, name) && name != path.Clean(dir) {
		return true
	}
	return star(p, name)
}

// meets reports whether the rule, as one that asks or denies, is for a tool at a path,
// or at what the path is with its links resolved: no link leads around a rule.
func (r Rule) meets(tool string, c Context, name string) bool {
	name = path.Clean(name)
	if r.file(tool, c.Workspace, name) {
		return true
	}
	if r.tool != tool || c.Real == nil {
		return false
	}
	at := c.Real(name)
	return r.file(tool, c.Workspace, at) || r.resolved(c).file(tool, c.Workspace, at)
}

// resolved is the rule with the links resolved in the directory that it names.
func (r Rule) resolved(c Context) Rule {
	p := r.words[0]
	if !path.IsAbs(p) {
		p = path.Join(c.Workspace, p)
	}
	dir, _, _ := strings.Cut(p, "*")
	dir = dir[:strings.LastIndex(dir, "/")+1]
	r.words = []string{path.Join(c.Real(path.Clean(dir)), "/") + "/" + strings.TrimPrefix(p, dir)}
	return r
}

// reaches reports whether the rule, as one that allows, is for a tool at a path,
// and at what the path is with its links resolved: a link in a directory that a
// rule names does not carry the rule elsewhere.
func (r Rule) reaches(tool string, c Context, name string) bool {
	name = path.Clean(name)
	if !r.file(tool, c.Workspace, name) {
		return false
	}
	if c.Real == nil {
		return true
	}
	at := c.Real(name)
	if at == name || r.file(tool, c.Workspace, at) {
		return true
	}
	return r.resolved(c).file(tool, c.Workspace, at)
}

// star reports whether text is pattern, in which * stands for any text.
func star(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// Rules are what the user and the project say of single calls. Deny beats ask
// beats allow.
type Rules struct{ Allow, Ask, Deny []Rule }

// ParseRules reads three lists of rules.
func ParseRules(allow, ask, deny []string) (Rules, error) {
	var all Rules
	for _, list := range []struct {
		from []string
		to   *[]Rule
	}{{allow, &all.Allow}, {ask, &all.Ask}, {deny, &all.Deny}} {
		for _, text := range list.from {
			r, err := ParseRule(text)
			if err != nil {
				return Rules{}, err
			}
			*list.to = append(*list.to, r)
		}
	}
	return all, nil
}

func first(rules []Rule, match func(Rule) bool) (Rule, bool) {
	i := slices.IndexFunc(rules, match)
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}

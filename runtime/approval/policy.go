package approval

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/talkops-ai/talkops/runtime/tool"
)

// A Mode says who decides about tool calls.
type Mode string

// The modes, strictest first.
const (
	Plan   Mode = "plan"   // looking only
	Manual Mode = "manual" // looking runs, everything else asks
	Smart  Mode = "smart"  // the tier of a call decides
	Yolo   Mode = "yolo"   // everything runs but what never may
)

// Modes lists the modes, strictest first.
var Modes = []Mode{Plan, Manual, Smart, Yolo}

// A Policy decides by mode, rules and tier where there is nobody to ask. It is an
// Approver.
type Policy struct {
	Mode        Mode
	Context     Context // where tools work
	Environment string  // Production, Development or empty
	Production  []string
	Rules       Rules
	Hosts       Hosts   // the web may be reached at these without a question
	Opinion     Opinion // is asked where an unknown program alone decides; may be nil
}

// Approve implements Approver. It never waits for a person.
func (p Policy) Approve(ctx context.Context, req Request) (Decision, error) {
	c := p.Context
	c.Place = req.Place
	// The tree is looked through for each call anew: others change it too.
	if c.LinksOut != nil {
		c.LinksOut = sync.OnceValue(c.LinksOut)
	}
	if c.Secrets != nil {
		c.Secrets = sync.OnceValue(c.Secrets)
	}
	if c.Dashed != nil {
		c.Dashed = sync.OnceValue(c.Dashed)
	}
	if c.Spaced != nil {
		c.Spaced = sync.OnceValue(c.Spaced)
	}
	var all []Finding
	var commands [][]string
	switch req.Plan.Effect {
	case tool.Runs:
		c.Dir = req.Plan.Path
		if c.Dir == "" {
			c.Dir = c.Workspace
		}
		all, commands = read(req.Plan.Command, c)
	case tool.Leaves:
		all = []Finding{leaving(req.Plan)}
	default:
		all = c.file(req)
	}
	d := p.decide(req, c, all, commands)
	if q, open := p.doubt(req, c, all, commands, d); open {
		if harmless, err := p.Opinion(ctx, q); harmless && err == nil {
			d.Allow, d.Kind, d.Hint, d.Reason = true, "", "", "the model of approval.model finds it harmless"
		}
	}
	return d, nil
}

// decide applies mode and rules to what was found.
func (p Policy) decide(req Request, c Context, all []Finding, commands [][]string) Decision {
	matches := func(r Rule) bool {
		if !r.covers(c) {
			return false
		}
		switch req.Plan.Effect {
		case tool.Runs:
			return slices.ContainsFunc(commands, r.command)
		case tool.Leaves:
			return r.address(req.Tool, req.Plan.URL, false)
		}
		return r.meets(req.Tool, c, req.Plan.Path)
	}
	column := c.column(p.environment(commands))

	var f Finding
	verdict := Allow
	for _, x := range all {
		v := p.cell(req, x, column)
		if v != Allow && p.lifted(req, c, x, moves(commands)) {
			v = Allow
		}
		if severity[v] > severity[verdict] || v == verdict && order[x.Tier] >= order[f.Tier] && !(x.vague && x.Tier == f.Tier && v != Allow) {
			f, verdict = x, v
		}
	}
	d := Decision{Allow: verdict == Allow, Tier: f.Tier, Part: f.Part, Reason: f.Reason}
	if r, ok := first(p.Rules.Deny, matches); ok && f.Tier != T5 {
		d.Allow, d.Kind, d.Reason = false, ByPolicy, fmt.Sprintf("the rule %q forbids it", r)
		return d
	}
	if d.Allow {
		if r, ok := first(p.Rules.Ask, matches); ok {
			d.Allow, d.Kind, d.Reason = false, NeedsPerson, fmt.Sprintf("the rule %q asks for a person", r)
			d.Hint = "there is nobody to ask"
		}
		return d
	}
	switch {
	case verdict == Deny, p.Mode == Plan:
		d.Kind = ByPolicy
		if p.Mode == Plan && verdict != Deny {
			d.Hint = "this run only looks (approval mode plan)"
		}
	case f.unparsed:
		d.Kind, d.Hint = Unparsed, "write it more plainly"
	default:
		d.Kind, d.Hint = NeedsPerson, p.hint(req)
	}
	return d
}

// hint says what would allow a call that a person would have to allow.
func (p Policy) hint(req Request) string {
	switch {
	case req.Plan.Effect == tool.Leaves:
		if server, name, ok := serverTool(req.Plan.URL); ok {
			return fmt.Sprintf("there is nobody to ask; the user can list it (mcp.servers.%s.allow = [%q] in their own settings) or add --allow 'mcp: %s/%s'", server, name, server, name)
		}
		host := hostOf(req.Plan.URL)
		return fmt.Sprintf("there is nobody to ask; the user can list the host (web.allow_hosts = [%q] in their own settings) or add --allow '%s: %s'", host, req.Tool, host)
	case p.Mode == Manual && req.Place.Host:
		return "there is nobody to ask; --smart allows what is safe by its kind, --yolo everything, --sandbox gives a machine of its own"
	case p.Mode == Manual:
		return "there is nobody to ask, and this machine outlives the session; --smart allows what is safe by its kind, --yolo everything"
	}
	return "there is nobody to ask; the user can add an allow rule (--allow)"
}

// cell is the table of modes and tiers.
func (p Policy) cell(req Request, f Finding, at column) Verdict {
	if f.Tier == T5 {
		return Deny
	}
	looking := req.Plan.Effect == tool.Reads && f.Tier == T0
	switch p.Mode {
	case Yolo:
		return Allow
	case Smart:
		return f.verdict(at)
	case Plan:
		if f.Tier == T0 || f.Tier == T1 {
			return Allow
		}
		return Ask
	}
	if looking {
		return Allow
	}
	return Ask
}

// lifted reports whether a rule of the user allows what was found. What is
// disguised is never lifted, nor what runs where the rule's words mean other files,
// and the "never" class only by an exact rule.
func (p Policy) lifted(req Request, c Context, f Finding, moved bool) bool {
	if f.Tier == TX || p.Mode == Plan || f.away {
		return false
	}
	if _, _, isServer := serverTool(req.Plan.URL); req.Plan.Effect == tool.Leaves && !isServer && p.Hosts.URL(req.Plan.URL) {
		return true
	}
	_, ok := first(p.Rules.Allow, func(r Rule) bool {
		if f.Tier == T5 && !r.exact() || !r.holds(c.Project, c.Place) {
			return false
		}
		switch req.Plan.Effect {
		case tool.Runs:
			return r.allows(f.words, c.Place.Host) && r.stays(c, f.words, moved)
		case tool.Leaves:
			return r.address(req.Tool, req.Plan.URL, true)
		}
		return r.reaches(req.Tool, c, req.Plan.Path)
	})
	return ok
}

// moves reports whether one of the commands takes the shell to another directory.
func moves(commands [][]string) bool {
	return slices.ContainsFunc(commands, func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains([]string{"cd", "pushd", "popd", "chdir"}, w) })
	})
}

// file says what a tool other than execute would do.
func (c Context) file(req Request) []Finding {
	var found []Finding
	cmd := &command{Context: c, found: &found, effects: &effects{}, dirs: []string{c.Workspace}}
	name := literal(req.Plan.Path)
	switch {
	case req.Plan.Effect == tool.Writes && req.Tool == "delete":
		cmd.destroyed(name, true)
	case req.Plan.Effect == tool.Writes:
		cmd.written(name)
	case req.Plan.Effect == tool.Reads:
		cmd.read(name)
		if req.Tool == "grep" && slices.Contains(strings.Split(req.Plan.Path, "/"), ".git") { // elsewhere it leaves them out
			cmd.held(name, true)
		}
		for _, at := range cmd.real(path.Clean(req.Plan.Path), false) {
			if !below(c.Workspace, at) && (c.Logs == "" || !below(c.Logs, at)) {
				cmd.find(T1s, "reads outside the workspace")
			}
		}
	default:
		cmd.find(T3, "does what is not known")
	}
	return found
}

// environment is the one that the commands act on, as far as their words tell.
func (p Policy) environment(commands [][]string) string {
	if p.Environment != "" {
		return p.Environment
	}
	for _, words := range commands {
		if slices.ContainsFunc(targets(words), p.Names) {
			return Production
		}
	}
	return ""
}

// Names reports whether name is, by the user's patterns, one of production.
func (p Policy) Names(name string) bool {
	return slices.ContainsFunc(p.Production, func(pattern string) bool { return star(strings.ToLower(pattern), strings.ToLower(name)) })
}

// targets are the accounts, clusters, contexts, workspaces and profiles that a
// command names.
func targets(words []string) []string {
	named := []string{"--context", "--kube-context", "-n", "--namespace", "--cluster", "--profile", "--project", "--subscription", "--account", "-chdir", "--stage", "--env", "--environment", "-e", "--workspace", "-var-file", "--var-file", "-l", "--limit", "-i", "--inventory"}
	var all []string
	for i, w := range words {
		name, value, has := strings.Cut(w, "=")
		switch {
		case has && (slices.Contains(named, name) || slices.Contains([]string{"AWS_PROFILE", "TF_WORKSPACE", "ENV", "ENVIRONMENT"}, name)):
			all = append(all, path.Base(value))
		case !has && slices.Contains(named, w) && i+1 < len(words):
			all = append(all, path.Base(words[i+1]))
		case w == "select" && i+1 < len(words):
			all = append(all, words[i+1])
		}
	}
	return all
}

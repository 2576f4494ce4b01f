package cmd

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/hook"
	"github.com/talkops-ai/talkops/runtime/mcp"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// beside is what runs on this computer beside the sandbox: the user's hooks and MCP
// servers. The zero value has none.
type beside struct {
	hooks   *hook.Set
	clients []*mcp.Client
	tools   []tool.Tool
	dir     string // of the files that were approved; empty: none
}

// start begins what the settings name: hooks of the session's start, whose failure
// is an error, then the servers, of which one that cannot be had is told by warn.
func (a *app) start(ctx context.Context, cfg *config.Config, place approval.Place, note, warn func(string, ...any)) (*beside, error) {
	b := &beside{}
	if len(cfg.Hooks) == 0 && len(cfg.Servers) == 0 {
		return b, nil
	}
	env := withoutKeys(a.hostEnv(), cfg)
	host, err := a.providers.Find("local").Open(ctx, sandbox.Spec{Dir: cfg.Root, Env: env})
	if err != nil {
		return b, fmt.Errorf("start programs on this computer: %w", err)
	}
	if b.dir, err = os.MkdirTemp("", "talkops-programs-"); err != nil {
		return b, err
	}
	put := func(command []string) ([]string, error) { return cfg.Place(command, b.dir) }
	b.hooks = &hook.Set{Host: host, Dir: cfg.Root, Note: note, Place: put, Mask: a.redact.Text}
	for _, h := range cfg.Hooks {
		b.hooks.Hooks = append(b.hooks.Hooks, hook.Hook{Name: h.Name, Event: hook.Event(h.Event), Command: h.Command, Tools: h.Tools, Timeout: h.Timeout})
	}
	if err := b.hooks.Run(ctx, hook.Call{Event: hook.SessionStart, Provider: place.Provider}); err != nil {
		b.close()
		return b, err
	}
	for _, s := range cfg.Servers {
		c, err := a.connect(ctx, s, host, put)
		if ctx.Err() != nil {
			b.close()
			return b, context.Cause(ctx)
		}
		if err != nil {
			warn("%v; its tools are missing", err)
			continue
		}
		b.clients = append(b.clients, c)
		offered, other := b.add(c.Tools())
		if other != "" {
			warn("MCP server %s: a tool of another server is called %s as well; this one is left out", s.Name, other)
		}
		where := s.URL
		if where == "" {
			where = "this computer"
		}
		note("MCP server %s: %s, on %s", s.Name, workspace.Count(offered, "tool"), where)
	}
	return b, nil
}

// add takes the tools of one more server, and returns how many. One that is called
// like a tool of a server before it is left out, and the last such name returned:
// of a_b and c, and of a and b_c, the model would see the same name.
func (b *beside) add(tools []tool.Tool) (taken int, other string) {
	before := b.tools
	for _, t := range tools {
		if slices.ContainsFunc(before, func(x tool.Tool) bool { return x.Name() == t.Name() }) {
			other = t.Name()
			continue
		}
		b.tools = append(b.tools, t)
		taken++
	}
	return taken, other
}

func (a *app) connect(ctx context.Context, s config.Server, host sandbox.Sandbox, put func([]string) ([]string, error)) (*mcp.Client, error) {
	server := mcp.Server{Name: s.Name, URL: s.URL, Dir: host.Info().Dir, Timeout: s.Timeout, Env: map[string]string{}}
	if s.TokenEnv != "" {
		token, _ := a.env(s.TokenEnv)
		if token == "" {
			return nil, fmt.Errorf("MCP server %s: %s is not set", s.Name, s.TokenEnv)
		}
		server.Token = token
	}
	for _, name := range s.Env {
		if v, set := a.env(name); set {
			server.Env[name] = v
		}
	}
	if len(s.Command) > 0 {
		command, err := put(s.Command)
		if err != nil {
			return nil, fmt.Errorf("MCP server %s: %w", s.Name, err)
		}
		server.Command = command
	}
	if s.Apart && len(s.Command) > 0 {
		server.Dir = filepath.Join(a.home, "servers", s.Name)
		if err := os.MkdirAll(server.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("MCP server %s: %w", s.Name, err)
		}
		server.Env["TALKOPS_PROJECT_ROOT"] = host.Info().Dir
		for i, w := range server.Command {
			if w == "." || w == "./" {
				server.Command[i] = host.Info().Dir
			}
		}
	}
	return mcp.Connect(ctx, server, host, "talkops", version)
}

// end runs the hooks of the session's end, and ends the servers. The errors are to
// be told.
func (b *beside) end(ctx context.Context, place approval.Place) (problems []error) {
	if err := b.hooks.Run(context.WithoutCancel(ctx), hook.Call{Event: hook.SessionEnd, Provider: place.Provider}); err != nil {
		problems = append(problems, err)
	}
	b.close()
	return problems
}

func (b *beside) close() {
	for _, c := range b.clients {
		c.Close()
	}
	b.clients = nil
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}

// serverRules are the rules that allow the tools of servers which the user listed.
func serverRules(cfg *config.Config) []string {
	var rules []string
	for _, s := range cfg.Servers {
		for _, name := range s.Allow {
			rules = append(rules, "mcp: "+s.Name+"/"+strings.TrimSpace(name))
		}
	}
	return rules
}

// serverSecrets are the values that servers are given.
func (a *app) serverSecrets(cfg *config.Config) []string {
	values := map[string]bool{}
	for _, s := range cfg.Servers {
		for _, name := range append([]string{s.TokenEnv}, s.Env...) {
			if v, _ := a.env(name); v != "" && !public(name) {
				values[v] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(values))
}

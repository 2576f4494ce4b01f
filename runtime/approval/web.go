package approval

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/talkops-ai/talkops/runtime/tool"
)

// leaving says what a tool does that acts from the user's computer.
func leaving(p tool.Plan) Finding {
	if server, name, ok := serverTool(p.URL); ok {
		return Finding{Tier: T4, Part: p.URL, Reason: fmt.Sprintf("calls %s of the MCP server %s, which no sandbox holds", name, server)}
	}
	what := "reaches out from this computer to " + hostOf(p.URL)
	if p.Query != "" {
		what = "sends words from this computer to " + hostOf(p.URL)
	}
	return Finding{Tier: T4, Part: p.URL, Reason: what}
}

// serverTool returns the server and the tool that an address of the form
// mcp://server/tool stands for.
func serverTool(address string) (server, name string, ok bool) {
	rest, ok := strings.CutPrefix(address, "mcp://")
	if !ok {
		return "", "", false
	}
	server, name, ok = strings.Cut(rest, "/")
	return server, name, ok
}

// Hosts are names of hosts: exact ones, as "acme.com", and "*.acme.com" for all
// below one. They stand for the usual ports unless one is named, as in
// "acme.com:8443".
type Hosts []string

// ParseHosts reads a list of hosts.
func ParseHosts(list []string) (Hosts, error) {
	var hosts Hosts
	for _, h := range list {
		h = strings.ToLower(strings.TrimSpace(h))
		name := strings.TrimPrefix(h, "*.")
		u, err := url.Parse("https://" + name)
		if err != nil || u.Host != name || u.Hostname() == "" || strings.ContainsAny(name, "*/@? ") || name != h && !strings.Contains(name, ".") {
			return nil, fmt.Errorf("%q is not a host: use acme.com, acme.com:8443 or *.acme.com", h)
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// Has reports whether a host at a port is one of them.
func (hosts Hosts) Has(host, port string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, h := range hosts {
		name, at := h, ""
		if u, err := url.Parse("https://" + strings.TrimPrefix(h, "*.")); err == nil {
			name, at = u.Hostname(), u.Port()
		}
		if at == "" && port != "80" && port != "443" || at != "" && at != port {
			continue
		}
		if strings.HasPrefix(h, "*.") && strings.HasSuffix(host, "."+name) || !strings.HasPrefix(h, "*.") && host == name {
			return true
		}
	}
	return false
}

// URL reports whether an address is at one of them.
func (hosts Hosts) URL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && hosts.Has(u.Hostname(), portOf(u))
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return strings.ToLower(u.Host)
}

// address reports whether the rule is for a tool at an address of the web. Its
// pattern is a host, or a host and a path; a scheme in front narrows it further. One
// that allows means the usual ports unless it names one, or is "*".
func (r Rule) address(tool, address string, allows bool) bool {
	if server, name, ok := serverTool(address); ok {
		s, n, both := strings.Cut(r.words[0], "/")
		return r.tool == "mcp" && both && star(s, server) && star(n, name)
	}
	u, err := url.Parse(address)
	if r.tool != tool || err != nil {
		return false
	}
	pattern := r.words[0]
	if scheme, rest, ok := strings.Cut(pattern, "://"); ok {
		if scheme != u.Scheme {
			return false
		}
		pattern = rest
	}
	host, at, hasPath := strings.Cut(pattern, "/")
	host = strings.ToLower(host)
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if open := strings.TrimRight(host, "*"); allows && open != "" && !strings.HasSuffix(open, ":") {
		host = open // a * at its end stands for what follows the name, not for more of it
	}
	usual := !allows || host == "*" || portOf(u) == "80" || portOf(u) == "443"
	if !(usual && star(host, name)) && !(strings.Contains(host, ":") && star(host, name+":"+portOf(u))) {
		return false
	}
	if !hasPath {
		return true
	}
	if !allows { // no spelling of the path leads around it
		return star("/"+at, u.EscapedPath()) || star("/"+at, u.Path) || star("/"+at, path.Clean("/"+u.Path)) || star("/"+at, path.Clean("/"+u.Path)+"/")
	}
	return star("/"+at, u.EscapedPath()) && (!strings.Contains(at, "*") || !climbs(u.Path))
}

// Bar reports whether, in a project, a rule denies a tool an address of the web, or asks
// for it.
func (r Rules) Bar(project, tool, address string) bool {
	for _, list := range [][]Rule{r.Deny, r.Ask} {
		if _, is := first(list, func(x Rule) bool { return x.covers(Context{Project: project}) && x.address(tool, address, false) }); is {
			return true
		}
	}
	return false
}

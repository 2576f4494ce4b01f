package hostfuncs

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// A Grant is what the user lets one module touch. The zero value is nothing.
type Grant struct {
	Hosts   []Host // where it may connect
	Folders []Folder
	State   string // the file that keeps its state; empty: none is kept

	LogBytes    int   // of log lines in one operation; 0 is 64 KiB
	InlineBytes int64 // of an answer it reads as text, at most 512 KiB, which 0 is too
}

// A Secret is a value a module may send but never sees.
type Secret struct {
	Value string
	Hosts []string // as in the module's description; none: every host of the grant
}

// A Folder is a directory of the user's computer, known to the module by Name.
type Folder struct {
	Name  string
	Path  string
	Write bool
}

// A Host is one entry of allow_hosts.
type Host struct {
	scheme string // "https", or "http" for loopback
	name   string // lower case; for a suffix ".boxes.acme.example"
	suffix bool
	port   string // empty: the scheme's own
}

// ParseHost reads an entry: a host, "*." and a suffix of at least two labels,
// either with a port; or, for this computer, scheme, address and port.
func ParseHost(entry string) (Host, error) {
	h := Host{scheme: "https"}
	rest := entry
	if scheme, after, ok := strings.Cut(entry, "://"); ok {
		u, err := url.Parse(entry)
		if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return Host{}, fmt.Errorf("%q is not a host", entry)
		}
		h.scheme, rest = scheme, strings.TrimSuffix(after, "/")
	}
	if ip, err := netip.ParseAddr(rest); err == nil {
		h.name = ip.String() // an IPv6 address without a port
	} else if name, port, err := net.SplitHostPort(rest); err == nil {
		h.name, h.port = name, port
	} else {
		h.name = rest
	}
	h.name = canonical(h.name)
	if after, ok := strings.CutPrefix(h.name, "*."); ok {
		h.suffix, h.name = true, "."+after
		if !strings.Contains(after, ".") {
			return Host{}, fmt.Errorf("%q is too wide: a suffix needs at least two labels", entry)
		}
	}
	switch {
	case h.name == "" || strings.ContainsAny(h.name, "*/?#@ \t%") || !ascii(h.name):
		return Host{}, fmt.Errorf("%q is not a host", entry)
	case h.scheme == "https":
	case h.scheme == "http" && h.loopback() && h.port != "":
	case h.scheme == "http":
		return Host{}, fmt.Errorf("%q: plain http is for an address of this computer with its port, as in http://127.0.0.1:8080", entry)
	default:
		return Host{}, fmt.Errorf("%q: the scheme is https, or http for this computer", entry)
	}
	return h, nil
}

// ParseHosts reads a whole list.
func ParseHosts(entries []string) ([]Host, error) {
	var hosts []Host
	for _, e := range entries {
		h, err := ParseHost(e)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// String is the entry in its one form.
func (h Host) String() string {
	name := h.name
	if h.suffix {
		name = "*" + name
	}
	if h.port != "" {
		name = net.JoinHostPort(name, h.port)
	}
	if h.scheme == "http" {
		return "http://" + name
	}
	return name
}

// literal reports whether the entry names an address, which may then be private.
func (h Host) literal() bool {
	_, err := netip.ParseAddr(h.name)
	return err == nil || h.name == "localhost"
}

func (h Host) loopback() bool {
	ip, err := netip.ParseAddr(h.name)
	return h.name == "localhost" || err == nil && ip.IsLoopback()
}

// allows reports whether the entry covers u, whose host is canonical.
func (h Host) allows(u *url.URL) bool {
	port := u.Port()
	want := h.port
	for _, p := range []*string{&port, &want} {
		if *p == "" {
			*p = map[string]string{"https": "443", "http": "80"}[u.Scheme]
		}
	}
	if u.Scheme != h.scheme || port != want {
		return false
	}
	name := canonical(u.Hostname())
	if h.suffix {
		return strings.HasSuffix(name, h.name) && len(name) > len(h.name)
	}
	return name == h.name
}

// canonical is the one spelling of a host name.
func canonical(name string) string {
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().String()
	}
	return name
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 126 || r < 33 }) < 0
}

// check reads an address a module wants to reach and says why it may not.
func (g Grant) check(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || !ascii(u.Host):
		return nil, errors.New("the address is not a URL")
	case u.User != nil:
		return nil, errors.New("an address must not hold a user or password")
	}
	u.Fragment = ""
	for _, h := range g.Hosts {
		if h.allows(u) {
			return u, nil
		}
	}
	where := u.Hostname()
	if u.Port() != "" {
		where = u.Host
	}
	if u.Scheme != "https" {
		where = u.Scheme + "://" + where
	}
	if (Host{name: canonical(u.Hostname())}).loopback() && u.Scheme == "http" {
		return nil, fmt.Errorf("%s is not in allow_hosts, where an address of this computer stands with http:// and its port", where)
	}
	return nil, fmt.Errorf("%s is not in allow_hosts", where)
}

// bound reports whether a secret may go to u.
func (s Secret) bound(u *url.URL) bool {
	if len(s.Hosts) == 0 {
		return true
	}
	name := canonical(u.Hostname())
	for _, h := range s.Hosts {
		h = canonical(h)
		if suffix, ok := strings.CutPrefix(h, "*"); ok && strings.HasPrefix(suffix, ".") && strings.HasSuffix(name, suffix) || h == name {
			return true
		}
	}
	// A service on this computer stands for the real one when the user names it.
	return u.Scheme == "http"
}

// mayDial reports whether a connection to ip is allowed for the host name.
func (g Grant) mayDial(name string, ip netip.Addr) bool {
	ip = ip.Unmap()
	name = canonical(name)
	for _, h := range g.Hosts {
		if h.name == name && h.literal() {
			if name == "localhost" {
				return ip.IsLoopback()
			}
			return ip.String() == name
		}
	}
	return public(ip)
}

// public reports whether an address belongs to no private or special network.
func public(ip netip.Addr) bool {
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() {
		return false
	}
	for _, special := range []string{"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"} {
		if netip.MustParsePrefix(special).Contains(ip) {
			return false
		}
	}
	return true
}

// CheckFolder says why a directory cannot be granted to a module: it is the
// home directory or above it, talkops' own, or a usual place of credentials.
func CheckFolder(path, userHome, talkopsHome string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s is not an absolute path", path)
	}
	path = real(path)
	within := func(child, parent string) bool {
		rel, err := filepath.Rel(parent, child)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
	}
	if home := real(userHome); userHome != "" {
		if within(home, path) {
			return fmt.Errorf("%s is your home directory or above it", path)
		}
		for _, name := range []string{".ssh", ".gnupg", ".aws", ".kube", ".docker", ".netrc", ".azure", ".config/gcloud", ".config/gh"} {
			if place := filepath.Join(home, filepath.FromSlash(name)); within(path, place) || within(place, path) {
				return fmt.Errorf("%s holds credentials (%s)", path, name)
			}
		}
	}
	if own := real(talkopsHome); talkopsHome != "" && (within(path, own) || within(own, path)) {
		return fmt.Errorf("%s is where talkops keeps its own files", path)
	}
	if slices.Contains(strings.Split(filepath.ToSlash(path), "/"), ".git") {
		return fmt.Errorf("%s is inside a repository's own files", path)
	}
	return nil
}

func real(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return filepath.Clean(path)
}

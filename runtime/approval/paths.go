package approval

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/talkops-ai/talkops/runtime/obeyed"
)

// A word is one argument of a command after quoting, braces and known variables
// are resolved.
type word struct {
	text   string
	static bool   // text is exact, apart from file name patterns
	glob   bool   // text holds a file name pattern
	spread bool   // the pattern is not in quotes, and may become several words
	input  bool   // the output of a process, as a file
	many   bool   // not in quotes, and may become several words
	found  bool   // the name of a file that a search found
	head   string // what is known of its beginning, if it is not static
}

func literal(text string) word { return word{text: text, static: true} }

// places lists where the word points, absolute and clean, or false if that is not
// known. A pattern stays in the text.
func (c *command) places(w word) ([]string, bool) {
	if !w.static || w.text == "" && !w.glob {
		return nil, false
	}
	if path.IsAbs(w.text) {
		return c.real(w.text, w.glob), true
	}
	if c.dirs == nil {
		return nil, false
	}
	var all []string
	for _, d := range c.dirs {
		all = append(all, c.real(d+"/"+w.text, w.glob)...)
	}
	return all, true
}

// here reports whether the shell is in the workspace, or a public directory.
func (c *command) here() bool {
	return c.dirs != nil && !slices.ContainsFunc(c.dirs, func(d string) bool { return !below(c.Workspace, d) && !public(d) })
}

// outside reports whether a word may name a file outside the workspace.
func (c *command) outside(w word) bool {
	at, known := c.places(w)
	return !known && (w.text != "" || !w.static) || slices.ContainsFunc(at, func(p string) bool { return !below(c.Workspace, p) && !public(p) })
}

// real returns name, and what it is with its links resolved if that differs. A
// pattern is also what it stands for now.
func (c *command) real(name string, pattern bool) []string {
	all := []string{path.Clean(name)}
	if up := upward(name); pattern && up != name {
		all = append(all, path.Clean(up))
	}
	if c.Real == nil {
		return all
	}
	add := func(name string) {
		if r := c.Real(name); r != "" && !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	for _, n := range slices.Clone(all) {
		add(n)
	}
	if strings.Contains(name, "/..") {
		add(c.physical(name))
	}
	if pattern {
		parts := strings.Split(name, "/")
		last := len(parts)
		for last > 1 && !strings.ContainsAny(parts[last-1], "*?[") {
			last--
		}
		matches, _ := filepath.Glob(brackets.ReplaceAllString(strings.Join(parts[:last], "/"), "?"))
		for _, m := range matches[:min(len(matches), 1000)] {
			plain := path.Join(m, path.Join(parts[last:]...))
			if r := c.physical(strings.Join(append([]string{m}, parts[last:]...), "/")); r != plain {
				add(r)
			} else if Sensitive(c.Workspace, plain) && !hiddenFrom(parts, plain) {
				all = append(all, plain)
			}
		}
	}
	return all
}

// upward is a pattern in which ".." stands where a part of it means that, too: ".?" or
// ".*".
func upward(pattern string) string {
	parts := strings.Split(pattern, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, ".") && strings.ContainsAny(p, "*?[") {
			if is, err := path.Match(brackets.ReplaceAllString(p, "?"), ".."); is || err != nil {
				parts[i] = ".."
			}
		}
	}
	return strings.Join(parts, "/")
}

// physical is the file that the system takes name for: it leaves a linked directory
// for the one above the place it leads to.
func (c *command) physical(name string) string {
	at := "/"
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			at = path.Dir(c.Real(at))
		} else {
			at = path.Join(at, part)
		}
	}
	return c.Real(at)
}

// below reports whether name is dir or under it.
func below(dir, name string) bool {
	dir = path.Clean(dir)
	return dir != "." && (name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/"))
}

// everything reports whether name, of which patterns are part, is the directory
// dir with all it holds.
func everything(dir, name string) bool {
	if dir == "" {
		return false
	}
	last := path.Base(name)
	return name == path.Clean(dir) || path.Dir(name) == path.Clean(dir) && strings.Trim(last, "*.?[]!^") == ""
}

// system are the directories without which a machine does not run.
var system = []string{"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys",
	"/usr", "/var", "/Users", "/System", "/Library", "/Applications"}

// vital reports whether destroying name wipes the machine or its user.
func (c *command) vital(name string) bool {
	if everything("/", name) || everything(c.Home, name) || c.Home != "" && below(name, path.Clean(c.Home)) {
		return true
	}
	for _, s := range system {
		if everything(s, name) && !below(s, c.Workspace) {
			return true
		}
	}
	return slices.Contains(system, name)
}

// harmless are files that take anything and keep nothing.
var harmless = []string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full"}

// written judges writing to a file.
func (c *command) written(w word) {
	if w.input {
		return
	}
	at, known := c.places(w)
	if !known {
		c.find(T3, "writes to a file whose name is not known", machine)
		return
	}
	for _, name := range at {
		if slices.Contains([]string{"head", "config", "commondir", "gitdir"}, strings.ToLower(path.Base(name))) {
			c.fill([]string{path.Dir(name)}) // of which git makes a repository
		}
		if c.throughLink(name) {
			c.find(T3, "may write through a link that leads out of the workspace", machine)
		}
		switch {
		case slices.Contains(harmless, name), strings.HasPrefix(name, "/dev/fd/"):
		case strings.HasPrefix(name, "/dev/tcp/"), strings.HasPrefix(name, "/dev/udp/"):
			c.find(T4, "writes to the network")
		case strings.HasPrefix(name, "/dev/"), name == "/proc/sysrq-trigger":
			c.find(T5, "writes to a raw device")
		case c.own(name):
			if c.Place.Host {
				c.find(T5, "changes the guard of talkops itself")
			} else {
				c.find(T3, "writes outside the workspace", machine)
			}
		case !below(c.Workspace, name):
			c.find(T3, "writes outside the workspace", machine)
		case Sensitive(c.Workspace, name), w.glob && mayBeObeyed(c.Workspace, name):
			c.find(T3, "writes a file that runs programs later")
		case c.Place.Host && odd(strings.TrimPrefix(name, path.Clean(c.Workspace))):
			c.find(T3, "makes a file whose name programs take for an option")
		default:
			if c.wrote != nil {
				*c.wrote = true
			}
			c.shift()
			if c.steered != nil && !slices.Contains([]string{".txt", ".log", ".out", ".md"}, strings.ToLower(path.Ext(name))) {
				*c.steered = true
			}
			c.find(T2, "changes the workspace")
			if w.glob {
				name = path.Dir(name) + "/"
			}
			c.sways(name)
		}
	}
}

// sways judges that a file is written, or with a slash at its end any file below a
// directory, as to programs that run on this computer beside the line.
func (c *command) sways(name string) {
	if c.Sways == nil {
		return
	}
	if reason := c.Sways(name); reason != "" {
		c.find(T3, reason)
	}
}

// become judges the files that a file or a tree turns into in a directory, or in its
// place.
func (c *command) become(from word, base string, to []string, tree bool) {
	for _, p := range to {
		if !below(c.Workspace, p) || regular(p) {
			continue
		}
		if from.static && !from.glob && base != "" && base != "." && base != ".." {
			c.sways(p + "/" + base)
			if at, known := c.places(from); known && c.Sways != nil && (!tree || slices.ContainsFunc(at, regular)) {
				continue // a file, not a tree
			}
		}
		c.sways(p + "/")
	}
}

// regular reports whether a file of this computer is there and neither a directory nor a
// link.
func regular(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// odd reports whether a path below the workspace has a name that programs take for an
// option, or may when it is taken apart.
func odd(name string) bool {
	return strings.Contains(name, "/-") || Splits(name) || strings.Contains(name+"/", " /")
}

// Splits reports whether a path, taken apart at its blanks and its quotes taken off, as
// xargs does, has a part that is an option, leads elsewhere, or is a file of credentials.
func Splits(name string) bool {
	if !strings.ContainsAny(name, " \t\n\r\v\f'\"\\") {
		return false
	}
	for i, part := range strings.Fields(strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(name)) {
		if i > 0 && strings.IndexByte("-+/.", part[0]) >= 0 || Secret("", "/"+part) {
			return true
		}
	}
	return false
}

// throughLink reports whether name lies in a directory that was filled before in the
// same line, maybe with links that lead out of the workspace.
func (c *command) throughLink(name string) bool {
	if c.LinksOut == nil {
		return false
	}
	for dir := range c.filled {
		if dir != name && dir != path.Clean(c.Workspace) && below(dir, name) && c.LinksOut() {
			return true
		}
	}
	return false
}

// through judges writing of files below a directory, whose names are not known.
func (c *command) through(dir word) {
	at, known := c.places(dir)
	if c.LinksBelow != nil && known && slices.ContainsFunc(at, c.LinksBelow) {
		c.find(T3, "may write through a link that leads out of the workspace", machine)
	}
}

// fill notes that directories were filled with what is not known by name.
func (c *command) fill(dirs []string) {
	for _, d := range dirs {
		if c.filled != nil {
			c.filled[d] = true
		}
	}
}

// own reports whether name belongs to talkops's own settings.
func (c *command) own(name string) bool {
	return c.Home != "" && below(path.Join(c.Home, ".talkops"), name) || c.Own != "" && below(c.Own, name)
}

// destroyed judges deleting a file, or a tree.
func (c *command) destroyed(w word, tree bool) {
	at, known := c.places(w)
	if !known {
		if tree {
			c.find(TX, "deletes a tree whose name is not known")
		} else {
			c.find(T2d, "deletes a file whose name is not known")
			c.find(T3, "deletes a file whose name is not known", machine)
		}
		return
	}
	for _, name := range at {
		switch {
		case c.vital(name):
			c.find(T5, "wipes "+name)
		case strings.HasPrefix(name, "/dev/") && !slices.Contains(harmless, name):
			c.find(T5, "destroys a raw device")
		case c.own(name) && c.Place.Host:
			c.find(T5, "changes the guard of talkops itself")
		case everything(c.Workspace, name) && (tree || w.glob):
			c.find(T2d, "destroys the whole workspace", whole)
		case below(name, c.Workspace):
			c.find(T2d, "destroys the whole workspace", whole)
		case !below(c.Workspace, name):
			c.find(T3, "deletes outside the workspace", machine)
		default:
			c.find(T2d, "deletes in the workspace")
		}
	}
}

// read judges looking into a file.
func (c *command) read(w word) {
	if w.input || w.text == "-" {
		return
	}
	at, known := c.places(w)
	if !known {
		c.find(T1s, "reads a file whose name is not known")
		return
	}
	c.held(w, false)
	for _, name := range at {
		if strings.HasSuffix(name, "/.git/config") && c.Secrets != nil && slices.Contains(c.Secrets(), name) {
			c.secrets = true
			c.find(T1s, "shows a login")
		}
		if c.throughLink(name) {
			c.find(T1s, "may read through a link that leads out of the workspace")
		}
		switch {
		case Secret(c.Home, name):
			c.secrets = true
			c.find(T1s, "reads credentials")
		case strings.HasPrefix(name, "/dev/tcp/"), strings.HasPrefix(name, "/dev/udp/"):
			c.find(T4, "talks to the network")
		case strings.HasPrefix(name, "/proc/") && strings.HasSuffix(name, "/environ"):
			c.secrets = true
			c.find(T1s, "reads the environment of a process")
		case w.glob && mayBeSecret(name):
			c.secrets = true
			c.find(T1s, "may read credentials")
		case !below(c.Workspace, name) && !public(name) && (c.Logs == "" || !below(c.Logs, name)):
			c.find(T1s, "reads outside the workspace")
		default:
			c.find(T0, "looks")
		}
	}
}

// followed judges reading of files whose names are not known, which may be links.
func (c *command) followed() {
	if c.LinksOut != nil && c.LinksOut() {
		c.find(T1s, "may read through a link that leads out of the workspace")
	}
}

// public reports whether a file outside the workspace is one that tells nothing of
// its user.
func public(name string) bool {
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64", "/sbin", "/sys/class", "/sys/devices", "/dev/fd"} {
		if below(dir, name) {
			return true
		}
	}
	return slices.Contains(harmless, name) || slices.Contains([]string{"/dev/stdin", "/dev/urandom", "/dev/random", "/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/uptime", "/proc/loadavg", "/proc/mounts",
		"/proc/self/mounts", "/proc/filesystems", "/proc/stat", "/etc/os-release", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/etc/passwd", "/etc/group", "/etc/services", "/etc/protocols", "/etc/debian_version", "/etc/alpine-release", "/etc/timezone", "/etc/localtime"}, name)
}

// brackets matches a set of characters in a pattern.
var brackets = regexp.MustCompile(`\[[!^]?\]?(?:\[:\w+:\]|[^\]])*\]`)

// mayBeSecret reports whether a pattern can mean a file of credentials by its
// letters; one that is all wildcards means everything and nothing.
func mayBeSecret(pattern string) bool {
	base := path.Base(brackets.ReplaceAllString(pattern, "?")) // shells and Go differ in what may stand in them
	if strings.Trim(base, "*?") == "" {
		return false
	}
	for _, name := range secretNames {
		if ok, err := path.Match(strings.ToLower(base), name); ok || err != nil {
			return true
		}
	}
	return false
}

// picks reports whether a regular expression for names selects those of files with
// credentials from others.
func picks(pattern string) bool {
	re, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return Secret("", "/"+pattern)
	}
	return slices.ContainsFunc(secretNames, re.MatchString) && !slices.ContainsFunc([]string{"main.tf", "README.md", "values.yaml"}, re.MatchString)
}

// secretNames are names that files of credentials often have.
var secretNames = strings.Fields(".env .env.local .npmrc .netrc .pypirc .git-credentials id_rsa id_ed25519 credentials kubeconfig terraform.tfstate server.pem server.key prod.key deploy_rsa.key key.p12 cert.pfx")

// Sensitive reports whether the file name in the workspace is one that other
// programs run or obey later, or that begins with a dot and may be.
func Sensitive(workspace, name string) bool {
	rel := strings.TrimPrefix(strings.TrimPrefix(name, path.Clean(workspace)), "/")
	return below(workspace, name) && (obeyed.Path(rel) || obeyed.Hidden(rel))
}

// mayBeObeyed reports whether a pattern can mean a file that programs obey. What a
// pattern that begins with a wildcard stands for is looked up.
func mayBeObeyed(workspace, pattern string) bool {
	if !below(workspace, pattern) {
		return false
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(pattern, path.Clean(workspace)+"/"), "/") {
		part = strings.ToLower(brackets.ReplaceAllString(part, "?"))
		if strings.ContainsAny(part, "*?[") && !strings.HasPrefix(part, "*") && strings.Trim(part, "*?") != "" && obeyed.Matched(part) {
			return true
		}
	}
	return false
}

// hiddenFrom reports whether a file or directory of name begins with a dot where its
// pattern has a wildcard, which does not stand for it.
func hiddenFrom(pattern []string, name string) bool {
	names := strings.Split(name, "/")
	for i, n := range names {
		if i < len(pattern) && len(names) == len(pattern) && strings.HasPrefix(n, ".") && pattern[i] != "" && strings.ContainsAny(pattern[i][:1], "*?[") {
			return true
		}
	}
	return false
}

// Secret reports whether the file name is by its place or name one that holds
// credentials. A pattern counts if it can mean one.
func Secret(home, name string) bool {
	lower := strings.ToLower(name)
	if home != "" && below(home, name) {
		rel := strings.TrimPrefix(strings.TrimPrefix(lower, strings.ToLower(path.Clean(home))), "/")
		for _, dir := range []string{".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".config/gcloud", ".config/gh", ".config/hub", ".talkops", ".password-store",
			".terraform.d", ".oci", ".config/op", ".vault-token", ".modal.toml", ".pgpass", ".my.cnf", ".boto", ".databrickscfg"} {
			if below(dir, rel) {
				return true
			}
		}
	}
	if lower == "/etc/shadow" || lower == "/etc/gshadow" || strings.HasPrefix(lower, "/etc/ssl/private/") || strings.HasPrefix(lower, "/var/run/secrets/") || strings.HasPrefix(lower, "/run/secrets/") {
		return true
	}
	for _, dir := range []string{"/.ssh/", "/.aws/", "/.gnupg/", "/.kube/", "/.azure/", "/.docker/", "/.config/gcloud/"} {
		if strings.Contains(lower+"/", dir) {
			return true
		}
	}
	base := path.Base(lower)
	for _, kept := range []string{"~", ".bak", ".old", ".orig", ".save", ".swp", ".gz", ".bz2", ".xz", ".zst"} {
		if whole, is := strings.CutSuffix(base, kept); is {
			return Secret("", "/"+whole) // what editors and packers leave beside it
		}
	}
	switch base {
	case ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".dockercfg", ".htpasswd", "credentials", "credentials.json", "kubeconfig",
		"application_default_credentials.json", "service-account.json", ".terraformrc", "terraform.rc", "credentials.tfrc.json", ".vault_pass", ".vault_password", ".vault-token", ".env", ".envrc", ".secrets", ".pgpass", ".my.cnf", ".s3cfg", ".boto", ".databrickscfg", ".dockerconfigjson", "credentials.toml":
		return true
	}
	switch {
	case strings.HasPrefix(base, ".env.") && !strings.HasSuffix(base, ".example") && !strings.HasSuffix(base, ".sample") && !strings.HasSuffix(base, ".template"):
		return true
	case strings.HasPrefix(base, "id_rsa"), strings.HasPrefix(base, "id_ed25519"), strings.HasPrefix(base, "id_ecdsa"), strings.HasPrefix(base, "id_dsa"):
		return !strings.HasSuffix(base, ".pub")
	case strings.HasPrefix(base, ".env") && strings.ContainsAny(base, "*?["):
		return true
	}
	switch path.Ext(base) {
	case ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".tfstate", ".kubeconfig", ".ppk", ".env":
		return true
	}
	return strings.Contains(base, ".tfstate.")
}

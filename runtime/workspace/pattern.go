package workspace

import (
	"regexp"
	"strings"
)

// A pattern is one line of an ignore file, in the dialect of .gitignore.
type pattern struct {
	text    string // without its marks
	literal int    // how many bytes of it stand for themselves, from its beginning
	whole   bool   // it is for a path from the top, not for the last part of one
	negate  bool
	dirOnly bool
}

// parsePatterns reads ignore lines; blank ones and comments are dropped.
func parsePatterns(lines []string) []pattern {
	var list []pattern
	for _, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		line = trimSpaces(line)
		if line == "" || line[0] == '#' {
			continue
		}
		var p pattern
		if line[0] == '!' {
			p.negate, line = true, line[1:]
		}
		if strings.HasSuffix(line, "/") {
			p.dirOnly, line = true, strings.TrimSuffix(line, "/")
		}
		p.whole = strings.Contains(line, "/")
		p.text = strings.TrimPrefix(line, "/")
		if p.literal = strings.IndexAny(p.text, `*?[\`); p.literal < 0 {
			p.literal = len(p.text)
		}
		list = append(list, p)
	}
	return list
}

// match reports whether the patterns select name, a relative slash path, or one
// of its parents; the last pattern that matches decides.
func match(list []pattern, name string, isDir bool) bool {
	for end := 0; end < len(name); {
		if i := strings.IndexByte(name[end+1:], '/'); i >= 0 {
			end += 1 + i
		} else {
			end = len(name)
		}
		selected := false
		for _, p := range list {
			if p.negate == selected && !(p.dirOnly && end == len(name) && !isDir) && p.matches(name[:end]) {
				selected = !p.negate
			}
		}
		if selected {
			return true
		}
	}
	return false
}

func (p pattern) matches(name string) bool {
	if !p.whole {
		name = name[strings.LastIndexByte(name, '/')+1:]
	}
	// As git has it, what stands for itself is compared first, so that the rest of
	// a pattern like "a**/b" begins with stars.
	rest, same := strings.CutPrefix(name, p.text[:p.literal])
	if !same {
		return false
	}
	w := wild{pattern: p.text[p.literal:], name: rest, path: p.whole}
	return w.match(0, 0)
}

// trimSpaces drops the spaces at the end of a line, up to one with a backslash.
func trimSpaces(line string) string {
	for strings.HasSuffix(line, " ") {
		before := line[:len(line)-1]
		if slashes := len(before) - len(strings.TrimRight(before, `\`)); slashes%2 == 1 {
			return line
		}
		line = before
	}
	return line
}

// A wild compares a name with a pattern as git does: byte by byte, with * and ?,
// classes and backslashes. A pattern that is broken matches nothing.
type wild struct {
	pattern, name string
	path          bool         // a slash is matched by itself and by "**" alone
	failed        map[int]bool // pairs of places from which there is no match
}

// match compares from place p of the pattern and n of the name on.
func (w *wild) match(p, n int) bool {
	for ; p < len(w.pattern); n++ {
		c := w.pattern[p]
		if c == '*' {
			return w.star(p, n)
		}
		if n == len(w.name) {
			return false
		}
		at := w.name[n]
		switch {
		case c == '?' || c == '[':
			if w.path && at == '/' {
				return false
			}
			if c == '?' {
				p++
				continue
			}
			in, rest, ok := class(w.pattern[p+1:], at)
			if !ok || !in {
				return false
			}
			p = len(w.pattern) - len(rest)
			continue
		case c == '\\':
			if p++; p == len(w.pattern) {
				return false
			}
			c = w.pattern[p]
		}
		if c != at {
			return false
		}
		p++
	}
	return n == len(w.name)
}

// star compares from a run of stars on. Two or more of them that are a whole part
// of a path stand for any number of parts.
func (w *wild) star(p, n int) bool {
	key := p*(len(w.name)+1) + n
	if w.failed[key] {
		return false
	}
	after := p
	for after < len(w.pattern) && w.pattern[after] == '*' {
		after++
	}
	rest := w.pattern[after:]
	slashes := !w.path
	if w.path && after-p > 1 && (p == 0 || w.pattern[p-1] == '/') && (rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`)) {
		slashes = true
		if rest != "" && rest[0] == '/' && w.match(after+1, n) {
			return true
		}
	}
	for i := n; ; i++ {
		if w.match(after, i) {
			return true
		}
		if i == len(w.name) || !slashes && w.name[i] == '/' {
			break
		}
	}
	if w.failed == nil {
		w.failed = map[int]bool{}
	}
	w.failed[key] = true
	return false
}

// class reads a class after its bracket, and says whether c is in it and what
// follows; ok is false if it has no end.
func class(pattern string, c byte) (in bool, rest string, ok bool) {
	not := pattern != "" && (pattern[0] == '!' || pattern[0] == '^')
	if not {
		pattern = pattern[1:]
	}
	take := func() (byte, bool) {
		pattern = strings.TrimPrefix(pattern, `\`)
		if pattern == "" {
			return 0, false
		}
		b := pattern[0]
		pattern = pattern[1:]
		return b, true
	}
	for first := true; ; first = false {
		if pattern == "" {
			return false, "", false
		}
		if pattern[0] == ']' && !first {
			return in != not, pattern[1:], true
		}
		if name, after, named := strings.Cut(strings.TrimPrefix(pattern, "[:"), ":]"); named && strings.HasPrefix(pattern, "[:") && !strings.ContainsAny(name, "]") {
			is := classes[name]
			if is == nil {
				return false, "", false
			}
			in, pattern = in || is(c), after
			continue
		}
		from, ok := take()
		if !ok {
			return false, "", false
		}
		to := from
		if len(pattern) > 1 && pattern[0] == '-' && pattern[1] != ']' {
			pattern = pattern[1:]
			if to, ok = take(); !ok {
				return false, "", false
			}
		}
		in = in || from <= c && c <= to
	}
}

var classes = map[string]func(byte) bool{
	"alpha":  isAlpha,
	"digit":  isDigit,
	"alnum":  func(c byte) bool { return isAlpha(c) || isDigit(c) },
	"upper":  func(c byte) bool { return 'A' <= c && c <= 'Z' },
	"lower":  func(c byte) bool { return 'a' <= c && c <= 'z' },
	"space":  func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' },
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"punct":  func(c byte) bool { return c > ' ' && c < 0x7f && !isAlpha(c) && !isDigit(c) },
	"print":  func(c byte) bool { return c >= ' ' && c < 0x7f },
	"graph":  func(c byte) bool { return c > ' ' && c < 0x7f },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// skipped are the directories that stay at home, by name and at any depth.
var skipped = map[string]bool{
	".git": true, ".talkops": true, ".agents": true, ".gemini": true, ".venv": true, "__pycache__": true,
	".pytest_cache": true, ".mypy_cache": true, "node_modules": true, "dist": true, "build": true,
	".terraform": true, ".terragrunt-cache": true, "cdk.out": true, "tests": true, "scratch": true,
}

// secretName reports whether a file may hold secrets by its name, in upper case or
// lower.
func secretName(name string, isDir bool) bool {
	return match(secretNames, strings.ToLower(name), isDir)
}

// mayTellSecrets reports whether a file is looked into for credentials.
func mayTellSecrets(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".tfvars") || strings.HasSuffix(name, ".tfvars.json")
}

// skippedFile reports whether a file stays at home for its ending.
func skippedFile(base string) bool {
	return strings.HasSuffix(base, ".pyc") || strings.HasSuffix(base, ".tmp") || strings.HasSuffix(base, ".bak")
}

var (
	secretNames = parsePatterns([]string{
		".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template",
		"*.pem", "*.key", "id_rsa*", "id_ed25519*", "!id_rsa*.pub", "!id_ed25519*.pub",
		"*.tfstate*", "kubeconfig", "**/.kube/config", ".aws/", ".npmrc", ".netrc", ".pypirc", "*.p12", "*.kdbx",
		"id_ecdsa*", "id_dsa*", "!id_ecdsa*.pub", "!id_dsa*.pub", "*.pfx", "*.jks", "*.ppk",
		".git-credentials", "**/.docker/config.json", ".dockercfg", ".terraformrc", "credentials.tfrc.json", ".vault-token",
		"application_default_credentials.json", ".pgpass", ".my.cnf", ".htpasswd", ".s3cfg", ".boto",
	})
	// secretText finds credentials by formats with a fixed prefix.
	secretText = regexp.MustCompile(`AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{20}|xox[baprs]-[A-Za-z0-9-]{10,}|sk-(ant-|proj-)?[A-Za-z0-9_-]{32,}|AIza[0-9A-Za-z_-]{35}|lsv2_[a-z]{2}_[0-9a-f]{32}|-----BEGIN [A-Z ]*PRIVATE KEY-----|npm_[A-Za-z0-9]{36}|dop_v1_[0-9a-f]{64}`)
)

package workspace

import (
	"regexp"
	"strings"
)

// A pattern is one line of an ignore file, in the dialect of .gitignore.
type pattern struct {
	segments []string // "**" stands for any number of directories
	negate   bool
	dirOnly  bool
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
		anchored := strings.Contains(line, "/")
		p.segments = strings.Split(strings.TrimPrefix(line, "/"), "/")
		if !anchored {
			p.segments = append([]string{"**"}, p.segments...)
		}
		list = append(list, p)
	}
	return list
}

// match reports whether the patterns select name, a relative slash path, or one
// of its parents; the last pattern that matches decides.
func match(list []pattern, name string, isDir bool) bool {
	parts := strings.Split(name, "/")
	for n := 1; n <= len(parts); n++ {
		selected := false
		for _, p := range list {
			if p.dirOnly && n == len(parts) && !isDir {
				continue
			}
			if matchSegments(p.segments, parts[:n]) {
				selected = !p.negate
			}
		}
		if selected {
			return true
		}
	}
	return false
}

func matchSegments(pat, parts []string) bool {
	for len(pat) > 0 {
		if pat[0] == "**" {
			if len(pat) == 1 {
				return len(parts) > 0
			}
			for i := range parts {
				if matchSegments(pat[1:], parts[i:]) {
					return true
				}
			}
			return false
		}
		if len(parts) == 0 {
			return false
		}
		if !wild(pat[0], parts[0]) {
			return false
		}
		pat, parts = pat[1:], parts[1:]
	}
	return len(parts) == 0
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

// wild reports whether name, a part of a path, matches pattern as git has it: byte
// by byte, with * and ?, classes and backslashes. A pattern that is broken
// matches nothing.
func wild(pattern, name string) bool {
	for pattern != "" {
		switch c := pattern[0]; c {
		case '*':
			rest := strings.TrimLeft(pattern, "*")
			if rest == "" {
				return true
			}
			for i := 0; i <= len(name); i++ {
				if wild(rest, name[i:]) {
					return true
				}
			}
			return false
		case '?':
			if name == "" {
				return false
			}
			pattern = pattern[1:]
		case '[':
			if name == "" {
				return false
			}
			in, rest, ok := class(pattern[1:], name[0])
			if !ok || !in {
				return false
			}
			pattern = rest
		default:
			if c == '\\' {
				if pattern = pattern[1:]; pattern == "" {
					return false
				}
			}
			if name == "" || pattern[0] != name[0] {
				return false
			}
			pattern = pattern[1:]
		}
		name = name[1:]
	}
	return name == ""
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

// skippedFile reports whether a file stays at home for its ending.
func skippedFile(base string) bool {
	return strings.HasSuffix(base, ".pyc") || strings.HasSuffix(base, ".tmp") || strings.HasSuffix(base, ".bak")
}

var (
	secretNames = parsePatterns([]string{
		".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template",
		"*.pem", "*.key", "id_rsa*", "id_ed25519*", "!id_rsa*.pub", "!id_ed25519*.pub",
		"*.tfstate*", "kubeconfig", "**/.kube/config", ".aws/", ".npmrc", ".netrc", ".pypirc", "*.p12", "*.kdbx",
	})
	// secretText finds credentials by formats with a fixed prefix.
	secretText = regexp.MustCompile(`AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{20}|xox[baprs]-[A-Za-z0-9-]{10,}|sk-(ant-|proj-)?[A-Za-z0-9_-]{32,}|AIza[0-9A-Za-z_-]{35}|lsv2_[a-z]{2}_[0-9a-f]{32}|-----BEGIN [A-Z ]*PRIVATE KEY-----|npm_[A-Za-z0-9]{36}|dop_v1_[0-9a-f]{64}`)
)

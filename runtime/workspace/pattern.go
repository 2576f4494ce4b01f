package workspace

import (
	"path"
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
		if !strings.HasSuffix(line, `\ `) {
			line = strings.TrimRight(line, " ")
		}
		if line == "" || line[0] == '#' {
			continue
		}
		var p pattern
		if line[0] == '!' {
			p.negate, line = true, line[1:]
		}
		line = strings.TrimPrefix(line, `\`)
		if strings.HasSuffix(line, "/") {
			p.dirOnly, line = true, strings.TrimRight(line, "/")
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
		if ok, err := path.Match(strings.ReplaceAll(pat[0], "[!", "[^"), parts[0]); err != nil || !ok {
			return false
		}
		pat, parts = pat[1:], parts[1:]
	}
	return len(parts) == 0
}

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

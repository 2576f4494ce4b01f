package workspace

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// An Aside is a change that is kept but not made to the project unless the user
// says so.
type Aside struct {
	Change
	Why   string
	Never bool // not even then
}

// acts are files and directories that act on the computer they lie on, or speak
// with its user's authority: compared by each part of a path.
var acts = []string{
	".git", ".gitconfig", ".gitmodules", ".talkops", ".envrc", ".direnv", ".ssh", ".gnupg", ".husky", ".vscode", ".idea", ".devcontainer", ".devcontainer.json",
	".circleci", ".gitlab-ci.yml", ".travis.yml", ".drone.yml", "jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".buildkite", ".pre-commit-config.yaml",
	".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".emacs", ".dir-locals.el", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".bazelrc", ".agents", ".gemini", ".claude", ".cursor", ".codex", ".mcp.json",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
	".kshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc", "config.fish",
}

// Split tells the changes that may be made to the project from those set aside.
// With all, what is set aside is among the former as far as it is possible.
func (h *Home) Split(all bool) (take []Change, aside []Aside) {
	for _, c := range h.Changes {
		why, never := c.aside()
		if why == "" || all && !never {
			take = append(take, c)
		} else {
			aside = append(aside, Aside{c, why, never})
		}
	}
	return take, aside
}

func (c Change) aside() (why string, never bool) {
	switch {
	case !fs.ValidPath(strings.ToValidUTF8(c.Name, "?")), !filepath.IsLocal(filepath.FromSlash(c.Name)):
		return "no name for a file here", true
	case actsHere(c.Name):
		return "acts on this computer", slices.Contains(folded(c.Name), ".git")
	case c.Now != nil && c.Now.Kind == Link && !staysInside(c.Name, c.Now.Target):
		return "leads out of the project", true
	case secretName(c.Name, c.Now != nil && c.Now.Kind == Dir):
		return "may hold secrets", false
	}
	return "", false
}

// folded are the parts of a name as the most forgiving file system compares them.
func folded(name string) []string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		part, _, _ = strings.Cut(part, ":")
		part = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) {
				return -1
			}
			least := r
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				least = min(least, f)
			}
			return unicode.ToLower(least)
		}, part)
		parts[i] = strings.TrimRight(part, " .")
		if strings.HasPrefix(parts[i], "git~") {
			parts[i] = ".git"
		}
	}
	return parts
}

func actsHere(name string) bool {
	parts := folded(name)
	for i, part := range parts {
		if slices.Contains(acts, part) || part == ".github" && i+1 < len(parts) && (parts[i+1] == "workflows" || parts[i+1] == "actions") {
			return true
		}
	}
	return false
}

// staysInside reports whether a link stays in the project whatever stands in the
// directories it names: it may go up only at its beginning.
func staysInside(name, target string) bool {
	if target == "" || path.IsAbs(target) || filepath.IsAbs(target) || strings.ContainsAny(target, "\\") && filepath.Separator == '\\' {
		return false
	}
	up, down := 0, false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if down {
				return false
			}
			up++
		default:
			down = true
		}
	}
	// A link to a directory above would bring .git and the like under another name.
	if up > strings.Count(name, "/") {
		return false
	}
	return !actsHere(path.Join(path.Dir(name), target))
}

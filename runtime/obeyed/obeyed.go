// Package obeyed knows the files that act where they lie: programs run or obey them
// without being told to, or they speak with the user's authority.
package obeyed

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// names are files and directories that git, editors, shells, CI systems and agents
// obey, in the case that the most forgiving file system compares.
func names() []string {
	return strings.Fields(`
		.git .gitattributes .gitconfig .gitmodules .githooks .husky .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml .lefthook.yml lefthook-local.yml .lefthook-local.yml .overcommit.yml
		.talkops .agents .gemini .claude .cursor .codex .mcp.json .envrc .direnv .ssh .gnupg .mise .mise.toml mise.toml .mise.local.toml mise.local.toml .tool-versions
		.vscode .idea .zed .fleet .vim .nvim .vimrc .exrc .nvimrc .gvimrc .lvimrc .nvim.lua .emacs .dir-locals.el .dir-locals-2.el .devcontainer .devcontainer.json .gdbinit .lldbinit .inputrc .pam_environment
		.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout config.fish
		.circleci .gitlab-ci.yml .gitlab-ci.yaml .travis.yml .drone.yml jenkinsfile azure-pipelines.yml azure-pipelines.yaml bitbucket-pipelines.yml .buildkite .woodpecker .woodpecker.yml .woodpecker.yaml .gitea .forgejo .semaphore
		lefthook.yaml lefthook.toml lefthook.json lefthook-local.yaml lefthook-local.toml lefthook-local.json flake.nix shell.nix devenv.nix devbox.json
		.cirrus.yml appveyor.yml .appveyor.yml cloudbuild.yaml cloudbuild.yml buildspec.yml buildspec.yaml mise aqua.yaml aqua.yml aqua .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .bazelrc .bazeliskrc .cargo .terraform
		.hg .hgrc .hgsub .jj .sl .bzr .svn _darcs .pijul .helix .zellij .kakrc .kateproject .nova .lapce .theia .vs .settings .projectile .vimspector.json .neoconf.json .neoconf .nvim-dap.lua .nlsp-settings .config
		.pdbrc .pdbrc.py .irbrc .pryrc .byebugrc .rdbgrc .rspec .rprofile .renviron .octaverc .ghci .ocamlinit .juliarc.jl .rvmrc .autoenv .autoenv.zsh .autoenv_leave.zsh .mvn .jvmopts .sbtopts .bundle .yarn .pnp.cjs .pnp.loader.mjs
		.mise.local .windsurf .windsurfrules .cursorrules .clinerules .roo .roorules .continue .kiro .amp .opencode .openhands .goose .goosehints .aider.conf.yml .aider.conf.yaml .crush.json
		.gitpod.yml .gitpod.dockerfile .tekton .teamcity .harness .codesandbox .replit .idx`)
}

// harmless are names with a dot that no program obeys by running, loading or sending
// something: lists of what to leave out, how to indent, and notes.
func harmless() []string {
	return strings.Fields(`.gitignore .dockerignore .helmignore .npmignore .prettierignore .eslintignore .stylelintignore .gcloudignore .terraformignore .vscodeignore .slugignore .cfignore .ebignore .trivyignore .gitleaksignore .ignore .rgignore .fdignore
		.gitkeep .keep .placeholder .nojekyll .mailmap .git-blame-ignore-revs .editorconfig .hadolint.yaml .hadolint.yml .markdownlint.json .markdownlint.yaml .markdownlint.yml .env.example .env.sample .env.template .well-known`)
}

// forge are the names below ".github" and ".gitlab" that are texts for people.
func forge() []string {
	return strings.Fields("codeowners issue_template issue_template.md pull_request_template pull_request_template.md issue_templates merge_request_templates funding.yml security.md contributing.md code_of_conduct.md support.md")
}

// Path reports whether the path of a file or directory in a project, with slashes,
// is one that other programs run or obey later.
func Path(name string) bool {
	parts, all := Parts(name), names()
	for i, part := range parts {
		if slices.Contains(all, part) || strings.HasPrefix(part, "mise.") && path.Ext(part) == ".toml" || part == ".github" && i+1 < len(parts) && (parts[i+1] == "workflows" || parts[i+1] == "actions") {
			return true
		}
	}
	last := parts[len(parts)-1]
	if slices.ContainsFunc(parts, short) {
		return true
	}
	// A directory that holds a HEAD may be a repository of its own, whose configuration git obeys there.
	return last == "head" || slices.Contains([]string{".code-workspace", ".sublime-project"}, path.Ext(last))
}

// Hidden reports whether a part of such a path begins with a dot and is not known to
// be harmless: nobody knows all that programs obey.
func Hidden(name string) bool {
	known, texts := harmless(), forge()
	parts := Parts(name)
	for i, part := range parts {
		switch {
		case len(part) < 2 || part[0] != '.' || part == "..", slices.Contains(known, part):
		case (part == ".github" || part == ".gitlab") && i+1 < len(parts) && slices.Contains(texts, parts[i+1]):
		default:
			return true
		}
	}
	return false
}

// Matched reports whether a pattern for one name can mean a file or directory that
// is obeyed.
func Matched(pattern string) bool {
	return slices.ContainsFunc(names(), func(n string) bool { ok, err := path.Match(pattern, n); return ok || err != nil })
}

// Begun reports whether letters at its end can make name one that is obeyed.
func Begun(name string) bool {
	name = strings.ToLower(name)
	return len(name) > 3 && slices.ContainsFunc(names(), func(n string) bool { return strings.HasPrefix(n, name) })
}

// short reports whether a part of a path may be the short name that a disk gave to a
// longer one: VSCODE~1 for .vscode.
func short(part string) bool {
	base, number, is := strings.Cut(part, "~")
	number, _, _ = strings.Cut(number, ".")
	return is && base != "" && len(base)+1+len(number) <= 8 && number != "" && strings.Trim(number, "0123456789") == ""
}

// Parts are the parts of a path as the most forgiving file system compares them, which
// takes a backslash for a slash.
func Parts(name string) []string {
	parts := strings.Split(strings.ReplaceAll(name, `\`, "/"), "/")
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
		parts[i] = part
		if part != "." && part != ".." {
			parts[i] = strings.TrimRight(part, " .")
		}
		if strings.HasPrefix(parts[i], "git~") {
			parts[i] = ".git"
		}
	}
	return parts
}

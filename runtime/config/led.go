package config

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// launchers are programs that obey files of the directory they start in, and those
// files.
var launchers = map[string][]string{
	"make": makefiles, "gmake": makefiles,
	"npm": packages, "npx": packages, "yarn": packages, "pnpm": packages, "bun": packages, "bunx": packages, "deno": {"deno.json", "deno.jsonc", "package.json"},
	"just": {"justfile", "Justfile", ".justfile"}, "rake": {"rakefile", "Rakefile", "rakefile.rb", "Rakefile.rb"}, "task": {"Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"},
	"bundle": {"Gemfile", "Gemfile.lock", ".bundle/config"}, "cargo": {"Cargo.toml", "build.rs", ".cargo/config.toml", ".cargo/config"}, "composer": {"composer.json"}, "mix": {"mix.exs"},
	"mvn": {"pom.xml", ".mvn/jvm.config", ".mvn/extensions.xml"}, "gradle": gradles, "gradlew": gradles, "sbt": {"build.sbt"}, "ant": {"build.xml"}, "scons": {"SConstruct"},
	"pytest": pytests, "py.test": pytests, "tox": {"tox.ini", "setup.cfg", "pyproject.toml"}, "nox": {"noxfile.py"}, "invoke": {"tasks.py"}, "inv": {"tasks.py"}, "fab": {"fabfile.py"},
	"uv": {"pyproject.toml", "uv.toml"}, "uvx": {"uv.toml"}, "poetry": {"pyproject.toml"}, "hatch": {"pyproject.toml", "hatch.toml"}, "pdm": {"pyproject.toml"},
	"pre-commit": {".pre-commit-config.yaml"}, "lefthook": {"lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json"},
	"docker": composes, "docker-compose": composes, "podman": composes, "podman-compose": composes, "nerdctl": composes,
	"ansible": {"ansible.cfg"}, "ansible-playbook": {"ansible.cfg"}, "vagrant": {"Vagrantfile"}, "tilt": {"Tiltfile"}, "earthly": {"Earthfile"}, "skaffold": {"skaffold.yaml"},
	"grunt": {"Gruntfile.js", "Gruntfile.cjs"}, "gulp": {"gulpfile.js", "gulpfile.cjs", "gulpfile.mjs"}, "eslint": eslints, "prettier": {"package.json", ".prettierrc", "prettier.config.js", ".prettierrc.js"},
	"jest": {"package.json", "jest.config.js", "jest.config.ts"}, "vitest": {"vitest.config.ts", "vitest.config.js", "vite.config.ts", "vite.config.js"},
	"nix": nixes, "nix-shell": nixes, "nix-build": nixes, "devbox": {"devbox.json"}, "mise": {"mise.toml", ".mise.toml"}, "direnv": {".envrc"},
}

var (
	makefiles = []string{"GNUmakefile", "makefile", "Makefile"}
	packages  = []string{"package.json"}
	gradles   = []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties", "gradle/wrapper/gradle-wrapper.properties", "gradle/wrapper/gradle-wrapper.jar"}
	pytests   = []string{"conftest.py", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"}
	composes  = []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml", "compose.override.yaml", "compose.override.yml", "docker-compose.override.yaml", "docker-compose.override.yml", "Dockerfile", ".env"}
	eslints   = []string{"eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts", ".eslintrc.js", ".eslintrc.cjs", ".eslintrc.json", ".eslintrc.yml", ".eslintrc.yaml", "package.json"}
	nixes     = []string{"flake.nix", "flake.lock", "shell.nix", "default.nix"}

	// readers run a file, whatever it is called.
	readers = []string{"source", "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "node", "ruby", "perl", "php", "lua", "deno", "bun"}

	// mains are what an interpreter takes for a directory; endings what it adds to a
	// name.
	mains   = []string{"package.json", "index.js", "index.cjs", "index.mjs", "index.json", "index.node", "index.ts", "__main__.py", "__init__.py"}
	endings = []string{".js", ".cjs", ".mjs", ".json", ".node", ".ts", ".py"}
)

// inText finds what may be the name of a file in a word, and the mark before it of one
// that a shell writes.
var inText = regexp.MustCompile("(>[>|&]?[ \\t]*)?([^ \\t\\r\\n'\"`=:,;&|<>()\\[\\]{}$!\\\\]+)")

// led are the files of the project, as slash paths below its root, that a command leads
// to without their names: what an interpreter takes for a directory or for a name
// without its ending, what a pattern stands for, for a command of the project's, any file
// that it names inside a word and does not only write, what a name means in another
// directory that the command names, and for a command of the project's, what a
// launcher obeys.
func (c *Config) led(command []string, own bool) []string {
	var list []string
	add := func(name string) {
		name = path.Clean(name)
		if n, ok := c.below(name); ok && !n.dir && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	tokens := tokens(command)
	bases := []string{"."}
	for _, t := range tokens {
		if c.isDir(t) && !slices.Contains(bases, t) && len(bases) < 20 {
			bases = append(bases, t)
		}
	}
	python := slices.ContainsFunc(command, func(w string) bool { return strings.HasPrefix(filepath.Base(w), "py") }) &&
		slices.ContainsFunc(command, func(w string) bool { return strings.HasPrefix(w, "-m") || w == "-c" })
	if python && !own && !slices.Contains(command, "-I") && !slices.Contains(command, "-P") {
		tokens = append(tokens, "*.py") // it looks here for what is imported, first
	}
	if slices.ContainsFunc(tokens, func(t string) bool { return path.Base(t) == "go" }) && slices.Contains(tokens, "run") {
		for _, base := range bases { // it builds what lies in a directory, as the module says
			for _, name := range []string{"go.mod", "go.work"} {
				add(path.Join(base, name))
			}
			for _, t := range tokens {
				if at := path.Join(base, t); t == "." || c.isDir(at) {
					c.sources(at, add)
				}
			}
		}
	}
	for _, w := range command {
		if _, is := c.below(w); is || own {
			continue // the word is the name of one; of the user's own, only programs count
		}
		for _, m := range inText.FindAllStringSubmatch(w, -1) {
			if m[1] != "" {
				continue // it is written
			}
			for _, base := range bases {
				for _, name := range []string{m[2], strings.TrimLeft(m[2], "-@"), m[2][min(2, len(m[2])):]} {
					if name != "" && !filepath.IsAbs(name) {
						add(path.Join(base, name))
					}
				}
			}
		}
	}
	reads := slices.ContainsFunc(tokens, func(t string) bool { return reader(t) && t != "." })
	for i, t := range tokens {
		for _, base := range bases {
			at := t
			if !filepath.IsAbs(t) {
				at = path.Join(base, t)
			}
			if reads && c.isDir(at) && (t == "." || at != ".") {
				c.main(at, add)
			}
			for _, e := range endings {
				if reads {
					add(at + e)
				}
			}
			if base != "." && c.regular(at) && c.code(at) || i > 0 && !slices.Contains(command, t) && c.regular(at) && reader(tokens[i-1]) {
				add(at)
			}
			if strings.ContainsAny(t, "*?") && strings.ContainsAny(t, "./") && !filepath.IsAbs(t) {
				for _, f := range c.glob(at) {
					if c.code(f) {
						add(f)
					}
				}
			}
			for _, name := range launchers[path.Base(t)] {
				if !own {
					add(path.Join(base, name))
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// tokens are the words of a command and what may be a word or a name in them.
func tokens(command []string) []string {
	var list []string
	for _, w := range command {
		parts := strings.FieldsFunc(w, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`=:,;&|<>()[]{}$!\\", r) })
		if !slices.Contains(parts, w) {
			parts = append(parts, w)
		}
		for _, p := range parts {
			list = append(list, p)
			if bare := strings.TrimLeft(p, "-@"); strings.HasPrefix(p, "-") && len(p) > 2 {
				list = append(list, bare, p[2:])
			}
		}
	}
	return list
}

// reader reports whether a word is the name of a program that runs a file.
func reader(word string) bool {
	return slices.Contains(readers, strings.TrimRight(path.Base(word), "0123456789.")) || word == "."
}

// sources adds what go builds of a directory.
func (c *Config) sources(dir string, add func(string)) {
	for _, end := range []string{"*.go", "*.s", "*.c", "*.h"} {
		for _, f := range c.glob(path.Join(dir, end)) {
			if !strings.HasSuffix(f, "_test.go") {
				add(f)
			}
		}
	}
}

// main adds what an interpreter takes for a directory.
func (c *Config) main(dir string, add func(string)) {
	for _, e := range mains {
		add(path.Join(dir, e))
	}
	data, err := readBelow(c.Root, filepath.FromSlash(path.Join(dir, "package.json")), maxProgram)
	var about struct{ Main string }
	if err != nil || json.Unmarshal(data, &about) != nil || about.Main == "" {
		return
	}
	at := path.Join(dir, about.Main)
	add(at)
	for _, e := range endings {
		add(at + e)
	}
	for _, e := range mains[1:] {
		add(path.Join(at, e))
	}
}

func (c *Config) isDir(name string) bool { return c.mode(name).IsDir() }

func (c *Config) regular(name string) bool { return c.mode(name).IsRegular() }

// mode is what a name below the root is; fs.ModeIrregular where it is nothing there.
func (c *Config) mode(name string) fs.FileMode {
	if name == "" || strings.ContainsRune(name, 0) || filepath.IsAbs(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return fs.ModeIrregular
	}
	info, err := os.Stat(filepath.Join(c.Root, filepath.FromSlash(name)))
	switch {
	case err == nil:
		return info.Mode()
	case c.would != "" && strings.EqualFold(path.Clean(name), c.would):
		return 0
	case c.would != "" && strings.HasPrefix(strings.ToLower(c.would), strings.ToLower(path.Clean(name))+"/"):
		return fs.ModeDir
	}
	return fs.ModeIrregular
}

// glob lists the files of the project, as slash paths below its root, that a pattern
// stands for.
func (c *Config) glob(pattern string) []string {
	var list []string
	found, _ := filepath.Glob(filepath.Join(c.Root, filepath.FromSlash(pattern)))
	for _, f := range found {
		if rel, err := filepath.Rel(c.Root, f); err == nil {
			list = append(list, filepath.ToSlash(rel))
		}
	}
	if is, err := path.Match(strings.ToLower(pattern), strings.ToLower(c.would)); is && err == nil && c.would != "" {
		list = append(list, c.would)
	}
	return list
}

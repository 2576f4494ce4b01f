package config

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// compiled are the endings of the names of programs that a launcher makes of them, beside
// codeNames.
var compiled = []string{".rs", ".c", ".h", ".s", ".cc", ".cpp", ".cxx", ".hpp", ".m", ".java", ".kt", ".scala", ".swift", ".cs", ".fs", ".ex", ".erl", ".hs", ".ml", ".zig", ".nim", ".d",
	".gradle", ".jsx", ".cts", ".vue", ".svelte", ".pyx", ".pyc", ".pth", ".rake", ".gemspec", ".mak", ".just", ".nix", ".cmake", ".jenkinsfile", ".csproj", ".fsproj", ".props", ".targets", ".bzl", ".bazel", ".cabal", ".sbt", ".clj", ".jl", ".r", ".erb", ".el", ".vim", ".a", ".o", ".syso", ".node"}

// builders are further programs that run code of the project.
var builders = []string{"go", "golangci-lint", "mage", "goreleaser", "ninja", "cmake", "ctest", "meson", "bazel", "bazelisk", "buck2", "dotnet", "swift", "stack", "cabal", "dune", "zig", "ruff", "mypy", "pylint", "flake8",
	"rubocop", "rspec", "phpunit", "tsc", "vite", "webpack", "rollup", "next", "turbo", "nx", "lerna", "stylelint", "mocha", "playwright", "husky", "molecule", "ansible-lint", "terraform", "tofu", "terragrunt", "pulumi", "cdk", "packer"}

// modules say where go takes what it builds from.
var modules = []string{"go.mod", "go.sum", "go.work", "go.work.sum", "modules.txt"}

// Sways says which command of a hook or a server would obey the file of an absolute path
// once that is written, whether it is there now or not: "the hook make fmt obeys
// Makefile". Of a name that ends in a slash it is any file below that directory. It is
// empty if none does.
func (c *Config) Sways(name string) string {
	rel, err := filepath.Rel(c.Root, filepath.Clean(name))
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	rel = filepath.ToSlash(rel)
	tree := strings.HasSuffix(filepath.ToSlash(name), "/")
	if !tree && c.isDir(rel) {
		return "" // what is put into it has a name of its own
	}
	as := &Config{Root: c.Root, would: rel}
	tell := func(kind string, command []string) string {
		what := as.swayed(command, rel, tree)
		if what == "" {
			return ""
		}
		rel := rel
		if rel == "." {
			rel = "the project"
		}
		return fmt.Sprintf("the %s %s %s %s", kind, clip(strings.Join(strings.Fields(strings.Join(command, " ")), " ")), what, rel)
	}
	for _, h := range c.Hooks {
		if text := tell("hook", h.Command); text != "" {
			return text
		}
	}
	for _, s := range c.Servers {
		if text := tell("MCP server", s.Command); text != "" && !s.Apart {
			return text
		}
	}
	return ""
}

// swayed says how a command relates to a file that is taken to be there, in words; empty
// if it has nothing to do with it.
func (c *Config) swayed(command []string, rel string, tree bool) string {
	list := c.led(command, false)
	for i, w := range command {
		list = append(list, c.parts(i, w)...)
		list = append(list, c.imported(command[:i], w)...)
	}
	leads := false // to a program of the project
	for _, at := range list {
		n, ok := c.below(at)
		if !ok || n.dir {
			continue
		}
		if !tree && (strings.EqualFold(n.name, rel) || strings.EqualFold(path.Clean(at), rel) || c.same(n.name, rel)) {
			return "obeys"
		}
		if tree && (rel == "." || strings.HasPrefix(strings.ToLower(n.name), strings.ToLower(rel)+"/")) {
			return "obeys files in"
		}
		leads = leads || n.target == "" && (&Config{Root: c.Root}).code(n.name)
	}
	words := tokens(command)
	launched := slices.ContainsFunc(append(c.spoken(command), words...), func(t string) bool {
		return launchers[path.Base(t)] != nil || slices.Contains(builders, path.Base(t))
	})
	named := slices.ContainsFunc(words, func(t string) bool {
		return strings.HasPrefix(t, "./") || !filepath.IsAbs(t) && slices.Contains(codeNames, strings.ToLower(path.Ext(t)))
	})
	python := slices.ContainsFunc(words, func(t string) bool { return strings.HasPrefix(path.Base(t), "py") }) && (slices.Contains(words, "-m") || slices.Contains(words, "-c"))
	switch {
	case !launched && !leads && !named && !python:
		return ""
	case tree:
		return "may obey files in"
	case c.acts(words, rel):
		return "may obey"
	}
	return ""
}

// acts reports whether a file may be code to what a command starts: by its name, by its
// mode or first bytes now, or because its name says nothing.
func (c *Config) acts(words []string, rel string) bool {
	base := path.Base(rel)
	ext := strings.ToLower(path.Ext(base))
	if ext == "" || slices.Contains(codeNames, ext) || slices.Contains(compiled, ext) || slices.Contains(modules, base) || (&Config{Root: c.Root}).code(rel) {
		return true
	}
	speaks := func(programs ...string) bool {
		return slices.ContainsFunc(words, func(t string) bool { return slices.Contains(programs, path.Base(t)) })
	}
	switch ext {
	case ".yml", ".yaml":
		if speaks("ansible", "ansible-playbook", "ansible-lint", "molecule") {
			return true
		}
	case ".tf", ".tofu", ".hcl":
		if speaks("terraform", "tofu", "terragrunt", "packer") {
			return true
		}
	}
	for _, names := range launchers {
		if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(path.Base(n), base) }) {
			return true
		}
	}
	return false
}

// spoken are the words of the user's own scripts that a command names by their whole
// path, as far as they are text.
func (c *Config) spoken(command []string) []string {
	var list []string
	for _, w := range command {
		if !filepath.IsAbs(w) || within(c.Root, w) {
			continue
		}
		data, err := readBelow(filepath.Dir(w), filepath.Base(w), maxProgram)
		if err == nil && strings.HasPrefix(string(data), "#!") {
			list = append(list, tokens([]string{string(data)})...)
		}
	}
	return list
}

// same reports whether two names below the root are one file.
func (c *Config) same(a, b string) bool {
	one, err := os.Stat(filepath.Join(c.Root, filepath.FromSlash(a)))
	if err != nil {
		return false
	}
	other, err := os.Stat(filepath.Join(c.Root, filepath.FromSlash(b)))
	return err == nil && os.SameFile(one, other)
}

// wouldBe reports whether a path that leads nowhere is the file that is taken to be
// there, maybe by a link to its directory.
func (c *Config) wouldBe(name string) bool {
	if c.would == "" {
		return false
	}
	at := filepath.Join(c.Root, filepath.FromSlash(c.would))
	if strings.EqualFold(name, at) {
		return true
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(name))
	return err == nil && strings.EqualFold(filepath.Join(dir, filepath.Base(name)), at)
}

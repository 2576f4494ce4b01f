package approval

import (
	"slices"
	"strings"
)

func (c *command) format(name string, args []word) {
	o := split(args, "-r", "-i", "-ln", "-local", "-srcdir")
	switch {
	case name == "gofmt" || name == "shfmt" || name == "goimports":
		if o.has("-w", "--write") {
			wrote, steered := c.wrote != nil && *c.wrote, c.steered != nil && *c.steered
			for _, w := range o.operands {
				c.written(w)
				c.through(w)
			}
			if c.wrote != nil {
				*c.wrote, *c.steered = wrote, steered // what was there, in another form
			}
			c.find(T2, "formats files")
			return
		}
		for _, w := range o.operands {
			c.read(w)
		}
		c.find(T0, "looks")
	default:
		c.find(T3, "loads configuration of the workspace")
	}
}

func (c *command) golang(args []word) {
	verb := ""
	if len(args) > 0 && args[0].static {
		verb = args[0].text
	}
	if verb != "help" && c.goNewer() {
		c.find(T3, "may fetch another go, and run it")
	}
	switch verb {
	case "version", "help", "doc":
		if verb == "doc" && c.goReaches() {
			c.find(T3, "may fetch what the project names")
		}
		c.find(T0, "looks")
	case "env":
		c.find(T0, "looks")
	case "fmt":
		if c.GoReaches != nil && !c.Place.Disposable && (c.dirs == nil || slices.ContainsFunc(c.dirs, c.GoReaches)) {
			c.find(T3, "may fetch what the project names")
		}
		if len(args) == 1 {
			c.through(literal("."))
		}
		for _, w := range args[1:] {
			if w.text = strings.TrimSuffix(w.text, "..."); w.text != "" || !w.static {
				c.written(w)
				c.through(w)
			}
		}
		c.find(T2, "formats files")
	case "vet":
		away := slices.ContainsFunc(args[1:], func(w word) bool {
			return strings.HasPrefix(w.text, "/") || slices.Contains(strings.Split(w.text, "/"), "..") || !w.static
		})
		if c.goReaches() || away && c.GoReaches != nil && !c.Place.Disposable {
			c.find(T3, "may fetch what the project names, or start a compiler")
		}
		c.find(T0, "looks")
	default:
		c.find(T3, "runs project code")
	}
}

// goReaches reports whether go may leave the directory it looks at.
func (c *command) goReaches() bool {
	if c.GoReaches == nil || c.Place.Disposable {
		return false
	}
	return c.dirs == nil || c.wrote != nil && *c.wrote || len(c.filled) > 0 || slices.ContainsFunc(c.dirs, c.GoReaches)
}

// goNewer reports whether go may fetch another release of itself.
func (c *command) goNewer() bool {
	if c.GoNewer == nil || c.Place.Disposable {
		return false
	}
	return c.dirs == nil || c.wrote != nil && *c.wrote || len(c.filled) > 0 || slices.ContainsFunc(c.dirs, c.GoNewer)
}

// code judges programs that run what they are given.
func (c *command) code(name string, args []word) {
	if f := forms()[name]; f != nil && f.fits(c, args) { // it says its version, and loads nothing of the project
		c.find(T0, "looks")
		return
	}
	for _, w := range args {
		if w.input {
			c.find(TX, "runs text that is not known")
			return
		}
	}
	publish := []string{"publish", "login", "logout", "adduser", "owner", "unpublish", "deprecate", "dist-tag", "access", "token", "push", "upload", "deploy", "yank", "release", "nuget", "team", "star", "hook", "trust"}
	for _, w := range args {
		if slices.Contains([]string{"npm", "yarn", "pnpm", "bun", "cargo", "gem", "poetry", "twine", "uv", "hatch", "flit", "mvn", "gradle", "gradlew", "dotnet", "composer", "mix", "lerna", "conda", "semantic-release", "goreleaser", "sbt"}, name) &&
			w.static && slices.Contains(publish, w.text) {
			c.find(T4, "publishes")
			return
		}
	}
	verb := at(leading(args), 0)
	switch {
	case name == "npm" && shortVerb(verb, strings.Fields("un up add test tst t i in ins inst insta instal install start stop st pack ping prune ls ll la list run ci audit exec fund init link"), publish),
		name == "gem" && shortVerb(verb, strings.Fields("install list update"), []string{"push", "yank", "signin", "signout", "owner"}),
		name == "semantic-release" || name == "goreleaser" && !slices.Contains([]string{"build", "check", "healthcheck", "init", "jsonschema"}, verb),
		publishes(name, args) && !slices.Contains(strings.Fields("make gmake just task rake ninja cmake ant python python2 python3 pypy node nodejs ruby perl php bazel pytest tox nox jest vitest mocha rspec"), name):
		c.find(T4, "publishes")
		return
	}
	if strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy") {
		for i, w := range args {
			module := args[i+1:]
			if joined, is := strings.CutPrefix(w.text, "-m"); w.static && is && joined != "" {
				module = append([]word{literal(joined)}, module...)
				w.text = "-m"
			}
			if w.static && w.text == "-m" && len(module) > 0 && module[0].static {
				if publishes(name, module) || slices.Contains(reaching, module[0].text) || outward(module[0].text) {
					c.find(T4, "publishes, or acts on another machine")
					return
				}
			}
		}
	}
	if launcher(name, args) {
		c.started(args)
	}
	if name == "nix" && at(leading(args), 0) == "copy" && flagged(args, "--to") {
		c.find(T4, "publishes")
	}
	if slices.Contains([]string{"python", "python2", "python3", "node", "nodejs", "ruby", "perl", "php", "lua", "pwsh", "deno", "bun", "tclsh", "java", "expect"}, name) {
		o := split(args, "-c", "-m", "-e", "-W", "-X", "-I", "-r")
		operands := o.operands
		if slices.ContainsFunc(o.values("-c", "-e"), func(w word) bool { return !w.static }) {
			c.find(TX, "runs text that is not known")
		}
		if c.in.unknown && len(args) == 0 || c.in.unknown && len(operands) > 0 && operands[0].text == "-" && c.in.text == nil {
			c.find(TX, "runs text that is not known")
			return
		}
	}
	c.find(T3, "runs code that was not read")
}

func (c *command) packages(name string, args []word) {
	first := ""
	for _, w := range args {
		if !w.static {
			break
		}
		if !strings.HasPrefix(w.text, "-") {
			first = w.text
			break
		}
	}
	looks := []string{"list", "show", "search", "policy", "info", "depends", "rdepends", "madison", "repolist", "check-update", "provides", "history", "query", "outdated", "deps", "leaves", "dump", "stats", "pkgnames", "changelog"}
	flag := ""
	if len(args) > 0 && args[0].static {
		flag = args[0].text
	}
	switch {
	case slices.Contains(looks, first) && !split(args).hidden:
		c.find(T0, "looks")
	case (name == "dpkg" || name == "dpkg-query") && slices.Contains([]string{"-l", "-L", "-s", "-S", "-W", "--list", "--status", "--listfiles", "--search", "--show", "--print-architecture"}, flag):
		c.find(T0, "looks")
	case name == "rpm" && strings.HasPrefix(flag, "-q"):
		c.find(T0, "looks")
	case name == "pacman" && (strings.HasPrefix(flag, "-Q") || flag == "-Ss" || flag == "-Si"):
		c.find(T0, "looks")
	default:
		c.find(T3, "changes the packages of the machine", machine)
	}
}

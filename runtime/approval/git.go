package approval

import (
	"path"
	"slices"
	"strings"
)

// git judges git by its own grammar.
func (c *command) git(args []word) {
	i := 0
	for ; i < len(args); i++ {
		a := args[i]
		if !a.static {
			c.find(TX, "does not say what git does")
			return
		}
		switch {
		case a.text == "-c", a.text == "--config-env", strings.HasPrefix(a.text, "-c") && len(a.text) > 2 && !strings.HasPrefix(a.text, "--"),
			strings.HasPrefix(a.text, "--config-env="), strings.HasPrefix(a.text, "--exec-path="):
			c.find(TX, "git is told by -c what programs to run")
			return
		case a.text == "-C":
			if i++; i < len(args) {
				inner := c.child()
				inner.enter(args[i])
				if !inner.inWorkspace() {
					c.find(T3, "works in a repository that was not read")
				}
				c = inner
			}
			continue
		case a.text == "--git-dir", a.text == "--work-tree", a.text == "--namespace", strings.HasPrefix(a.text, "--git-dir="), strings.HasPrefix(a.text, "--work-tree="):
			c.find(T3, "works in a repository that was not read")
			if !strings.Contains(a.text, "=") {
				i++
			}
			continue
		case a.text == "--help" && i+1 < len(args):
			c.git(append([]word{literal("help")}, args[i+1:]...))
			return
		case a.text == "--version", a.text == "--help", a.text == "--html-path", a.text == "--exec-path":
			c.find(T0, "looks")
			return
		case slices.Contains([]string{"-p", "--paginate", "-P", "--no-pager", "--no-replace-objects", "--no-optional-locks", "--no-lazy-fetch", "--no-advice", "--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs"}, a.text):
			continue
		case strings.HasPrefix(a.text, "-"):
			c.find(TX, "does not say what git does") // the option may take the word that looks like the verb
			return
		}
		break
	}
	if i >= len(args) {
		c.find(T0, "looks")
		return
	}
	verb, rest := args[i].text, args[i+1:]
	all := texts(rest)
	o := split(rest)
	has := func(names ...string) bool {
		return slices.ContainsFunc(rest, func(w word) bool {
			for _, n := range names {
				if w.static && (w.text == n || strings.HasPrefix(w.text, n+"=")) {
					return true
				}
			}
			return false
		})
	}
	first := ""
	if len(o.operands) > 0 && o.operands[0].static {
		first = o.operands[0].text
	}
	looks := func() {
		// A file of a revision: HEAD:.env
		if slices.Contains([]string{"show", "cat-file", "blame", "annotate", "diff", "log", "grep", "whatchanged", "stash"}, verb) {
			for _, w := range rest {
				if ofRevision(w.text) {
					c.secrets = true
					c.find(T1s, "reads credentials")
				}
			}
		}
		if verb == "cat-file" && (o.has("--batch", "--batch-command") || abbreviated(o, "--batch-command")) && (c.in.unknown || c.in.text != nil && slices.ContainsFunc(strings.Fields(*c.in.text), ofRevision)) {
			c.find(T1s, "may show credentials of a revision")
		}
		if verb == "diff" {
			for _, w := range o.operands {
				if w.static && (path.IsAbs(w.text) || strings.Contains("/"+w.text+"/", "/../")) {
					c.read(w) // it compares files that are in no repository, too
				}
			}
		}
		if strings.Contains(joined(rest), "remotename") {
			c.remotes()
		}
		c.tracked(verb, rest)
		switch {
		case c.gitRuns():
			c.find(T3, "the repository's configuration may run programs")
		default:
			c.find(T0, "looks")
		}
	}
	switch verb {
	case "status", "log", "diff", "show", "blame", "annotate", "rev-parse", "ls-files", "ls-tree", "describe", "shortlog", "rev-list", "cat-file", "name-rev", "merge-base", "show-ref", "for-each-ref", "grep", "whatchanged",
		"diff-tree", "diff-index", "diff-files", "count-objects", "check-ignore", "check-attr", "var", "version", "help", "range-diff", "cherry", "show-branch", "verify-pack", "fsck":
		looks()
	case "branch", "tag":
		listing := []string{"-a", "-r", "-v", "-vv", "--list", "-l", "--all", "--remotes", "--verbose", "--show-current", "--contains", "--merged", "--no-merged", "--sort", "--format", "--points-at", "-n", "--no-color", "--color", "--column"}
		if len(rest) == 0 || all != nil && o.only(append(listing, "-n1")...) && (len(o.operands) == 0 || has("--list", "-l", "--contains", "--merged", "--no-merged", "--points-at")) {
			looks()
			return
		}
		c.find(T3, "changes the repository")
	case "remote":
		if (all != nil || len(rest) == 0) && (len(o.operands) == 0 || first == "show" && !has("-n") || first == "get-url") {
			if first == "show" {
				c.find(T3n, "reads the network")
				return
			}
			if len(rest) > 0 {
				c.remotes()
			}
			looks()
			return
		}
		c.find(T4, "changes where the repository is pushed")
	case "reflog", "stash", "worktree", "notes", "bundle", "submodule", "bisect", "sparse-checkout":
		if all != nil && (verb == "reflog" && (first == "" || first == "show") || (verb == "stash" || verb == "worktree" || verb == "notes" || verb == "sparse-checkout") && (first == "list" || first == "show") || verb == "submodule" && first == "status") {
			looks()
			return
		}
		if verb == "stash" && (first == "drop" || first == "clear") {
			c.find(T2d, "throws work away")
			return
		}
		c.find(T3, "changes the repository, or runs what its configuration says")
		if i := slices.IndexFunc(rest, func(w word) bool { return w.static && (w.text == "foreach" || w.text == "run") }); i >= 0 && (verb == "submodule" || verb == "bisect") {
			c.spoken(after(rest[i+1:], nil))
			c.run(after(rest[i+1:], nil))
		}
	case "lfs", "annex", "subtree", "flow", "review", "publish", "imap-send", "town", "machete", "pr", "sync", "cinnabar", "cvsexportcommit", "codecommit":
		if slices.Contains([]string{"pull", "fetch", "ls-files", "env", "status", "track", "untrack", "checkout", "install", "init", "add", "merge", "split", "version"}, first) && verb != "pr" && verb != "imap-send" {
			c.find(T3, "runs hooks or programs, and changes the repository")
			return
		}
		c.sends = true
		c.find(T4, "leaves this machine")
	case "config":
		if all != nil && (has("--get", "--list", "-l", "--get-all", "--get-regexp", "--show-origin") || first == "get" || first == "list") && !flaggedShort(rest, "-f") && !shortened(rest, []string{"--file", "--blob", "--unset", "--unset-all", "--replace-all", "--remove-section", "--rename-section", "--edit"}, "--re") && !has("--unset", "--add", "--replace-all", "--edit", "-e") {
			if text := strings.ToLower(joined(rest)); strings.Contains(text, "header") || strings.Contains(text, "password") || strings.Contains(text, "token") {
				c.secrets = true
				c.find(T1s, "shows a login")
			} else if strings.Contains(text, "url") || strings.Contains(text, "remote") {
				c.remotes()
			}
			looks()
			return
		}
		c.find(TX, "changes what programs git runs")
	case "add":
		if c.gitRuns() {
			c.find(T3, "the repository's configuration may run programs")
			return
		}
		if shortened(rest, []string{"--pathspec-from-file"}) {
			c.find(T1s, "may show what is in a file") // as the name of a file that there is not
		}
		c.shift()
		if c.indexed != nil {
			*c.indexed = true
		}
		c.find(T2, "changes the index")
	case "clean":
		if all != nil && o.has("-n", "--dry-run") && o.only("-n", "--dry-run", "-d", "-x", "-X", "-f") {
			looks()
			return
		}
		c.find(T2d, "deletes files that git does not keep")
	case "reset", "restore", "rm", "mv":
		c.find(T2d, "throws local work away")
	case "checkout", "switch":
		if has("--", ".", "-f", "--force", "--discard-changes") {
			c.find(T2d, "throws local work away")
		}
		c.find(T3, "runs hooks and changes files")
	case "filter-branch", "filter-repo":
		for i, w := range rest {
			if strings.HasSuffix(w.text, "-filter") || w.text == "--setup" || w.text == "-d" {
				c.text2(append(slices.Clone(rest), word{})[i+1])
			}
		}
		c.find(T2d, "rewrites the repository's history")
		c.find(T3, "changes the repository")
	case "gc", "prune", "update-ref", "replace":
		c.find(T2d, "rewrites the repository's history")
		c.find(T3, "changes the repository")
	case "fetch", "pull", "clone", "ls-remote", "archive":
		for _, w := range o.operands {
			if w.static && (strings.HasPrefix(w.text, "ext::") || strings.HasPrefix(w.text, "fd::")) {
				c.find(TX, "runs a program that an address names")
			}
		}
		if has("--upload-pack", "-u", "--exec", "--template", "--config", "-c") {
			c.find(TX, "runs a program that an option names")
		}
		if verb == "archive" && !has("--remote") {
			if c.gitRuns() {
				c.find(T3, "the repository's configuration may run programs")
			}
			if slices.ContainsFunc(rest, func(w word) bool { return ofRevision(w.text) }) {
				c.secrets = true
				c.find(T1s, "reads credentials")
			}
			c.tracked(verb, rest)
			c.find(T2, "packs the repository")
			return
		}
		c.find(T3n, "reads the network")
		if verb == "pull" {
			c.find(T3, "runs hooks and changes files")
		}
	case "push", "send-email", "request-pull", "svn", "p4", "credential", "daemon", "http-push", "send-pack", "remote-https":
		c.sends = true
		c.find(T4, "leaves this machine")
	case "commit", "merge", "rebase", "cherry-pick", "revert", "am", "apply", "init", "hook", "maintenance", "difftool", "mergetool", "instaweb", "gui", "citool":
		c.find(T3, "runs hooks or programs, and changes the repository")
		if verb == "rebase" {
			for _, w := range split(rest, "-x", "--exec").values("-x", "--exec") {
				c.text2(w)
			}
		}
	default:
		c.find(T3, "may be an alias for anything")
	}
}

// ofRevision reports whether text may name a file of credentials of a revision, or
// select it by a pattern: "HEAD:.env", ":(icase).ENV".
func ofRevision(text string) bool {
	if strings.HasPrefix(text, ":!") || strings.HasPrefix(text, ":^") {
		return false // it is left out
	}
	name := text[strings.LastIndexByte(text, ':')+1:]
	if rest, magic := strings.CutPrefix(name, "("); magic {
		_, name, _ = strings.Cut(rest, ")")
	}
	return Secret("", "/"+name) || strings.ContainsAny(name, "*?[") && mayBeSecret(name)
}

// inWorkspace reports whether every directory the shell may be in is in the workspace,
// also with its links resolved.
func (c *command) inWorkspace() bool {
	return c.dirs != nil && !slices.ContainsFunc(c.dirs, func(d string) bool {
		return slices.ContainsFunc(c.real(d, false), func(at string) bool { return !below(c.Workspace, at) })
	})
}

// gitRuns reports whether git may run programs that the repository names. In a
// machine of the session's own that stays inside.
func (c *command) gitRuns() bool {
	if c.GitRuns == nil || c.Place.Disposable {
		return false
	}
	return c.dirs == nil || c.shifted != nil && *c.shifted && c.Embeds != nil && c.Embeds() || slices.ContainsFunc(c.dirs, func(d string) bool {
		// What a command before it puts there is not there to be looked at.
		return c.filled[d] || c.GitRuns(d)
	})
}

// shift notes that what git finds later in the line is not what was looked at.
func (c *command) shift() {
	if c.shifted != nil {
		*c.shifted = true
	}
}

// flaggedShort reports whether an option of one letter is among args, alone or
// joined to its value.
func flaggedShort(args []word, name string) bool {
	return slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, name) })
}

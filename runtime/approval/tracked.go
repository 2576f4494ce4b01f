package approval

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// patches are the options of git with which it shows what is in files where it would
// not without them.
var patches = []string{"-p", "-u", "-U", "-c", "-L", "--patch", "--unified", "--cc", "--binary", "--patch-with-stat"}

// summaries are those with which it does not where it would.
var summaries = []string{"-s", "--no-patch", "--stat", "--numstat", "--shortstat", "--summary", "--name-only", "--name-status", "--raw", "--quiet", "--check", "--dirstat", "--compact-summary"}

// gitSplit reads the arguments of a verb of git by its form.
func gitSplit(verb string, rest []word) options {
	f := forms()["git"].verb(verb)
	if f != nil && len(rest) > 0 && f.verbs[rest[0].text] != nil {
		f, rest = f.verbs[rest[0].text], rest[1:]
	}
	return f.split(rest)
}

// unpacks reports whether a verb of git shows what is in files of the repository.
func unpacks(verb string, rest []word) bool {
	o := gitSplit(verb, rest)
	switch verb {
	case "grep":
		return !o.has("-l", "-L", "-c", "-q", "--files-with-matches", "--count", "--name-only", "--quiet")
	case "diff", "show", "range-diff":
		return o.has(patches...) || !o.has(summaries...)
	case "log", "whatchanged", "stash", "reflog", "diff-tree", "diff-index", "diff-files":
		return o.has(patches...)
	case "status":
		return len(o.values("-v", "--verbose")) > 0
	case "cat-file":
		return o.has("-p", "--batch", "--textconv", "--filters") || len(o.operands) > 0 && o.operands[0].text == "blob"
	}
	return verb == "archive"
}

// tracked finds the files of credentials that git shows without that a word names them.
func (c *command) tracked(verb string, rest []word) {
	if c.Tracked == nil || c.Place.Disposable || !unpacks(verb, rest) || c.gitRuns() {
		return
	}
	if verb == "cat-file" && slices.ContainsFunc(rest, func(w word) bool { return !w.static || strings.HasPrefix(w.text, "--batch") }) {
		c.find(T1s, "may show credentials of a revision")
		return
	}
	var words []string
	var paths, spared []word
	ended := false
	o := gitSplit(verb, rest)
	if verb == "grep" && !o.has("-e", "-f") && len(o.operands) > 0 {
		o.operands = o.operands[1:]
	}
	for _, w := range o.operands {
		switch {
		case !w.static:
			c.find(T1s, "may show credentials of a revision")
		case !strings.HasPrefix(w.text, ":") && c.present(w.text):
			paths = append(paths, w) // git refuses what may be a revision, too
		case !strings.HasPrefix(w.text, ":"):
			words = append(words, w.text)
		}
	}
	for _, w := range rest {
		switch not, is := strings.CutPrefix(strings.NewReplacer(":(exclude)", ":!", ":^", ":!").Replace(w.text), ":!"); {
		case is:
			spared = append(spared, literal(not))
		case w.text == "--":
			ended = true
		case ended:
			paths = append(paths, w)
		}
	}
	if (verb == "log" || verb == "whatchanged") && len(paths) == 0 && !recent(o, words) {
		c.find(T1s, "may show credentials of older revisions; say which files, or how many commits")
	}
	for _, dir := range c.dirs {
		all, known := c.Tracked(dir, words, verb == "diff" || verb == "status")
		if c.Secrets != nil && (c.indexed != nil && *c.indexed || verb == "grep" && o.has("--untracked")) {
			all = append(all, c.Secrets()...) // it may be in the index by then, or need not
		}
		all = slices.DeleteFunc(all, func(name string) bool {
			rel := strings.TrimPrefix(name, c.Workspace+"/")
			return slices.ContainsFunc(spared, func(w word) bool { return named(w.text, rel) }) ||
				len(paths) > 0 && !slices.ContainsFunc(paths, func(w word) bool { return c.asked(w, name) })
		})
		switch {
		case !known:
			c.find(T1s, "may show credentials of a revision")
		case len(all) > 0:
			c.find(T1s, "shows files of credentials, too: "+strings.TrimPrefix(all[0], c.Workspace+"/"))
		}
	}
}

// recent reports whether git log is told where to end, and looks for no text: what was
// deleted long ago is in no index.
func recent(o options, revisions []string) bool {
	if o.has("-S", "-G", "-g", "--walk-reflogs", "--all", "--branches", "--remotes", "--tags", "--glob", "--diff-filter", "--grep") {
		return false
	}
	if o.has("-n", "--max-count", "--since", "--after", "--no-walk") || slices.ContainsFunc(revisions, func(r string) bool { return strings.Contains(r, "..") || strings.HasPrefix(r, "^") }) {
		return true
	}
	for name := range o.given {
		if strings.Trim(name, "-0123456789#") == "" {
			return true
		}
	}
	return false
}

// asked reports whether a path that git is given may be for a file.
func (c *command) asked(w word, name string) bool {
	at, known := c.places(w)
	if !known || strings.HasPrefix(w.text, ":") {
		return true
	}
	return slices.ContainsFunc(at, func(p string) bool {
		if strings.ContainsAny(w.text, "*?[") {
			return may(p, name)
		}
		return below(p, name)
	})
}

// login finds what stands for a user in an address, save the one of ssh.
var login = regexp.MustCompile(`://[^/@\s]+@`)

// LoginIn reports whether a text holds an address with a login in it.
func LoginIn(text string) bool {
	for _, found := range login.FindAllString(text, -1) {
		if found != "://git@" {
			return true
		}
	}
	return false
}

// remotes finds a login in the addresses that git shows.
func (c *command) remotes() {
	if c.Remotes == nil || c.Place.Disposable {
		return
	}
	for _, dir := range c.dirs {
		if all, known := c.Remotes(dir); !known || slices.ContainsFunc(all, LoginIn) {
			c.secrets = true
			c.find(T1s, "shows a login")
		}
	}
}

// above reports whether a file of the name is in a directory where the shell may be, or
// in one of the workspace above it.
func (c *command) above(name string) bool {
	return c.dirs == nil || slices.ContainsFunc(c.dirs, func(dir string) bool {
		for ; below(c.Workspace, dir); dir = path.Dir(dir) {
			if _, err := os.Lstat(path.Join(dir, name)); err == nil {
				return true
			}
		}
		return false
	})
}

// charted is the chart that a verb of helm reads, if it need not be a directory.
func charted(verb string, words []string) string {
	switch {
	case verb == "template" && len(words) > 1, (verb == "show" || verb == "inspect") && len(words) > 2:
		return words[len(words)-1]
	}
	return ""
}

// present reports whether a file is there, wherever the shell may be.
func (c *command) present(name string) bool {
	at, known := c.places(literal(name))
	return known && !slices.ContainsFunc(at, func(p string) bool {
		_, err := os.Lstat(p)
		return err != nil
	})
}

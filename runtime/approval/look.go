package approval

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// revision matches what cloc takes for one of git's where there is no such file.
var revision = regexp.MustCompile(`(?i)^(?:[a-f\d]{5,64}|master|main|head)(?:[~^@].*)?$`)

// look judges what programs that print do beside reading the files that they name,
// which their forms tell.
func (c *command) look(name string, args []word) {
	o := forms()[name].split(args)
	switch name {
	case "sed":
		c.sed(args)
		return
	case "awk", "gawk", "mawk", "nawk":
		c.awk(args)
		return
	case "file":
		for _, w := range o.values("-m", "--magic-file") {
			for name := range strings.SplitSeq(w.text, ":") {
				w.text = name
				c.read(w)
			}
		}
	case "rg", "grep", "egrep", "fgrep", "zgrep":
		if !c.here() {
			c.find(T1s, "reads files outside the workspace") // without a name it reads what is there
		}
		if o.has("--follow", "--dereference-recursive") || name == "rg" && o.has("-L") || name != "rg" && o.has("-R") {
			c.followed()
		}
		c.chosen(o.values("-g", "--glob", "--iglob", "--include"))
		if name == "zgrep" && slices.ContainsFunc(args, func(w word) bool { return strings.Contains(w.text, "\n") }) {
			c.find(T3, "may run lines of a name of more than one") // older ones make a program of sed of it
		}
	case "fd", "fdfind":
		c.fd(name, args)
		return
	case "yq":
		for _, w := range c.yqTexts(o) {
			if !w.static || w.glob || !filters(w.text, yqWords) {
				c.find(T1s, "may read more than the file")
			}
		}
		if o.has("-i", "--inplace", "--in-place") {
			for i, w := range o.operands {
				if i > 0 || !strings.ContainsAny(w.text, "=|( ") {
					c.written(w) // the first may be an expression, or a file that is called so
				}
			}
			c.find(T2, "edits files")
		}
		for i, w := range append(slices.Clone(o.operands), o.values("--expression")...) {
			if i > 0 || strings.Contains(w.text, "/") || !c.in.unknown && w.static && Secret(c.Home, "/"+w.text) {
				c.read(w)
			}
		}
	case "yamllint":
		for _, w := range o.values("-d") {
			if strings.Contains(w.text, "from-file") {
				c.find(T1s, "reads a file whose name is not known")
			}
			if _, file, is := strings.Cut(w.text, "extends"); is {
				w.text = strings.Trim(strings.SplitN(file, ",", 2)[0], ` :{}'"`)
			} else if strings.ContainsAny(w.text, ":{") {
				continue
			}
			c.read(w)
		}
	case "cloc":
		// What it unpacks, and how, is told by the name.
		for _, w := range o.operands {
			if !w.static || w.glob || strings.ContainsAny(w.text, "'\"`$;|&<> \n") || slices.Contains(strings.Fields(".tar .tgz .gz .bz2 .tbz2 .xz .txz .zip .whl .ez .jar .war .rpm .deb .z .cpio .7z .dmg"), strings.ToLower(path.Ext(w.text))) {
				c.find(T3, "may run a program that unpacks")
			}
			if revision.MatchString(w.text) {
				c.find(T3, "may be packed by git, with the programs of its settings")
			}
		}
	case "mdcat":
		c.find(T3n, "may fetch what the file names")
	case "strings":
		for _, w := range args { // also where the value of an option stands
			if strings.HasPrefix(w.text, "@") {
				c.find(T1s, "reads the files that another one names")
			}
		}
	case "diff", "colordiff":
		if o.has("-r", "--recursive") || slices.ContainsFunc(o.operands, func(w word) bool { return path.Ext(w.text) == "" }) {
			c.followed()
		}
	}
	c.find(T0, "looks")
}

// fd judges what fd starts for the files that it finds.
func (c *command) fd(name string, args []word) {
	for i, w := range args {
		if !w.static || !slices.Contains([]string{"-x", "-X", "--exec", "--exec-batch"}, w.text) {
			continue
		}
		var words []word
		for k, w := range args[i+1:] {
			if w.static && w.text == ";" {
				c.fd(name, args[i+k+2:])
				break
			}
			if strings.ContainsAny(w.text, "{}") {
				w.static, w.found = false, w.static && strings.HasPrefix(w.text, "{") && !strings.Contains(w.text, "..")
			}
			words = append(words, w)
		}
		before := forms()[name].split(args[:i]).operands
		if slices.ContainsFunc(before, func(w word) bool { return Secret("", "/"+w.text) || picks(w.text) }) {
			c.secrets = true
			c.find(T1s, "reads credentials")
		}
		c.perFile(append(words, word{many: w.text == "-X" || w.text == "--exec-batch", found: true}), !c.here() || slices.ContainsFunc(before, c.outside))
		return
	}
	c.find(T0, "looks")
}

// yqTexts are the program texts of yq. The first operand is one, unless it can be
// nothing but the name of a file.
func (c *command) yqTexts(o options) []word {
	all := slices.Clone(o.values("--expression"))
	operands := o.operands
	if len(operands) > 0 && slices.Contains([]string{"e", "eval", "ea", "eval-all"}, operands[0].text) {
		operands = operands[1:]
	}
	if len(operands) == 0 || len(all) > 0 {
		return all
	}
	if w := operands[0]; w.static && slices.Contains([]string{".yaml", ".yml", ".json", ".xml", ".toml", ".properties", ".csv", ".tsv"}, path.Ext(w.text)) && w.text[0] != '.' && strings.IndexFunc(w.text, func(r rune) bool { return r != '-' && r != '.' && r != '/' && (r > 126 || !isWord(byte(r))) }) < 0 {
		c.read(w)
		return all
	}
	return append(all, operands[0])
}

// chosen judges the patterns that choose the files to read.
func (c *command) chosen(patterns []word) {
	for _, w := range patterns {
		if w.static && !strings.HasPrefix(w.text, "!") && (Secret("", "/"+w.text) || strings.ContainsAny(w.text, "*?[") && mayBeSecret(w.text)) {
			c.secrets = true
			c.find(T1s, "reads credentials")
		}
	}
}

// abbreviated reports whether an option may be short for one of the full ones.
func abbreviated(o options, full ...string) bool {
	for name := range o.given {
		for _, f := range full {
			if strings.HasPrefix(name, "--") && len(name) > 2 && name != f && strings.HasPrefix(f, name) {
				return true
			}
		}
	}
	return false
}

func (c *command) readAll(o options) {
	for _, w := range o.operands {
		c.read(w)
	}
	c.find(T0, "looks")
}

// jqMore finds what lets a jq program read more than its input.
var jqMore = regexp.MustCompile(`(?:^|[^.\w])env\b|\$ENV\b|\bimport\b|\binclude\b`)

// sedLooks matches a sed script of commands that only change what is printed.
var sedLooks = regexp.MustCompile(`^(?:[\s;{}]*(?:(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)(?:\s*[,~]\s*(?:[+~]?\d+|\$|/(?:[^/\\\n]|\\.)*/I?))?)?\s*!?\s*` +
	`(?:[pdDPqQ=nN](?:\s*\d*)|s(?:/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/|\|(?:[^|\\\n]|\\.)*\|(?:[^|\\\n]|\\.)*\||#(?:[^#\\\n]|\\.)*#(?:[^#\\\n]|\\.)*#|,(?:[^,\\\n]|\\.)*,(?:[^,\\\n]|\\.)*,|:(?:[^:\\\n]|\\.)*:(?:[^:\\\n]|\\.)*:|@(?:[^@\\\n]|\\.)*@(?:[^@\\\n]|\\.)*@)[gpiIm\d]*` +
	`)?\s*(?:[;}\n]|$))*$`)

// sedBracket finds a set of characters that may hold what else ends a part of the
// script.
var sedBracket = regexp.MustCompile(`\[\^?\]?[^\]]*[/|#,:@\n;]|\[[^\]]*\[[.=]`)

func (c *command) sed(args []word) {
	o := split(args, "?-i", "-e", "-f", "-l", "--expression", "--file", "--line-length")
	scripts := o.values("-e", "--expression")
	files := o.operands
	if len(scripts) == 0 && !o.has("-f", "--file") && len(files) > 0 {
		scripts, files = files[:1], files[1:]
	}
	if o.has("-f", "--file", "--follow-symlinks") || o.hidden && len(scripts) == 0 || abbreviated(o, "--in-place", "--file", "--expression") {
		c.find(T3, "runs a program text that was not read")
	}
	for _, w := range args {
		// The copy of the file that "-i" takes has a name made of what is joined to it.
		name, value, _ := strings.Cut(w.text, "i")
		long, is := strings.CutPrefix(w.text, "--in-")
		if is {
			_, value, _ = strings.Cut(long, "=")
		}
		if !w.static || !is && (name == "" || name[0] != '-' || strings.Trim(name[1:], "nrEszu") != "") || value == "" {
			continue
		}
		if strings.ContainsAny(value, "/*") {
			c.find(T3, "keeps a copy in a file of another name", machine)
			continue
		}
		for _, f := range files {
			c.kept(f, []word{literal(value)})
		}
	}
	if !o.only("-e", "-f", "-l", "-n", "-r", "-E", "-i", "-s", "-u", "-z", "--expression", "--file", "--line-length", "--quiet", "--silent", "--regexp-extended", "--separate", "--unbuffered", "--null-data", "--posix", "--debug", "--sandbox", "--in-place", "--help", "--version", "--follow-symlinks") &&
		!slices.ContainsFunc(args, func(w word) bool {
			return w.static && len(w.text) > 2 && strings.HasPrefix(strings.TrimLeft(w.text, "-nrEsuz"), "i")
		}) {
		c.find(T3, "has an option that may do more than look")
	}
	if slices.ContainsFunc(args, func(w word) bool { return w.static && w.text == "-i" }) && !o.has("-e", "--expression") && len(files) > 1 {
		// On a Mac the first word is the ending of the copy, and the next the script.
		for i, r := range files[0].text {
			if rest, _, _ := strings.Cut(files[0].text[i+1:], "\n"); r == 'w' || r == 'r' {
				c.written(word{text: strings.TrimSpace(rest), static: files[0].static && strings.TrimSpace(rest) != ""})
			}
		}
	}
	edits := false
	for name := range o.given {
		// "-i.bak" reads as the letters of options.
		edits = edits || name == "-i" || name == "--in-place"
	}
	for _, s := range scripts {
		if !s.static || s.glob || !sedLooks.MatchString(s.text) || sedBracket.MatchString(s.text) {
			c.find(T3, "runs a program text that was not read")
		}
	}
	if edits && slices.ContainsFunc(files, word.open) {
		c.find(T3, "edits files whose names are not in the line")
	}
	for _, w := range files {
		if edits {
			c.written(w)
		} else {
			c.read(w)
		}
	}
	if edits {
		c.find(T2, "edits files")
		return
	}
	c.find(T0, "looks")
}

// awk judges awk, whose program text may hold no more than awkLooks knows.
func (c *command) awk(args []word) {
	o := split(args, "-F", "-v", "-f", "-i", "-l", "-e", "-E", "--field-separator", "--assign", "--file", "--include", "--load", "--source", "--exec")
	if !o.only("-F", "-v", "--field-separator", "--assign", "--version", "--posix", "--traditional") {
		c.find(T3, "runs a program text that was not read")
		return
	}
	if len(o.operands) == 0 {
		c.find(T0, "looks")
		return
	}
	program := o.operands[0]
	if !program.static || program.glob || !awkLooks(program.text) {
		c.find(T3, "runs a program text that was not read")
		return
	}
	o.operands = o.operands[1:]
	c.readAll(o)
}

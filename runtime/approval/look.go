package approval

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// look judges programs that print what they are given, as long as no option makes
// them do more.
func (c *command) look(name string, args []word) {
	more := func() { c.find(T3, "may do more than look") }
	known := options{}
	switch name {
	case "sed", "awk", "gawk", "mawk", "nawk", "xmllint", "shellcheck", "yamllint", "hadolint", "tflint", "xxd", "fd", "fdfind", "hostname":
	default:
		known = c.options(name, args)
	}
	switch name {
	case "sed":
		c.sed(args)
		return
	case "awk", "gawk", "mawk", "nawk":
		c.awk(args)
		return
	case "sort":
		o := split(args, "-o", "-k", "-t", "-S", "-T", "--output", "--key", "--field-separator", "--buffer-size", "--temporary-directory", "--compress-program", "--files0-from", "--parallel", "--batch-size", "--sort")
		if o.has("--compress-program", "--files0-from") || abbreviated(o, "--compress-program", "--output", "--files0-from") {
			more()
		}
		for _, w := range o.values("-o", "--output") {
			c.written(w)
		}
		c.readAll(o)
	case "uniq":
		o := split(args, "-f", "-s", "-w", "--skip-fields", "--skip-chars", "--check-chars")
		if o.hidden || slices.ContainsFunc(o.operands, func(w word) bool { return w.glob || w.many }) {
			more()
		}
		if len(o.operands) > 1 {
			c.written(o.operands[1])
			o.operands = o.operands[:1]
		}
		c.readAll(o)
	case "date":
		o := split(args, "-d", "-r", "-s", "--date", "--reference", "--set", "-f", "--file")
		for _, w := range o.values("-f", "--file") {
			c.read(w)
		}
		if o.has("-s", "--set") || o.hidden && len(args) == 1 || slices.ContainsFunc(args, func(w word) bool { return w.many }) {
			c.find(T3, "changes the clock", machine)
			return
		}
		for _, w := range o.operands {
			if w.static && !strings.HasPrefix(w.text, "+") {
				c.find(T3, "changes the clock", machine)
			}
		}
		c.find(T0, "looks")
	case "hostname":
		o := split(args)
		if len(o.operands) > 0 || o.has("-F", "-b", "--file", "--boot") {
			c.find(T3, "changes the name of the machine", machine)
			return
		}
		c.find(T0, "looks")
	case "tree":
		o := split(args, "-L", "-P", "-I", "-o", "-H", "-T")
		for _, w := range o.values("-o") {
			c.written(w)
		}
		if o.has("-R") || o.hidden {
			more()
		}
		c.find(T0, "looks")
	case "xxd":
		// Its options of several letters have one dash: "-ps".
		var plain []word
		for _, w := range args {
			if long := strings.TrimLeft(w.text, "-"); w.static && long != w.text && slices.Contains([]string{"seek", "skip", "cols", "groupsize", "group", "len", "offset"}, long) {
				w.text = "-" + long[:1]
				if long == "skip" {
					w.text = "-s"
				}
			}
			if w.glob || w.many {
				more()
			}
			if !w.static || !slices.Contains([]string{"-ps", "-p", "-plain", "-r", "-revert", "-i", "-include", "-b", "-u", "-a"}, w.text) {
				plain = append(plain, w)
			}
		}
		o := c.options(name, plain)
		for _, w := range o.operands[min(1, len(o.operands)):] {
			c.written(w)
		}
		if len(o.operands) > 0 {
			c.read(o.operands[0])
		}
		c.find(T0, "looks")
	case "file":
		o := split(args, "-m", "-F", "-f", "-e", "-P", "--files-from", "--magic-file")
		if o.has("-C", "--compile") || o.hidden {
			more()
		}
		for _, w := range o.values("-f", "--files-from", "-m", "--magic-file") {
			for name := range strings.SplitSeq(w.text, ":") {
				w.text = name
				c.read(w)
			}
		}
		c.find(T0, "looks")
	case "rg":
		o := split(args, "-e", "-f", "-g", "-t", "-T", "-A", "-B", "-C", "-m", "-M", "-j", "-r", "--pre", "--glob", "--type", "--max-count", "--regexp", "--hostname-bin", "--max-depth", "--color", "--sort")
		if o.has("--pre", "--hostname-bin", "--search-zip", "-z") {
			more()
		}
		if known.has("-L", "--follow") {
			c.followed()
		}
		c.chosen(known.values("-g", "--glob", "--iglob"))
		c.pattern(known, "-e", "-f", "--regexp", "--file")
	case "fd", "fdfind":
		for i, w := range args {
			if w.static && (w.text == "-x" || w.text == "-X" || w.text == "--exec" || w.text == "--exec-batch") {
				var words []word
				for k, w := range args[i+1:] {
					if w.static && w.text == ";" {
						c.look(name, args[i+k+2:])
						break
					}
					if strings.ContainsAny(w.text, "{}") {
						w.static, w.found = false, w.static && strings.HasPrefix(w.text, "{")
					}
					words = append(words, w)
				}
				before := c.options(name, args[:i]).operands
				if slices.ContainsFunc(before, func(w word) bool { return Secret("", "/"+w.text) || picks(w.text) }) {
					c.secrets = true
					c.find(T1s, "reads credentials")
				}
				c.perFile(append(words, word{many: w.text == "-X" || w.text == "--exec-batch", found: true}), !c.here() || slices.ContainsFunc(before, c.outside))
				return
			}
			if !w.static {
				more()
				return
			}
		}
		c.options(name, args)
		c.find(T0, "looks")
	case "yq":
		o := split(args, "-o", "-p", "-I", "-s", "--output-format", "--input-format", "--indent", "--split-exp", "--from-file")
		if o.has("-s", "--split-exp") || o.hidden {
			more()
		}
		if o.has("-i", "--inplace") {
			for i, w := range o.operands {
				if i > 0 || !strings.ContainsAny(w.text, "=|( ") {
					c.written(w) // the first may be an expression, or a file that is called so
				}
			}
			c.find(T2, "edits files")
		}
		for i, w := range append(slices.Clone(o.operands), known.values("--expression")...) {
			if i > 0 || strings.Contains(w.text, "/") || !c.in.unknown && w.static && Secret(c.Home, "/"+w.text) {
				c.read(w)
			}
			if w.static && (jqMore.MatchString(w.text) || strings.Contains(w.text, "eval") || strings.Contains(w.text, "load") || strings.Contains(w.text, "env(") || strings.Contains(w.text, "strenv") || strings.Contains(w.text, "envsubst") || strings.Contains(w.text, "system")) {
				c.find(T1s, "may read more than the file")
			}
		}
		c.find(T0, "looks")
	case "jq", "gojq":
		o := split(args, "-L", "--indent", "--arg", "--argjson", "--slurpfile", "--rawfile", "-f", "--from-file")
		for _, w := range o.operands {
			if w.static && jqMore.MatchString(w.text) {
				c.secrets = true
				c.find(T1s, "shows the environment, or reads more than the file")
			}
		}
		if o.has("-L", "-f", "--from-file", "--rawfile", "--slurpfile") || o.hidden {
			more()
		}
		if len(o.operands) > 1 {
			o.operands = o.operands[1:]
			c.readAll(o)
		}
		c.find(T0, "looks")
	case "xmllint":
		o := split(args, "--xpath", "--encode")
		if !o.only("--xpath", "--encode", "--format", "--noout", "--html", "--nowarning", "--pretty") || o.hidden {
			more()
		}
		for _, w := range o.operands {
			if !w.static || strings.Contains(w.text, "://") {
				more()
			}
		}
		c.readAll(o)
	case "bat", "batcat":
		if o := split(args, "-l", "-r", "-H", "--language", "--style", "--line-range", "--paging", "--pager", "--color", "--theme"); o.has("--pager") || o.hidden {
			more()
		} else {
			c.readAll(o)
		}
	case "shellcheck", "yamllint", "hadolint", "tflint":
		if name == "tflint" {
			c.find(T3, "loads plug-ins of the workspace")
			return
		}
		if o := split(args, "-s", "-e", "-f", "-x", "-c", "-S", "-o", "-W", "-d", "-i", "-P", "--shell", "--exclude", "--format", "--config", "--config-file"); o.hidden || name == "shellcheck" && (o.has("-a") || abbreviated(o, "--check-sourced") || o.has("--check-sourced")) {
			more()
		} else {
			if name == "yamllint" {
				for _, w := range append(o.values("-c", "--config-file"), o.values("-d")...) {
					if _, file, is := strings.Cut(w.text, "extends"); is {
						w.text = strings.Trim(strings.SplitN(file, ",", 2)[0], ` :{}'"`)
					} else if strings.ContainsAny(w.text, ":{") {
						continue
					}
					c.read(w)
				}
				if abbreviated(o, "--config-file", "--config-data") || o.has("--config-data") {
					more()
				}
			}
			c.readAll(o)
		}
	case "grep", "egrep", "fgrep", "zgrep", "ag", "ack":
		if known.has("-R", "--dereference-recursive") || name == "ag" || name == "ack" {
			c.followed()
		}
		c.chosen(known.values("--include"))
		c.pattern(known, "-e", "-f", "--regexp", "--file")
	case "cloc":
		// What it unpacks, and how, is told by the name.
		for _, w := range known.operands {
			if !w.static || w.glob || strings.ContainsAny(w.text, "'\"`$;|&<> \n") || slices.Contains([]string{".tar", ".tgz", ".gz", ".bz2", ".tbz2", ".xz", ".txz", ".zip", ".whl", ".ez", ".jar", ".war", ".rpm", ".deb", ".z", ".cpio", ".7z", ".dmg"}, strings.ToLower(path.Ext(w.text))) {
				more()
			}
		}
		c.find(T0, "looks")
	case "ls", "dir", "vdir", "stat", "df", "realpath", "readlink", "exa", "eza", "numfmt", "tokei", "scc":
		c.find(T0, "looks")
	case "base64", "base32":
		c.readAll(known)
	case "tail", "head":
		c.readAll(known)
	case "cut":
		c.readAll(known)
	case "tr":
		c.find(T0, "looks")
	case "wc", "du":
		o := split(args, "--files0-from", "--exclude", "-d", "--max-depth", "-X", "--exclude-from", "-B", "-t")
		for _, w := range o.values("--files0-from", "-X", "--exclude-from") {
			c.read(w)
		}
		if name == "du" {
			o.operands = nil
		}
		c.readAll(o)
	case "mdcat":
		c.find(T3n, "may fetch what the file names")
		c.readAll(known)
	case "strings":
		for _, w := range args { // also where the value of an option stands
			if file, is := strings.CutPrefix(w.text, "@"); is {
				c.read(literal(file))
			}
		}
		c.readAll(known)
	case "diff", "colordiff":
		for _, w := range split(args, "--from-file", "--to-file", "-X", "--exclude-from").values("--from-file", "--to-file", "-X", "--exclude-from") {
			c.read(w)
		}
		if o := split(args); o.has("-r", "--recursive") || slices.ContainsFunc(o.operands, func(w word) bool { return path.Ext(w.text) == "" }) {
			c.followed()
		}
		c.readAll(split(args, "-U", "-C", "-I", "-x", "-X", "-W", "--exclude", "--label", "-L", "--ignore-matching-lines", "--color", "--unified", "--context"))
	default:
		c.readAll(known)
	}
}

// chosen judges the patterns that choose the files to read.
func (c *command) chosen(patterns []word) {
	for _, w := range patterns {
		if w.static && (Secret("", "/"+w.text) || strings.ContainsAny(w.text, "*?[") && mayBeSecret(w.text)) {
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

// pattern judges a search: the first operand is the pattern unless an option gives it.
func (c *command) pattern(o options, given ...string) {
	if !c.here() {
		c.find(T1s, "reads files outside the workspace") // without a name it reads what is there
	}
	if !o.has(given...) && len(o.operands) > 0 {
		o.operands = o.operands[1:]
	}
	for _, w := range o.values("-f", "--file") {
		c.read(w)
	}
	c.readAll(o)
}

// jqMore finds what lets a jq program read more than its input.
var jqMore = regexp.MustCompile(`(?:^|[^.\w])env\b|\$ENV\b|\bimport\b|\binclude\b`)

// sedLooks matches a sed script of commands that only change what is printed.
var sedLooks = regexp.MustCompile(`^(?:[\s;{}]*(?:(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)(?:\s*[,~]\s*(?:[+~]?\d+|\$|/(?:[^/\\\n]|\\.)*/I?))?)?\s*!?\s*` +
	`(?:[pdDPqQ=nNgGhHxlz](?:\s*\d*)|s(?:/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/|\|(?:[^|\\\n]|\\.)*\|(?:[^|\\\n]|\\.)*\||#(?:[^#\\\n]|\\.)*#(?:[^#\\\n]|\\.)*#|,(?:[^,\\\n]|\\.)*,(?:[^,\\\n]|\\.)*,|:(?:[^:\\\n]|\\.)*:(?:[^:\\\n]|\\.)*:|@(?:[^@\\\n]|\\.)*@(?:[^@\\\n]|\\.)*@)[gpiIm\d]*` +
	`|y/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/|:\s*\w+|[bt]\s*\w*)?\s*(?:[;}\n]|$))*$`)

// sedBracket finds a set of characters that may hold what else ends a part of the
// script.
var sedBracket = regexp.MustCompile(`\[\^?\]?[^\]]*[/|#,:@\n;]`)

func (c *command) sed(args []word) {
	o := split(args, "-e", "-f", "-l", "--expression", "--file", "--line-length")
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
		if !s.static || !sedLooks.MatchString(s.text) || sedBracket.MatchString(s.text) {
			c.find(T3, "runs a program text that was not read")
		}
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

// awkActs finds what lets an awk program do more than print.
var awkActs = regexp.MustCompile(`system|getline|[|>@]|close|ENVIRON|ARGV|SYMTAB|PROCINFO|include|load|fflush|print.*"/`)

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
	if !program.static || awkActs.MatchString(program.text) {
		c.find(T3, "runs a program text that was not read")
		return
	}
	o.operands = o.operands[1:]
	c.readAll(o)
}

package approval

import (
	"path"
	"slices"
	"strings"

	"github.com/talkops-ai/talkops/runtime/obeyed"
)

// cd follows a change of directory.
func (c *command) cd(name string, args []word) {
	o := split(args)
	c.find(T0, "looks")
	c.loosen("PWD")
	switch {
	case name != "cd":
		c.dirs = nil
	case len(o.operands) == 0:
		if o.hidden || c.Home == "" || c.loose("HOME") || len(args) > 0 && args[0].text == "-" {
			c.dirs = nil
			return
		}
		c.enter(literal(c.Home))
	case len(o.operands) > 1, o.operands[0].text == "-":
		c.dirs = nil
	default:
		c.enter(o.operands[0])
	}
}

// enter makes w a directory where the shell may be; entering may also fail.
func (c *command) enter(w word) {
	to, known := c.places(w)
	if !known || w.glob {
		c.dirs = nil
		return
	}
	c.dirs = either(c.dirs, to)
}

func (c *command) create(name string, args []word) {
	o := split(args, "-m", "-d", "-r", "-t", "--mode", "--date", "--reference", "-p", "--tmpdir", "--suffix")
	if name == "mkdir" {
		o = split(args, "-m", "--mode")
	}
	operands := o.operands
	if name == "chmod" || name == "setfacl" || name == "chattr" {
		// A mode may look like an option, and an option may stand for the mode.
		operands = slices.DeleteFunc(slices.Clone(args), func(w word) bool { return w.static && strings.HasPrefix(w.text, "-") })
	}
	if name == "chmod" && o.has("-R", "--recursive") {
		for _, w := range operands {
			if at, ok := c.places(w); ok && slices.ContainsFunc(at, c.vital) {
				c.find(T5, "changes the modes of the whole machine")
				return
			} else if ok && slices.ContainsFunc(at, func(p string) bool { return everything(c.Workspace, p) || below(p, c.Workspace) }) {
				c.find(T3, "may make hooks of git run")
			}
		}
	}
	if name == "mktemp" {
		c.find(T0, "makes a temporary file")
		return
	}
	if name == "setfacl" && (shortened(args, []string{"--restore", "--set-file", "--modify-file", "--remove-file"}, "--set") || o.has("-M", "-X")) {
		c.find(T3, "changes files of names that are not known", machine)
	}
	for _, w := range operands {
		c.written(w)
	}
	c.find(T2, "changes the workspace")
}

func (c *command) copy(name string, args []word) {
	o := split(args, "-t", "-S", "-m", "-o", "-g", "--target-directory", "--suffix", "--mode", "--owner", "--group")
	if shortened(args, []string{"--target-directory", "--strip-program", "--suffix"}, "--strip", "--target-directory", "--suffix") || o.has("--strip-program") {
		c.find(T3, "has an option that may do more", machine)
	}
	from, to := o.operands, o.values("-t", "--target-directory")
	if len(to) == 0 && len(from) > 0 {
		to, from = from[len(from)-1:], from[:len(from)-1]
	}
	for _, w := range to {
		c.written(w)
		c.kept(w, o.values("-S", "--suffix"))
	}
	if name == "cp" && (o.has("--parents") || abbreviated(o, "--parents")) {
		for _, w := range from {
			for _, dir := range to {
				dir.text, dir.static, dir.glob = dir.text+"/"+w.text, dir.static && w.static, dir.glob || w.glob
				c.written(dir)
			}
		}
	}
	tree := name == "mv" || o.has("-r", "-R", "-a", "--recursive", "--archive", "-T", "--no-target-directory")
	if o.has("-T", "--no-target-directory") && len(from) > 0 {
		from[0].text += "/." // what is in it
	}
	keeps := tree || o.has("-P", "-d", "--no-dereference") || abbreviated(o, "--no-dereference", "--recursive", "--archive")
	for _, w := range from {
		if at, known := c.places(w); keeps && c.Linked != nil && (!known || w.glob || slices.ContainsFunc(at, c.Linked)) {
			c.find(T3, "moves or copies a link, by which a name is another file")
		}
		c.placed(w, to, tree, name != "mv")
		switch name {
		case "mv":
			at, known := c.places(w)
			if !known {
				c.find(T3, "moves a file whose name is not known", machine)
			}
			for _, p := range at {
				switch {
				case c.vital(p):
					c.find(T5, "moves "+p)
				case everything(c.Workspace, p):
					c.find(T2d, "moves the whole workspace", whole)
				case !below(c.Workspace, p):
					c.find(T3, "moves a file from outside the workspace", machine)
				case Sensitive(c.Workspace, p):
					c.find(T3, "moves a file that programs obey")
				case Secret(c.Home, p):
					c.find(T1s, "moves credentials to another name")
				}
			}
		case "ln":
			at, known := c.places(w)
			for _, link := range to {
				// A relative one leads from where the link is.
				if where, ok := c.places(link); ok {
					c.fill(where)
				}
				if where, ok := c.places(link); ok && w.static && !path.IsAbs(w.text) && (o.has("-s", "--symbolic") || abbreviated(o, "--symbolic")) {
					for _, l := range where {
						at = append(at, path.Join(path.Dir(l), w.text))
					}
				}
			}
			if !known || slices.ContainsFunc(at, func(p string) bool { return !below(c.Workspace, p) }) {
				c.find(T3, "makes a link that leads out of the workspace", machine)
			}
			if slices.ContainsFunc(at, func(p string) bool { return Sensitive(c.Workspace, p) || Secret(c.Home, p) }) {
				c.find(T3, "makes another name for a file of credentials, or one that programs obey")
			}
			for _, p := range at {
				if c.sways(p); c.Sways != nil && !regular(p) {
					c.sways(p + "/") // by the link's name
				}
			}
		default:
			c.read(w)
			if at, _ := c.places(w); name == "cp" && (o.has("-l", "-s", "--link", "--symbolic-link") || abbreviated(o, "--link", "--symbolic-link")) && slices.ContainsFunc(at, func(p string) bool { return Sensitive(c.Workspace, p) || w.glob }) {
				c.find(T3, "makes another name for a file that programs obey")
			} else if name == "cp" && (o.has("-l", "-s", "--link", "--symbolic-link") || abbreviated(o, "--link", "--symbolic-link")) {
				for _, p := range at {
					c.sways(p)
				}
			}
		}
	}
	c.find(T2, "changes the workspace")
}

// placed judges what a file becomes that is copied or moved to a directory, where it
// keeps its name; of a directory that is copied whole the names in it are not known.
// Through is whether a link that has the name is written through.
func (c *command) placed(from word, to []word, tree, through bool) {
	for _, dir := range to {
		at, known := c.places(dir)
		if !known {
			continue
		}
		if tree {
			c.fill(at)
		}
		if through {
			c.through(dir)
		}
		base := from.text[strings.LastIndexByte(strings.TrimRight(from.text, "/"), '/')+1:]
		base = strings.TrimRight(base, "/")
		if base == "" && from.static {
			continue
		}
		c.become(from, base, at, tree)
		if through && from.static && !from.glob {
			c.linkedIn(dir, base)
		}
		switch {
		case !from.static:
			if !from.input && c.picked(slices.ContainsFunc(at, func(p string) bool { return below(c.Workspace, p) })) {
				c.find(T3, "may write files that run programs later")
			}
		case base == "." || base == "..":
			if tree && slices.ContainsFunc(at, func(p string) bool { return p == path.Clean(c.Workspace) }) {
				c.find(T3, "may write files that run programs later")
			}
		case from.glob:
			names, _ := c.places(from)
			if slices.ContainsFunc(names, func(n string) bool {
				return slices.ContainsFunc(at, func(p string) bool { return Sensitive(c.Workspace, p+"/"+path.Base(n)) })
			}) {
				c.find(T3, "writes a file that runs programs later")
			}
			if base[0] == '.' || base[0] == '[' || base[0] == '?' {
				c.find(T3, "may write files that run programs later")
			}
		case slices.ContainsFunc(at, func(p string) bool { return Sensitive(c.Workspace, p+"/"+base) }):
			c.find(T3, "writes a file that runs programs later")
		}
	}
}

// linkedIn judges a link by the name of what is copied, in the directory that it is
// copied to: it is written through.
func (c *command) linkedIn(dir word, base string) {
	if c.Real == nil {
		return
	}
	dir.text += "/" + base
	at, _ := c.places(dir)
	for _, p := range at {
		switch {
		case Sensitive(c.Workspace, p):
			c.find(T3, "writes a file that runs programs later")
		case !below(c.Workspace, p):
			c.find(T3, "writes outside the workspace", machine)
		default:
			c.sways(p)
		}
	}
}

// picked reports whether files whose names are not known, of which a search may leave
// some out, can have a name that programs obey.
func (c *command) picked(inside bool) bool {
	return inside && (c.searched == nil || slices.ContainsFunc(strings.Fields(".envrc .npmrc .gitlab-ci.yml .pre-commit-config.yaml Jenkinsfile lefthook.yml cloudbuild.yaml mise.toml config.fish x.code-workspace"), func(name string) bool { return !c.searched(name) }))
}

// kept judges the copies that are kept of a file, whose names have something added.
func (c *command) kept(w word, suffixes []word) {
	for _, s := range suffixes {
		if !s.static || strings.Contains(s.text, "/") {
			c.find(T3, "keeps a copy in a file of another name", machine)
			continue
		}
		w.text += s.text
		c.written(w)
	}
}

func (c *command) disk(name string, args []word) {
	looks := func(w word) bool {
		return w.static && slices.Contains([]string{"-l", "--list", "--help", "--version", "-V", "list", "status", "print"}, w.text)
	}
	if len(args) > 0 && name != "wipefs" && !strings.HasPrefix(name, "mk") && slices.ContainsFunc(args, looks) && !slices.ContainsFunc(args, func(w word) bool {
		return !looks(w) && !(w.static && (w.text == "-s" && name == "parted" || strings.HasPrefix(w.text, "/dev/")))
	}) {
		c.find(T0, "looks")
		return
	}
	for _, w := range args {
		if !w.static || strings.HasPrefix(w.text, "/dev/") {
			c.find(T5, "changes a raw device")
			return
		}
	}
	if strings.HasPrefix(name, "mkfs") || name == "mke2fs" || name == "mkswap" {
		for _, w := range split(args, "-L", "-t", "-b", "-N", "-O", "-E").operands {
			c.destroyed(w, false)
		}
		return
	}
	c.find(T3, "changes disks", machine)
}

func (c *command) archive(name string, args []word) {
	switch name {
	case "tar", "bsdtar":
		c.tar(args)
		return
	case "unzip":
		o := split(args, "-d", "-x", "-P")
		// Only what stands before the archive is an option, and a second dash takes one back.
		first := slices.IndexFunc(args, func(w word) bool { return !w.static || !strings.HasPrefix(w.text, "-") })
		looks := first > 0 && split(args[:first]).has("-l", "-t", "-v", "-Z", "-p", "-c") && !slices.ContainsFunc(args[:first], func(w word) bool { return strings.Count(w.text, "-") > 1 })
		if looks && !o.hidden {
			for _, w := range o.operands {
				c.read(w)
			}
			return
		}
		c.find(T3, "writes files of names that are not known", machine)
		return
	case "zip":
		o := split(args, "-x", "-i", "-n", "-P")
		if !o.has("-y") {
			c.followed()
		}
		for i, w := range o.operands {
			if i == 0 {
				c.written(w)
			} else {
				c.read(w)
			}
		}
		return
	case "iconv", "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd":
		o := split(args, "-f", "-t", "-o", "-S", "-T", "-D")
		if name != "iconv" {
			o = split(args, "-S", "-T", "-o", "-D")
		}
		for _, w := range o.values("-o", "--output") {
			c.written(w)
		}
		for _, w := range o.operands {
			c.read(w)
			// The last one of "-t", "-l" and "-d" counts.
			acts := o.has("-d", "-z", "--decompress", "--compress", "--uncompress")
			if name != "iconv" && !o.has("-c", "--stdout") && (acts || !o.has("-t", "--test", "-l", "--list")) {
				c.written(w)
				// What is unpacked: gzip takes off "-gz" and "_z", too.
				for _, ends := range []string{path.Ext(w.text), "-gz", "_gz", "-z", "_z"} {
					name := w.text
					if ends != "" && len(name) > len(ends) && strings.EqualFold(name[len(name)-len(ends):], ends) {
						name = name[:len(name)-len(ends)]
					}
					if plain := w; w.static && name != w.text && strings.Trim(name, "*") != "" {
						plain.text = name
						c.written(plain)
					}
				}
			}
		}
		c.find(T0, "looks")
		return
	case "split", "csplit", "dos2unix", "unix2dos":
		o := split(args, "-l", "-b", "-n", "-a", "-C", "-t")
		if name == "split" {
			prefix := literal("x")
			if len(o.operands) > 1 {
				prefix = o.operands[1]
			}
			prefix.text = path.Dir(prefix.text + "x")
			c.through(prefix)
			if at, known := c.places(prefix); known {
				for _, p := range at {
					c.sways(p + "/") // the ending may be chosen
				}
			}
		}
		for i, w := range o.operands {
			if i == 0 {
				c.read(w) // what it holds gets other names
			}
			c.written(w)
			if name == "split" && i > 0 && (strings.HasPrefix(path.Base(w.text), ".") || obeyed.Begun(path.Base(w.text))) {
				c.find(T3, "may write a file that runs programs later")
			}
		}
		c.find(T2, "changes the workspace")
		return
	}
	c.find(T3, "writes files of names that are not known", machine)
}

func (c *command) tar(args []word) {
	lists, file, hidden, acts, packs, unpacks := false, word{}, false, false, false, false
	var operands, archives []word
	for i, a := range args {
		if !a.static {
			hidden = true
			continue
		}
		flags := ""
		switch {
		case strings.HasPrefix(a.text, "--"):
			name, value, _ := strings.Cut(a.text, "=")
			switch name {
			case "--list":
				lists = true
			case "--file":
				if file = literal(value); !strings.Contains(a.text, "=") && i+1 < len(args) {
					file = args[i+1]
				}
				archives = append(archives, file)
			case "--create":
				acts, packs = true, true
			case "--extract", "--get", "--append", "--update", "--delete":
				acts, unpacks = true, true
			case "--gzip", "--verbose", "--bzip2", "--xz", "--zstd", "--exclude", "--strip-components", "--wildcards", "--auto-compress", "--numeric-owner", "--no-unquote", "--null":
			default:
				c.find(T3, "may run a program")
			}
			continue
		case strings.HasPrefix(a.text, "-"):
			flags = a.text[1:]
		case i == 0:
			flags = a.text
		default:
			operands = append(operands, a)
			continue
		}
		if i == 0 && a.text[0] != '-' && strings.Contains(flags, "f") && strings.ContainsAny(flags, "CbXTLKNHVgI") {
			c.find(T3, "may write another file") // the values follow in the order of the letters
		}
		for k, f := range flags {
			switch f {
			case 't':
				lists = true
			case 'c':
				acts, packs = true, true
			case 'x', 'r', 'u', 'A':
				acts, unpacks = true, true
			case 'h':
				c.followed()
			case 'f':
				if rest := flags[k+1:]; strings.HasPrefix(a.text, "-") && rest != "" {
					file = literal(rest)
				} else if i+1 < len(args) {
					file = args[i+1]
				}
				archives = append(archives, file)
			case 'C':
				if flags[k+1:] != "" {
					c.find(T3, "reads or writes elsewhere", machine)
				}
			case 'z', 'j', 'J', 'Z', 'a', 'v', 'p', 'P', 'k', 'm', 'o', 'O', 'w', 'S', 'W', '-':
			default:
				c.find(T3, "may run a program")
			}
			if f == 'f' && strings.HasPrefix(a.text, "-") {
				break
			}
		}
	}
	if slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "@") || w.head != "" && w.head[0] == '@' }) {
		c.find(T1s, "packs the files that another one names")
	}
	if len(archives) > 1 {
		c.find(T3, "names several archives", machine)
	}
	if slices.ContainsFunc(archives, func(w word) bool { return strings.Contains(w.text, ":") }) {
		c.sends = true
		c.find(T4, "talks to another machine")
	}
	switch {
	case lists && !acts && !hidden:
		c.find(T0, "looks")
	case packs && !unpacks && !hidden && file.static:
		if file.text != "-" {
			c.written(file)
		}
		for _, w := range operands {
			if w.text != file.text {
				c.read(w)
			}
		}
		c.find(T2, "packs")
	default:
		for _, w := range operands {
			c.read(w)
		}
		c.find(T3, "writes files of names that are not known", machine)
	}
}

func joined(args []word) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteString(a.text + " ")
	}
	return b.String()
}

func (c *command) rsync(args []word) {
	o := split(args, "-e", "--rsh", "--exclude", "--include", "--filter", "-f", "--rsync-path", "--password-file", "--bwlimit", "--port", "--timeout", "-T", "--temp-dir", "--log-file", "--files-from", "--out-format", "-M", "--remote-option", "--link-dest", "--compare-dest", "--backup-dir", "-B", "--max-size", "--min-size")
	remote := o.has("-e", "--rsh", "--rsync-path", "-M", "--remote-option", "--daemon") || o.hidden
	for _, w := range o.operands {
		remote = remote || strings.Contains(w.text, ":")
	}
	if remote {
		c.sends = true
		for _, w := range o.operands {
			c.sent(w)
		}
		c.find(T4, "talks to another machine")
		return
	}
	if len(o.operands) > 0 {
		to := o.operands[len(o.operands)-1]
		for _, w := range o.operands[:len(o.operands)-1] {
			c.read(w)
			if strings.HasSuffix(w.text, "/") {
				w.text += "." // what is in it
			}
			c.placed(w, []word{to}, true, false)
		}
		if o.has("--delete", "--delete-after", "--delete-before", "--delete-excluded", "--remove-source-files") {
			c.destroyed(to, true)
		}
		c.written(to)
	}
	c.find(T2, "copies")
}

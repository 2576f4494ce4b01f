package approval

import (
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/talkops-ai/talkops/runtime/obeyed"
)

const mostNested = 8 // commands in commands

// call judges a simple command.
func (c *command) call(x *syntax.CallExpr) {
	c.part, c.plain = show(x), nil
	c.assign(x.Assigns, len(x.Args) == 0)
	c.part = show(x)
	if len(x.Args) == 0 {
		c.find(T0, "looks")
		return
	}
	var words []word
	variable := false
	c.compares = compared(x.Args)
	for i, w := range x.Args {
		if i == 0 {
			syntax.Walk(w, func(n syntax.Node) bool {
				_, is := n.(*syntax.ParamExp)
				variable = variable || is
				return true
			})
		}
		words = append(words, c.resolve(w)...)
	}
	c.compares = false
	c.part = show(x)
	if variable && len(words) > 0 {
		words[0].static = false
	}
	if len(x.Assigns) == 0 {
		c.plain = texts(words)
	}
	if len(words) > 0 && words[0].static && (words[0].text == "test" || words[0].text == "[") {
		c.tests(x.Args[1:])
	}
	c.direct = true
	c.run(words)
	c.plain = nil
}

// compared reports whether a command is a test of texts, which shows none of them: one
// that test cannot read, or that is no number, it would print.
func compared(args []*syntax.Word) bool {
	name := args[0].Lit()
	if name == "[[" {
		return true
	}
	if name != "test" && name != "[" {
		return false
	}
	rest := args[1:]
	if name == "[" && len(rest) > 0 {
		rest = rest[:len(rest)-1]
	}
	for len(rest) > 0 {
		for len(rest) > 1 && rest[0].Lit() == "!" {
			rest = rest[1:]
		}
		switch {
		case len(rest) > 1 && len(rest[0].Lit()) == 2 && rest[0].Lit()[0] == '-' && rest[0].Lit() != "-t":
			rest = rest[2:]
		case len(rest) > 2 && slices.Contains([]string{"=", "==", "!=", `\<`, `\>`}, rest[1].Lit()):
			rest = rest[3:]
		default:
			return len(rest) == 1
		}
		if len(rest) > 0 && !slices.Contains([]string{"-a", "-o"}, rest[0].Lit()) {
			return false
		}
		rest = rest[min(len(rest), 1):]
	}
	return true
}

// texts are the words of a command that hides nothing, or nil.
func texts(words []word) []string {
	var all []string
	for _, w := range words {
		if !w.static {
			return nil
		}
		all = append(all, w.text)
	}
	return all
}

// standard are the directories whose programs are the system's.
var standard = []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"}

// run judges a program and its arguments.
func (c *command) run(words []word) {
	if c.depth++; c.depth > mostNested {
		c.find(TX, "is nested too deeply to be read")
		c.depth--
		return
	}
	defer func() { c.depth-- }()
	direct := c.direct
	c.direct = false
	c.note(words)
	if len(words) == 0 {
		c.find(T0, "looks")
		return
	}
	first, args := words[0], words[1:]
	name := first.text
	switch {
	case !first.static || first.glob && name != "[" && name != "[[":
		c.find(TX, "does not say which program it runs")
		return
	case name == "":
		c.find(TX, "runs a program without a name")
		return
	}
	if _, bad := strange(name); bad || strings.ContainsFunc(name, func(r rune) bool { return r > 127 }) {
		c.find(TX, "has a name that only looks like a program's")
		return
	}
	if strings.Contains(name, "/") {
		if !slices.Contains(standard, path.Dir(name)) {
			c.find(T3, "runs code that was not read")
			c.program(path.Base(name), args) // a copy of a program does what it does
			return
		}
		name = path.Base(name)
	} else if c.funcs[name] && direct {
		c.called()
		return // judged where it was declared
	}
	c.dashed(args)
	for _, w := range args {
		if credentialsOfMachine(w.text) && network(name) {
			c.find(T5, "asks for the credentials of the machine")
			return
		}
	}
	c.program(name, args)
}

// dashed judges patterns that may stand for a file whose name is an option.
func (c *command) dashed(args []word) {
	for _, w := range args {
		if w.static && w.text == "--" {
			return
		}
		if w.glob && strings.ContainsAny(w.text[:min(1, len(w.text))], "*?[-") && c.Dashed != nil && c.Dashed() {
			c.find(T3, "may take the name of a file for an option")
			return
		}
	}
}

// note keeps the words of a command for rules.
func (c *command) note(words []word) {
	if c.commands == nil || len(words) == 0 {
		return
	}
	var all []string
	for _, w := range words {
		if !w.static {
			w.text = ""
		}
		all = append(all, w.text)
	}
	*c.commands = append(*c.commands, all)
}

// credentialsOfMachine reports whether an argument names the service that gives a
// cloud machine its credentials, in any spelling of its address.
func credentialsOfMachine(text string) bool {
	text = strings.ToLower(text)
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain // curl decodes the name of a host
	}
	for _, host := range []string{"169.254.169.254", "169.254.170.2", "169.254.170.23", "fd00:ec2::254", "metadata.google.internal", "metadata.azure.com", "100.100.100.200"} {
		if strings.Contains(text, host) {
			return true
		}
	}
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text = rest
	}
	text, _, _ = strings.Cut(text, "/")
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		text = text[i+1:]
	}
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	text = strings.Trim(text, "[].")
	if slices.Contains([]string{"metadata", "metadata.goog", "instance-data", "instance-data.ec2.internal"}, text) {
		return true
	}
	if ip, err := netip.ParseAddr(text); err == nil {
		return linkLocal(ip)
	}
	ip, ok := loose(text)
	return ok && linkLocal(ip)
}

func linkLocal(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.Is4() && ip.IsLinkLocalUnicast() || ip.String() == "fd00:ec2::254"
}

// loose reads an IPv4 address as inet_aton does: one to four numbers, decimal,
// octal or hexadecimal.
func loose(text string) (netip.Addr, bool) {
	parts := strings.Split(text, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 0, 32)
		if err != nil {
			return netip.Addr{}, false
		}
		if i == len(parts)-1 {
			value |= n
		} else {
			value |= n << (24 - 8*i)
		}
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

func network(name string) bool {
	return slices.Contains([]string{"curl", "wget", "http", "https", "httpie", "xh", "nc", "ncat", "netcat", "socat", "telnet", "lynx", "w3m", "links", "aria2c", "ftp"}, name)
}

// known reports whether name is a program or builtin that has a meaning here.
func known(name string) bool {
	probe := &command{found: new([]Finding), effects: &effects{}, Context: Context{Workspace: "/w", Dir: "/w"}, dirs: []string{"/w"}}
	probe.program(name, nil)
	return !slices.ContainsFunc(*probe.found, func(f Finding) bool { return f.typed })
}

// args as options.
type options struct {
	given    map[string][]word // by name with its dashes; the value is empty for a bare one
	operands []word
	hidden   bool // an argument that may be an option is not known
}

// split reads arguments as getopt does. Valued options take a value; those of
// one letter may be joined.
func split(args []word, valued ...string) options {
	o := options{given: make(map[string][]word)}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.static:
			o.hidden = o.hidden || !a.input
			o.operands = append(o.operands, a)
		case a.text == "--":
			o.operands = append(o.operands, args[i+1:]...)
			return o
		case strings.HasPrefix(a.text, "--"):
			name, value, has := strings.Cut(a.text, "=")
			w := word{text: value, static: true, glob: a.glob}
			if !has && slices.Contains(valued, name) {
				w = word{}
				if i++; i < len(args) {
					w = args[i]
				}
			}
			o.given[name] = append(o.given[name], w)
		case len(a.text) > 1 && a.text[0] == '-':
			for k := 1; k < len(a.text); k++ {
				name := "-" + a.text[k:k+1]
				if !slices.Contains(valued, name) {
					o.given[name] = append(o.given[name], literal(""))
					continue
				}
				w := word{text: a.text[k+1:], static: true, glob: a.glob}
				if k+1 == len(a.text) {
					w = word{}
					if i++; i < len(args) {
						w = args[i]
					}
				}
				o.given[name] = append(o.given[name], w)
				break
			}
		default:
			o.operands = append(o.operands, a)
		}
	}
	return o
}

// has reports whether one of the options was given.
func (o options) has(names ...string) bool {
	for _, n := range names {
		if _, ok := o.given[n]; ok {
			return true
		}
	}
	return false
}

// only reports whether no other options were given.
func (o options) only(names ...string) bool {
	for n := range o.given {
		if !slices.Contains(names, n) {
			return false
		}
	}
	return true
}

func (o options) values(names ...string) []word {
	var all []word
	for _, n := range names {
		all = append(all, o.given[n]...)
	}
	return all
}

// program judges a program by its name, and holds it against the table of forms.
func (c *command) program(name string, args []word) {
	from := len(*c.found)
	c.does(name, args)
	c.gate(name, args, from)
}

// does judges what a program does by its name.
func (c *command) does(name string, args []word) {
	switch name {
	// Builtins and programs that look at nothing but their arguments.
	case ":", "true", "false", "echo", "pwd", "sleep", "seq", "expr", "test", "[", "[[", "]]", "basename", "dirname", "whoami", "id", "groups", "logname", "tty", "uname", "arch", "nproc",
		"wait", "jobs", "bg", "fg", "disown", "shift", "return", "exit", "break", "continue", "times", "umask", "ulimit", "type", "which", "whereis", "locale", "uptime", "who", "w", "users",
		"free", "lscpu", "lsblk", "lsmod", "lspci", "lsusb", "vmstat", "iostat", "ps", "pgrep", "pidof", "getconf", "cal", "factor", "yes", "clear", "tput", "getent", "lsof", "ss", "netstat",
		"hash", "dirs", "suspend", "caller", "fc", "history", "bind", "if", "then", "else", "fi", "do", "done", "!":
		if name == "ps" && slices.ContainsFunc(args, func(w word) bool {
			return !w.static || !strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "e") || len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-' && strings.Contains(w.text, "E")
		}) {
			c.secrets = true
			c.find(T1s, "shows the environment of processes")
			return
		}
		switch {
		case name == "jobs" && slices.ContainsFunc(args, func(w word) bool { return !w.static || strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "x") }):
			c.find(TX, "runs a program in a way that cannot be read")
			c.run(after(args, nil))
			return
		case name == "wait":
			for _, w := range split(args, "-p").values("-p") {
				c.variableOf(w)
			}
		case name == "arch" && len(args) > 0:
			c.find(T3, "may run a program")
			c.run(after(args, nil))
			return
		case name == "getent" && len(args) > 0 && (!args[0].static || !slices.Contains([]string{"passwd", "group", "services", "protocols", "networks", "rpc", "shells"}, args[0].text)):
			if args[0].text == "shadow" || args[0].text == "gshadow" || !args[0].static {
				c.secrets = true
				c.find(T1s, "reads credentials")
			}
			c.find(T3n, "talks to the network")
			return
		}
		if name == "hash" && len(args) > 0 && !split(args).only("-r", "-l", "-t") {
			c.find(TX, "decides which program a name is")
			return
		}
		c.find(T0, "looks")
	case "printf":
		o := split(args, "-v")
		for _, w := range o.values("-v") {
			c.variableOf(w)
		}
		c.find(T0, "looks")
	case "cat", "head", "tail", "wc", "cut", "tr", "nl", "tac", "rev", "fold", "fmt", "column", "join", "paste", "comm", "cmp", "diff", "colordiff", "od", "hexdump", "strings", "md5sum", "sum",
		"sha1sum", "sha256sum", "sha512sum", "sha224sum", "sha384sum", "b2sum", "cksum", "shasum", "md5", "base64", "base32", "expand", "unexpand", "tsort", "zcat", "bzcat", "xzcat", "zstdcat",
		"grep", "egrep", "fgrep", "zgrep", "ls", "dir", "vdir", "stat", "file", "du", "df", "realpath", "readlink", "jq", "bat", "batcat", "look", "numfmt", "ag", "ack", "tree", "exa", "eza", "xmllint", "date",
		"hostname", "xxd", "uniq", "sort", "rg", "fd", "fdfind", "yq", "gojq", "csvlook", "mdcat", "sed", "awk", "gawk", "mawk", "nawk", "shellcheck", "yamllint", "hadolint", "tflint", "jsonlint", "cloc", "tokei", "scc":
		c.look(name, args)
	case "cd", "pushd", "popd":
		c.cd(name, args)
	case "read", "mapfile", "readarray", "getopts", "unset", "select":
		if (name == "mapfile" || name == "readarray") && split(args, "-d", "-n", "-O", "-s", "-u", "-c").has("-C") {
			c.find(TX, "runs text as a command")
		}
		valued := []string{"-d", "-n", "-N", "-p", "-t", "-u", "-i"}
		if name == "mapfile" || name == "readarray" {
			valued = []string{"-d", "-n", "-O", "-s", "-u", "-c", "-C"}
		}
		o := split(args, valued...)
		if name == "read" && len(o.operands) == 0 {
			o.operands = []word{literal("REPLY")}
		}
		for _, w := range o.operands {
			c.variableOf(w)
			if name == "unset" {
				delete(c.funcs, w.text)
			}
			if c.mine != nil && w.static && !strings.Contains(w.text, "[") && !c.aside && !o.has("-t", "-f", "-O") {
				c.mine[w.text] = true
			}
		}
		c.find(T0, "looks")
	case "set", "shopt":
		if name == "set" && len(args) == 0 {
			c.secrets = true
			c.find(T1s, "shows the environment")
			return
		}
		c.modes(name == "set", args)
		c.find(T0, "looks")
	case "export", "declare", "typeset", "local", "readonly":
		exports := name == "export"
		if len(args) == 0 || flagged(args, "-p") {
			c.secrets = true
			c.find(T1s, "shows the environment")
		}
		for _, w := range args {
			if !w.static {
				c.find(TX, "sets a variable whose name is not known")
				continue
			}
			switch n, v, set := strings.Cut(w.text, "="); {
			case n != "" && strings.Contains("-+", n[:1]):
				if exports = exports || strings.Contains(n, "x"); strings.Trim(n[1:], "aAgrxpfF-") != "" {
					c.find(TX, "a variable stands for another, or its text is worked out")
				}
			case set:
				c.variable(n)
				c.vars[n] = v
				if c.mine != nil && !c.aside && (name != "local" || c.within) && !strings.ContainsAny(n, "[+") {
					c.mine[n] = true
				}
				if exports {
					c.exported(n, literal(v))
				}
			}
		}
		c.find(T0, "looks")
	case "let":
		if texts(args) == nil && len(args) > 0 {
			c.find(TX, "takes text that is not known for a number, which may run it")
		}
		c.find(T0, "looks")
	case "alias":
		for _, w := range args {
			if n, _, sets := strings.Cut(w.text, "="); !w.static || sets && n != "" {
				c.find(TX, "an alias changes what a name runs")
			}
		}
		c.find(T0, "looks")
	case "unalias":
		c.find(T0, "looks")
	case "enable", "complete", "compopt", "compgen":
		c.find(TX, "changes what names run")
	case "eval":
		c.find(TX, "runs text as a command")
		if all := texts(args); all != nil {
			c.line(strings.Join(all, " "))
		}
	case "trap":
		c.trap(args)
	case ".", "source":
		c.source(args)
	case "printenv", "env":
		if name == "printenv" || c.environment(args) {
			c.secrets = true
			c.find(T1s, "shows the environment")
		}
	case "fish", "csh", "tcsh", "nu", "elvish", "xonsh":
		if len(args) == 1 && args[0].static && args[0].text == "--version" {
			c.find(T0, "looks")
			return
		}
		c.find(TX, "runs text in a language that is not read")
	case "sh", "bash", "dash", "ash", "rbash", "zsh", "ksh", "mksh", "yash":
		c.shell(args)
	case "command":
		rest := after(args, nil)
		if split(args[:len(args)-len(rest)]).has("-v", "-V") {
			c.find(T0, "looks")
			return
		}
		c.run(rest)
	case "builtin", "nohup", "setsid":
		c.run(after(args, nil))
	case "exec":
		c.run(after(args, []string{"-a"}))
	case "nice":
		c.run(after(args, []string{"-n", "--adjustment"}))
	case "ionice":
		c.run(after(args, []string{"-c", "-n", "-p", "-P", "-u", "--class", "--classdata"}))
	case "stdbuf":
		c.run(after(args, []string{"-i", "-o", "-e", "--input", "--output", "--error"}))
	case "time":
		o := split(args[:len(args)-len(after(args, []string{"-f", "-o", "--format", "--output"}))], "-f", "-o", "--format", "--output")
		if abbreviated(o, "--output") {
			c.find(T3, "may write a file")
		}
		for _, w := range o.values("-o", "--output") {
			c.written(w)
		}
		c.run(after(args, []string{"-f", "-o", "--format", "--output"}))
	case "timeout":
		rest := after(args, []string{"-k", "-s", "--kill-after", "--signal"})
		switch {
		case len(rest) == 1 && !rest[0].static:
			c.run(rest)
		case len(rest) < 2:
			c.find(T0, "looks")
		default:
			c.run(rest[1:])
		}
	case "watch":
		c.spoken(after(args, []string{"-n", "--interval", "-q", "--equexit", "-s", "--shotsdir"}))
	case "xargs":
		c.xargs(args)
	case "parallel":
		c.find(T3, "runs commands that are made up as it goes", machine)
		c.spoken(append(after(args, []string{"-j", "--jobs", "-I", "-a", "--arg-file", "-N", "-n", "-L", "--delay", "--timeout", "--retries", "--results", "--joblog", "-S", "--sshlogin"}), word{}))
	case "sudo", "doas":
		c.find(T3, "acts as another user", machine)
		c.run(assignments(c, after(args, []string{"-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-r", "-t", "-U", "--user", "--group", "--host", "--prompt", "--chdir", "--chroot"})))
	case "su", "runuser":
		c.find(T3, "acts as another user", machine)
		o := split(args, "-c", "-s", "-g", "-G", "-w", "--command", "--shell", "--group", "-u", "--user")
		for _, w := range o.values("-c", "--command") {
			c.text2(w)
		}
		if len(o.operands) > 1 {
			c.find(TX, "runs a program in a way that cannot be read")
		}
	case "chroot", "unshare", "nsenter", "firejail", "bwrap", "systemd-run", "machinectl":
		c.find(T3, "changes where programs run", machine)
		rest := after(args, map[string][]string{
			"chroot":  {"--userspec", "--groups"},
			"unshare": {"-S", "-G", "-R", "-w", "--setuid", "--setgid", "--root", "--wd", "--map-user", "--map-group", "--map-users", "--map-groups", "--propagation", "--setgroups", "--monotonic", "--boottime"},
			"nsenter": {"-t", "-S", "-G", "-W", "--target", "--setuid", "--setgid", "--wdns"},
			"systemd-run": {"-u", "-p", "-E", "-M", "-H", "--unit", "--property", "--setenv", "--machine", "--host", "--description", "--slice", "--uid", "--gid", "--nice", "--working-directory", "--service-type",
				"--on-active", "--on-boot", "--on-startup", "--on-unit-active", "--on-unit-inactive", "--on-calendar", "--timer-property", "--path-property", "--socket-property"},
		}[name])
		if name == "systemd-run" && (flaggedShort(args[:len(args)-len(rest)], "-H") || shortened(args[:len(args)-len(rest)], []string{"--host", "--machine"}) || flaggedShort(args[:len(args)-len(rest)], "-M")) {
			c.find(T4, "acts on another machine")
		}
		if name == "chroot" && len(rest) > 0 {
			rest = rest[1:]
		}
		if name == "bwrap" || name == "firejail" || name == "machinectl" {
			c.find(TX, "runs a program in a way that cannot be read")
			return
		}
		c.run(rest)
	case "flock":
		o := split(args, "-c", "-w", "-E", "--command", "--timeout", "--wait")
		for _, w := range o.values("-c", "--command") {
			c.text2(w)
		}
		rest := after(args, []string{"-w", "-E", "--timeout", "--wait"})
		if len(rest) > 0 {
			c.written(rest[0])
			if rest = rest[1:]; len(rest) > 0 && rest[0].static && rest[0].text == "-c" {
				rest = nil
			}
			c.run(rest)
		}
	case "script":
		o := split(args, "-c", "-E", "-I", "-O", "-B", "-T", "-m", "-o", "--command")
		for _, w := range o.values("-c", "--command") {
			c.text2(w)
		}
		for _, w := range append(o.operands, o.values("-O", "-I", "-B", "-T")...) {
			c.written(w)
		}
		if !o.has("-c", "--command") {
			c.find(T3, "starts a shell")
			c.started(o.operands)
		}
	case "busybox", "toybox":
		if len(args) > 0 && args[0].static && strings.HasPrefix(args[0].text, "-") && args[0].text != "--list" && args[0].text != "--help" {
			c.find(T3, "makes programs", machine)
			return
		}
		if len(args) == 0 || args[0].static && strings.HasPrefix(args[0].text, "-") {
			c.find(T0, "looks")
			return
		}
		c.run(args)
	case "tee":
		for _, w := range split(args).operands {
			c.written(w)
		}
		c.find(T0, "looks")
	case "find":
		c.findFiles(args)
	case "rm", "unlink", "rmdir", "shred", "srm", "truncate":
		o := split(args, "-n", "-s", "--size", "-r", "--reference", "--iterations")
		if name == "rm" || name == "rmdir" || name == "unlink" {
			o = split(args)
		}
		tree := (o.has("-r", "-R", "--recursive") || abbreviated(o, "--recursive")) && name != "truncate"
		for _, w := range o.operands {
			c.destroyed(w, tree)
		}
		if len(o.operands) == 0 {
			c.find(T2d, "deletes in the workspace")
		}
	case "mkdir", "touch", "mktemp", "mkfifo", "chmod", "chattr", "setfacl":
		c.create(name, args)
	case "rename", "prename", "file-rename":
		c.find(T3, "may run what it is given as a program")
	case "cp", "mv", "ln", "install":
		c.copy(name, args)
	case "dd":
		for _, w := range args {
			switch key, value, _ := strings.Cut(w.text, "="); {
			case !w.static:
				c.find(TX, "may write anywhere")
			case key == "of":
				c.written(literal(value))
			case key == "if":
				c.read(literal(value))
			}
		}
		c.find(T2, "copies")
	case "mkfs", "mke2fs", "mkswap", "wipefs", "fdisk", "sfdisk", "cfdisk", "parted", "sgdisk", "gdisk", "blkdiscard", "hdparm", "badblocks", "dmsetup", "lvremove", "vgremove", "pvremove", "cryptsetup", "mdadm", "zpool":
		c.disk(name, args)
	case "shutdown", "reboot", "halt", "poweroff", "init", "telinit", "kexec":
		c.find(T5, "ends the machine")
	case "chown", "chgrp", "mount", "umount", "swapon", "swapoff", "sysctl", "modprobe", "insmod", "rmmod", "iptables", "ip6tables", "nft", "ufw", "firewall-cmd", "ip", "ifconfig", "route",
		"useradd", "userdel", "usermod", "groupadd", "groupdel", "adduser", "deluser", "passwd", "chpasswd", "visudo", "crontab", "at", "batch", "service", "rc-service", "update-rc.d", "chkconfig", "launchctl", "hostnamectl", "timedatectl",
		"localectl", "loginctl", "setcap", "setenforce", "kill", "killall", "pkill", "renice", "strace", "ltrace", "gdb", "ldconfig", "update-alternatives", "logger", "wall", "dmesg", "journalctl", "systemctl":
		c.system(name, args)
	case "tar", "bsdtar", "zip", "unzip", "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd", "7z", "split", "csplit", "patch", "ar", "cpio", "dos2unix", "unix2dos", "iconv":
		c.archive(name, args)
	case "curl", "wget", "http", "https", "xh":
		c.fetch(name, args)
	case "ping", "ping6", "dig", "nslookup", "host", "traceroute", "tracepath", "mtr", "whois", "nmap":
		if c.secrets && slices.ContainsFunc(args, func(w word) bool { return !w.static }) {
			c.sends = true // in the name that is asked for
		}
		c.find(T3n, "talks to the network")
	case "nc", "ncat", "netcat", "socat", "telnet", "ssh", "scp", "sftp", "ftp", "lftp", "rclone", "autossh", "mosh", "ssh-copy-id", "mail", "sendmail", "mailx", "msmtp", "tailscale", "ngrok", "cloudflared", "s3cmd", "gsutil", "mc", "aria2c":
		c.sends = true
		for _, w := range args {
			c.sent(w)
		}
		c.find(T4, "talks to another machine")
	case "openssl":
		if len(args) > 0 && (!args[0].static || slices.Contains([]string{"s_client", "s_server", "s_time", "ocsp", "cmp", "tsget"}, args[0].text)) {
			c.sends = true
			c.find(T4, "talks to another machine")
			return
		}
		c.find(T3, "makes or reads keys")
	case "lynx", "w3m", "links", "elinks":
		if !split(args).only("-d", "-u", "-m", "-p", "--dump") || split(args).hidden {
			c.find(T4, "may send data away")
		}
		c.find(T3n, "reads the network")
	case "hg", "svn", "bzr", "fossil", "p4", "cvs", "darcs":
		words := leading(args)
		if slices.Contains([]string{"pull", "update", "up", "checkout", "co", "clone", "log", "status", "st", "diff", "cat", "info", "export", "init", "add", "branch", "identify", "summary"}, at(words, 0)) || name == "hg" && at(words, 0) == "commit" {
			c.find(T3, "may run programs of the repository, and changes it")
			return
		}
		c.find(T4, "leaves this machine")
	case "rsync":
		c.rsync(args)
	case "git":
		c.git(args)
	case "gofmt", "goimports", "prettier", "black", "ruff", "isort", "shfmt", "terraform-docs", "jsonnetfmt", "rustfmt", "clang-format":
		c.format(name, args)
	case "go":
		c.golang(args)
	case "python", "python2", "python3", "pypy", "pypy3", "node", "nodejs", "deno", "bun", "ruby", "perl", "php", "lua", "luajit", "Rscript", "osascript", "pwsh", "powershell", "tclsh", "julia", "elixir", "erl", "java", "scala", "kotlin", "groovy",
		"guile", "ghci", "ipython", "irb", "jshell", "expect", "m4", "bc", "dc", "gnuplot", "make", "gmake", "just", "task", "rake", "ninja", "cmake", "bazel", "ant", "tox", "nox", "pytest", "jest", "mocha", "vitest", "rspec", "phpunit",
		"vim", "vi", "nvim", "emacs", "nano", "ed", "ex", "less", "more", "man", "top", "htop", "tmux", "screen", "ansible-lint", "pre-commit", "act", "direnv", "mise", "asdf", "nix", "nix-shell", "sbt", "mvn", "gradle", "gradlew", "cargo",
		"npm", "npx", "yarn", "pnpm", "pnpx", "bunx", "pip", "pip3", "pipx", "poetry", "uv", "uvx", "pipenv", "conda", "bundle", "gem", "composer", "dotnet", "mix", "twine", "hatch", "flit", "lerna", "nx", "turbo", "goreleaser", "semantic-release":
		c.code(name, args)
	case "apt", "apt-get", "apt-cache", "dpkg", "dpkg-query", "dnf", "yum", "microdnf", "rpm", "apk", "pacman", "zypper", "brew", "snap", "flatpak", "port", "aptitude", "emerge", "pkg":
		c.packages(name, args)
	case "terraform", "tofu", "terragrunt", "kubectl", "oc", "k", "helm", "aws", "gcloud", "az", "ansible", "ansible-playbook", "ansible-pull", "ansible-inventory", "ansible-doc", "ansible-config", "ansible-galaxy", "ansible-vault", "ansible-console",
		"docker", "podman", "nerdctl", "buildah", "skopeo", "docker-compose", "gh", "glab", "psql", "pg_dump", "pg_restore", "mysql", "mariadb", "mysqldump", "mongo", "mongosh", "mongodump", "redis-cli", "sqlite3", "clickhouse-client", "cqlsh",
		"pulumi", "cdk", "sam", "serverless", "sls", "vault", "consul", "nomad", "packer", "vagrant", "kustomize", "argocd", "flux", "istioctl", "eksctl", "kops", "doctl", "heroku", "fly", "flyctl", "vercel", "netlify", "wrangler", "firebase", "op", "sops", "age", "gpg", "kubeseal", "crane", "cosign", "minikube", "kind", "k3d", "helmfile", "skaffold", "tilt", "stern", "kubectx", "kubens", "modal", "daytona":
		c.infrastructure(name, args)
	default:
		if strings.HasPrefix(name, "mkfs.") {
			c.disk(name, args)
			return
		}
		if slices.Contains(reaching, name) {
			if len(args) == 1 && args[0].static && slices.Contains([]string{"--version", "version", "--help", "-h", "help", "-V"}, args[0].text) {
				c.find(T0, "looks")
				return
			}
			c.sends = true
			c.find(T4, "acts on another machine or service")
			return
		}
		c.find(T3, "runs code that was not read", unread)
		c.started(args)
		if plain := plainly(name); plain != name && outward(plain) {
			c.program(plain, args)
		}
		if publishes(name, args) {
			c.find(T4, "publishes")
		}
	}
}

// variableOf judges that the variable named by w is changed.
func (c *command) variableOf(w word) {
	if !w.static || w.glob && !strings.Contains(w.text, "[") {
		c.find(TX, "sets a variable whose name is not known")
		return
	}
	name, _, _ := strings.Cut(strings.TrimLeft(w.text, "-"), "[")
	c.variable(name)
	delete(c.vars, name)
	if c.taken != nil {
		c.taken[name] = true
	}
}

// line judges the text of a command inside another.
func (c *command) line(text string) {
	part := c.part
	defer func() { c.part = part }()
	if c.depth++; c.depth > mostNested {
		c.find(TX, "is nested too deeply to be read")
	} else {
		for _, lang := range []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX} {
			f := parse(text, lang)
			if f == nil {
				if lang == syntax.LangBash {
					c.find(TX, "cannot be read as a command", unparsed)
				}
				continue
			}
			inner := c.child()
			inner.effects = c.effects
			inner.in = input{}
			inner.list(f.Stmts)
		}
	}
	c.depth--
}

// text2 judges a word that a shell will read.
func (c *command) text2(w word) {
	if !w.static {
		c.find(TX, "runs text that is not known")
		return
	}
	c.line(w.text)
}

// spoken judges words that are joined and read by a shell.
func (c *command) spoken(words []word) {
	all := texts(words)
	if all == nil {
		if len(words) > 1 && words[0].static {
			c.run(words)
		}
		c.find(TX, "runs text that is not known")
		return
	}
	if len(all) > 0 {
		c.line(strings.Join(all, " "))
	}
}

// after skips the options of a wrapper; valued ones take the next word. A word that
// is not known may be an option and is not skipped.
func after(args []word, valued []string) []word {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.static, a.text == "-", !strings.HasPrefix(a.text, "-"):
			return args[i:]
		case a.text == "--":
			return args[i+1:]
		case slices.Contains(valued, a.text):
			i++
		case len(a.text) > 2 && a.text[1] != '-':
			// Letters may be joined; the first with a value takes the rest, or the next word.
			for k := 1; k < len(a.text); k++ {
				if slices.Contains(valued, "-"+a.text[k:k+1]) {
					if k == len(a.text)-1 {
						i++
					}
					break
				}
			}
		case strings.HasPrefix(a.text, "--") && slices.ContainsFunc(valued, func(v string) bool { return strings.HasPrefix(v, a.text) }):
			return append([]word{{}}, args[i:]...) // short for one of them: where the program begins is not sure
		}
	}
	return nil
}

// assignments judges and skips the NAME=value words before a program.
func assignments(c *command, args []word) []word {
	for i, a := range args {
		name, _, sets := strings.Cut(a.text, "=")
		if !sets || !a.static && strings.ContainsAny(name, "/ ") {
			return args[i:]
		}
		c.variable(name)
	}
	return nil
}

// environment judges env, and reports whether it only shows the environment.
func (c *command) environment(args []word) bool {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.static && !strings.Contains(a.text, "="):
			c.find(TX, "does not say which program it runs")
			return false
		case a.text == "-", a.text == "-i", a.text == "--ignore-environment", a.text == "-0", a.text == "--null", a.text == "-v", a.text == "--debug":
		case a.text == "-u", a.text == "--unset":
			i++
		case a.text == "-C", a.text == "--chdir":
			if i++; i < len(args) {
				c = c.child()
				c.enter(args[i])
			}
		case strings.HasPrefix(a.text, "-u") && !strings.HasPrefix(a.text, "--"), strings.HasPrefix(a.text, "--unset="), strings.HasPrefix(a.text, "--ignore-signal"), strings.HasPrefix(a.text, "--default-signal"):
		case a.text == "--":
		case strings.HasPrefix(a.text, "-"):
			c.find(TX, "runs a program in a way that cannot be read")
			return false
		case strings.Contains(a.text, "="):
			name, value, _ := strings.Cut(a.text, "=")
			c.variable(name)
			c.exported(name, word{text: value, static: a.static})
		default:
			c.run(args[i:])
			return false
		}
	}
	return true
}

// shell judges a shell that is started.
func (c *command) shell(args []word) {
	c = c.child()
	c.funcs = map[string]bool{} // it knows none of them
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.input:
			c.find(TX, "runs text that is not known")
			return
		case !a.static:
			c.find(TX, "runs text that is not known")
			return
		case a.text == "--":
			continue
		case a.text == "--version", a.text == "--help":
			c.find(T0, "looks")
			return
		case a.text == "--rcfile", a.text == "--init-file":
			c.find(T3, "runs code that was not read")
			i++
		case a.text == "-o", a.text == "+o", a.text == "-O", a.text == "+O":
			if i++; i < len(args) {
				c.mode(false, args[i])
			}
		case strings.HasPrefix(a.text, "--"):
		case len(a.text) > 1 && (a.text[0] == '-' || a.text[0] == '+'):
			for k, w := range args[i:] {
				// Further ones may stand before the text.
				if !w.static || w.text == "" || w.text[0] != '-' && w.text[0] != '+' && (k == 0 || !strings.HasSuffix(args[i+k-1].text, "o") && !strings.HasSuffix(args[i+k-1].text, "O")) {
					break
				}
				c.mode(w.text != "" && w.text[0] == '-', w)
			}
			if strings.Contains(a.text, "c") {
				// Further options may stand before the text.
				valued := func(s string) bool { return strings.HasSuffix(s, "o") || strings.HasSuffix(s, "O") }
				skip := valued(a.text)
				for i++; i < len(args) && args[i].static && (skip || strings.HasPrefix(args[i].text, "-") || strings.HasPrefix(args[i].text, "+")); i++ {
					skip = !skip && valued(args[i].text)
				}
				if i < len(args) {
					c.text2(args[i])
				}
				return
			}
			if strings.Contains(a.text, "s") {
				c.fed()
				return
			}
			if strings.HasSuffix(a.text, "o") || strings.HasSuffix(a.text, "O") {
				i++
			}
		case a.text == "-", a.text == "/dev/stdin":
			c.fed()
			return
		default:
			c.read(a)
			c.find(T3, "runs code that was not read")
			return
		}
	}
	c.fed()
}

// fed judges a shell that reads its commands from standard input.
func (c *command) fed() {
	switch {
	case c.in.text != nil:
		c.line(*c.in.text)
	case c.in.unknown:
		c.find(TX, "runs text that is not known")
	default:
		c.find(T3, "starts a shell")
	}
}

func (c *command) source(args []word) {
	switch {
	case len(args) == 0:
		c.find(T0, "looks")
	case !args[0].static, args[0].text == "/dev/stdin":
		c.find(TX, "runs text that is not known")
	default:
		c.find(T3, "runs code that was not read")
		// It may have changed everything.
		c.vars, c.dirs = map[string]string{}, nil
	}
}

func (c *command) trap(args []word) {
	o := split(args)
	if len(o.operands) < 2 || args[0].static && (args[0].text == "-l" || args[0].text == "-p") {
		c.find(T0, "looks")
		return
	}
	w := o.operands[0]
	switch {
	case w.static && (w.text == "" || w.text == "-"):
		c.find(T0, "looks")
	default:
		inner := c.child()
		inner.dirs, inner.vars = nil, map[string]string{}
		inner.text2(w)
		atEnd := !slices.ContainsFunc(o.operands[1:], func(w word) bool {
			return !w.static || !slices.Contains([]string{"EXIT", "0", "INT", "TERM", "HUP", "QUIT", "PIPE"}, strings.TrimPrefix(strings.ToUpper(w.text), "SIG"))
		})
		if f := parse(w.text, syntax.LangBash); f != nil && w.static && !atEnd {
			c.leaves(f)
			if c.called(); c.moves || len(c.sets) > 0 {
				c.find(T3, "changes what later commands see, at any time")
			}
		}
	}
}

// cd follows a change of directory.
func (c *command) cd(name string, args []word) {
	o := split(args)
	c.find(T0, "looks")
	switch {
	case name != "cd":
		c.dirs = nil
	case len(o.operands) == 0:
		if o.hidden || c.Home == "" || len(args) > 0 && args[0].text == "-" {
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

func (c *command) xargs(args []word) {
	valued := []string{"-n", "-I", "-P", "-L", "-d", "-s", "-a", "-E", "--max-args", "--max-procs", "--delimiter", "--arg-file", "--max-chars", "--process-slot-var"}
	rest := after(args, valued)
	o := split(args[:len(args)-len(rest)], valued...)
	for _, w := range o.values("-a", "--arg-file") {
		c.read(w)
	}
	for _, w := range o.values("--process-slot-var") {
		c.variableOf(w) // the program is looked for with it set
	}
	if len(rest) == 0 {
		c.find(T0, "looks")
		return
	}
	if rest[0].static && slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "ash"}, path.Base(rest[0].text)) {
		all := texts(rest)
		if all == nil || o.has("-I", "-i", "--replace", "-J") || slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "{}") }) || len(rest) < 3 {
			c.find(TX, "runs text that is not known")
			return
		}
	}
	for i, w := range rest {
		if i > 0 && (strings.Contains(w.text, "{}") || w.text == "%" || w.text == "_") {
			rest[i].static = false
		}
	}
	names := c.in.names && !o.has("-a", "--arg-file")
	for i := range rest {
		rest[i].found = names && !rest[i].static && !strings.HasPrefix(rest[i].text, "-")
	}
	c.perFile(append(slices.Clone(rest), word{many: true, found: names}), !names)
}

func (c *command) findFiles(args []word) {
	var roots []word
	tests, reads := false, false
	defer func() {
		for _, r := range roots {
			at, known := c.places(r)
			outside := !known || slices.ContainsFunc(at, func(p string) bool { return !below(c.Workspace, p) && !public(p) })
			if reads && outside {
				c.find(T1s, "reads files outside the workspace")
			}
		}
		if reads && slices.ContainsFunc(args, func(w word) bool {
			return w.static && (Secret("", "/"+w.text) || strings.ContainsAny(w.text, "*?[") && mayBeSecret(w.text))
		}) {
			c.secrets = true
			c.find(T1s, "reads credentials")
		}
		for i, w := range args {
			if reads && i > 0 && w.static && strings.HasSuffix(args[i-1].text, "regex") && picks(strings.TrimPrefix(w.text, ".*/")) {
				c.secrets = true
				c.find(T1s, "reads credentials")
			}
		}
	}()
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !a.static {
			if len(roots) == i {
				roots = append(roots, a)
				c.find(T3, "may do more than look")
				continue
			}
			if a.many {
				c.find(T3, "may do more than look")
			}
			continue // the value of a test; an option would stand first
		}
		switch a.text {
		case "-exec", "-execdir", "-ok", "-okdir":
			reads = true
			var words []word
			for i++; i < len(args) && !(args[i].static && (args[i].text == ";" || args[i].text == "+" && args[i-1].text == "{}")); i++ {
				w := args[i]
				if strings.Contains(w.text, "{}") {
					w.static, w.found = false, w.static && strings.HasPrefix(w.text, "{}")
				}
				words = append(words, w)
			}
			for k := range words {
				words[k].many = words[k].many || words[k].text == "{}" && i < len(args) && args[i].text == "+"
			}
			if len(words) > 1 && words[0].static && slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "ash"}, path.Base(words[0].text)) && !slices.ContainsFunc(words[1:], func(w word) bool { return w.static && w.text == "-c" }) {
				c.find(T3, "runs code that was not read")
				continue
			}
			in := c
			if strings.HasSuffix(a.text, "dir") {
				// It runs in directories that nobody looked into.
				in = c.child()
				unknown := func(string) bool { return true }
				in.GitRuns, in.Composes = unknown, unknown
			}
			in.perFile(words, !c.here() && len(roots) == 0)
		case "-delete":
			for _, r := range roots {
				at, known := c.places(r)
				inside := known && !slices.ContainsFunc(at, func(p string) bool { return !below(c.Workspace, p) })
				if !tests || !inside {
					c.destroyed(r, true)
				}
			}
			if len(roots) == 0 && !tests {
				c.destroyed(literal("."), true)
			}
			c.find(T2d, "deletes what it finds")
		case "-fprint", "-fprint0", "-fprintf", "-fls":
			if i++; i < len(args) {
				c.written(args[i])
			}
		case "-files0-from":
			c.find(T3, "may do more than look")
		default:
			if !strings.HasPrefix(a.text, "-") && a.text != "(" && a.text != "!" && len(roots) == i {
				roots = append(roots, a)
			} else if strings.HasPrefix(a.text, "-") && !slices.Contains([]string{"-H", "-L", "-P", "-depth", "-d", "-mindepth", "-maxdepth", "-xdev", "-mount", "-print", "-o", "-a", "-not", "-type"}, a.text) {
				tests = true
			}
		}
	}
	c.find(T0, "looks")
}

// perFile judges a program that is run for files that are not known: looking at
// them is looking, unless they may be anywhere.
func (c *command) perFile(words []word, anywhere bool) {
	if len(words) == 0 || !words[0].static {
		c.find(TX, "does not say which program it runs")
		return
	}
	inner := c.child()
	var found []Finding
	inner.found = &found
	inner.run(words)
	if len(found) > 0 && words[0].text != "echo" && words[0].text != "printf" {
		c.followed()
	}
	if c.Dashed != nil && c.Dashed() && !slices.ContainsFunc(words, func(w word) bool { return w.static && w.text == "--" }) {
		c.find(T3, "may take the name of a file for an option")
	}
	for _, f := range found {
		if f.Tier == T1s && !anywhere && f.Reason == "reads a file whose name is not known" {
			f.Tier, f.Reason = T0, "looks"
		}
		*c.found = append(*c.found, f)
	}
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
	for _, w := range from {
		c.placed(w, to, tree)
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
		default:
			c.read(w)
			if at, _ := c.places(w); name == "cp" && (o.has("-l", "-s", "--link", "--symbolic-link") || abbreviated(o, "--link", "--symbolic-link")) && slices.ContainsFunc(at, func(p string) bool { return Sensitive(c.Workspace, p) || w.glob }) {
				c.find(T3, "makes another name for a file that programs obey")
			}
		}
	}
	c.find(T2, "changes the workspace")
}

// placed judges what a file becomes that is copied or moved to a directory, where it
// keeps its name; of a directory that is copied whole the names in it are not known.
func (c *command) placed(from word, to []word, tree bool) {
	for _, dir := range to {
		at, known := c.places(dir)
		if !known {
			continue
		}
		if tree {
			c.fill(at)
		}
		base := from.text[strings.LastIndexByte(strings.TrimRight(from.text, "/"), '/')+1:]
		base = strings.TrimRight(base, "/")
		if base == "" {
			continue
		}
		switch {
		case !from.static:
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

func (c *command) system(name string, args []word) {
	var first string
	for _, w := range args {
		if w.static && !strings.HasPrefix(w.text, "-") {
			first = w.text
			break
		}
	}
	switch name {
	case "systemctl":
		if first == "show" && strings.Contains(joined(args), "Environment") {
			c.secrets = true
			c.find(T1s, "shows the environment of a service")
			return
		}
		switch first {
		case "status", "show", "list-units", "list-unit-files", "list-timers", "list-dependencies", "is-active", "is-enabled", "is-failed", "cat", "get-default":
			c.find(T0, "looks")
			return
		case "show-environment":
			c.secrets = true
			c.find(T1s, "shows the environment")
			return
		case "poweroff", "reboot", "halt", "kexec", "emergency", "rescue", "suspend", "hibernate", "isolate":
			c.find(T5, "ends the machine")
			return
		}
	case "service", "rc-service":
		if len(args) == 2 && args[1].static && args[1].text == "status" && args[0].static && !strings.ContainsAny(args[0].text, "/-") {
			c.find(T0, "looks")
			return
		}
	case "journalctl", "dmesg":
		if name == "dmesg" && split(args).has("-n", "-E", "-D", "-C", "-c") {
			break
		}
		if split(args, "-u", "-n", "-S", "-U", "-o", "-p", "-t", "-g", "-b", "--since", "--until", "--unit", "--lines", "--output").only("-u", "-n", "-S", "-U", "-o", "-p", "-t", "-g", "-b", "-x", "-e", "-f", "-r", "-k", "-T", "-H", "-l", "-a",
			"--since", "--until", "--unit", "--lines", "--output", "--no-pager", "--boot", "--follow", "--reverse", "--utc", "--human") {
			c.find(T0, "looks")
			return
		}
	case "ip", "ifconfig", "route":
		for _, w := range args {
			if !w.static || slices.Contains([]string{"add", "del", "delete", "set", "flush", "change", "replace", "append", "up", "down", "exec", "netmask", "default", "gw", "mtu", "via", "netns", "-batch", "-b", "-force"}, w.text) {
				c.find(T3, "changes the network of the machine", machine)
				return
			}
		}
		words := slices.DeleteFunc(texts(args), func(s string) bool {
			return slices.Contains([]string{"-4", "-6", "-s", "-d", "-o", "-j", "-p", "-c", "-br", "-brief", "-details", "-stats", "-statistics", "-json", "-pretty", "-color", "-oneline"}, s)
		})
		if name == "ip" && (strings.HasPrefix(at(words, 0), "-") || len(words) > 1 && !slices.Contains([]string{"show", "list", "ls", "get"}, words[1])) || name != "ip" && len(args) > 1 {
			c.find(T3, "changes the network of the machine", machine)
			return
		}
		c.find(T0, "looks")
		return
	case "sysctl":
		if !slices.ContainsFunc(args, func(w word) bool {
			return !w.static || strings.ContainsAny(w.text, "=") || strings.HasPrefix(w.text, "-") && strings.ContainsAny(w.text, "wpf") || strings.HasPrefix(w.text, "--")
		}) {
			c.find(T0, "looks")
			return
		}
	case "mount", "crontab", "hostnamectl", "timedatectl", "localectl", "loginctl":
		if len(args) == 0 && name != "crontab" || len(args) == 1 && args[0].static && (args[0].text == "-l" || args[0].text == "status" || args[0].text == "show") {
			c.find(T0, "looks")
			return
		}
	case "kill":
		if len(args) > 0 && args[0].static && args[0].text == "-l" {
			c.find(T0, "looks")
			return
		}
		for _, w := range args {
			if w.static && (w.text == "-1" || w.text == "1") && len(args) > 1 && w != args[0] {
				c.find(T5, "ends every process")
				return
			}
		}
	case "chown", "chgrp":
		o := split(args, "--reference", "--from")
		if o.has("-R", "--recursive") && len(o.operands) > 1 {
			for _, w := range o.operands[1:] {
				if at, ok := c.places(w); ok && slices.ContainsFunc(at, c.vital) {
					c.find(T5, "changes the owners of the whole machine")
					return
				}
			}
		}
	case "at", "batch":
		switch {
		case c.in.text != nil:
			c.line(*c.in.text)
		case c.in.unknown:
			c.find(TX, "runs text that is not known")
		}
	case "logger":
		if !split(args, "-f", "-p", "-t", "-i", "--file", "--priority", "--tag").only("-f", "-p", "-t", "-i", "-s", "-e", "--file", "--priority", "--tag", "--stderr") {
			c.sends = true
			c.find(T4, "may send data away")
		}
	case "strace", "ltrace":
		c.find(T3, "changes the machine", machine)
		c.run(after(args, []string{"-e", "-o", "-p", "-s", "-P", "-u", "-E", "-a", "-O", "-S"}))
		return
	case "gdb":
		c.started(args)
		c.find(T3, "runs code that was not read")
		return
	}
	c.find(T3, "changes the machine", machine)
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
			if name != "iconv" && !o.has("-c", "--stdout", "-t", "--test", "-l", "--list") {
				c.written(w)
				if w.static && strings.Trim(strings.TrimSuffix(w.text, path.Ext(w.text)), "*") != "" {
					w.text = strings.TrimSuffix(w.text, path.Ext(w.text))
					c.written(w) // what is unpacked
				}
			}
		}
		c.find(T0, "looks")
		return
	case "split", "csplit", "dos2unix", "unix2dos":
		o := split(args, "-l", "-b", "-n", "-a", "-C", "-t")
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
			c.placed(w, []word{to}, true)
		}
		if o.has("--delete", "--delete-after", "--delete-before", "--delete-excluded", "--remove-source-files") {
			c.destroyed(to, true)
		}
		c.written(to)
	}
	c.find(T2, "copies")
}

func (c *command) format(name string, args []word) {
	o := split(args, "-r", "-i", "-ln", "-local", "-srcdir")
	switch {
	case name == "gofmt" || name == "shfmt" || name == "goimports":
		if o.has("-w", "--write") {
			wrote := c.wrote != nil && *c.wrote
			for _, w := range o.operands {
				c.written(w)
			}
			if c.wrote != nil {
				*c.wrote = wrote // what was there, in another form
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
	switch verb {
	case "version", "help", "doc":
		if verb == "doc" && c.goReaches() {
			c.find(T3, "may fetch what the project names")
		}
		c.find(T0, "looks")
	case "env":
		c.find(T0, "looks")
	case "fmt":
		for _, w := range args[1:] {
			if w.text = strings.TrimSuffix(w.text, "..."); w.text != "" || !w.static {
				c.written(w)
			}
		}
		c.find(T2, "formats files")
	case "vet":
		if c.goReaches() {
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

package approval

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const mostNested = 8 // commands in commands

// call judges a simple command.
func (c *command) call(x *syntax.CallExpr) {
	c.part, c.plain = c.show(x), nil
	c.assign(x.Assigns, len(x.Args) == 0)
	c.part = c.show(x)
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
	c.part = c.show(x)
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
		if c.moves {
			c.dirs = nil
		}
		return // judged where it was declared
	}
	c.dashed(args)
	if name == "test" || name == "[" {
		c.named(args, direct)
		if !tested(args, name == "[") {
			c.find(T3, unlisted, vague)
		}
	}
	for _, w := range args {
		if network(name) && credentialsOfMachine(w.text) {
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

// known reports whether name is a program or builtin that has a meaning here.
func known(name string) bool {
	probe := &command{found: new([]Finding), effects: &effects{}, Context: Context{Workspace: "/w", Dir: "/w"}, dirs: []string{"/w"}}
	probe.program(name, nil)
	return !slices.ContainsFunc(*probe.found, func(f Finding) bool { return f.typed })
}

// program judges a program by its name, and holds it against the table of forms.
func (c *command) program(name string, args []word) {
	from, spares := len(*c.found), c.spares
	if c.Local != nil && c.Local(name, c.wrote != nil && *c.wrote) {
		c.find(T3, "is a program of the project, not of the system")
	}
	c.surroundings(name)
	c.below(name, args)
	sways := c.Sways
	switch name {
	case "chmod", "setfacl", "install":
		if c.Sways != nil {
			c.sways(path.Clean(c.Workspace) + "/") // what was text may be a program then
		}
		if name == "chmod" {
			c.Sways = nil // said; its mode is no name
		}
	case "mkdir":
		c.Sways = nil // nothing obeys an empty directory
	}
	c.does(name, args)
	c.gate(name, args, from)
	c.spares, c.Sways = spares, sways
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
			return !w.static || !strings.HasPrefix(w.text, "-") && strings.ContainsAny(w.text, "eE") || len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-' && strings.Contains(w.text, "E")
		}) {
			c.secrets = true
			c.find(T1s, "shows the environment of processes")
			return
		}
		switch {
		case name == "ps" && slices.ContainsFunc(args, func(w word) bool { return strings.Contains(strings.ToLower(w.text), "env") }):
			c.secrets = true
			c.find(T1s, "shows the environment of processes")
			return
		case name == "lsof" && strings.Contains(joined(args), "@"):
			c.find(T3n, "asks the network for a name")
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
		if len(o.operands) > 0 && !formatted.MatchString(o.operands[0].text) {
			c.find(TX, "may give a variable a number, by which it decides what programs run")
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
			if c.mine != nil && syntax.ValidName(w.text) && w.static && (name == "unset" || c.Exported == nil || !c.Exported(w.text)) && !c.aside && !o.has("-t", "-f", "-O") {
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
		exports, functions := name == "export", false
		if len(args) == 0 || flagged(args, "-p") {
			c.secrets = true
			c.find(T1s, "shows the environment")
		}
		for _, w := range args {
			if !w.static {
				c.find(TX, "sets a variable whose name is not known")
				continue
			}
			n, v, set := strings.Cut(w.text, "=")
			c.loosen(strings.TrimSuffix(n, "+"))
			switch {
			case n != "" && strings.Contains("-+", n[:1]):
				functions = functions || strings.Contains(n, "f")
				if exports = exports || strings.Contains(n, "x"); strings.Trim(n[1:], "aAgrxpfF-") != "" {
					c.find(TX, "a variable stands for another, or its text is worked out")
				}
			case !set && exports && !functions && syntax.ValidName(n):
				c.exported(n, literal(c.vars[n]))
			case set:
				c.variable(n)
				if strings.Trim(v, "0123456789") != "" {
					c.numbered(n, nil)
				}
				if c.mine != nil && !c.aside && (name != "local" || c.within) && syntax.ValidName(n) {
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
			c.find(TX, "counts with text that is known only when it runs, and bash may run a command in it")
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

package approval

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

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
		o := split(args, "-p", "--property", "-n", "-o", "-t", "--type", "--state", "--lines", "--output")
		if first == "cat" || first == "show" && (strings.Contains(joined(args), "Environment") || !o.has("-p", "--property") || slices.ContainsFunc(o.values("-p", "--property"), func(w word) bool { return !w.static || w.text == "" || strings.Contains(w.text, "*") })) {
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

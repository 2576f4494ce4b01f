package approval

import (
	"slices"
	"strings"
)

// sent judges an argument that is sent away: the content of a file counts.
func (c *command) sent(w word) {
	text := strings.TrimPrefix(w.text, "@")
	if _, value, ok := strings.Cut(text, "=@"); ok {
		text = value
	} else if _, value, ok := strings.Cut(text, "=<"); ok {
		text = value
	}
	if !w.static {
		return
	}
	if at, ok := c.places(literal(text)); ok && slices.ContainsFunc(at, func(p string) bool { return Secret(c.Home, p) }) {
		c.secrets = true
	}
}

// fetch judges curl, wget and their kind.
func (c *command) fetch(name string, args []word) {
	valued := []string{"-X", "-d", "-F", "-T", "-o", "-H", "-u", "-A", "-b", "-c", "-e", "-K", "-m", "-x", "-w", "-E", "-C", "-y", "-Y", "-z", "-r", "-D", "-t", "-U", "-P", "-Q", "-S",
		"--request", "--data", "--data-raw", "--data-binary", "--data-ascii", "--data-urlencode", "--json", "--form", "--form-string", "--upload-file", "--output", "--header", "--user", "--user-agent", "--cookie", "--cookie-jar", "--referer",
		"--config", "--max-time", "--connect-timeout", "--proxy", "--write-out", "--cert", "--key", "--cacert", "--retry", "--retry-delay", "--range", "--dump-header", "--resolve", "--output-dir", "--limit-rate", "--method", "--post-data", "--post-file",
		"--body-data", "--body-file", "--tries", "--timeout", "--directory-prefix", "--output-document", "--input-file", "--url", "--trace", "--trace-ascii", "--stderr", "--unix-socket", "--etag-save", "--hsts", "--alt-svc", "--libcurl", "--netrc-file", "--quote"}
	if name == "curl" {
		valued = slices.DeleteFunc(valued, func(s string) bool { return s == "-S" })
	}
	if name == "wget" {
		valued = slices.DeleteFunc(valued, func(s string) bool {
			return slices.Contains([]string{"-d", "-F", "-c", "-K", "-m", "-x", "-E", "-N", "-r", "-b", "-C", "-H", "-p", "-y", "-z"}, s)
		})
		valued = append(valued, "-O", "-i", "-a", "-l")
	}
	if name != "curl" && name != "wget" {
		// HTTPie: fields as operands make it a POST.
		o := split(args)
		if len(o.operands) > 1 || o.hidden {
			c.sends = true
			c.find(T4, "may send data away")
			return
		}
		c.find(T3n, "reads the network")
		return
	}
	o := split(args, valued...)
	data := o.values("-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--data-urlencode", "--json", "-F", "--form", "--form-string", "-T", "--upload-file", "--post-data", "--post-file", "--body-data", "--body-file")
	if name == "wget" {
		data = o.values("--post-data", "--post-file", "--body-data", "--body-file")
	}
	acts := len(data) > 0
	for _, m := range o.values("-X", "--request", "--method") {
		if !m.static || !slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, strings.ToUpper(m.text)) {
			acts = true
		}
	}
	if o.has("-K", "--config", "-Q", "--quote", "--unix-socket", "--use-askpass", "--execute", "--libcurl", "--mail-from") || name == "wget" && o.has("-e", "-i", "--input-file") {
		c.find(T4, "does what a file says")
	}
	outputs := o.values("--output", "-o", "-c", "--cookie-jar", "-D", "--dump-header", "--trace", "--trace-ascii", "--stderr", "--etag-save", "--hsts", "--alt-svc", "-O", "--output-document", "-a")
	if name == "curl" {
		outputs = slices.DeleteFunc(outputs, func(w word) bool { return w.static && w.text == "" })
	}
	if name == "wget" {
		outputs = o.values("-O", "--output-document", "-o", "--output-file", "-a", "--append-output")
	}
	for _, w := range outputs {
		if w.text != "-" {
			c.written(w)
		}
	}
	if dirs := o.values("--output-dir", "-P", "--directory-prefix"); len(dirs) > 0 && name == "wget" || o.has("--output-dir") {
		for _, w := range dirs {
			c.written(w)
		}
	}
	if name == "wget" && !o.has("-O", "--output-document", "--spider") || name == "curl" && o.has("-O", "--remote-name", "-J", "--remote-name-all") {
		c.find(T2, "writes what it fetches")
	}
	for _, w := range append(slices.Clone(o.operands), o.values("--url")...) {
		if w.static && strings.HasPrefix(strings.ToLower(w.text), "file:") {
			c.read(literal(strings.TrimPrefix(w.text[5:], "//")))
		}
		if w.static && (strings.HasPrefix(w.text, "gopher:") || strings.HasPrefix(w.text, "dict:") || strings.HasPrefix(w.text, "telnet:") || strings.HasPrefix(w.text, "smtp:") || strings.HasPrefix(w.text, "ftp:")) {
			acts = true
		}
		if w.static {
			continue
		}
		if c.secrets {
			c.sends = true // an address made of secrets
		}
	}
	for _, w := range data {
		c.sent(w)
		if w.static && strings.HasPrefix(w.text, "@-") {
			c.sends = true
		}
	}
	for _, w := range o.values("-H", "--header", "-b", "--cookie", "-u", "--user") {
		c.sent(w)
	}
	if o.has("-n", "--netrc", "--netrc-file") && name == "curl" {
		c.find(T1s, "uses stored credentials", store)
	}
	if acts {
		c.sends = true
		c.find(T4, "sends data away")
		return
	}
	c.find(T3n, "reads the network")
}

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
		if len(o.operands) > 1 || o.hidden || c.in.unknown || c.in.text != nil || !o.only("-v", "-h", "-b", "-d", "-F", "-I", "-q", "--headers", "--body", "--verbose", "--download", "--follow", "--check-status", "--quiet", "--pretty", "--style", "--timeout", "--version", "--help", "--ignore-stdin", "--verify", "--https") {
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
	for given := range o.given {
		// Long options may be shortened, and there are new ones with every version.
		long, is := strings.CutPrefix(given, "--")
		if !is && (name == "curl" && !strings.Contains("0123456#AabcCdDefFgGhHiIjJkKLlmMnNoOpPQqrRsStTuUvVwxXyYzZ", given[1:]) || name == "wget" && strings.Contains("BeiYK", given[1:]) && given != "-B") ||
			is && !slices.Contains(fetching[name], long) {
			c.sends = true
			c.find(T4, "has an option that may send data away")
		}
	}
	for _, w := range o.operands {
		if w.many && len(args) > 1 || len(args) == 1 && w.many && c.in.unknown {
			acts = true // it may be several words, and some of them options
		}
	}
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
		if scheme, rest, is := strings.Cut(strings.ToLower(w.text), ":"); w.static && is && (strings.HasPrefix(rest, "//") || scheme == "gopher" || scheme == "dict" || scheme == "telnet" || scheme == "smtp") && !slices.Contains([]string{"http", "https", "file"}, scheme) {
			acts = true
		}
		if host := hostPart(w.text); strings.ContainsAny(host, "{}%") || strings.Contains(host, "[") && !strings.HasPrefix(host, "[") || strings.ContainsFunc(host, func(r rune) bool { return r > 127 }) {
			c.find(TX, "does not plainly say which machine it talks to")
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

// hostPart is what an address has between its scheme and its path.
func hostPart(text string) string {
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text = rest
	}
	text, _, _ = strings.Cut(text, "/")
	text, _, _ = strings.Cut(text, "?")
	return text[strings.LastIndexByte(text, '@')+1:]
}

// fetching are the long options by which curl and wget do not send more than a
// request, whole; others are judged by their values.
var fetching = map[string][]string{
	"curl": strings.Fields(`fail fail-with-body fail-early silent show-error location location-trusted insecure include head get verbose remote-name remote-name-all remote-header-name remote-time compressed http1.0 http1.1 http2 http2-prior-knowledge http3 tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3 tls-max
		ipv4 ipv6 retry retry-all-errors retry-connrefused retry-max-time retry-delay max-time max-redirs max-filesize connect-timeout no-progress-meter progress-bar create-dirs output output-dir write-out user-agent header request range proto proto-redir continue-at url limit-rate speed-limit speed-time
		no-buffer globoff path-as-is parallel parallel-max parallel-immediate cacert capath cert cert-type key key-type pass resolve connect-to interface cookie cookie-jar junk-session-cookies referer user basic digest negotiate ntlm oauth2-bearer anyauth netrc netrc-optional netrc-file version help disable no-keepalive keepalive-time
		tcp-nodelay styled-output no-styled-output raw no-sessionid ssl ssl-reqd ciphers proxy noproxy proxytunnel trace trace-ascii trace-time stderr dump-header etag-save etag-compare hsts alt-svc list-only remove-on-error skip-existing clobber no-clobber fail-with-body dns-servers doh-url happy-eyeballs-timeout-ms max-redirs
		data data-raw data-binary data-ascii data-urlencode json form form-string upload-file quote config unix-socket libcurl mail-from time-cond manual next`),
	"wget": strings.Fields(`quiet verbose no-verbose output-document output-file append-output continue timestamping no-clobber no-check-certificate server-response spider timeout connect-timeout dns-timeout read-timeout tries wait waitretry retry-connrefused random-wait no-cache no-dns-cache header user-agent referer user password directory-prefix no-directories
		force-directories no-host-directories cut-dirs recursive level page-requisites convert-links mirror no-parent accept reject accept-regex reject-regex domains span-hosts content-disposition trust-server-names https-only no-hsts inet4-only inet6-only show-progress progress no-proxy limit-rate quota max-redirect compression
		ca-certificate ca-directory certificate private-key secure-protocol load-cookies save-cookies keep-session-cookies adjust-extension backup-converted delete-after restrict-file-names version help debug post-data post-file body-data body-file method input-file execute use-askpass unlink relative no-if-modified-since retry-on-http-error background`),
}

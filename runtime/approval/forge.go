package approval

import (
	"regexp"
	"slices"
	"strings"
)

// directs reports whether an argument may name the machine that a client talks to.
func directs(w word) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(w.text, "-"), "=")
	return strings.HasPrefix(w.text, "-") && slices.Contains(strings.Fields("address addr http-addr grpc-addr server api-url api url endpoint endpoints host hostname token auth-token token-file access-token kubeconfig context kube-context core config config-file insecure plaintext proxy"), name) || strings.Contains(w.text, "://")
}

// elsewhereHost reports whether an argument of a client of a forge names another host
// than the one everybody uses, which would get the login that is in the environment.
func elsewhereHost(name string, w word, repo bool) bool {
	home := map[string]string{"gh": "github.com", "glab": "gitlab.com"}[name]
	if value, is := strings.CutPrefix(w.text, "--repo="); is {
		w.text, repo = value, true
	} else if value, is := strings.CutPrefix(w.text, "-R"); is && value != "" {
		w.text, repo = value, true
	}
	host := ""
	switch first, rest, _ := strings.Cut(w.text, "/"); {
	case strings.Contains(w.text, "://"):
		host = hostPart(w.text)
	case strings.Contains(w.text, "@") && strings.Contains(w.text, ":"):
		_, host, _ = strings.Cut(w.text, "@")
		host, _, _ = strings.Cut(host, ":")
	case repo && strings.Contains(rest, "/") && (name == "gh" || strings.Contains(first, ".")):
		host = first
	}
	return host != "" && host != home && host != "gist."+home && host != "www."+home
}

func (c *command) forge(name string, args []word) {
	words, ok := positional(args, "-R", "--repo", "-L", "--limit", "-s", "--state", "-q", "--jq", "--json", "-t", "--template", "-X", "--method", "-H", "--header", "-f", "--raw-field", "-F", "--field", "--input", "-b", "--body", "-l", "--label", "-a", "--assignee", "-A", "--author", "-S", "--search", "--hostname", "-w", "--workflow", "-B", "--base")
	verb := at(words, 1)
	o := split(args, "-X", "--method", "-f", "-F", "--raw-field", "--field", "--input", "-H", "--header", "-R", "--repo", "-q", "--jq", "-t", "--template", "-L", "--limit")
	for _, w := range o.values("-q", "--jq") {
		if !w.static || !filters(w.text, nil) {
			c.secrets = true
			c.find(T1s, "may show the environment")
		}
	}
	for i, w := range args {
		repo := i > 0 && (args[i-1].text == "-R" || args[i-1].text == "--repo") || at(words, 0) == "repo"
		if w.static && at(words, 0) != "api" && (elsewhereHost(name, w, repo) || w.text == "--hostname" || strings.HasPrefix(w.text, "--hostname=")) {
			c.sends = true
			c.find(T4, "may take the login to another host")
		}
	}
	if c.gitRuns() {
		c.find(T3, "the repository's configuration may run programs")
	}
	switch {
	case !ok:
		c.find(TX, "does not say what it does")
	case at(words, 0) == "auth" && verb == "token" || flagged(args, "--show-token") || at(words, 0) == "auth" && split(args).has("-t"):
		c.secrets = true
		c.find(T1s, "shows a token", store)
	case at(words, 0) == "auth" && verb == "status", at(words, 0) == "status":
		c.find(T1, "reads")
	case at(words, 0) == "api":
		read := !flagged(args, "--hostname") && !strings.Contains(joined(args), "://") && !o.has("-f", "-F", "--raw-field", "--field", "--input") && !o.hidden && at(words, 1) != "graphql"
		for _, w := range o.values("-X", "--method") {
			read = read && w.static && strings.EqualFold(w.text, "GET")
		}
		if read {
			if strings.Contains(joined(args), "variables") || strings.Contains(joined(args), "token") || strings.Contains(joined(args), "secrets") {
				c.secrets = true
				c.find(T1s, "may show secrets", store)
			}
			c.find(T1, "reads")
			return
		}
		c.find(T4, "acts for the user elsewhere")
	case slices.Contains([]string{"list", "view", "status", "diff", "checks", "watch"}, verb) && slices.Contains([]string{"pr", "mr", "issue", "run", "repo", "release", "workflow", "gist", "ci", "label", "project", "variable", "cache", "ruleset", "org", "search"}, at(words, 0)):
		if flagged(args, "--web", "-w") {
			c.find(T3, "opens a browser")
			return
		}
		if name == "glab" && at(words, 0) == "variable" {
			c.secrets = true
			c.find(T1s, "shows secrets", store)
		}
		c.find(T1, "reads")
	case at(words, 0) == "search":
		c.find(T1, "reads")
	default:
		c.sends = true
		c.find(T4, "acts for the user elsewhere")
	}
}

// onThisComputer matches the name of this computer, with a port and the name of a data base.
var onThisComputer = regexp.MustCompile(`^(?:localhost|127\.0\.0\.1)(?:[:/].*)?$`)

func (c *command) database(name string, args []word) {
	if name == "sqlite3" {
		c.find(T3, "runs statements that were not read")
		return
	}
	local := !shortened(args, []string{"--host", "--uri", "--login-path", "--defaults-file", "--defaults-extra-file", "--defaults-group-suffix", "--connection", "--cluster", "--dsn", "--config-file", "--config"})
	for i, w := range args {
		if !w.static {
			local = false
			continue
		}
		if name == "redis-cli" && (w.text == "-c" || strings.HasPrefix(w.text, "-C") || slices.Contains([]string{"migrate", "replicaof", "slaveof", "sentinel", "cluster"}, strings.ToLower(w.text))) {
			local = false // it goes where it is sent, or sends its server there
		}
		if strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Index(w.text, "h") > 1 && strings.Trim(w.text[1:strings.Index(w.text, "h")], "ABCDEHLNQRSTVWXabdefgijklmnoqrstvwxz0") == "" && name != "sqlite3" && w.text != "-help" {
			local = false // letters may be joined: "-Bhexample.com"
		}
		if !strings.HasPrefix(w.text, "-") && (i == 0 || !strings.HasPrefix(args[i-1].text, "-")) && (name == "cqlsh" || (name == "mongo" || name == "mongosh") && strings.ContainsAny(w.text, ".:/") && !strings.HasSuffix(w.text, ".js")) && !strings.Contains(w.text, "://") &&
			!onThisComputer.MatchString(w.text) {
			local = false
		}
		if strings.Contains(w.text, "hostaddr=") || strings.HasPrefix(w.text, "service=") || strings.Contains(w.text, " service=") {
			local = false
		}
		value := ""
		switch {
		case w.text == "-h" && name != "redis-cli" || w.text == "--host" || name == "redis-cli" && w.text == "-h":
			if i+1 < len(args) {
				value = args[i+1].text
			}
		case strings.HasPrefix(w.text, "--host="):
			value = strings.TrimPrefix(w.text, "--host=")
		case strings.HasPrefix(w.text, "-h") && len(w.text) > 2 && w.text != "-help":
			value = w.text[2:]
		case strings.Contains(w.text, "://"):
			_, value, _ = strings.Cut(w.text, "://")
			if _, host, ok := strings.Cut(value, "@"); ok {
				value = host
			}
			value, _, _ = strings.Cut(value, "/")
			value, _, _ = strings.Cut(value, ":")
		case strings.Contains(w.text, "host="):
			_, value, _ = strings.Cut(w.text, "host=")
			value, _, _ = strings.Cut(value, " ")
		default:
			continue
		}
		if value != "localhost" && value != "127.0.0.1" && value != "::1" && !strings.HasPrefix(value, "/") {
			local = false
		}
	}
	if !local {
		c.sends = true
		c.find(T4, "talks to a data base on another machine")
		return
	}
	c.find(T3, "runs statements that were not read")
}

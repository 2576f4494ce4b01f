package approval

import (
	"path"
	"slices"
	"strings"
)

// dockerVerbs are the verbs that do not leave the machine, and those that are told
// apart by what follows.
var dockerVerbs = append(strings.Fields(`image container network volume system buildx manifest builder compose context plugin config secret service stack node swarm machine ps images logs inspect version info top port history stats diff search events
	push login logout build run pull up down start stop restart kill rm rmi exec create cp commit tag load save export import attach wait pause unpause rename update prune init from copy add mount umount unmount unshare pod generate play kube healthcheck bud containers ls`), "")

func (c *command) docker(name string, args []word) {
	words, ok := positional(args, "-H", "--host", "-c", "--context", "--config", "-l", "--log-level", "-f", "--file", "-p", "--project-name", "--profile", "--project-directory", "--env-file", "--tlscacert", "--tlscert", "--tlskey")
	if !ok {
		c.find(T3, "does not say what it does with containers")
		return
	}
	i := 0
	for ; i < len(args) && args[i].static && (args[i].text != at(words, 0) || i > 0 && slices.Contains([]string{"-l", "--log-level", "--config", "--tlscacert", "--tlscert", "--tlskey"}, args[i-1].text)); i++ {
		if text := args[i].text; text == "-H" || strings.HasPrefix(text, "-H") || strings.HasPrefix(text, "--host") || strings.HasPrefix(text, "-c") || strings.HasPrefix(text, "--context") || text == "--url" || text == "--remote" || text == "-r" {
			if name != "docker-compose" || !strings.HasPrefix(text, "-r") {
				c.find(T4, "talks to another machine")
				return
			}
		}
	}
	verb, sub := at(words, 0), at(words, 1)
	if name == "docker-compose" && verb != "" {
		verb, sub = "compose", verb
	}
	if verb == "inspect" || sub == "inspect" && (verb == "container" || verb == "image") {
		formats := split(args, "-f", "--format").values("-f", "--format")
		if len(formats) == 0 || slices.ContainsFunc(formats, func(w word) bool { return !w.static || !inspects(w.text) }) {
			c.secrets = true
			c.find(T1s, "shows the environment of a container; a format like '{{.State.Status}}' does not", store)
		}
	}
	if !slices.Contains([]string{"ps", "images", "logs", "inspect"}, verb) && (flagged(args, "--push") || strings.Contains(joined(args), "type=registry") || strings.Contains(joined(args), "push=true")) {
		c.sends = true
		c.find(T4, "publishes")
		return
	}
	if launcher(name, args) && (verb == "run" || verb == "exec" || verb == "create" || verb == "compose" || verb == "container") {
		c.started(slices.DeleteFunc(slices.Clone(args), func(w word) bool {
			return w.static && (w.text == verb || strings.Contains(w.text, "/") && !strings.Contains(w.text, " "))
		}))
	}
	if slices.Contains([]string{"run", "create"}, verb) || slices.Contains([]string{"run", "create"}, sub) {
		c.image(args)
	}
	if verb == "compose" && sub == "run" && slices.ContainsFunc(args, func(w word) bool { return slices.Contains([]string{"apply", "destroy", "publish", "push"}, w.text) }) {
		c.find(T4, "may act on what is shared")
	}
	switch {
	case (verb == "kube" && sub == "apply"), slices.Contains([]string{"publish", "imagetools", "sign", "scp"}, sub) && slices.Contains([]string{"compose", "buildx", "trust", "image", "plugin"}, verb), verb == "publish",
		verb == "commit" && strings.Contains(joined(args), "docker://"), !slices.Contains(dockerVerbs, verb):
		c.sends = true
		c.find(T4, "publishes, or acts on other machines")
	case (verb == "manifest" || verb == "buildx") && sub == "inspect", verb == "search":
		c.find(T3n, "reads a registry")
	case verb == "secret" && flagged(args, "--showsecret"):
		c.secrets = true
		c.find(T1s, "shows secrets")
	case verb == "machine" && sub == "ssh":
		c.sends = true
		c.find(T4, "logs in to another machine")
	case verb == "compose" && sub != "push" && flagged(args, "-f", "--file", "--env-file", "--project-directory"), verb == "compose" && c.composes(): // also to list, or to say its version: it reads the environment first
		c.find(T3, "loads configuration that may fetch and run more")
	case slices.Contains([]string{"image", "container", "network", "volume", "system", "buildx", "manifest", "builder", "compose", "context", "plugin", "config", "secret", "service", "stack", "node", "swarm", "machine"}, verb):
		switch {
		case slices.Contains([]string{"ls", "list", "inspect", "ps", "logs", "images", "df", "version", "top", "port", "history", "stats", "events", "info"}, sub) && verb != "compose", verb == "compose" && slices.Contains([]string{"ls", "ps", "logs", "images", "version", "top", "port", "events"}, sub):
			c.find(T0, "looks")
		case sub == "push" || flagged(args, "--push") || verb == "context" || verb == "swarm" || verb == "stack" || verb == "service" || verb == "node" || verb == "secret" || verb == "manifest" && sub != "create":
			c.find(T4, "publishes, or acts on other machines")
		default:
			c.find(T3, "runs containers", machine)
		}
	case slices.Contains([]string{"ps", "images", "logs", "inspect", "version", "info", "top", "port", "history", "stats", "diff", "search", "events"}, verb):
		c.find(T0, "looks")
	case verb == "push" || verb == "login" || verb == "logout":
		c.sends = true
		c.find(T4, "publishes")
	case verb == "":
		c.find(T0, "looks")
	default:
		c.find(T3, "runs containers", machine)
	}
}

// imageOf are the tools that images are called after.
var imageOf = map[string]string{"terraform": "terraform", "tofu": "tofu", "opentofu": "tofu", "terragrunt": "terragrunt", "kubectl": "kubectl", "helm": "helm", "git": "git", "aws-cli": "aws", "awscli": "aws", "azure-cli": "az", "pulumi": "pulumi", "gh": "gh", "skopeo": "skopeo", "rclone": "rclone", "docker": "docker", "curl": "curl", "crane": "crane", "oras": "oras"}

// image judges a container of an image that is called after a tool which acts on what
// is shared: its words are the tool's.
func (c *command) image(args []word) {
	for i, w := range args {
		base := w.text[strings.LastIndexByte(w.text, '/')+1:]
		if dir := path.Base(path.Dir(w.text)); dir == "skopeo" {
			base = dir // one that is called after its state
		}
		if w.static && strings.Contains(w.text, "kaniko") && flagged(args, "--destination", "-d") {
			c.find(T4, "publishes")
		}
		base, _, _ = strings.Cut(base, "@")
		base, _, _ = strings.Cut(base, ":")
		name, is := imageOf[base]
		if !w.static || !is || !strings.Contains(w.text, "/") && !strings.HasPrefix(w.text, "docker:") || i+1 == len(args) {
			continue
		}
		var found []Finding
		inner := c.child()
		inner.found, inner.effects, inner.commands = &found, &effects{}, nil
		inner.run(append([]word{literal(name)}, args[i+1:]...))
		for _, f := range found {
			if f.Tier == T4 || f.Tier == T5 {
				*c.found = append(*c.found, f)
			}
		}
	}
}

// composes reports whether the files of docker compose here may name others that lie
// on another machine: their addresses may hold what is in the environment.
func (c *command) composes() bool {
	if c.Composes == nil || c.Place.Disposable {
		return false
	}
	return c.dirs == nil || c.wrote != nil && *c.wrote || slices.ContainsFunc(c.dirs, func(d string) bool { return c.filled[d] || c.Composes(d) })
}

// inspects reports whether a format of docker inspect shows parts of a container that
// hold no environment.
func inspects(format string) bool {
	if strings.ContainsAny(format, "\"`'\\") {
		return false // what stands in quotes may look like the end of an action
	}
	if !strings.Contains(format, "{{") {
		return false // "json" is all of it
	}
	for action := range strings.SplitSeq(format, "{{") {
		action, _, is := strings.Cut(action, "}}")
		if !is {
			continue
		}
		names := strings.FieldsFunc(strings.ToLower(action), func(r rune) bool {
			return !(r == '.' || r == '$' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9')
		})
		for _, n := range names {
			parts := strings.Split(n, ".")
			if n == "." || n == "$" || strings.HasSuffix(n, ".hostconfig") || slices.ContainsFunc(parts, func(p string) bool {
				return slices.Contains([]string{"config", "containerconfig", "env", "args", "cmd", "entrypoint", "healthcheck", "labels", "history", "spec", "previousspec", "logconfig", "log"}, p)
			}) {
				return false
			}
		}
	}
	return true
}

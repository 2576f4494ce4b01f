package approval

import (
	"slices"
	"strings"
)

// infrastructure judges the tools that act on what is shared.
func (c *command) infrastructure(name string, args []word) {
	if name == "az" && c.Imports != nil && !c.Place.Disposable && (c.dirs == nil || c.wrote != nil && *c.wrote || len(c.filled) > 0 || slices.ContainsFunc(c.dirs, c.Imports)) {
		c.find(T3, "may run Python of the directory, which it looks for its modules in")
	}
	if len(args) == 1 && args[0].static && slices.Contains([]string{"--version", "version", "--help", "-h", "help"}, args[0].text) && !(name == "docker-compose" && args[0].text == "version") {
		c.find(T0, "looks")
		return
	}
	if name != "kubectl" && name != "oc" && name != "k" && shortened(args, []string{"--kubeconfig", "--kube-apiserver", "--kube-token", "--kube-ca-file", "--kube-insecure-skip-tls-verify", "--kube-as-user"}, "--kube") {
		c.find(T3, "loads a configuration that may run programs, or talks to another cluster")
		c.find(T4, "chooses another cluster")
	}
	switch name {
	case "terraform", "tofu":
		c.terraform(args, false)
	case "terragrunt":
		c.terraform(args, true)
	case "kubectl", "oc", "k":
		c.kubectl(args)
	case "helm":
		c.helm(args)
	case "aws":
		c.aws(args)
	case "gcloud":
		c.gcloud(args)
	case "az":
		// The name of a registry becomes the beginning of an address.
		if len(args) > 0 && args[0].text == "acr" && slices.ContainsFunc(split(args, "-n", "--name").values("-n", "--name"), func(w word) bool { return strings.ContainsAny(w.text, "/.:#?@") }) {
			c.sends = true
			c.find(T4, "may take the login to another host")
		}
		if c.Real != nil && c.above(".azure") {
			c.sends = true
			c.find(T4, "takes what the project says for the names it was not given")
		}
		c.az(args)
	case "ansible", "ansible-playbook", "ansible-console", "ansible-pull":
		if flagged(args, "--syntax-check", "--list-tasks", "--list-hosts", "--list-tags") {
			c.find(T3, "loads code of the workspace")
			return
		}
		c.find(T4, "acts on other machines")
	case "ansible-inventory", "ansible-doc", "ansible-config":
		c.find(T3, "loads code of the workspace")
	case "ansible-galaxy":
		words, _ := positional(args)
		if slices.Contains([]string{"publish", "delete", "setup", "import"}, at(words, 1)) {
			c.find(T4, "publishes")
			return
		}
		c.find(T3, "installs code")
	case "ansible-vault":
		c.secrets = true
		c.find(T1s, "reads or writes secrets")
		c.find(T3, "changes secrets")
	case "docker", "podman", "nerdctl", "docker-compose", "buildah":
		c.docker(name, args)
	case "skopeo", "crane", "cosign":
		words, ok := positional(args)
		if ok && slices.Contains([]string{"inspect", "list-tags", "ls", "manifest", "digest", "config", "verify", "tree", "catalog"}, at(words, 0)) {
			c.find(T3n, "reads a registry")
			return
		}
		c.find(T4, "publishes")
	case "gh", "glab":
		c.forge(name, args)
	case "psql", "pg_dump", "pg_restore", "mysql", "mariadb", "mysqldump", "mongo", "mongosh", "mongodump", "redis-cli", "sqlite3", "clickhouse-client", "cqlsh":
		c.database(name, args)
	case "kustomize":
		words, ok := positional(args)
		if ok && at(words, 0) == "build" && !flagged(args, "--enable-helm", "--enable-exec", "--enable-alpha-plugins", "--load-restrictor") {
			c.find(T3, "loads configuration that may fetch and run more")
			return
		}
		c.find(T3, "changes configuration")
	case "packer":
		words, ok := positional(args)
		if ok && slices.Contains([]string{"validate", "fmt", "inspect", "init", "hcl2_upgrade"}, at(words, 0)) {
			c.find(T3, "loads plug-ins of the workspace")
			return
		}
		c.find(T4, "acts on shared infrastructure")
	case "gpg", "age", "sops", "op", "vault", "kubeseal":
		c.secrets = true
		c.find(T1s, "reads secrets", store)
		words, ok := positional(args)
		if name == "vault" && !(ok && slices.Contains([]string{"read", "status", "list", "kv", "version"}, at(words, 0)) && !slices.Contains([]string{"put", "delete", "destroy", "patch", "undelete", "metadata"}, at(words, 1))) {
			c.find(T4, "acts on a store of secrets")
		}
	case "consul":
		words := leading(args)
		if slices.ContainsFunc(args, directs) {
			c.sends = true
			c.find(T4, "may take its login to another machine")
			return
		}
		switch {
		case at(words, 0) == "kv" && slices.Contains([]string{"get", "export"}, at(words, 1)):
			c.secrets = true
			c.find(T1s, "reads what is kept, maybe secrets", store)
		case slices.Contains([]string{"members", "catalog", "version"}, at(words, 0)):
			c.find(T1, "reads")
		default:
			c.find(T4, "acts on shared infrastructure")
		}
	case "minikube", "kind", "k3d", "vagrant":
		if name == "vagrant" && slices.ContainsFunc(args, func(w word) bool { return !w.static || w.text == "push" || w.text == "cloud" || w.text == "login" }) {
			c.find(T4, "publishes")
		}
		c.find(T3, "changes the machine", machine)
	case "kubectx", "kubens":
		if len(args) == 0 {
			c.find(T1, "reads")
			return
		}
		c.find(T4, "chooses another cluster")
	case "stern":
		if shortened(args, []string{"--template-file", "--config"}, "--template") || split(args).has("-T") {
			c.find(T1s, "shows a file that it takes for a template")
		}
		c.find(T1, "reads logs")
	case "pulumi", "cdk", "sam", "serverless", "sls", "helmfile", "skaffold", "tilt":
		words, ok := positional(args)
		if ok && slices.Contains([]string{"preview", "diff", "synth", "list", "ls", "validate", "build", "lint", "template", "print", "render"}, at(words, 0)) {
			c.find(T3, "runs project code")
			return
		}
		c.find(T4, "acts on shared infrastructure")
	default:
		words := leading(args)
		if slices.ContainsFunc(args, directs) {
			c.sends = true
			c.find(T4, "may take its login to another machine")
			return
		}
		reads := func(i int) bool {
			return slices.Contains([]string{"status", "list", "ls", "get", "describe", "logs"}, at(words, i))
		}
		things := []string{"app", "apps", "appset", "cluster", "clusters", "nodegroup", "repo", "proj", "project", "projects", "account", "job", "node", "alloc", "deployment", "service", "services", "kv", "catalog", "compute", "droplet", "kubernetes", "machine", "machines", "volume", "volumes", "releases", "ps", "instances", "environment", "environments"}
		if reads(0) || at(words, 0) == "version" || slices.Contains(things, at(words, 0)) && (reads(1) || slices.Contains(things, at(words, 1)) && reads(2)) {
			c.find(T1, "reads")
			return
		}
		c.find(T4, "acts on shared infrastructure")
	}
}

// leading are the words before the first option, where a verb must be.
func leading(args []word) []string {
	var words []string
	for _, w := range args {
		if !w.static || strings.HasPrefix(w.text, "-") {
			break
		}
		words = append(words, w.text)
	}
	return words
}

func (c *command) terraform(args []word, grunt bool) {
	// Its options have one dash and keep their value in the same word.
	words, ok := positional(args, "-target", "-var", "-var-file", "-out", "-state", "-backend-config", "-replace", "--terragrunt-working-dir", "--terragrunt-config", "--working-dir", "--queue-include-dir")
	if !ok {
		c.find(TX, "does not say what terraform does")
		return
	}
	acts := []string{"apply", "destroy", "import", "taint", "untaint", "force-unlock", "login", "logout", "refresh", "push", "rm", "mv", "replace-provider", "new", "delete"}
	if grunt {
		switch {
		case slices.ContainsFunc(words, func(w string) bool {
			return slices.Contains([]string{"apply", "destroy", "import", "taint", "untaint", "force-unlock", "refresh", "push", "rm", "mv", "apply-all", "destroy-all", "new", "delete", "replace-provider"}, w)
		}):
			c.find(T4, "acts on shared infrastructure")
		case at(words, 0) == "version":
			c.find(T0, "looks")
		case slices.Contains(words, "output") && flagged(args, "-json", "-raw"), slices.Contains(words, "pull"):
			c.find(T1s, "shows secrets of the state", store)
			c.find(T3, "loads plug-ins and modules of the workspace")
		default:
			c.find(T3, "loads plug-ins and modules of the workspace")
		}
		return
	}
	for _, w := range args {
		if name, dir, is := strings.Cut(w.text, "="); is && strings.TrimLeft(name, "-") == "chdir" {
			if c.outside(word{text: dir, static: w.static, glob: w.glob}) {
				c.find(T3, "works in a directory that was not read")
			}
		}
	}
	verb, sub := at(words, 0), at(words, 1)
	if c.Foreign != nil && slices.Contains([]string{"output", "state", "workspace"}, verb) && (c.dirs == nil || c.wrote != nil && *c.wrote || flagged(args, "-chdir", "--chdir") || slices.ContainsFunc(c.dirs, func(d string) bool { return c.filled[d] || c.Foreign(d) })) {
		c.find(T3, "may talk, with its login, to a machine that the repository names")
	}
	switch verb {
	case "":
		c.find(T0, "looks")
	case "version":
		c.find(T0, "looks")
	case "fmt":
		if slices.ContainsFunc(args, func(w word) bool {
			return slices.Contains([]string{"-check", "--check", "-check=true", "-write=false", "--write=false"}, w.text)
		}) &&
			!slices.ContainsFunc(args, func(w word) bool {
				return strings.HasPrefix(strings.TrimLeft(w.text, "-"), "check=") && w.text != "-check=true" || strings.HasPrefix(strings.TrimLeft(w.text, "-"), "write") && !strings.HasSuffix(w.text, "=false")
			}) {
			for _, w := range words[1:] {
				c.read(literal(w))
			}
			c.find(T0, "looks")
			return
		}
		c.followed()
		if flagged(args, "-chdir", "--chdir") {
			c.find(T3, "formats files elsewhere", machine)
		}
		for _, w := range words[1:] {
			c.written(literal(w))
		}
		c.find(T2, "formats files")
	case "output":
		for _, w := range valuesOf(args, "-state") {
			c.read(w)
		}
		if flagged(args, "-json", "-raw", "--json", "--raw") || sub != "" { // one that is named is shown in any case
			c.find(T1s, "shows secrets of the state", store)
			return
		}
		c.find(T1, "reads the state")
	case "state":
		switch sub {
		case "list":
			for _, w := range valuesOf(args, "-state") {
				c.read(w)
			}
			c.find(T1, "reads the state")
		case "pull":
			c.find(T1s, "shows secrets of the state", store)
		case "show":
			c.find(T1s, "shows secrets of the state", store)
			c.find(T3, "loads plug-ins and modules of the workspace")
		default:
			c.find(T4, "changes shared state")
		}
	case "workspace":
		switch sub {
		case "list", "show":
			c.find(T1, "reads the state")
		case "select":
			c.find(T3, "chooses another workspace")
		default:
			c.find(T4, "changes shared state")
		}
	case "validate", "plan", "init", "get", "graph", "providers", "show", "test", "console", "modules", "metadata":
		if verb == "plan" && flagged(args, "-destroy", "-refresh-only") || verb == "init" && flagged(args, "-migrate-state", "-force-copy", "--migrate-state", "--force-copy") {
			if verb == "init" {
				c.find(T4, "moves shared state")
				return
			}
		}
		for _, w := range args {
			if value, is := strings.CutPrefix(w.text, "-out="); is {
				c.written(literal(value))
			}
		}
		c.find(T3, "loads plug-ins and modules of the workspace")
	default:
		if slices.Contains(acts, verb) {
			c.find(T4, "acts on shared infrastructure")
			return
		}
		c.find(T4, "does what is not known to terraform's table")
	}
}

var kubeValued = []string{"-n", "--namespace", "--context", "--cluster", "--kubeconfig", "--user", "-s", "--server", "--token", "--as", "--as-group", "--request-timeout", "-o", "--output", "-l", "--selector", "-f", "--filename", "-k", "--kustomize", "--field-selector",
	"-c", "--container", "--tail", "--since", "--since-time", "--sort-by", "--template", "-L", "--label-columns", "--certificate-authority", "--client-key", "--client-certificate", "--tls-server-name", "--cache-dir", "--profile", "-v", "--v", "--raw", "--chunk-size", "-p", "--patch", "--type", "--image", "--replicas", "--for", "--timeout", "--to-revision", "--revision", "--dry-run", "--as-uid", "--kuberc", "--profile-output", "--username", "--password", "--log-flush-frequency", "--vmodule"}

func (c *command) kubectl(args []word) {
	valued := slices.DeleteFunc(slices.Clone(kubeValued), func(s string) bool { return s == "--dry-run" || s == "-p" })
	words, ok := positional(args, valued...)
	if !ok {
		c.find(TX, "does not say what kubectl does")
		return
	}
	for i, w := range args {
		value, has := strings.CutPrefix(w.text, "--kubeconfig=")
		if w.text == "--kubeconfig" && i+1 < len(args) {
			value, has = args[i+1].text, true
		}
		if has {
			if places, known := c.places(literal(value)); !known || slices.ContainsFunc(places, func(p string) bool {
				return below(c.Workspace, p) || below("/tmp", p) || below("/var/tmp", p) || below("/dev/shm", p)
			}) {
				c.find(T3, "loads a configuration that may run programs")
			}
		}
	}
	for _, w := range args {
		if w.text == "--" {
			break
		}
		// Letters may be joined: "-Ashttps://…".
		if i := strings.Index(w.text, "s"); w.static && i > 0 && w.text[0] == '-' && w.text[1] != '-' && strings.Trim(w.text[1:i], "AwRfhqiLt") == "" {
			c.find(T4, "talks to another cluster")
		}
	}
	if flagged(args, "-s", "--server", "--token", "--as", "--as-uid", "--as-group", "--username", "--password", "--insecure-skip-tls-verify", "--tls-server-name", "--certificate-authority", "--client-key", "--client-certificate") {
		c.find(T4, "talks to another cluster or as somebody else")
	}
	o := split(args, append(slices.Clone(valued), "--from-file", "--from-env-file", "--cert", "--key")...)
	for _, w := range o.values("-o", "--output", "--template") {
		// A template may be in a file.
		if _, name, is := strings.Cut(w.text, "-file="); is {
			c.read(literal(name))
		}
	}
	for _, w := range o.values("--template") {
		if w.static && !strings.Contains(w.text, "{") {
			c.read(w)
		}
	}
	for _, w := range append(o.values("-f", "--filename"), o.values("--from-file", "--from-env-file", "--cert", "--key")...) {
		if _, name, is := strings.Cut(w.text, "="); is {
			w.text = name
		}
		if strings.ContainsAny(w.text, listed) && at(words, 0) != "logs" {
			c.find(T1s, "reads a file whose name is not plain")
		}
		for name := range strings.SplitSeq(w.text, ",") {
			if w.text = name; name != "" && at(words, 0) != "logs" && at(words, 0) != "options" {
				c.read(w)
			}
		}
		c.followed()
	}
	if flagged(args, "-k", "--kustomize") || len(o.values("-k", "--kustomize")) > 0 || at(words, 0) != "logs" && slices.ContainsFunc(o.values("-f", "--filename"), func(w word) bool { return strings.Contains(w.text, "://") }) {
		c.find(T3n, "may fetch what it reads")
	}
	verb, sub := at(words, 0), at(words, 1)
	secret := func() bool {
		for _, w := range words[1:] {
			for part := range strings.SplitSeq(strings.ToLower(w), ",") {
				kind, _, _ := strings.Cut(part, "/")
				kind, _, _ = strings.Cut(kind, ".")
				if kind == "secret" || kind == "secrets" || kind == "sealedsecret" || kind == "sealedsecrets" || w == "" {
					return true
				}
			}
		}
		return (flagged(args, "--raw", "-f", "--filename", "-k") || o.has("-f", "-k")) && verb == "get"
	}
	switch verb {
	case "":
		c.find(T0, "looks")
	case "get", "describe", "events", "wait":
		if secret() {
			c.secrets = true
			c.find(T1s, "shows secrets of a cluster", store)
			return
		}
		c.find(T1, "reads a cluster")
	case "logs", "top", "explain", "version", "api-resources", "api-versions", "cluster-info", "options", "completion":
		if verb == "cluster-info" && sub == "dump" && flagged(args, "--output-directory") {
			for _, w := range split(args, "--output-directory").values("--output-directory") {
				c.written(w)
			}
		}
		c.find(T1, "reads a cluster")
	case "diff":
		if flagged(args, "-k", "--kustomize") || strings.Contains(joined(args), "://") {
			c.find(T3n, "may fetch what it compares")
		}
		c.find(T1, "reads a cluster")
	case "auth":
		if sub == "can-i" || sub == "whoami" {
			c.find(T1, "reads a cluster")
			return
		}
		c.find(T4, "acts on a cluster")
	case "rollout":
		if sub == "status" || sub == "history" {
			c.find(T1, "reads a cluster")
			return
		}
		c.find(T4, "acts on a cluster")
	case "config":
		switch sub {
		case "view":
			if flagged(args, "--raw", "--flatten") {
				c.secrets = true
				c.find(T1s, "shows credentials of clusters")
				return
			}
			c.find(T1, "reads")
		case "current-context", "get-contexts", "get-clusters", "get-users":
			c.find(T1, "reads")
		default:
			c.find(T4, "chooses another cluster")
		}
	case "apply", "create", "delete", "replace", "patch", "label", "annotate", "scale", "set", "run", "expose", "autoscale":
		// The last one counts; after an option or "--" it may be something else.
		client, times := false, 0
		for i, w := range args {
			if strings.HasPrefix(w.text, "--dry-run") || !w.static {
				times++
				before := ""
				if i > 0 {
					before = args[i-1].text
				}
				client = w.static && w.text == "--dry-run=client" && (!strings.HasPrefix(before, "-") || strings.Contains(before, "=")) && !slices.ContainsFunc(args[:i], func(w word) bool { return w.text == "--" })
			}
		}
		if client && times == 1 && !strings.Contains(joined(args), "://") && verb != "delete" && verb != "patch" && sub != "token" && !flagged(args, "-k", "--kustomize") && !flagged(args, "--edit") {
			c.find(T0, "sends nothing")
			if slices.Contains([]string{"apply", "label", "annotate", "scale"}, verb) && printsLive(args) {
				c.secrets = true
				c.find(T1s, "shows what the cluster has of it, which may be a secret", store)
			}
			return
		}
		c.find(T4, "acts on a cluster")
	default:
		c.find(T4, "acts on a cluster")
	}
}

// listed are the letters by which a list of files is written in more ways than with commas.
const listed = "\"\\{}\r\n"

// printsLive reports whether kubectl prints objects that a file names, or secrets.
func printsLive(args []word) bool {
	o := split(args, kubeValued...)
	whole := slices.ContainsFunc(o.values("-o", "--output"), func(w word) bool { return w.text != "name" })
	return whole && (o.hidden || o.has("-f", "--filename") || strings.Contains(strings.ToLower(joined(args)), "secret"))
}

func (c *command) helm(args []word) {
	words, ok := positional(args, "-n", "--namespace", "--kube-context", "--kubeconfig", "-f", "--values", "--set", "--set-string", "--set-file", "--set-json", "--version", "-o", "--output", "--repo", "--revision", "--kube-apiserver", "--kube-token", "--registry-config", "--repository-cache", "--repository-config", "--timeout", "--output-dir", "--show-only", "-s", "--post-renderer", "--max", "--filter", "-l", "--selector")
	if !ok {
		c.find(TX, "does not say what helm does")
		return
	}
	if flagged(args, "--enable-dns") {
		c.find(T3n, "asks the network for what the chart names")
	}
	for _, w := range split(args, "--output-dir").values("--output-dir") {
		c.written(w)
	}
	if strings.Contains(joined(args), "://") {
		c.find(T3n, "reads the network")
	}
	if flagged(args, "--dry-run") && !flagged(args, "--dry-run=client", "--dry-run=none") {
		c.secrets = true
		c.find(T1s, "may render secrets of a cluster", store)
	}
	for _, w := range split(args, "--set-file", "-f", "--values").values("--set-file", "-f", "--values") {
		if strings.ContainsAny(w.text, listed) {
			c.find(T1s, "reads a file whose name is not plain")
		}
		for part := range strings.SplitSeq(w.text, ",") {
			if _, name, set := strings.Cut(part, "="); set {
				part = name
			}
			w.text = part
			c.read(w)
		}
	}
	verb, sub := at(words, 0), at(words, 1)
	if verb == "status" && slices.ContainsFunc(split(args, "-o", "--output").values("-o", "--output"), func(w word) bool { return w.text != "table" }) {
		c.secrets = true
		c.find(T1s, "shows the values of a release", store)
	}
	if slices.Contains([]string{"lint", "template"}, verb) {
		for _, w := range words[1:] {
			c.held(literal(w), true) // a template may show any file of the chart
		}
		if verb == "lint" && len(words) == 1 {
			c.held(literal("."), true)
		}
	}
	if slices.Contains([]string{"lint", "template", "show", "inspect"}, verb) {
		for _, w := range words[1:] {
			if strings.HasPrefix(w, "/") || strings.HasPrefix(w, ".") || strings.Contains(w, "/../") {
				c.read(literal(w)) // a chart
			}
		}
	}
	if chart := charted(verb, words); chart != "" && c.Real != nil && !c.present(chart) {
		c.find(T3n, "may fetch the chart")
	}
	switch verb {
	case "", "version", "env", "lint", "completion":
		if verb == "env" {
			c.find(T1s, "shows the environment")
		}
		if verb == "lint" {
			c.followed()
		}
		c.find(T0, "looks")
	case "template":
		c.followed() // links in a chart are read
		if flagged(args, "--validate", "--repo") || strings.Contains(strings.Join(words, " "), "oci:") {
			c.find(T3n, "reads the network")
			return
		}
		c.find(T0, "renders")
	case "list", "ls", "status", "history", "show", "inspect", "search":
		if verb == "show" || verb == "inspect" {
			c.followed()
		}
		if verb == "search" && sub != "repo" {
			c.find(T3n, "asks the network")
		}
		c.find(T1, "reads a cluster")
	case "get":
		if sub == "notes" || sub == "metadata" {
			c.find(T1, "reads a cluster")
			return
		}
		c.secrets = true
		c.find(T1s, "shows values that may be secret", store)
	case "dependency", "dep", "dependencies", "repo", "pull", "fetch", "package", "create", "verify", "diff":
		c.find(T3, "fetches or runs code")
	case "plugin":
		c.find(T3, "installs code")
	case "install", "upgrade", "rollback", "uninstall", "delete", "push", "test", "registry":
		c.find(T4, "acts on a cluster")
	default:
		if slices.ContainsFunc(words, func(w string) bool {
			return slices.Contains([]string{"push", "cm-push", "delete", "upload", "upgrade", "rollback", "apply", "sync"}, w)
		}) {
			c.find(T4, "publishes, or acts on a cluster")
		}
		c.find(T3, "runs a plug-in")
	}
}

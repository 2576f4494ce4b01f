package approval

import (
	"path"
	"slices"
	"strings"
)

// reaching are programs whose work is elsewhere and whose verbs are not told apart
// here: clients of clouds, clusters, registries, queues and data bases.
var reaching = strings.Fields(`nsupdate grpcurl websocat mosquitto_pub mosquitto_sub kcat kafkacat kafka-console-producer kafka-topics amqp-publish rabbitmqadmin ldapmodify ldapadd ldapdelete ldappasswd snmpset
	smbclient rsh rlogin plink pscp pssh pdsh dsh clush mussh parallel-ssh awscli croc wormhole bore frpc chisel gost lt localtunnel ipmitool nats influx cbq cypher-shell pgcli mycli litecli usql iredis sqlcmd mssql-cli bq cockroach hcloud linode-cli scw oci ibmcloud
	aliyun tccli civo vultr-cli exo openstack govc pvesh cf fastly supabase railway turso pscale neonctl atlas confluent datadog-ci sentry-cli hub lab tea bb jf jfrog oras regctl imgpkg ctr crictl werf kapp vendir velero linkerd
	cilium calicoctl kubeadm talosctl rke k0sctl clusterctl crossplane rosa ocm buildctl kaniko copilot eb ecs-cli chalice zappa amplify sst cdktf terramate atmos spacectl knife puppet salt salt-ssh salt-call bolt cap kamal dokku mina boundary tsh tctl
	etcdctl azcopy s5cmd ko nuget restic borg duplicity rdiff-backup unison syncthing mutagen tftp ftpput ftpget lwp-request GET POST PUT HEAD DELETE swaks ssmtp mutt dput twine np release-it vsce ovsx semantic-release changeset kubectl-ssh`)

// launcher reports whether a program starts others that are named in its words.
func launcher(name string, args []word) bool {
	switch name {
	case "npx", "pnpx", "bunx", "uvx", "pipx", "nix-shell", "nix", "tmux", "screen", "direnv", "mise", "asdf", "expect":
		return true
	case "npm", "yarn", "pnpm", "bun", "poetry", "uv", "pipenv", "bundle", "conda", "hatch", "docker", "podman", "nerdctl", "docker-compose", "composer", "dotnet", "mix":
		return slices.ContainsFunc(args, func(w word) bool {
			return w.static && slices.Contains([]string{"exec", "run", "dlx", "x", "create"}, w.text)
		})
	}
	return false
}

// started judges the words of a program that is not known, or that starts others,
// from where they name a program: what acts outside, or is disguised, counts.
func (c *command) started(args []word) {
	for i, w := range args {
		if !w.static {
			continue
		}
		var found []Finding
		inner := c.child()
		inner.found, inner.effects, inner.commands = &found, &effects{}, nil
		name, _, _ := strings.Cut(path.Base(w.text), "@") // with its version
		if _, part, ok := strings.Cut(name, "#"); ok {
			name = part // of a flake
		}
		switch {
		case strings.Contains(w.text, " "):
			if f, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(w.text), "spawn "), " "); !known(path.Base(f)) || !outward(path.Base(f)) {
				continue
			}
			inner.line(strings.TrimPrefix(w.text, "spawn "))
		case i+1 < len(args) && outward(name), outward(name) && (name == "vercel" || slices.Contains(reaching, name)):
			inner.run(append([]word{literal(name)}, args[i+1:]...))
		default:
			continue
		}
		for _, f := range found {
			if f.Tier == T4 || f.Tier == T5 {
				*c.found = append(*c.found, f)
			}
		}
	}
}

// plainly is the name of a program without a version at its end, and without what it
// ends with on Windows.
func plainly(name string) string {
	if name == "kubecolor" {
		return "kubectl"
	}
	for _, end := range []string{".exe", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, end)
	}
	return strings.TrimRight(strings.TrimRight(name, "0123456789."), "-v")
}

// outward reports whether a program can act on what is shared.
func outward(name string) bool {
	return slices.Contains(reaching, name) || slices.Contains(strings.Fields(`terraform tofu terragrunt kubectl oc helm aws gcloud az ansible ansible-playbook ansible-pull docker podman gh glab psql mysql mariadb mongosh redis-cli pulumi cdk sam serverless sls vault consul nomad
		packer argocd flux istioctl eksctl kops doctl heroku fly flyctl vercel netlify wrangler firebase helmfile skaffold crane cosign skopeo git curl wget ssh scp sftp rsync nc ncat netcat socat telnet rclone s3cmd gsutil mail sendmail goreleaser lerna npm yarn pnpm cargo gem`), name)
}

// publishes reports whether the words of a program that is not known, or that
// handles packages, say that it publishes. Make and its kind name their own things.
func publishes(name string, args []word) bool {
	verbs := 0
	for _, w := range args {
		if !w.static || strings.HasPrefix(w.text, "-") {
			continue
		}
		if verbs++; verbs > 3 {
			return false
		}
		for part := range strings.FieldsFuncSeq(strings.ToLower(w.text), func(r rune) bool { return strings.ContainsRune(":.+@/", r) }) {
			if strings.HasPrefix(part, "publish") || strings.HasPrefix(part, "unpublish") || part == "upload" || part == "deploy" || part == "release" && (name == "mvn" || name == "cargo") || part == "deploy-file" || part == "site-deploy" || name == "pod" && part == "trunk" || part == "jib" && slices.Contains([]string{"mvn", "mvnw", "gradle", "gradlew"}, name) {
				return true
			}
		}
	}
	return false
}

// shortVerb reports whether a package manager that takes any beginning of a verb
// would take w for one that publishes.
func shortVerb(w string, exact []string, publish []string) bool {
	return len(w) > 1 && !slices.Contains(exact, w) && slices.ContainsFunc(publish, func(p string) bool { return strings.HasPrefix(p, w) })
}

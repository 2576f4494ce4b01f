package approval

import (
	"slices"
	"strings"
)

func (c *command) aws(args []word) {
	words, ok := positional(args, "--region", "--profile", "--output", "--query", "--endpoint-url", "--color", "--ca-bundle", "--cli-read-timeout", "--cli-connect-timeout", "--cli-binary-format")
	if !ok {
		c.find(TX, "does not say what aws does")
		return
	}
	if flagged(args, "--endpoint-url", "--no-verify-ssl", "--ca-bundle") || shortened(args, []string{"--endpoint-url", "--no-verify-ssl", "--ca-bundle"}, "--no") {
		c.find(T4, "talks to another service than AWS")
		return
	}
	if shortened(args, []string{"--debug"}) {
		c.find(T1s, "shows what is sent, and with it the login", store)
	}
	service, verb := at(words, 0), at(words, 1)
	key := service + " " + verb
	for _, w := range args {
		if strings.Contains(w.text, "file://") || strings.Contains(w.text, "fileb://") {
			_, name, _ := strings.Cut(w.text, "://")
			c.read(literal(name))
			c.find(T4, "sends a file to an account")
		}
	}
	switch {
	case service == "" || service == "help":
		c.find(T0, "looks")
	case key == "s3 ls", key == "sts get-caller-identity", key == "configure list", key == "configure list-profiles":
		c.find(T1, "reads an account")
	case slices.Contains([]string{"secretsmanager get-secret-value", "secretsmanager batch-get-secret-value", "ssm get-parameter", "ssm get-parameters", "ssm get-parameters-by-path", "ssm get-parameter-history", "sts get-session-token", "sts get-federation-token",
		"ecr get-login-password", "ecr get-authorization-token", "ecr-public get-login-password", "ecr-public get-authorization-token", "eks get-token", "codeartifact get-authorization-token", "ec2 get-password-data", "lightsail get-instance-access-details", "iam get-credential-report",
		"cognito-identity get-credentials-for-identity", "cognito-identity get-open-id-token", "sso get-role-credentials", "configure get", "configure export-credentials", "redshift get-cluster-credentials", "rds generate-db-auth-token", "kms decrypt", "lambda get-function", "lambda get-function-configuration",
		"lambda list-functions", "ecs describe-task-definition", "ec2 describe-instance-attribute", "ec2 describe-launch-template-versions", "apprunner describe-service", "codebuild batch-get-projects", "appconfig get-configuration", "apigateway get-api-keys", "apigateway get-api-key", "iot describe-endpoint", "s3api get-object", "dynamodb get-item", "lambda list-versions-by-function", "cognito-idp describe-user-pool-client", "cognito-idp describe-identity-provider", "ec2 describe-vpn-connections", "ec2 describe-spot-instance-requests", "ec2 describe-spot-fleet-requests", "ec2 describe-verified-access-trust-providers", "ec2 describe-conversion-tasks", "ec2 describe-bundle-tasks", "ecs describe-express-gateway-service", "appsync list-api-keys", "ivs get-stream-key",
		"autoscaling describe-launch-configurations", "cloudfront list-distributions", "events list-targets-by-rule", "stepfunctions describe-execution", "stepfunctions describe-state-machine-for-execution", "glue get-connection", "glue get-connections", "batch describe-job-definitions", "batch describe-jobs", "elasticbeanstalk describe-configuration-settings", "amplify get-app", "amplify list-apps", "amplify get-branch", "amplify list-branches", "ecs describe-tasks", "kinesis get-records", "sts get-web-identity-token", "workspaces get-account"}, key):
		c.secrets = true
		c.find(T1s, "returns secrets or data of an account", store)
	case service == "cloudfront" && strings.HasPrefix(verb, "list-distributions-by-"):
		c.secrets = true
		c.find(T1s, "returns headers that may be secrets", store)
	case service == "configure", service == "sso", service == "s3", service == "login":
		c.find(T4, "acts on an account")
	case strings.HasPrefix(verb, "describe-"), strings.HasPrefix(verb, "list-"), strings.HasPrefix(verb, "get-") && !strings.Contains(verb, "secret") && !strings.Contains(verb, "token") && !strings.Contains(verb, "password") && !strings.Contains(verb, "credential"), strings.HasPrefix(verb, "lookup-"):
		for i, w := range args {
			// A word that is no option's value is a file to write to.
			if strings.HasPrefix(w.text, "-") || i == 0 || w.static && (w.text == service || w.text == verb) {
				continue
			}
			if before := args[i-1].text; !strings.HasPrefix(before, "--") || strings.HasPrefix(before, "--no-") || slices.Contains([]string{"--debug", "--dry-run"}, before) {
				c.written(w)
			}
		}
		c.find(T1, "reads an account")
	case strings.HasPrefix(verb, "get-"):
		c.secrets = true
		c.find(T1s, "returns secrets of an account", store)
	default:
		c.find(T4, "acts on an account")
	}
}

func (c *command) gcloud(args []word) {
	words, ok := positional(args, "--project", "--account", "--zone", "--region", "--format", "--filter", "--configuration", "--limit", "--sort-by", "--verbosity", "--location", "--cluster", "--impersonate-service-account")
	if !ok {
		c.find(TX, "does not say what gcloud does")
		return
	}
	all := " " + strings.Join(words, " ") + " "
	if shortened(args, []string{"--log-http"}) {
		c.find(T1s, "shows what is sent, and with it the login", store)
	}
	switch {
	case flagged(args, "--impersonate-service-account", "--flags-file", "--access-token-file"):
		c.find(T4, "acts as somebody else")
	case strings.Contains(all, " print-access-token ") || strings.Contains(all, " print-identity-token ") || strings.Contains(all, " secrets versions access ") || strings.Contains(all, " get-credentials ") || strings.Contains(all, " keys "):
		c.secrets = true
		c.find(T1s, "returns secrets of an account", store)
	case len(words) == 0 || words[0] == "version" || words[0] == "info" || words[0] == "help":
		c.find(T0, "looks")
	default:
		// The verb is the last word of the group; names follow it.
		verbs := []string{"list", "describe", "get-iam-policy", "get-value", "read", "lookup"}
		for i, w := range words {
			// A resource may be called "list"; then a verb stands before it.
			if slices.Contains(verbs, w) && i > 0 && (strings.HasSuffix(words[i-1], "s") || slices.Contains([]string{"config", "logging", "auth", "iam", "project-info", "app", "policy"}, words[i-1])) && len(words)-i <= 2 && !slices.ContainsFunc(words[min(i, 1):i], acting) {
				if withEnvironment(words) && (w != "list" || flagged(args, "--format")) && !withoutEnvironment(valuesOf(args, "-format")) {
					c.secrets = true
					c.find(T1s, "shows variables that may hold secrets; a format like 'value(status)' does not", store)
				}
				c.find(T1, "reads an account")
				return
			}
		}
		c.find(T4, "acts on an account")
	}
}

// withEnvironment reports whether what gcloud describes has variables or metadata
// in which logins are kept.
func withEnvironment(words []string) bool {
	group := strings.Join(words[:min(2, len(words))], " ")
	return slices.Contains([]string{"functions", "run", "app", "builds", "deployments"}, words[0]) || slices.Contains([]string{"compute instance-templates", "compute project-info"}, group)
}

// withoutEnvironment reports whether formats show plain fields alone.
func withoutEnvironment(formats []word) bool {
	if len(formats) == 0 {
		return false
	}
	for _, w := range formats {
		text := strings.ToLower(w.text)
		kind, keys, is := strings.Cut(text, "(")
		if !w.static || !is || !slices.Contains([]string{"value", "table", "csv", "get"}, kind) || strings.Trim(keys, "abcdefghijklmnopqrstuvwxyz0123456789_.,()[]:= -") != "" ||
			slices.ContainsFunc(strings.FieldsFunc(keys, func(r rune) bool { return strings.ContainsRune(".,()[]:= -", r) }), func(k string) bool {
				for _, part := range []string{"env", "template", "metadata", "container", "substitution", "spec", "config", "properties", "step", "auth", "secret", "variable", "value", "items"} {
					if strings.Contains(k, part) {
						return true
					}
				}
				return false
			}) {
			return false
		}
	}
	return true
}

// acting reports whether a word is a verb that changes something.
func acting(w string) bool {
	return slices.Contains([]string{"create", "delete", "update", "set", "add", "remove", "start", "stop", "reset", "deploy", "run", "ssh", "scp", "import", "export", "enable", "disable", "patch", "resize", "move", "attach", "detach", "submit", "execute", "call", "login", "revoke", "init"}, w)
}

func (c *command) az(args []word) {
	words, ok := positional(args, "-g", "--resource-group", "-n", "--name", "--subscription", "-o", "--output", "--query", "-l", "--location", "--ids", "--vault-name", "--tenant")
	if !ok {
		c.find(TX, "does not say what az does")
		return
	}
	for _, w := range args {
		// A value that begins so is a file's.
		if _, value, is := strings.Cut(w.text, "="); is && strings.HasPrefix(w.text, "-") {
			w.text = value
		}
		if file, is := strings.CutPrefix(w.text, "@"); is {
			w.text = file
			c.read(w)
		}
	}
	all := " " + strings.Join(words, " ") + " "
	verb := ""
	for i, w := range words {
		// The verb is the last word before the options; a value may look like one.
		if j := slices.IndexFunc(args, func(a word) bool { return a.text == w }); i > 0 && j > 0 && strings.HasPrefix(args[j-1].text, "-") && (len(words[:i]) > 1 || !slices.Contains(bare, args[j-1].text) || args[j-1].text == "-n") {
			break
		}
		verb = w
	}
	switch {
	case len(words) == 0 || words[0] == "version":
		c.find(T0, "looks")
	case strings.Contains(all, " get-access-token ") || strings.Contains(all, " secret ") || strings.Contains(all, " keys ") || strings.Contains(all, "list-keys") || strings.Contains(all, "credential") || strings.Contains(all, "connection-string") || strings.Contains(all, "appsettings") || strings.Contains(all, " secrets ") || strings.Contains(all, "-key ") || strings.Contains(all, "-keys ") || strings.Contains(all, "publishing") || strings.Contains(all, "get-credentials"):
		c.secrets = true
		c.find(T1s, "returns secrets of an account", store)
		if verb != "show" && verb != "list" && verb != "get-access-token" {
			c.find(T4, "acts on an account")
		}
	case verb == "show" || verb == "list" || strings.HasPrefix(verb, "list-") || verb == "exists":
		c.find(T1, "reads an account")
	default:
		c.find(T4, "acts on an account")
	}
}

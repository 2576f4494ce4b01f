package cmd

import (
	"slices"
	"strings"
	"unicode"

	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/redact"
	"github.com/talkops-ai/talkops/runtime/registry"
	"github.com/talkops-ai/talkops/runtime/web"
)

// redactor knows every credential value that is known here: the keys of models,
// of search services and of all providers, variables that are passed into the
// sandbox, those with a name that says so, and more. Cfg may be nil.
func (a *app) redactor(cfg *config.Config, more ...string) *redact.Redactor {
	endpoints := map[string]model.Endpoint{}
	if cfg != nil {
		for name, e := range cfg.Model.Providers {
			endpoints[name] = model.Endpoint{BaseURL: e.BaseURL, APIKeyEnv: e.APIKeyEnv}
		}
		for _, name := range cfg.Sandbox.Env {
			if v, _ := a.env(name); !public(name) {
				more = append(more, v)
			}
		}
		more = append(more, a.serverSecrets(cfg)...)
	}
	getenv := a.getenv()
	more = append(more, model.Secrets(getenv, endpoints)...)
	for _, s := range web.Searchers {
		if key := web.SearchKey(s); key != "" {
			more = append(more, getenv(key))
		}
	}
	for _, p := range a.providers {
		d := p.Describe()
		more = append(more, registry.Secrets(d, d.Values(getenv))...)
	}
	for _, kv := range a.environ {
		if name, value, _ := strings.Cut(kv, "="); telling(name) && random(value) {
			more = append(more, value)
		}
	}
	return redact.New(more...)
}

// public reports whether a variable is known to hold no secret, so that its value
// need not be blotted out everywhere.
func public(name string) bool {
	known := []string{
		"AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_REGION", "CI", "CLOUDSDK_CORE_PROJECT", "ENV", "ENVIRONMENT", "GITHUB_REF", "GITHUB_REF_NAME",
		"GITHUB_REPOSITORY", "GITHUB_SHA", "GOOGLE_CLOUD_PROJECT", "HOME", "HOSTNAME", "KUBECONFIG", "LANG", "PATH", "PWD", "SHELL", "TERM", "TF_WORKSPACE",
		"TZ", "USER",
	}
	return slices.Contains(known, name) || strings.HasPrefix(name, "LC_")
}

// telling reports whether the name of a variable says that it holds a secret.
func telling(name string) bool {
	for _, end := range []string{"_TOKEN", "_SECRET", "_PASSWORD", "_API_KEY", "_SECRET_KEY", "_ACCESS_KEY", "_PRIVATE_KEY"} {
		if strings.HasSuffix(strings.ToUpper(name), end) {
			return true
		}
	}
	return false
}

// random reports whether a value may be a credential, not a word or a path.
func random(value string) bool {
	return len(value) >= 12 && strings.ContainsFunc(value, unicode.IsDigit) && strings.ContainsFunc(value, unicode.IsLetter) &&
		!strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "~")
}

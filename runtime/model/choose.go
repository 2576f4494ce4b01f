package model

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// An Endpoint is a provider that the user configured.
type Endpoint struct {
	BaseURL   string // "http://127.0.0.1:8000/v1"; "" keeps the vendor's own
	APIKeyEnv string // the variable with the key; "" keeps the vendor's own, or none
}

// A Wish is what is known when a model is to be chosen.
type Wish struct {
	Model     string                       // asked for: "provider:name", "provider:" or "name"; may be empty
	Default   string                       // configured, in the same form; may be empty
	Providers map[string]Endpoint          // configured; may be nil
	Getenv    func(string) string          // the environment
	Key       func(provider string) string // a stored key, where the environment has none; may be nil

	// Probe lists the models of an Ollama at a base URL; nil is ProbeOllama.
	Probe func(ctx context.Context, baseURL string) ([]string, error)
}

// Choose decides which model to open: the one asked for, else the configured one,
// else the default of the first provider there are credentials for, else the
// first model of an Ollama on this computer.
func Choose(ctx context.Context, w Wish) (Config, error) {
	for _, spec := range []string{w.Model, w.Default} {
		if spec = strings.TrimSpace(spec); spec != "" {
			return w.named(ctx, spec)
		}
	}
	for _, v := range vendors {
		if conf, ok := w.endpoint(v.name); ok && v.catalogue != "" {
			return w.filled(ctx, conf)
		}
	}
	conf, _ := w.endpoint("ollama")
	if conf, err := w.filled(ctx, conf); err == nil {
		return conf, nil
	}
	return Config{}, fmt.Errorf("%w: set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY, "+
		"sign in to AWS for Bedrock, or start Ollama on this computer", ErrNoModel)
}

// named follows "provider:name", "provider:" or "name".
func (w Wish) named(ctx context.Context, spec string) (Config, error) {
	provider, name, split := strings.Cut(spec, ":")
	if provider == "google" {
		provider = "gemini"
	}
	if split && w.known(provider) {
		conf, ok := w.endpoint(provider)
		if !ok {
			return Config{}, w.noKey(provider)
		}
		conf.Name = name
		return w.filled(ctx, conf)
	}
	var without string // a provider that has the model, but no credentials
	for _, v := range vendors {
		if _, _, ok := catalogued(v.name, spec, w.region()); !ok {
			continue
		}
		if conf, ok := w.endpoint(v.name); ok {
			conf.Name = spec
			return conf, nil
		}
		if without == "" {
			without = v.name
		}
	}
	if without != "" {
		return Config{}, w.noKey(without)
	}
	if split {
		return Config{}, fmt.Errorf("%w: %q; known are %s, and those under model.providers", ErrUnknownProvider, provider,
			strings.Join(Providers(), ", "))
	}
	if w.known(spec) {
		return w.named(ctx, spec+":")
	}
	for _, v := range vendors {
		if conf, ok := w.endpoint(v.name); ok {
			conf.Name = spec
			return conf, nil
		}
	}
	return Config{}, fmt.Errorf("%w: which provider has %q? Write provider:%s", ErrNoModel, spec, spec)
}

// filled gives conf the default name of its provider if it has none.
func (w Wish) filled(ctx context.Context, conf Config) (Config, error) {
	if conf.Name != "" {
		return conf, nil
	}
	if conf.Provider == "ollama" {
		probe := w.Probe
		if probe == nil {
			probe = ProbeOllama
		}
		names, err := probe(ctx, strings.TrimSuffix(conf.BaseURL, "/v1"))
		switch {
		case err != nil:
			return Config{}, fmt.Errorf("%w: ollama: %w", ErrNoModel, err)
		case len(names) == 0:
			return Config{}, fmt.Errorf("%w: ollama has no model yet; ollama pull one", ErrNoModel)
		}
		conf.Name = names[0]
		return conf, nil
	}
	if name := defaultName(conf.Provider, conf.Region); name != "" {
		conf.Name = name
		return conf, nil
	}
	return Config{}, fmt.Errorf("%w: which model of %s? Write %s:name", ErrNoModel, conf.Provider, conf.Provider)
}

func (w Wish) known(provider string) bool {
	if _, ok := w.Providers[provider]; ok {
		return true
	}
	_, ok := vendorOf(provider)
	return ok
}

func (w Wish) env(name string) string {
	if w.Getenv == nil || name == "" {
		return ""
	}
	return w.Getenv(name)
}

func (w Wish) region() string {
	if r := w.env("AWS_REGION"); r != "" {
		return r
	}
	return w.env("AWS_DEFAULT_REGION")
}

// endpoint returns how to reach a provider, and whether there is what it takes to
// be let in.
func (w Wish) endpoint(provider string) (Config, bool) {
	v, _ := vendorOf(provider)
	own, configured := w.Providers[provider]
	conf := Config{Provider: provider, BaseURL: v.baseURL}
	if base := w.env(v.baseVar); base != "" {
		conf.BaseURL = base
	}
	if provider == "ollama" {
		if base, ok := loopback(w.env("OLLAMA_HOST")); ok {
			conf.BaseURL = base
		}
	}
	if own.BaseURL != "" {
		conf.BaseURL = own.BaseURL
	}
	vars := v.keyVars
	if own.APIKeyEnv != "" {
		vars = []string{own.APIKeyEnv}
	}
	for _, name := range vars {
		if key := w.env(name); key != "" {
			conf.APIKey, conf.KeyVar = key, name
			break
		}
	}
	if conf.APIKey == "" && w.Key != nil {
		conf.APIKey = w.Key(provider)
	}
	switch {
	case provider == "bedrock":
		conf.Region = w.region()
		signedIn := slices.ContainsFunc(awsVars, func(name string) bool { return w.env(name) != "" })
		return conf, conf.APIKey != "" || signedIn
	case conf.APIKey != "", provider == "ollama":
		return conf, true
	}
	// A server of one's own may need no key; a vendor's own service does.
	return conf, configured && own.BaseURL != "" && own.APIKeyEnv == ""
}

func (w Wish) noKey(provider string) error {
	vars := KeyVars(provider)
	if own := w.Providers[provider]; own.APIKeyEnv != "" {
		vars = []string{own.APIKeyEnv}
	}
	if provider == "bedrock" {
		vars = append(vars, "AWS_PROFILE", "AWS_ACCESS_KEY_ID")
	}
	return fmt.Errorf("%w %s: set %s", ErrNoKey, provider, strings.Join(vars, " or "))
}

// loopback turns the value of OLLAMA_HOST into a base URL, if it is this computer.
func loopback(host string) (string, bool) {
	if host == "" {
		return "", false
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil {
		return "", false
	}
	name, port := u.Hostname(), u.Port()
	if port == "" {
		port = "11434"
	}
	ip := net.ParseIP(name)
	switch {
	case name == "localhost":
	case ip != nil && ip.IsUnspecified(): // where the server listens, not where to call
		name = "127.0.0.1"
	case ip == nil || !ip.IsLoopback():
		return "", false
	}
	return u.Scheme + "://" + net.JoinHostPort(name, port) + "/v1", true
}

// ProbeOllama lists the models of the Ollama at baseURL. It waits 300 ms at most.
func ProbeOllama(ctx context.Context, baseURL string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(baseURL, "/")+"/api/tags", nil)
	if err != nil {
		return nil, err
	}
	resp, err := shared.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("no answer at %s", baseURL)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP %d at %s", resp.StatusCode, baseURL)
	}
	var list struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&list); err != nil {
		return nil, fmt.Errorf("%s is not an Ollama", baseURL)
	}
	names := make([]string, 0, len(list.Models))
	for _, m := range list.Models {
		names = append(names, m.Name)
	}
	return names, nil
}

// Secrets returns the values of all variables that hold a key of a known or
// configured provider, longest first, for masking.
func Secrets(getenv func(string) string, providers map[string]Endpoint) []string {
	values := map[string]bool{}
	for _, v := range vendors {
		for _, name := range v.keyVars {
			values[getenv(name)] = true
		}
	}
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "ANTHROPIC_AUTH_TOKEN"} {
		values[getenv(name)] = true
	}
	for _, own := range providers {
		if own.APIKeyEnv != "" {
			values[getenv(own.APIKeyEnv)] = true
		}
	}
	delete(values, "")
	return slices.SortedFunc(maps.Keys(values), func(a, b string) int { return len(b) - len(a) })
}

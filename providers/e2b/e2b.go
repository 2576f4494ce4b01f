// Package e2b opens sandboxes at E2B. It is no built-in provider: it is used as
// the module wasm-providers/e2b.
//
// A command runs under a small shell script of talkops's own, which writes what the
// command prints to two private files. They are fetched by range while it runs;
// when it has ended, the script sends its status and, if there is little, the
// output itself. The same script started again takes up a command that runs
// already: so a lost connection loses nothing and runs nothing twice.
package e2b

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	defaultDomain   = "e2b.app"
	defaultDir      = "/home/user"
	defaultTemplate = "base"
)

// Provider opens sandboxes at E2B.
type Provider struct{}

var (
	_ sandbox.Provider = Provider{}
	_ sandbox.Lister   = Provider{}
	_ sandbox.Sandbox  = (*box)(nil)
	_ sandbox.Killer   = (*box)(nil)
	_ sandbox.Extender = (*box)(nil)

	_ sandbox.Snapshotter     = (*box)(nil)
	_ sandbox.SnapshotRemover = Provider{}
)

// Describe says what the provider is and needs.
func (Provider) Describe() sandbox.Description {
	return sandbox.Description{
		Name:   "e2b",
		Title:  "E2B",
		Dir:    defaultDir,
		SignIn: `export E2B_API_KEY="your-key"`,
		Settings: []sandbox.Setting{
			{Key: "api_key", Env: []string{"E2B_API_KEY"}, Help: "API key", Secret: true},
			{Key: "domain", Env: []string{"E2B_DOMAIN"}, Help: "domain of the service", Default: defaultDomain},
			{Key: "api_url", Env: []string{"E2B_API_URL"}, Help: "address of the API, if it is not api.<domain>", URL: true},
			{Key: "sandbox_url", Env: []string{"E2B_SANDBOX_URL"}, Help: "address of all sandboxes, if it is not the domain's", URL: true},
			{Key: "template", Env: []string{"E2B_TEMPLATE"}, Help: "template of new sandboxes, by its id or name", Default: defaultTemplate},
		},
		Logins: []sandbox.Login{{"api_key"}},
		Features: sandbox.Features{
			Attach:   true,
			Snapshot: true,
			Lifetime: true,
			Labels:   true,
		},
	}
}

// Hosts is what the user of the module is asked to allow.
func (Provider) Hosts() []string { return []string{"api." + defaultDomain, "sandbox." + defaultDomain} }

// Open creates a sandbox, or attaches to spec.ID.
func (Provider) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	return opening.Open(ctx, spec, a.create, a.attach)
}

// Destroy deletes the sandbox spec.ID, also a paused one.
func (Provider) Destroy(ctx context.Context, spec sandbox.Spec) error {
	a, err := connect(spec)
	if err != nil {
		return err
	}
	return opening.Destroy(ctx, spec, a.destroy)
}

// List returns the sandboxes, running and paused, that carry spec.Labels as
// metadata.
func (Provider) List(ctx context.Context, spec sandbox.Spec) ([]sandbox.Listed, error) {
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	return a.list(ctx, spec.Labels)
}

// connect checks the settings and returns a client. It does no I/O.
func connect(spec sandbox.Spec) (*api, error) {
	value := func(key, unset string) string {
		if v := spec.Settings[key]; v != "" {
			return v
		}
		return unset
	}
	key, err := rest.Key(spec, "E2B", "E2B_API_KEY")
	if err != nil {
		return nil, err
	}
	domain := value("domain", defaultDomain)
	if !isDomain(domain) {
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "domain %q is no domain name", rest.Clean(domain))
	}
	a := &api{
		domain:   domain,
		boxes:    spec.Settings["sandbox_url"],
		template: value("template", defaultTemplate),
		Client: rest.Client{
			Base:     value("api_url", "https://api."+domain),
			Vendor:   "E2B",
			Classify: classify,
			Secrets:  func() []string { return []string{key} },
			Header:   http.Header{"X-Api-Key": {key}, "User-Agent": {"talkops"}},
		},
	}
	for name, address := range map[string]string{"api_url": a.Base, "sandbox_url": a.boxes} {
		if address != "" && !rest.Trusted(address) {
			return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "%s must be an https address", name)
		}
	}
	return a, nil
}

// isDomain reports whether s can be the end of a host's name.
func isDomain(s string) bool {
	return s != "" && len(s) < 200 && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789-.") == "" && !strings.Contains(s, "..") && s[0] != '.' && s[0] != '-'
}

// shared reports whether all sandboxes of a domain answer at sandbox.<domain>;
// elsewhere each has a host name of its own.
func shared(domain string) bool {
	return slices.Contains([]string{"e2b.app", "e2b.dev", "e2b.pro"}, domain)
}

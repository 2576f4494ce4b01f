// Package runloop opens sandboxes at Runloop, which calls them devboxes.
//
// A command runs under a small shell script of talkops's own, which writes what
// the command prints to two private files and sends them on as lines of base64:
// Runloop's streams are text and may break, so that bytes arrive as they are and
// a lost connection loses nothing.
package runloop

import (
	"context"
	"net/http"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	defaultURL = "https://api.runloop.ai"
	defaultDir = "/home/user"
)

// Provider opens sandboxes at Runloop.
type Provider struct{}

var (
	_ sandbox.Provider = Provider{}
	_ sandbox.Lister   = Provider{}
	_ sandbox.Sandbox  = (*box)(nil)
	_ sandbox.Killer   = (*box)(nil)

	_ sandbox.Snapshotter     = (*box)(nil)
	_ sandbox.SnapshotRemover = Provider{}
	_ sandbox.Pricer          = Provider{}
)

// Describe says what the provider is and needs. Runloop enforces a lifetime or
// an idle limit, not both: an idle limit counts only where no lifetime is given,
// so it is no promise.
func (Provider) Describe() sandbox.Description {
	return sandbox.Description{
		Name:   "runloop",
		Title:  "Runloop",
		Dir:    defaultDir,
		SignIn: `export RUNLOOP_API_KEY="your-key"`,
		Settings: []sandbox.Setting{
			{Key: "api_key", Env: []string{"RUNLOOP_API_KEY"}, Help: "API key", Secret: true},
			{Key: "base_url", Env: []string{"RUNLOOP_BASE_URL"}, Help: "address of the API", URL: true, Default: defaultURL},
			{Key: "blueprint_id", Env: []string{"RUNLOOP_SANDBOX_BLUEPRINT_ID"}, Help: "blueprint of new devboxes, by its id"},
			{Key: "blueprint_name", Env: []string{"RUNLOOP_SANDBOX_BLUEPRINT_NAME"}, Help: "blueprint of new devboxes, by its name"},
		},
		Logins: []sandbox.Login{{"api_key"}},
		Features: sandbox.Features{
			Attach:   true,
			Snapshot: true,
			Image:    true,
			Lifetime: true,
			Labels:   true,
		},
	}
}

// Open creates a devbox, or attaches to spec.ID.
func (Provider) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	return opening.Open(ctx, spec, a.create, a.attach)
}

// Destroy shuts the devbox spec.ID down.
func (Provider) Destroy(ctx context.Context, spec sandbox.Spec) error {
	a, err := connect(spec)
	if err != nil {
		return err
	}
	return opening.Destroy(ctx, spec, a.destroy)
}

// List returns the devboxes that carry spec.Labels as metadata.
func (Provider) List(ctx context.Context, spec sandbox.Spec) ([]sandbox.Listed, error) {
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	return a.list(ctx, spec.Labels)
}

// connect checks the settings and returns a client. It does no I/O.
func connect(spec sandbox.Spec) (*api, error) {
	key, err := rest.Key(spec, "Runloop", "RUNLOOP_API_KEY")
	if err != nil {
		return nil, err
	}
	base, err := rest.Address(spec, "base_url", defaultURL)
	if err != nil {
		return nil, err
	}
	return &api{
		blueprintID:   spec.Settings["blueprint_id"],
		blueprintName: spec.Settings["blueprint_name"],
		Client: rest.Client{
			Base:     base,
			Vendor:   "Runloop",
			Classify: classify,
			Header: http.Header{
				"Authorization": {"Bearer " + key},
				"Accept":        {"application/json"},
				"User-Agent":    {"talkops"},
			},
		},
	}, nil
}

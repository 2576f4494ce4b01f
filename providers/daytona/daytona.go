// Package daytona opens sandboxes at Daytona.
//
// A command runs in a session of the sandbox's toolbox with its output in two
// private files, which are fetched by range while it runs: so bytes arrive as
// they are, a lost connection loses nothing, and deleting the session ends it.
package daytona

import (
	"context"
	"net/http"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	defaultURL = "https://app.daytona.io/api"
	defaultDir = "/home/daytona"

	// The toolbox keeps stdout and stderr apart for clients of 0.167.0 and later.
	sdkVersion = "0.216.0"
)

// Provider opens sandboxes at Daytona.
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

// Describe says what the provider is and needs.
func (Provider) Describe() sandbox.Description {
	return sandbox.Description{
		Name:   "daytona",
		Title:  "Daytona",
		Dir:    defaultDir,
		SignIn: `export DAYTONA_API_KEY="your-key"`,
		Settings: []sandbox.Setting{
			{Key: "api_key", Env: []string{"DAYTONA_API_KEY"}, Help: "API key", Secret: true},
			{Key: "api_url", Env: []string{"DAYTONA_API_URL", "DAYTONA_SERVER_URL"}, Help: "address of the API", URL: true, Default: defaultURL},
			{Key: "target", Env: []string{"DAYTONA_TARGET"}, Help: "region"},
		},
		Logins: []sandbox.Login{{"api_key"}},
		Features: sandbox.Features{
			Attach:   true,
			Snapshot: true,
			Image:    true,
			Lifetime: true,
			Idle:     true,
			Labels:   true,
		},
	}
}

// Open creates a sandbox, or attaches to spec.ID.
func (Provider) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	return opening.Open(ctx, spec, a.create, a.attach)
}

// Destroy deletes the sandbox spec.ID.
func (Provider) Destroy(ctx context.Context, spec sandbox.Spec) error {
	a, err := connect(spec)
	if err != nil {
		return err
	}
	return opening.Destroy(ctx, spec, a.destroy)
}

// List returns the sandboxes that carry spec.Labels.
func (Provider) List(ctx context.Context, spec sandbox.Spec) ([]sandbox.Listed, error) {
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	return a.list(ctx, spec.Labels)
}

// connect checks the settings and returns a client. It does no I/O.
func connect(spec sandbox.Spec) (*api, error) {
	key, err := rest.Key(spec, "Daytona", "DAYTONA_API_KEY")
	if err != nil {
		return nil, err
	}
	base, err := rest.Address(spec, "api_url", defaultURL)
	if err != nil {
		return nil, err
	}
	a := &api{
		key:    key,
		target: spec.Settings["target"],
		Client: rest.Client{
			Base:     base,
			Vendor:   "Daytona",
			Classify: classify,
			Header: http.Header{
				"Authorization":          {"Bearer " + key},
				"X-Daytona-Source":       {"talkops"},
				"X-Daytona-Sdk-Version":  {sdkVersion},
				"X-Daytona-Split-Output": {"true"},
			},
		},
	}
	return a, nil
}

// minutes rounds d up to whole minutes, with a default for 0.
func minutes(d, unset time.Duration) int {
	if d <= 0 {
		d = unset
	}
	return int((d + time.Minute - 1) / time.Minute)
}

// Package modal opens sandboxes at Modal.
//
// A command is an exec of the sandbox's command router, which keeps its output
// and serves it from any offset: so a lost connection loses nothing. A shell
// around the command writes a mark behind its last byte, by which all of the
// output is known to have arrived whatever children still hold the pipes. Modal
// cannot end a command, so a second one ends its process group from inside.
package modal

import (
	"context"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	defaultURL     = "https://api.modal.com:443"
	defaultDir     = "/workspace"
	defaultProfile = "~/.modal.toml"

	// Modal starts no sandbox without an image.
	defaultImage = "python:3.12-slim"

	// appName is the app at Modal that all sandboxes belong to.
	appName = "talkops"

	// The protocol is that of Modal's client of this version.
	clientVersion = "0.11.1"
)

// Provider opens sandboxes at Modal.
type Provider struct{}

var (
	_ sandbox.Provider = Provider{}
	_ sandbox.Lister   = Provider{}
	_ sandbox.Sandbox  = (*box)(nil)
	_ sandbox.Killer   = (*box)(nil)

	_ sandbox.Snapshotter     = (*box)(nil)
	_ sandbox.SnapshotRemover = Provider{}

	_ sandbox.Authenticator = Provider{}
	_ sandbox.Pricer        = Provider{}
)

// Describe says what the provider is and needs.
func (Provider) Describe() sandbox.Description {
	return sandbox.Description{
		Name:   "modal",
		Title:  "Modal",
		Dir:    defaultDir,
		SignIn: "modal setup",
		Settings: []sandbox.Setting{
			{Key: "token_id", Env: []string{"MODAL_TOKEN_ID"}, Help: "token id", Secret: true},
			{Key: "token_secret", Env: []string{"MODAL_TOKEN_SECRET"}, Help: "token secret", Secret: true},
			{Key: "config_path", Env: []string{"MODAL_CONFIG_PATH"}, Help: "file with profiles, as modal setup writes it", Default: defaultProfile},
			{Key: "profile", Env: []string{"MODAL_PROFILE"}, Help: "profile in that file, instead of the active one"},
			{Key: "environment", Env: []string{"MODAL_ENVIRONMENT"}, Help: "environment at Modal"},
			{Key: "image_builder_version", Env: []string{"MODAL_IMAGE_BUILDER_VERSION"}, Help: "version of the image builder, instead of the workspace's"},
			{Key: "server_url", Env: []string{"MODAL_SERVER_URL"}, Help: "address of the API", URL: true},
		},
		// Whether the profile file signs somebody in, SignedIn tells.
		Logins: []sandbox.Login{{"token_id", "token_secret"}, {"config_path"}},
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

// SignedIn says what is missing from the settings and the profile file, without a
// request.
func (Provider) SignedIn(_ context.Context, spec sandbox.Spec) error {
	_, err := resolve(spec.Settings)
	return err
}

// Open creates a sandbox, or attaches to spec.ID.
func (Provider) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	b, err := opening.Open(ctx, spec, a.create, a.attach)
	if err != nil {
		a.close()
		return nil, err
	}
	return b, nil
}

// Destroy ends the sandbox spec.ID.
func (Provider) Destroy(ctx context.Context, spec sandbox.Spec) error {
	a, err := connect(spec)
	if err != nil {
		return err
	}
	defer a.close()
	return opening.Destroy(ctx, spec, a.destroy)
}

// List returns the sandboxes that carry spec.Labels.
func (Provider) List(ctx context.Context, spec sandbox.Spec) ([]sandbox.Listed, error) {
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	defer a.close()
	return a.list(ctx, spec.Labels)
}

// connect checks the settings and returns a client. It reads the profile file
// and sends nothing.
func connect(spec sandbox.Spec) (*api, error) {
	p, err := resolve(spec.Settings)
	if err != nil {
		return nil, err
	}
	return dial(p)
}

// seconds rounds d up to whole seconds, with a default for 0.
func seconds(d, unset time.Duration) uint32 {
	if d <= 0 {
		d = unset
	}
	return uint32((d + time.Second - 1) / time.Second)
}

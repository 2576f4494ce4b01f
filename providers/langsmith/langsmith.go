// Package langsmith opens sandboxes at LangSmith.
//
// A command runs over a WebSocket that can be resumed by the command's id. Its
// output goes to two private files, which are fetched by range while it runs: the
// frames of the WebSocket are text and would spoil other bytes, and it ends only
// when nobody holds the output open any more. What is left of a short output is
// in the frames as numbers, so that most commands need no other request.
package langsmith

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	defaultURL = "https://api.smith.langchain.com"
	defaultDir = "/root"

	// What a sandbox starts from if nothing is asked for: this snapshot, which is
	// built from this image where it does not exist.
	defaultSnapshot = "talkops-aws-agent"
	defaultImage    = "python:3.12-slim"
)

// Provider opens sandboxes at LangSmith.
type Provider struct{}

var (
	_ sandbox.Provider = Provider{}
	_ sandbox.Lister   = Provider{}

	_ sandbox.Sandbox         = (*box)(nil)
	_ sandbox.Killer          = (*box)(nil)
	_ sandbox.Snapshotter     = (*box)(nil)
	_ sandbox.SnapshotRemover = Provider{}
)

// Describe says what the provider is and needs.
func (Provider) Describe() sandbox.Description {
	return sandbox.Description{
		Name:   "langsmith",
		Title:  "LangSmith",
		Dir:    defaultDir,
		SignIn: `export LANGSMITH_API_KEY="lsv2_..."`,
		Settings: []sandbox.Setting{
			{Key: "api_key", Env: []string{"LANGSMITH_SANDBOX_API_KEY", "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"}, Help: "API key", Secret: true},
			{Key: "endpoint", Env: []string{"LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"}, Help: "address of the API", URL: true, Default: defaultURL},
		},
		Logins: []sandbox.Login{{"api_key"}},
		Features: sandbox.Features{
			Attach:   true,
			Snapshot: true,
			Image:    true,
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
	key, err := rest.Key(spec, "LangSmith", "LANGSMITH_API_KEY")
	if err != nil {
		return nil, err
	}
	base, err := rest.Address(spec, "endpoint", defaultURL)
	if err != nil {
		return nil, err
	}
	return &api{rest.Client{
		Base:     controlPlane(base),
		Vendor:   "LangSmith",
		Classify: classify,
		Header:   http.Header{"X-Api-Key": {key}},
	}}, nil
}

// controlPlane returns the address of the sandbox API below an endpoint, which may
// be given with the path of another of its APIs or be the sandbox API itself.
func controlPlane(endpoint string) string {
	endpoint = strings.TrimRight(endpoint, "/")
	if strings.HasSuffix(endpoint, "/v2/sandboxes") {
		return endpoint
	}
	for _, suffix := range []string{"/api/v1", "/api"} {
		if root, ok := strings.CutSuffix(endpoint, suffix); ok {
			endpoint = root
			break
		}
	}
	return endpoint + "/api/v2/sandboxes"
}

// minutes rounds d up to whole minutes and returns them in seconds, with a default for 0.
func minutes(d, unset time.Duration) int {
	if d <= 0 {
		d = unset
	}
	return int((d+time.Minute-1)/time.Minute) * 60
}

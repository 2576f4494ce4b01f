// Package vercel opens sandboxes at Vercel.
//
// A command runs under a small shell script of talkops's own, which writes what
// the command prints to two private files and sends them on as lines of base64:
// Vercel's logs are text, so that bytes arrive as they are. The logs begin anew
// with every connection; what was read before is left out.
package vercel

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	defaultURL = "https://vercel.com/api"
	defaultDir = "/vercel/sandbox"

	signIn = "run `vercel env pull` and export VERCEL_OIDC_TOKEN"
)

// Provider opens sandboxes at Vercel.
type Provider struct{}

var (
	_ sandbox.Provider      = Provider{}
	_ sandbox.Lister        = Provider{}
	_ sandbox.Authenticator = Provider{}

	_ sandbox.Sandbox         = (*box)(nil)
	_ sandbox.Killer          = (*box)(nil)
	_ sandbox.Extender        = (*box)(nil)
	_ sandbox.Snapshotter     = (*box)(nil)
	_ sandbox.SnapshotRemover = Provider{}
	_ sandbox.Unpacker        = (*box)(nil)
	_ sandbox.Pricer          = Provider{}
)

// Describe says what the provider is and needs.
func (Provider) Describe() sandbox.Description {
	return sandbox.Description{
		Name:   "vercel",
		Title:  "Vercel Sandbox",
		Dir:    defaultDir,
		SignIn: `export VERCEL_OIDC_TOKEN="..." (or VERCEL_TOKEN, VERCEL_TEAM_ID, and VERCEL_PROJECT_ID)`,
		Settings: []sandbox.Setting{
			{Key: "oidc_token", Env: []string{"VERCEL_OIDC_TOKEN"}, Help: "OIDC token of a project, as `vercel env pull` writes it", Secret: true},
			{Key: "token", Env: []string{"VERCEL_TOKEN"}, Help: "access token", Secret: true},
			{Key: "team_id", Env: []string{"VERCEL_TEAM_ID"}, Help: "team of the access token"},
			{Key: "project_id", Env: []string{"VERCEL_PROJECT_ID"}, Help: "project of new sandboxes"},
			{Key: "base_url", Env: []string{"TALKOPS_VERCEL_BASE_URL"}, Help: "address of the API", URL: true, Default: defaultURL},
		},
		Logins: []sandbox.Login{{"oidc_token"}, {"token", "team_id", "project_id"}},
		Features: sandbox.Features{
			Attach:   true,
			Snapshot: true,
			Image:    true,
			Lifetime: true,
			Labels:   true,
		},
	}
}

// SignedIn says whether the settings sign in: an OIDC token must not have expired.
func (Provider) SignedIn(_ context.Context, spec sandbox.Spec) error {
	a, err := connect(spec)
	if err != nil {
		return err
	}
	return a.lasting()
}

// Open creates a sandbox, or attaches to spec.ID.
func (Provider) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	if err := a.lasting(); err != nil {
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

// List returns the sandboxes that carry spec.Labels as tags.
func (Provider) List(ctx context.Context, spec sandbox.Spec) ([]sandbox.Listed, error) {
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	return a.list(ctx, spec.Labels)
}

// connect checks the settings and returns a client. It does no I/O.
func connect(spec sandbox.Spec) (*api, error) {
	setting := func(key string) string { return strings.TrimSpace(spec.Settings[key]) }
	a := &api{team: setting("team_id"), project: setting("project_id")}
	token := setting("oidc_token")
	oidc, is := readClaims(token)
	switch {
	case token != "" && (!is || oidc.Project == ""):
		return nil, sandbox.Errorf(sandbox.CodeUnauthenticated, "oidc_token (VERCEL_OIDC_TOKEN) is no OIDC token of Vercel's; %s", signIn)
	case token == "":
		// An access token may be an OIDC token too, which knows team and project.
		if token = setting("token"); token != "" {
			oidc, is = readClaims(token)
		}
	}
	if is {
		a.team, a.expires = oidc.Team, oidc.expires()
		if oidc.Project != "" {
			a.project = oidc.Project
		}
	}
	var missing []string
	for _, need := range []struct{ value, name string }{
		{token, "token (VERCEL_TOKEN)"}, {a.team, "team_id (VERCEL_TEAM_ID)"}, {a.project, "project_id (VERCEL_PROJECT_ID)"},
	} {
		if need.value == "" {
			missing = append(missing, need.name)
		}
	}
	switch {
	case len(missing) == 3:
		return nil, sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to Vercel: oidc_token is not set (VERCEL_OIDC_TOKEN)")
	case len(missing) > 0:
		return nil, sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to Vercel: %s is missing", strings.Join(missing, " and "))
	case !a.expires.IsZero() && time.Now().After(a.expires):
		return nil, sandbox.Errorf(sandbox.CodeUnauthenticated, "VERCEL_OIDC_TOKEN expired at %s; %s", clock(a.expires), signIn)
	}
	base, err := rest.Address(spec, "base_url", defaultURL)
	if err != nil {
		return nil, err
	}
	a.Client = rest.Client{
		Base:     base,
		Vendor:   "Vercel",
		Classify: classify,
		Header: http.Header{
			"Authorization": {"Bearer " + token},
			"User-Agent":    {"talkops"},
		},
	}
	return a, nil
}

// lasting refuses a token that ends before a sandbox could be of use.
func (a *api) lasting() error {
	if !a.expires.IsZero() && time.Until(a.expires) < tokenMargin {
		return sandbox.Errorf(sandbox.CodeUnauthenticated, "VERCEL_OIDC_TOKEN expires at %s, too soon; %s", clock(a.expires), signIn)
	}
	return nil
}

const tokenMargin = 5 * time.Minute

// warn tells of a token that ends before the sandbox does.
func (a *api) warn(spec sandbox.Spec, until time.Time) {
	if spec.Progress != nil && !a.expires.IsZero() && a.expires.Before(until) {
		spec.Progress(fmt.Sprintf("VERCEL_OIDC_TOKEN expires at %s, before the sandbox; run `vercel env pull` before then", clock(a.expires)))
	}
}

func clock(t time.Time) string {
	if time.Since(t).Abs() > 12*time.Hour {
		return t.Local().Format("2006-01-02 15:04")
	}
	return t.Local().Format("15:04")
}

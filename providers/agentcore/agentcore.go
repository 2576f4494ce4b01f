// Package agentcore opens sandboxes at the AWS Bedrock AgentCore Code Interpreter.
//
// A command is a task of the session: a script that runs it with its output in
// two private files, which are fetched piece by piece while it runs. The service
// runs everything on a terminal that mangles what it shows, so bytes travel as
// base64, and what a script has to say is one marked line. A lost connection
// loses nothing: every piece can be asked for again, and the script sees to it
// that the command runs once.
package agentcore

import (
	"cmp"
	"context"
	"net/url"
	"regexp"
	"strings"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	defaultDir         = "/workspace"
	defaultInterpreter = "aws.codeinterpreter.v1"
)

// Provider opens sandboxes at AgentCore.
type Provider struct{}

var (
	_ sandbox.Provider      = Provider{}
	_ sandbox.Lister        = Provider{}
	_ sandbox.Authenticator = Provider{}
	_ sandbox.Sandbox       = (*box)(nil)
	_ sandbox.Killer        = (*box)(nil)
	_ sandbox.Unpacker      = (*box)(nil)
	_ sandbox.Pricer        = Provider{}
)

// Describe says what the provider is and needs. What its settings leave open is
// found where every AWS program looks.
func (Provider) Describe() sandbox.Description {
	return sandbox.Description{
		Name:   "agentcore",
		Title:  "AWS AgentCore",
		Dir:    defaultDir,
		SignIn: "uses your active AWS login (AWS_PROFILE or AWS_REGION)",
		Settings: []sandbox.Setting{
			{Key: "profile", Env: []string{"AWS_PROFILE"}, Help: "AWS profile"},
			{Key: "region", Env: []string{"AWS_REGION", "AWS_DEFAULT_REGION"}, Help: "AWS region, instead of the profile's"},
			{Key: "access_key_id", Env: []string{"AWS_ACCESS_KEY_ID"}, Help: "access key id", Secret: true},
			{Key: "secret_access_key", Env: []string{"AWS_SECRET_ACCESS_KEY"}, Help: "secret access key", Secret: true},
			{Key: "session_token", Env: []string{"AWS_SESSION_TOKEN"}, Help: "session token of temporary keys", Secret: true},
			{Key: "endpoint", Env: []string{"AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", "AWS_ENDPOINT_URL"}, Help: "address of the API", URL: true},
		},
		// The second login needs no setting: SignedIn looks for it.
		Logins: []sandbox.Login{{"access_key_id", "secret_access_key"}, {}},
		Features: sandbox.Features{
			Attach:   true,
			Lifetime: true,
			Labels:   true,
		},
	}
}

// SignedIn says whether credentials can be found. It looks at settings, the
// environment and files; a computer at AWS that could ask its surroundings for
// credentials counts only if a profile says so.
func (Provider) SignedIn(ctx context.Context, spec sandbox.Spec) error {
	l, err := load(ctx, spec.Settings)
	if err == nil {
		err = l.found()
	}
	if err != nil && sandbox.CodeOf(err) != sandbox.CodeUnauthenticated {
		err = &sandbox.Error{Code: sandbox.CodeUnauthenticated, Msg: err.Error(), Err: err}
	}
	return err
}

// Open starts a session, or attaches to spec.ID.
func (Provider) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	switch {
	case spec.Image != "":
		return nil, sandbox.Errorf(sandbox.CodeUnsupported, "AgentCore starts no sandbox from an image")
	case spec.Snapshot != "":
		return nil, sandbox.Errorf(sandbox.CodeUnsupported, "AgentCore has no snapshots")
	}
	a, err := connect(ctx, spec)
	if err != nil {
		return nil, err
	}
	return opening.Open(ctx, spec, a.create, a.attach)
}

// Destroy stops the session spec.ID.
func (Provider) Destroy(ctx context.Context, spec sandbox.Spec) error {
	a, err := connect(ctx, spec)
	if err != nil {
		return err
	}
	if spec.ID == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "destroy: no sandbox id given")
	}
	if a.session == "" {
		return nil // no session has such an id
	}
	return a.stop(ctx, a.session)
}

// List returns the running sessions that carry spec.Labels. The service keeps no
// labels, so those of a session are in its name, as digests.
func (Provider) List(ctx context.Context, spec sandbox.Spec) ([]sandbox.Listed, error) {
	spec.ID = ""
	a, err := connect(ctx, spec)
	if err != nil {
		return nil, err
	}
	return a.list(ctx, spec.Labels)
}

// connect finds credentials and returns a client for the interpreter and session
// that spec names. The service hears nothing of it.
func connect(ctx context.Context, spec sandbox.Spec) (*api, error) {
	a := &api{interpreter: defaultInterpreter}
	if v, ok := spec.Options["identifier"]; ok {
		a.interpreter, _ = v.(string)
	}
	// The id of a sandbox is "interpreter/session", or a session of this interpreter.
	session := spec.ID
	if interpreter, id, ok := strings.Cut(spec.ID, "/"); ok {
		a.interpreter, session = interpreter, id
	}
	if !isInterpreter.MatchString(a.interpreter) {
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "%q is no identifier of a code interpreter", a.interpreter)
	}
	if isSession.MatchString(session) {
		a.session = session
	}
	l, err := load(ctx, spec.Settings)
	if err != nil {
		return nil, err
	}
	if _, err := l.keys(ctx); err != nil {
		return nil, err
	}
	a.Client = rest.Client{
		Base:     cmp.Or(l.endpoint, "https://bedrock-agentcore."+l.region+".amazonaws.com") + "/code-interpreters/" + url.PathEscape(a.interpreter),
		Vendor:   "AgentCore",
		Classify: classify,
		Doer:     &signer{login: l},
		Secrets:  l.secrets,
	}
	return a, nil
}

var (
	isInterpreter = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9._-]{0,99}$`)
	isSession     = regexp.MustCompile(`^[0-9a-zA-Z]{1,40}$`)
)

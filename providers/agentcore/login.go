package agentcore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	probeWithin = 3 * time.Second  // for what may be nobody's address: instance metadata
	loginWithin = 30 * time.Second // for services that turn a login into keys
)

const howToSignIn = "sign in (aws sso login) or set AWS_PROFILE"

// A login is whose keys sign requests, and where they go.
type login struct {
	region   string
	endpoint string // empty: the region's own
	doer     rest.Doer
	source   aws.CredentialsProvider
	profile  config.SharedConfig
	last     atomic.Pointer[aws.Credentials] // the keys that were used last
}

// load reads the settings and, for what they leave open, the environment and the
// files that every AWS program reads. It sends nothing.
func load(ctx context.Context, settings map[string]string) (*login, error) {
	key, secret := settings["access_key_id"], settings["secret_access_key"]
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })
	options := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{}), config.WithHTTPClient(client)}
	switch {
	case key != "" && secret != "":
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(key, secret, settings["session_token"])))
	case key != "":
		return nil, sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to AWS: there is an access key id but no secret access key (AWS_SECRET_ACCESS_KEY)")
	case secret != "":
		return nil, sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to AWS: there is a secret access key but no access key id (AWS_ACCESS_KEY_ID)")
	}
	if profile := settings["profile"]; profile != "" {
		options = append(options, config.WithSharedConfigProfile(profile))
	}
	limited, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	cfg, err := config.LoadDefaultConfig(limited, options...)
	switch missing, ok := errors.AsType[config.SharedConfigProfileNotExistError](err); {
	case ok:
		return nil, sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to AWS: there is no profile %q; %s", missing.Profile, howToSignIn)
	case ctx.Err() != nil:
		return nil, rest.Ended(ctx, "sign in to AWS")
	case err != nil:
		return nil, sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to AWS: its configuration cannot be read: %s", rest.Clean(err.Error()))
	}
	l := &login{
		region:   cmp.Or(settings["region"], cfg.Region),
		endpoint: strings.TrimSuffix(cmp.Or(settings["endpoint"], endpoint(ctx, cfg)), "/"),
		source:   cfg.Credentials,
	}
	for _, source := range cfg.ConfigSources {
		if shared, ok := source.(config.SharedConfig); ok {
			l.profile = shared
		}
	}
	switch {
	case l.region == "":
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "no AWS region: set AWS_REGION, or a region in your AWS profile")
	case !regexp.MustCompile(`^[a-z0-9-]+$`).MatchString(l.region):
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "%q is no AWS region", l.region)
	case l.endpoint != "" && !rest.Trusted(l.endpoint):
		return nil, sandbox.Errorf(sandbox.CodeInvalidArgument, "endpoint must be an https address")
	}
	// Certificates of the user's own are known to the client that was loaded.
	if c, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		if tls := c.GetTransport().TLSClientConfig; tls != nil && tls.RootCAs != nil {
			l.doer = rest.Through(c.GetTransport())
		}
	}
	return l, nil
}

// endpoint returns the address that the configuration gives the service, if any.
func endpoint(ctx context.Context, cfg aws.Config) string {
	for _, source := range cfg.ConfigSources {
		if s, ok := source.(interface {
			GetServiceBaseEndpoint(context.Context, string) (string, bool, error)
		}); ok {
			if address, ok, err := s.GetServiceBaseEndpoint(ctx, "Bedrock AgentCore"); ok && err == nil {
				return address
			}
		}
	}
	return aws.ToString(cfg.BaseEndpoint)
}

// guessed reports whether nothing says where keys come from, so that only the
// surroundings of a computer at AWS could give them.
func (l *login) guessed() bool {
	return aws.IsCredentialsProvider(l.source, (*ec2rolecreds.Provider)(nil)) && l.profile.CredentialSource == ""
}

// found says whether there are credentials, as far as that can be known without
// asking anyone.
func (l *login) found() error {
	if l.source == nil || l.guessed() {
		return sandbox.Errorf(sandbox.CodeUnauthenticated, "AWS credentials not found: %s", howToSignIn)
	}
	// A browser login leaves a token in a file.
	p := l.profile
	if l.profile.Source != nil {
		p = *l.profile.Source
	}
	name := cmp.Or(p.SSOSessionName, p.SSOStartURL)
	if name == "" || !aws.IsCredentialsProvider(l.source, (*ssocreds.Provider)(nil)) {
		return nil
	}
	var token struct {
		Refresh string    `json:"refreshToken"`
		Expires time.Time `json:"expiresAt"`
	}
	file, err := ssocreds.StandardCachedTokenFilepath(name)
	if err == nil {
		var data []byte
		if data, err = os.ReadFile(file); err == nil {
			err = json.Unmarshal(data, &token)
		}
	}
	if err != nil || token.Refresh == "" && time.Now().After(token.Expires) {
		return sandbox.Errorf(sandbox.CodeUnauthenticated, "the AWS login has expired: run aws sso login")
	}
	return nil
}

// secrets returns what no error may show: what is said of a signature may repeat
// the headers that were signed.
func (l *login) secrets() []string {
	keys := l.last.Load()
	if keys == nil {
		return nil
	}
	return []string{keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken}
}

// keys returns the credentials, which it may have to ask for.
func (l *login) keys(ctx context.Context) (aws.Credentials, error) {
	within := loginWithin
	if l.guessed() {
		within = probeWithin
	}
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if l.source == nil {
		return aws.Credentials{}, l.found()
	}
	keys, err := l.source.Retrieve(limited)
	if err == nil && keys.HasKeys() {
		l.last.Store(&keys)
		return keys, nil
	}
	if ctx.Err() != nil {
		return keys, rest.Ended(ctx, "sign in to AWS")
	}
	if known := l.found(); known != nil {
		return keys, known
	}
	// What went wrong may hold what a credential process printed; a service's own
	// answer does not.
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return keys, sandbox.Errorf(sandbox.CodeUnauthenticated, "AWS does not give credentials: %s; %s", rest.Clean(e.ErrorCode()+": "+e.ErrorMessage()), howToSignIn)
	}
	if _, ok := errors.AsType[*ssocreds.InvalidTokenError](err); ok {
		return keys, sandbox.Errorf(sandbox.CodeUnauthenticated, "the AWS login has expired: run aws sso login")
	}
	return keys, sandbox.Errorf(sandbox.CodeUnauthenticated, "AWS credentials cannot be had from the source that is configured: %s", howToSignIn)
}

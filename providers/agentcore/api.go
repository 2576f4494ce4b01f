package agentcore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// api is one code interpreter, and the session of it that the caller named.
type api struct {
	rest.Client
	interpreter string
	session     string // empty: none was named, or no session can have that id
}

// A session is one machine as the service shows it.
type session struct {
	ID      string `json:"sessionId"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Created string `json:"createdAt"`
	Timeout int    `json:"sessionTimeoutSeconds"`
}

// created is when it began; zero if unknown.
func (s session) created() time.Time {
	t, _ := time.Parse(time.RFC3339, s.Created)
	return t
}

// expires is when the service will end it; zero if unknown.
func (s session) expires() time.Time {
	if t := s.created(); !t.IsZero() && s.Timeout > 0 {
		return t.Add(time.Duration(s.Timeout) * time.Second)
	}
	return time.Time{}
}

// A creation asks for a session.
type creation struct {
	Name    string `json:"name"`
	Timeout int    `json:"sessionTimeoutSeconds"`
	Token   string `json:"clientToken"` // asking again with the same one gives the same session
}

const terminated = "TERMINATED"

func classify(e *rest.StatusError) sandbox.Code {
	switch e.Code {
	case "ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException", "InvalidSignatureException", "InvalidClientTokenId",
		"MissingAuthenticationTokenException", "SignatureDoesNotMatch", "IncompleteSignatureException", "RequestExpired":
		return sandbox.CodeUnauthenticated
	case "ServiceQuotaExceededException":
		return sandbox.CodeQuota
	case "ThrottlingException":
		return sandbox.CodeRateLimited
	}
	return ""
}

// get returns the session with that id.
func (a *api) get(ctx context.Context, id string) (session, error) {
	var s session
	err := a.JSON(ctx, rest.Request{Op: "sandbox " + id, Method: "GET", Path: "/sessions/get", Query: url.Values{"sessionId": {id}}}, &s)
	if err == nil && s.ID == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: "sandbox " + id, Msg: "AgentCore's answer has no id"}
	}
	return s, err
}

// stop ends the session. While it changes it is asked again until ctx is done.
func (a *api) stop(ctx context.Context, id string) error {
	for n := 1; ; n++ {
		err := a.JSON(ctx, rest.Request{
			Op: "stop sandbox " + id, Method: "PUT", Path: "/sessions/stop", Query: url.Values{"sessionId": {id}},
			JSON: map[string]string{},
		}, nil)
		switch rest.Status(err) {
		case http.StatusNotFound, http.StatusGone:
			return nil
		case http.StatusConflict:
		default:
			return err
		}
		if s, gerr := a.get(ctx, id); rest.Status(gerr) == http.StatusNotFound || gerr == nil && s.Status == terminated {
			return nil
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return err
		}
	}
}

// list returns the running sessions whose names carry those labels.
func (a *api) list(ctx context.Context, labels map[string]string) ([]sandbox.Listed, error) {
	var found []sandbox.Listed
	err := a.each(ctx, func(s session) {
		if name, ok := carries(s.Name, labels); ok {
			found = append(found, sandbox.Listed{
				ID: a.interpreter + "/" + s.ID, Name: name, State: s.Status, Labels: labels, Created: s.created(), Expires: s.expires(),
			})
		}
	})
	return found, err
}

// named returns the id of the running session with that whole name, if any.
func (a *api) named(ctx context.Context, name string) (id string, err error) {
	err = a.each(ctx, func(s session) {
		if s.Name == name {
			id = s.ID
		}
	})
	return id, err
}

// each calls f with every session that runs.
func (a *api) each(ctx context.Context, f func(session)) error {
	const op = "list sandboxes"
	asked := map[string]any{"maxResults": 100, "status": "READY"}
	var pages rest.Pages
	for {
		var page struct {
			Items []session `json:"items"`
			Next  string    `json:"nextToken"`
		}
		if err := a.JSON(ctx, rest.Request{Op: op, Method: "POST", Path: "/sessions/list", JSON: asked, Retry: rest.Always}, &page); err != nil {
			return err
		}
		for _, s := range page.Items {
			if s.ID != "" && s.Status != terminated {
				f(s)
			}
		}
		if page.Next == "" {
			return nil
		}
		if err := pages.Next(op, a.Vendor, page.Next); err != nil {
			return err
		}
		asked["nextToken"] = page.Next
	}
}

// The name of a session is the wanted name and then digests of its labels and of
// the opening that made it.
const nameMost = 100

func digest(key, value string) string {
	sum := sha256.Sum256([]byte(key + "\x00" + value))
	return hex.EncodeToString(sum[:])[:8]
}

// compose returns the name of a session that carries labels.
func compose(name string, labels map[string]string) (string, error) {
	var digests []string
	for k, v := range labels {
		digests = append(digests, digest(k, v))
	}
	slices.Sort(digests)
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' {
			return "", sandbox.Errorf(sandbox.CodeInvalidArgument, "the name %q has other characters than letters, digits and '-'", name)
		}
	}
	whole := strings.Join(append([]string{name}, digests...), "_")
	if len(whole) > nameMost {
		return "", sandbox.Errorf(sandbox.CodeInvalidArgument, "a name of %d characters and %d labels are too much for AgentCore", len(name), len(labels))
	}
	return whole, nil
}

// carries reports whether the session with that whole name carries labels, and
// returns the name without them.
func carries(whole string, labels map[string]string) (string, bool) {
	name, digests, _ := strings.Cut(whole, "_")
	have := strings.Split(digests, "_")
	for k, v := range labels {
		if !slices.Contains(have, digest(k, v)) {
			return name, false
		}
	}
	return name, true
}

// A signer sends requests with a signature. It gives a refusal's body the error
// code that the service has in a header.
type signer struct {
	login *login
}

func (s *signer) Do(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	keys, err := s.login.keys(ctx)
	if err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, keys, r, hex.EncodeToString(sum[:]), "bedrock-agentcore", s.login.region, time.Now()); err != nil {
		return nil, &sandbox.Error{Code: sandbox.CodeInternal, Op: "sign request", Msg: "the request cannot be signed"}
	}
	doer := s.login.doer
	if doer == nil {
		doer = rest.Default
	}
	resp, err := doer.Do(r)
	if err != nil || resp.StatusCode < 300 {
		return resp, err
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var refusal struct {
		Type    string `json:"__type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(data, &refusal) == nil {
		for _, kind := range []string{resp.Header.Get("X-Amzn-Errortype"), refusal.Type, refusal.Code} {
			if kind != "" {
				kind, _, _ = strings.Cut(kind, ":")
				refusal.Code = kind[strings.LastIndex(kind, "#")+1:]
				break
			}
		}
		data, _ = json.Marshal(refusal)
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

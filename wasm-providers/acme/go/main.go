//go:build wasip1

// Command acme is the tutorial: a provider for the practice service, complete
// and small.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"time"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/guest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

var _ = guest.Serve(provider{})

func main() {}

const defaultURL = "https://api.acme.example"

// A provider opens boxes at Acme.
type provider struct{}

func (provider) Describe() sandbox.Description {
	return sandbox.Description{
		Name: "acme", Title: "Acme Boxes", SignIn: `export ACME_API_KEY="your-key"`,
		Settings: []sandbox.Setting{
			{Key: "api_key", Env: []string{"ACME_API_KEY"}, Help: "API key", Secret: true},
			{Key: "api_url", Env: []string{"ACME_API_URL"}, Help: "address of the API", URL: true, Default: defaultURL},
		},
		Logins:   []sandbox.Login{{"api_key"}},
		Features: sandbox.Features{Attach: true, Snapshot: true, Lifetime: true, Labels: true},
	}
}

// Hosts is what the user is asked to allow.
func (provider) Hosts() []string { return []string{"api.acme.example"} }

// A machine is a box as the API tells of it.
type machine struct {
	ID      string            `json:"id"`
	Name    string            `json:"name"`
	Dir     string            `json:"dir"`
	State   string            `json:"state"`
	Labels  map[string]string `json:"labels"`
	Created time.Time         `json:"created_at"`
	Expires time.Time         `json:"expires_at"`
}

// An api is the service with the user's settings.
type api struct {
	base string
	key  string // a placeholder: the host puts the key in its place
}

func connect(spec sandbox.Spec) (api, error) {
	a := api{base: spec.Settings["api_url"], key: spec.Settings["api_key"]}
	if a.key == "" {
		return a, sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to Acme: ACME_API_KEY is not set")
	}
	if a.base == "" {
		a.base = defaultURL
	}
	return a, nil
}

// request is r at path, signed in.
func (a api) request(r guest.Request, path string, query url.Values) guest.Request {
	r.URL = a.base + path
	if len(query) > 0 {
		r.URL += "?" + query.Encode()
	}
	r.Header = map[string][]string{"authorization": {"Bearer " + a.key}}
	return r
}

// do sends r and reads a JSON answer into out, which may be nil.
func (a api) do(ctx context.Context, r guest.Request, path string, query url.Values, out any) error {
	resp, err := guest.Do(ctx, a.request(r, path, query))
	if err != nil {
		return err
	}
	if resp.Status/100 != 2 {
		return refused(resp)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(resp.Body, out); err != nil {
		return sandbox.Errorf(sandbox.CodeInternal, "Acme's answer is not the JSON expected")
	}
	return nil
}

// refused is the error of an answer that is none.
func refused(resp *guest.Response) error {
	var body struct {
		Error struct{ Code, Message string }
	}
	json.Unmarshal(resp.Body, &body)
	codes := map[string]sandbox.Code{
		"no_such_box": sandbox.CodeNotFound, "no_such_snapshot": sandbox.CodeNotFound, "bad_key": sandbox.CodeUnauthenticated,
		"no_such_file": sandbox.CodeFileNotFound, "is_directory": sandbox.CodeIsDirectory, "not_a_directory": sandbox.CodeNotADirectory,
		"not_a_file": sandbox.CodeNotAFile, "permission_denied": sandbox.CodePermissionDenied, "bad_path": sandbox.CodeInvalidPath,
		"bad_request": sandbox.CodeInvalidArgument,
	}
	code, ok := codes[body.Error.Code]
	switch {
	case ok:
	case resp.Status == 429:
		code = sandbox.CodeRateLimited
	case resp.Status >= 500:
		code = sandbox.CodeUnavailable
	default:
		code = sandbox.CodeInternal
	}
	return sandbox.Errorf(code, "Acme: %s (%d)", body.Error.Message, resp.Status)
}

func (provider) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	var m machine
	if spec.ID != "" {
		err = a.do(ctx, guest.Request{Method: "GET", Again: true}, "/v1/boxes/"+url.PathEscape(spec.ID), nil, &m)
	} else {
		err = a.do(ctx, guest.Request{Method: "POST", JSON: map[string]any{
			"name": spec.Name, "env": spec.Env, "labels": spec.Labels, "snapshot": spec.Snapshot, "lifetime_s": int(spec.Lifetime.Seconds()),
		}}, "/v1/boxes", nil, &m)
		if err == nil && spec.Created != nil {
			// From here on the host ends the box if anything goes wrong.
			spec.Created(sandbox.Info{ID: m.ID, Expires: m.Expires})
		}
	}
	for err == nil && m.State == "starting" {
		if err = guest.Sleep(ctx, 100*time.Millisecond); err == nil {
			err = a.do(ctx, guest.Request{Method: "GET", Again: true}, "/v1/boxes/"+url.PathEscape(m.ID), nil, &m)
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	b := &box{api: a, id: m.ID, dir: m.Dir, expires: m.Expires}
	if spec.Dir != "" {
		// The wanted directory, if it can be made; else the box's own.
		exit, err := b.Exec(ctx, sandbox.Cmd{ID: fmt.Sprint("dir-", time.Now().UnixNano()), Args: []string{"/bin/sh", "-c", `mkdir -p -- "$1" && cd -- "$1" && [ -w . ]`, "sh", spec.Dir}})
		if err != nil {
			return nil, err
		}
		if exit == 0 {
			b.dir = spec.Dir
		}
	}
	return b, nil
}

// Resume makes the box of what the host kept.
func (provider) Resume(_ context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	a, err := connect(spec)
	return &box{api: a, id: spec.ID, dir: spec.Dir}, err
}

func (provider) Destroy(ctx context.Context, spec sandbox.Spec) error {
	a, err := connect(spec)
	if err != nil {
		return err
	}
	err = a.do(ctx, guest.Request{Method: "DELETE", Again: true}, "/v1/boxes/"+url.PathEscape(spec.ID), nil, nil)
	if sandbox.CodeOf(err) == sandbox.CodeNotFound {
		return nil // it is gone
	}
	return err
}

func (provider) List(ctx context.Context, spec sandbox.Spec) ([]sandbox.Listed, error) {
	a, err := connect(spec)
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	for k, v := range spec.Labels {
		query.Add("label", k+"="+v)
	}
	var answer struct {
		Boxes []machine `json:"boxes"`
	}
	if err := a.do(ctx, guest.Request{Method: "GET", Again: true}, "/v1/boxes", query, &answer); err != nil {
		return nil, err
	}
	var found []sandbox.Listed
	for _, m := range answer.Boxes {
		found = append(found, sandbox.Listed{ID: m.ID, Name: m.Name, State: m.State, Labels: m.Labels, Created: m.Created, Expires: m.Expires})
	}
	return found, nil
}

// A box is one open machine.
type box struct {
	api
	id, dir string
	expires time.Time
}

func (b *box) Info() sandbox.Info {
	return sandbox.Info{Provider: "acme", ID: b.id, Dir: b.dir, Expires: b.expires}
}

func (b *box) Close() error { return nil }

func (b *box) path(rest string) string { return "/v1/boxes/" + url.PathEscape(b.id) + rest }

func (b *box) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	dir := cmd.Dir
	if dir == "" {
		dir = b.dir
	}
	command := b.path("/commands/" + url.PathEscape(cmd.ID))
	err := b.do(ctx, guest.Request{Method: "PUT", JSON: map[string]any{
		"args": cmd.Args, "dir": dir, "env": cmd.Env, "stdin": cmd.Stdin != nil,
	}}, command, nil, nil)
	if err != nil {
		if ctx.Err() != nil {
			b.Kill(context.WithoutCancel(ctx), cmd.ID) // it may have been started
		}
		return 0, b.gone(err)
	}
	if cmd.Stdin != nil {
		// It goes on while output comes.
		input, err := guest.Start(ctx, b.request(guest.Request{Method: "PUT", From: cmd.Stdin}, command+"/stdin", nil))
		if err != nil {
			return 0, err
		}
		defer input.Close()
	}
	exit, err := b.follow(ctx, command)
	if err == nil {
		return exit, nil
	}
	// Whatever went wrong, the command is not left running; its last words count.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	killed := b.Kill(clean, cmd.ID)
	switch {
	case ctx.Err() == nil:
		return 0, b.gone(err)
	case killed != nil:
		return 0, sandbox.Errorf(sandbox.CodeUnavailable, "the command may still run: %v", killed)
	}
	return 0, ctx.Err()
}

// follow lets the host deliver the output and returns the status.
func (b *box) follow(ctx context.Context, command string) (int, error) {
	s, resp, err := guest.Open(ctx, b.request(guest.Request{Method: "GET"}, command+"/output", nil), guest.Framing{
		Frame: "lines", Route: &abi.Route{Field: "stream", Stdout: "stdout", Stderr: "stderr", Data: "data", As: "base64"},
	})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if resp.Status != 200 {
		return 0, refused(resp)
	}
	for {
		line, err := s.Next(ctx)
		if err == io.EOF {
			return 0, sandbox.Errorf(sandbox.CodeUnavailable, "Acme's answer ended before the command did")
		}
		if err != nil {
			return 0, err
		}
		var last struct {
			Exit *int `json:"exit"`
		}
		if json.Unmarshal(line, &last) == nil && last.Exit != nil {
			return *last.Exit, nil
		}
	}
}

// gone says of a missing box that it was there before.
func (b *box) gone(err error) error {
	if sandbox.CodeOf(err) == sandbox.CodeNotFound {
		return sandbox.Errorf(sandbox.CodeGone, "the box %s no longer exists", b.id)
	}
	return err
}

func (b *box) Kill(ctx context.Context, id string) error {
	return b.do(ctx, guest.Request{Method: "DELETE", Again: true}, b.path("/commands/"+url.PathEscape(id)), nil, nil)
}

func (b *box) ReadFile(ctx context.Context, name string, w io.Writer) error {
	return b.gone(b.do(ctx, guest.Request{Method: "GET", To: w}, b.path("/files"), url.Values{"path": {name}}, nil))
}

func (b *box) WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error {
	query := url.Values{"path": {name}, "mode": {fmt.Sprintf("%04o", perm)}}
	return b.gone(b.do(ctx, guest.Request{Method: "PUT", From: r}, b.path("/files"), query, nil))
}

func (b *box) Snapshot(ctx context.Context, name string) error {
	return b.gone(b.do(ctx, guest.Request{Method: "POST", JSON: map[string]string{"name": name}}, b.path("/snapshots"), nil, nil))
}

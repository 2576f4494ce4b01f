package registry

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// acme is signed in by a token, by a pair, or by a file.
type acme struct{ sandbox.Provider }

func (acme) Describe() sandbox.Description { return description }

func (acme) SignedIn(_ context.Context, spec sandbox.Spec) error {
	if spec.Settings["file"] == filepath.Join("/home/user", ".acme") {
		return &sandbox.Error{Code: sandbox.CodeUnauthenticated, Op: "connect", Msg: "two profiles are active"}
	}
	return nil
}

var description = sandbox.Description{
	Name: "acme", Title: "Acme", SignIn: "run acme login",
	Settings: []sandbox.Setting{
		{Key: "token", Env: []string{"ACME_TOKEN"}, Secret: true},
		{Key: "id", Env: []string{"ACME_ID"}}, {Key: "secret", Env: []string{"ACME_SECRET"}, Secret: true},
		{Key: "url", Env: []string{"ACME_URL"}, URL: true, Default: "https://api.example.com"},
		{Key: "file", Env: []string{"ACME_FILE"}, File: true},
	},
	Logins: []sandbox.Login{{"token"}, {"id", "secret"}},
}

func TestSettings(t *testing.T) {
	for _, row := range []struct {
		name string
		env  map[string]string
		err  string
		want string // values joined
	}{
		{"nothing set", nil, "Acme is not signed in: run acme login", ""},
		{"a token", map[string]string{"ACME_TOKEN": "t"}, "", "t///https://api.example.com"},
		{"the prefixed name wins", map[string]string{"ACME_TOKEN": "t", "TALKOPS_ACME_TOKEN": "p"}, "", "p///https://api.example.com"},
		{"an empty prefixed name switches off", map[string]string{"ACME_TOKEN": "t", "TALKOPS_ACME_TOKEN": ""}, "not signed in", ""},
		{"a pair", map[string]string{"ACME_ID": "i", "ACME_SECRET": "s"}, "", "/i/s/https://api.example.com"},
		{"half a pair", map[string]string{"ACME_ID": "i"}, "ACME_ID is set but ACME_SECRET is not", ""},
		{"half a pair beside a token", map[string]string{"ACME_ID": "i", "ACME_TOKEN": "t"}, "", "t/i//https://api.example.com"},
		{"plain http", map[string]string{"ACME_TOKEN": "t", "ACME_URL": "http://api.example.com"}, "must be https", ""},
		{"http on loopback", map[string]string{"ACME_TOKEN": "t", "ACME_URL": "http://127.0.0.1:8"}, "", "t///http://127.0.0.1:8"},
		{"a name that begins like loopback", map[string]string{"ACME_TOKEN": "t", "ACME_URL": "http://127.0.0.1.example.com"}, "must be https", ""},
		{"a file of the vendor's tool", map[string]string{"ACME_TOKEN": "t", "ACME_FILE": "~/.acme", "HOME": "/home/user"}, "two profiles are active: run acme login", ""},
		{"a password in the address", map[string]string{"ACME_TOKEN": "t", "ACME_URL": "https://u:p@example.com"}, "must not hold", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := Settings(t.Context(), acme{}, func(name string) (string, bool) { v, ok := row.env[name]; return v, ok })
			if row.err != "" {
				if err == nil || !strings.Contains(err.Error(), row.err) {
					t.Errorf("error %v, want %q", err, row.err)
				}
				return
			}
			if joined := strings.Join([]string{got["token"], got["id"], got["secret"], got["url"]}, "/"); err != nil || joined != row.want {
				t.Errorf("got %q, %v; want %q", joined, err, row.want)
			}
		})
	}
}

// A login that was begun is pointed out where another one signs in.
func TestHalfALoginBesideAWholeOne(t *testing.T) {
	d := acme{}.Describe()
	for _, row := range []struct {
		values map[string]string
		want   string
	}{
		{map[string]string{"token": "t", "id": "i"}, "Acme: ACME_ID is set but ACME_SECRET is not; ACME_TOKEN signs in"},
		{map[string]string{"token": "t"}, ""},
		{map[string]string{"token": "t", "id": "i", "secret": "s"}, ""},
		{map[string]string{"id": "i"}, ""},
	} {
		if got := Unused(d, row.values); got != row.want {
			t.Errorf("%v: got %q, want %q", row.values, got, row.want)
		}
	}
}

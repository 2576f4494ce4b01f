// Package registry finds providers by name and resolves the settings they
// declare.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Registry is the providers that can be chosen, in the order they are shown.
type Registry []sandbox.Provider

// Names lists the providers' names.
func (r Registry) Names() []string {
	names := make([]string, len(r))
	for i, p := range r {
		names[i] = p.Describe().Name
	}
	return names
}

// Find returns the provider of that name, or nil.
func (r Registry) Find(name string) sandbox.Provider {
	for _, p := range r {
		if p.Describe().Name == name {
			return p
		}
	}
	return nil
}

// A SetupError says why a provider cannot be used as it is set up on this
// computer. No network traffic was needed to know.
type SetupError struct {
	Text   string // "Daytona needs an API key"
	SignIn string // what to do
}

func (e *SetupError) Error() string {
	if e.SignIn == "" || strings.Contains(e.Text, e.SignIn) {
		return e.Text
	}
	return e.Text + ": " + e.SignIn
}

// Settings resolves what the provider declares from the environment, and checks
// that somebody is signed in and that endpoints are safe to send a credential
// to. The error is a *SetupError.
func Settings(ctx context.Context, p sandbox.Provider, getenv func(string) (string, bool)) (map[string]string, error) {
	d := p.Describe()
	values := d.Values(Prefixed(getenv))
	for _, s := range d.Settings {
		if v := values[s.Key]; s.URL && v != "" {
			if err := safeURL(v); err != nil {
				return nil, &SetupError{Text: fmt.Sprintf("%s is %q: %v", strings.Join(s.Env, " or "), redacted(v), err)}
			}
		}
	}
	for _, s := range d.Settings {
		if below, ok := strings.CutPrefix(values[s.Key], "~/"); s.File && ok {
			if home := home(getenv); home != "" {
				values[s.Key] = filepath.Join(home, below)
			}
		}
	}
	if _, ok := d.Login(values); !ok {
		return nil, notSignedIn(d, values)
	}
	if a, ok := sandbox.As[sandbox.Authenticator](p); ok {
		if err := a.SignedIn(ctx, sandbox.Spec{Settings: values}); err != nil {
			text := err.Error()
			if e, ok := errors.AsType[*sandbox.Error](err); ok && e.Msg != "" {
				text = e.Msg
			}
			return nil, &SetupError{Text: text, SignIn: d.SignIn}
		}
	}
	return values, nil
}

// home is the user's home directory, or empty.
func home(getenv func(string) (string, bool)) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if dir, _ := getenv(name); filepath.IsAbs(dir) {
			return dir
		}
	}
	return ""
}

// Prefixed looks up TALKOPS_NAME before NAME. A prefixed variable that is set but
// empty switches the plain one off.
func Prefixed(getenv func(string) (string, bool)) func(string) string {
	return func(name string) string {
		if !strings.HasPrefix(name, "TALKOPS_") {
			if v, set := getenv("TALKOPS_" + name); set {
				return v
			}
		}
		v, _ := getenv(name)
		return v
	}
}

// notSignedIn names the missing half of a login that was begun, else the way to
// sign in.
func notSignedIn(d sandbox.Description, values map[string]string) error {
	if half := halfLogin(d, values); half != "" {
		return &SetupError{Text: d.Title + ": " + half}
	}
	return &SetupError{Text: d.Title + " is not signed in", SignIn: d.SignIn}
}

// Unused names a login that was begun but is not complete while another one signs
// in, or returns "".
func Unused(d sandbox.Description, values map[string]string) string {
	used, ok := d.Login(values)
	half := halfLogin(d, values)
	if !ok || half == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s; %s signs in", d.Title, half, strings.Join(variables(d, used), ", "))
}

// halfLogin says which half of a login is set and which is not, of the first that
// was begun and needs more than one setting.
func halfLogin(d sandbox.Description, values map[string]string) string {
	for _, login := range d.Logins {
		missing := login.Missing(values)
		if len(missing) == 0 || len(missing) == len(login) || len(login) == 1 {
			continue
		}
		var have []string
		for _, key := range login {
			if values[key] != "" {
				have = append(have, key)
			}
		}
		return fmt.Sprintf("%s is set but %s is not", strings.Join(variables(d, have), ", "), strings.Join(variables(d, missing), ", "))
	}
	return ""
}

// variables are the first environment names of settings.
func variables(d sandbox.Description, keys []string) []string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key
		if s, _ := d.Setting(key); len(s.Env) > 0 {
			names[i] = s.Env[0]
		}
	}
	return names
}

// safeURL refuses an endpoint that would carry a credential in the clear.
func safeURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return fmt.Errorf("it is not a URL")
	}
	if u.User != nil {
		return fmt.Errorf("it must not hold a user or password")
	}
	if u.Scheme == "https" {
		return nil
	}
	host := u.Hostname()
	if ip := net.ParseIP(host); u.Scheme == "http" && (host == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("an endpoint must be https, except on loopback")
}

// redacted is an address without a password in it.
func redacted(raw string) string {
	if u, err := url.Parse(raw); err == nil {
		return u.Redacted()
	}
	return "…"
}

// Secrets lists the values among a provider's settings that must never be shown.
func Secrets(d sandbox.Description, values map[string]string) []string {
	var secrets []string
	for _, s := range d.Settings {
		if v := values[s.Key]; s.Secret && v != "" {
			secrets = append(secrets, v)
		}
	}
	return secrets
}

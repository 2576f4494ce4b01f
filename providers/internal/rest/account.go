package rest

import (
	"cmp"
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Key returns the setting api_key, which signs in to vendor and may come from the
// environment variable env.
func Key(spec sandbox.Spec, vendor, env string) (string, error) {
	key := spec.Settings["api_key"]
	if key == "" {
		return "", sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to %s: api_key is not set (%s)", vendor, env)
	}
	return key, nil
}

// Address returns the address of a service that the setting key gives, or unset. It
// is an error if that may not be sent a key.
func Address(spec sandbox.Spec, key, unset string) (string, error) {
	base := cmp.Or(strings.TrimSpace(spec.Settings[key]), unset)
	if !Trusted(base) {
		return "", sandbox.Errorf(sandbox.CodeInvalidArgument, "%s must be an https address", key)
	}
	return base, nil
}

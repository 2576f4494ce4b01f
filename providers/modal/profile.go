package modal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A profile is who signs in, and where. In Modal's file it is one table.
type profile struct {
	ServerURL           string `toml:"server_url"`
	TokenID             string `toml:"token_id"`
	TokenSecret         string `toml:"token_secret"`
	Environment         string `toml:"environment"`
	ImageBuilderVersion string `toml:"image_builder_version"`
	RefreshToken        string `toml:"oauth_refresh_token"`
	Active              bool   `toml:"active"`
}

// resolve makes a profile of the settings and, for what they leave open, of the
// profile file.
func resolve(settings map[string]string) (profile, error) {
	file := cmp.Or(settings["config_path"], defaultProfile)
	p, err := read(file, settings["profile"])
	if err != nil {
		return p, err
	}
	p.ServerURL = cmp.Or(settings["server_url"], p.ServerURL, defaultURL)
	p.TokenID = cmp.Or(settings["token_id"], p.TokenID)
	p.TokenSecret = cmp.Or(settings["token_secret"], p.TokenSecret)
	p.Environment = cmp.Or(settings["environment"], p.Environment)
	p.ImageBuilderVersion = cmp.Or(settings["image_builder_version"], p.ImageBuilderVersion)
	switch {
	case p.TokenID == "" && p.TokenSecret == "" && p.RefreshToken != "":
		return p, sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to Modal: the profile in %s signs in by OAuth, which is not supported; set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET", file)
	case p.TokenID == "" && p.TokenSecret == "":
		return p, sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to Modal: MODAL_TOKEN_ID and MODAL_TOKEN_SECRET are not set, and %s has no active profile; run: modal setup", file)
	case p.TokenID == "":
		return p, sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to Modal: there is a token secret but no token id (MODAL_TOKEN_ID)")
	case p.TokenSecret == "":
		return p, sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to Modal: there is a token id but no token secret (MODAL_TOKEN_SECRET)")
	case strings.ContainsFunc(p.TokenID+p.TokenSecret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return p, sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to Modal: the token holds characters that no token has")
	case !rest.Trusted(p.ServerURL):
		return p, sandbox.Errorf(sandbox.CodeInvalidArgument, "server_url must be an https address")
	}
	return p, nil
}

// read returns the named profile of the file, or the active one if name is empty.
// A file that is not there holds no profiles.
func read(file, name string) (profile, error) {
	full := file
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return profile{}, nil
		}
		full = filepath.Join(home, rest)
	}
	data, err := os.ReadFile(full)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = nil, nil
	}
	if err != nil {
		return profile{}, sandbox.Errorf(sandbox.CodeInvalidArgument, "Modal's profiles cannot be read: %w", err)
	}
	var all map[string]profile
	if err := toml.Unmarshal(data, &all); err != nil {
		at := ""
		if e, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, column := e.Position()
			at = fmt.Sprintf(" (line %d, column %d)", row, column)
		}
		return profile{}, sandbox.Errorf(sandbox.CodeInvalidArgument, "Modal's profiles in %s are not valid TOML%s", file, at)
	}
	if name != "" {
		p, ok := all[name]
		if !ok {
			return p, sandbox.Errorf(sandbox.CodeUnauthenticated, "not signed in to Modal: %s has no profile %q", file, name)
		}
		return p, nil
	}
	active := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return !all[name].Active })
	switch len(active) {
	case 0:
		return profile{}, nil
	case 1:
		return all[active[0]], nil
	}
	return profile{}, sandbox.Errorf(sandbox.CodeInvalidArgument, "two active profiles in %s: %s and %s; set MODAL_PROFILE or make one of them inactive", file, active[0], active[1])
}

package cmd

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// secretsBelow lists the files of credentials below root, git's own left aside, as far
// as their names tell; a certificate without a private key is none. What is beyond the
// first 200,000 files of a tree is not looked at.
func secretsBelow(home, root string) []string {
	const most = 200_000
	seen := 0
	var all []string
	// What cannot be listed cannot be read that way either.
	_ = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > most {
			return fs.SkipAll
		}
		switch slashed := filepath.ToSlash(name); {
		case err != nil:
		case d.IsDir() && d.Name() == ".git":
			if text, err := os.ReadFile(filepath.Join(name, "config")); err == nil && (approval.LoginIn(string(text)) || bytes.Contains(bytes.ToLower(text), []byte("extraheader"))) {
				all = append(all, slashed+"/config")
			}
			return fs.SkipDir
		case !d.IsDir() && approval.Secret(home, slashed) && !(strings.EqualFold(filepath.Ext(name), ".pem") && certificate(d, name)):
			all = append(all, slashed)
		}
		return nil
	})
	return all
}

// certificate reports whether a file in the format of certificates holds no private key.
func certificate(d fs.DirEntry, name string) bool {
	return d.Type().IsRegular() && bare(name)
}

// bare reports whether a file holds no private key.
func bare(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(f, most))
	return err == nil && len(text) < most && !bytes.Contains(text, []byte("PRIVATE KEY"))
}

// leftOut says which files a search leaves out that was not asked for them by name:
// those of credentials, save in a machine of the session's own.
func (a *app) leftOut(place approval.Place) func(name string) bool {
	if place.Disposable {
		return nil
	}
	home := ""
	if place.Host {
		home, _ = a.env("HOME")
	}
	return func(name string) bool {
		return approval.Secret(home, filepath.ToSlash(name)) && !(place.Host && certified(name))
	}
}

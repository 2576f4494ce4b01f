package cmd

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
)

// composes reports whether the files that docker compose reads for a directory, its
// own or those of one above, may name others that lie on another machine. What
// cannot be found out counts as that.
func composes(dir string) bool {
	for at := dir; ; at = filepath.Dir(at) {
		found := false
		for _, name := range []string{"compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml",
			"compose.override.yaml", "compose.override.yml", "docker-compose.override.yml", "docker-compose.override.yaml"} {
			text, there := peek(filepath.Join(at, name))
			if !there {
				continue
			}
			found = true
			if text == "" || composeFetches.MatchString(text) {
				return true
			}
		}
		if _, there := peek(filepath.Join(at, ".env")); there {
			return true // it may name the files, the machine, and what programs load that are started for a connection
		}
		if found || at == filepath.Dir(at) {
			return false
		}
	}
}

// composeFetches finds the keys by which a file of docker compose names others, also
// where they are written with escapes, with a tag ("!!binary") or in UTF-16.
var composeFetches = regexp.MustCompile(`include|extends|\\[xuU\r\n]|\\[^\x00-\x7f]|![^\s=]|^%|\n%|\x00`)

// peek returns a file's text, and whether there is a file: "" is one that is empty,
// too large or cannot be read.
func peek(name string) (text string, there bool) {
	const most = 1 << 20
	info, err := os.Stat(name)
	if err != nil {
		_, err := os.Lstat(name)
		return "", err == nil
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return "", true
	}
	f, err := os.Open(name)
	if err != nil {
		return "", true
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return "", true
	}
	return string(data), true
}

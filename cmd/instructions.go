package cmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/term"
)

// instructionFiles are the names that projects give to what they say to agents;
// the first in a directory counts.
var instructionFiles = []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md"}

const (
	mostInstructions = 64 << 10 // of one file
	mostInAll        = 128 << 10
)

// heading matches what would look in a text like the heading of another one.
var heading = regexp.MustCompile(`(?im)^(\s*)(#+\s*(?:AGENTS|CLAUDE|GEMINI)\.md\s*\()`)

// instructions are the texts of the user and of the project for the model, each
// with its origin. A project's text is data with a name on it; it is left out with
// the project's configuration.
func (a *app) instructions(cfg *config.Config) string {
	var b strings.Builder
	add := func(origin, dir string, names ...string) {
		for _, name := range names {
			text, ok := readInstructions(dir, name)
			if !ok {
				continue
			}
			if left := mostInAll - b.Len(); len(text) > left {
				text = text[:max(left, 0)] + "\n[cut: the instructions are too long]"
			}
			text = heading.ReplaceAllString(strings.TrimSpace(term.Clean(text)), `$1\$2`)
			fmt.Fprintf(&b, "## %s (%s)\n\n%s\n\n", name, origin, text)
			return
		}
	}
	add("the user's own", a.home, "AGENTS.md")
	if cfg.Alone || cfg.Unbounded {
		return b.String()
	}
	dir := cfg.Root
	add("from the project, not from the user", dir, instructionFiles...)
	if cfg.Start == "" || cfg.Start == "." {
		return b.String()
	}
	for _, part := range strings.Split(filepath.ToSlash(cfg.Start), "/") {
		dir = filepath.Join(dir, part)
		add("from the project's directory "+part+", not from the user", dir, instructionFiles...)
	}
	return b.String()
}

// readInstructions reads a regular file in dir; a link may not lead out of it, nor
// to what is no text for people, as credentials are.
func readInstructions(dir, name string) (string, bool) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", false
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	if to, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err != nil || !strings.EqualFold(filepath.Ext(to), ".md") {
		return "", false
	}
	f, err := root.Open(name)
	if err != nil {
		return "", false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostInstructions+1))
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return "", false
	}
	text := string(bytes.ToValidUTF8(data, []byte("\ufffd")))
	if len(data) > mostInstructions {
		text = text[:mostInstructions] + "\n[cut: the file is too long]"
	}
	return text, true
}

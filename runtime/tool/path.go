package tool

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// maxPath is the longest path POSIX systems take, with its final NUL.
const maxPath = 4096

// resolve returns the absolute, clean path that the model means by name; empty
// is the start directory.
func (s *set) resolve(name string) (string, error) {
	bad := func(format string, args ...any) (string, error) {
		return "", sandbox.Errorf(sandbox.CodeInvalidPath, format, args...)
	}
	switch {
	case strings.ContainsRune(name, 0):
		return bad("a path cannot hold a NUL byte")
	case strings.HasPrefix(name, "~"):
		s.mu.Lock()
		home := s.home
		s.mu.Unlock()
		if home == "" {
			return bad("~ is not expanded; give the path in full")
		}
		return bad("~ is not expanded; the home directory is %s", home)
	case len(name) >= 2 && name[1] == ':' && letter(name[0]) && (len(name) == 2 || name[2] == '\\' || name[2] == '/'):
		return bad("drive letters mean nothing in the sandbox; give a POSIX path")
	case slices.Contains(strings.Split(name, "/"), ".."):
		return bad("the path must not hold ..; give the path in full")
	}
	if !path.IsAbs(name) {
		name = path.Join(s.opts.Dir, name)
	}
	name = path.Clean(name)
	if len(name) >= maxPath {
		return bad("the path has %d bytes; %d are possible", len(name), maxPath-1)
	}
	return name, nil
}

// required is resolve for a path that must be given.
func (s *set) required(parameter, name string) (string, error) {
	if name == "" {
		return "", invalid("%s is required", parameter)
	}
	return s.resolve(name)
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// findHome asks the sandbox for its home directory, once. Not knowing it makes
// a message shorter, nothing more.
func (s *set) findHome(ctx context.Context) {
	s.mu.Lock()
	known := s.home != ""
	s.mu.Unlock()
	if known {
		return
	}
	var stdout strings.Builder
	if _, err := s.script(ctx, &stdout, `cd ~ 2>/dev/null && pwd`); err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.home = strings.TrimSuffix(stdout.String(), "\n")
}

// quoted returns name as it is shown to the model: itself, or in double quotes
// with escapes where it holds line ends, other control characters or bytes that
// are not UTF-8. Absolute names never begin with a quote, so the two are told
// apart.
func quoted(name string) string {
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	if !utf8.ValidString(name) || strings.ContainsFunc(name, control) {
		return strconv.Quote(name)
	}
	return name
}

// printable returns text with bytes that are not UTF-8 marked as \xNN.
func printable(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for text != "" {
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && n == 1 {
			const hex = "0123456789ABCDEF"
			b.WriteString(`\x`)
			b.WriteByte(hex[text[0]>>4])
			b.WriteByte(hex[text[0]&15])
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

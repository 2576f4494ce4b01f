package tool

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// maxAlternatives is the most patterns braces may stand for.
const maxAlternatives = 1000

// A pattern matches names relative to a search path: any of its alternatives,
// each a list of segments.
type pattern [][]string

// compile reads a glob pattern for a search below dir. A pattern without a
// slash matches base names at any depth.
func compile(text, dir string) (pattern, error) {
	bad := func(format string, args ...any) (pattern, error) {
		return nil, sandbox.Errorf(sandbox.CodeInvalidPattern, format, args...)
	}
	if strings.ContainsRune(text, 0) {
		return bad("a pattern cannot hold a NUL byte")
	}
	below := strings.TrimSuffix(dir, "/") + "/"
	anchored := false
	if rest, ok := strings.CutPrefix(text, below); ok && text[0] == '/' {
		text, anchored = rest, true
	}
	alternatives, ok := expand(text, nil)
	if !ok {
		return bad("the braces stand for more than %d patterns", maxAlternatives)
	}
	var p pattern
	for _, alt := range alternatives {
		if strings.HasPrefix(alt, "/") {
			return bad("%s is not below the search path %s", alt, dir)
		}
		segments := []string{}
		if !anchored && !strings.Contains(alt, "/") {
			segments = append(segments, "**")
		}
		for segment := range strings.SplitSeq(alt, "/") {
			switch segment {
			case "", ".":
				continue
			case "..":
				return bad("a pattern must not hold ..")
			}
			if !wellFormed(segment) {
				return bad("a [ is not closed in %s", segment)
			}
			segments = append(segments, segment)
		}
		if strings.HasSuffix(alt, "/") {
			segments = append(segments, "**")
		}
		if len(segments) == 0 {
			return bad("the pattern is empty")
		}
		p = append(p, segments)
	}
	return p, nil
}

// expand appends to list what the braces in text stand for. Braces without a
// comma or a partner are ordinary characters.
func expand(text string, list []string) ([]string, bool) {
	depth, begin := 0, -1
	var commas []int
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			if depth++; depth == 1 {
				begin, commas = i, nil
			}
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth == 0 {
				continue
			}
			if depth--; depth > 0 || len(commas) == 0 {
				continue
			}
			from, ok := begin+1, true
			for _, to := range append(commas, i) {
				if list, ok = expand(text[:begin]+text[from:to]+text[i+1:], list); !ok {
					return list, false
				}
				from = to + 1
			}
			return list, true
		}
	}
	list = append(list, text)
	return list, len(list) <= maxAlternatives
}

// wellFormed reports whether every [ of the segment is closed.
func wellFormed(segment string) bool {
	for i := 0; i < len(segment); i++ {
		switch segment[i] {
		case '\\':
			i++
		case '[':
			n := classLength(segment[i:])
			if n == 0 {
				return false
			}
			i += n - 1
		}
	}
	return true
}

// classLength returns the length of the bracket expression s begins with, or 0.
func classLength(s string) int {
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	for first := true; i < len(s); first = false {
		switch {
		case s[i] == ']' && !first:
			return i + 1
		case s[i] == '\\':
			i++
		}
		i++
	}
	return 0
}

// hidden reports whether a segment asks for names that begin with a dot.
func (p pattern) hidden() bool {
	for _, segments := range p {
		for _, s := range segments {
			if strings.HasPrefix(s, ".") || strings.HasPrefix(s, `\.`) {
				return true
			}
		}
	}
	return false
}

// match reports whether the relative name matches.
func (p pattern) match(name string) bool {
	parts := strings.Split(name, "/")
	for _, segments := range p {
		if matchParts(segments, parts) {
			return true
		}
	}
	return false
}

// matchParts matches segments one by one; on a mismatch it goes back to the
// last ** only, which is enough.
func matchParts(segments, parts []string) bool {
	si, pi := 0, 0
	backS, backP := -1, 0
	for pi < len(parts) {
		switch {
		case si < len(segments) && segments[si] == "**":
			backS, backP = si, pi
			si++
			// At the end it stands for at least the file itself.
			continue
		case si < len(segments) && matchSegment(segments[si], parts[pi]):
			si++
			pi++
			continue
		}
		if backS < 0 || strings.HasPrefix(parts[backP], ".") {
			return false
		}
		backP++
		si, pi = backS+1, backP
	}
	for si < len(segments) && segments[si] == "**" {
		// a/** does not match a file a, but ** after ** does.
		if backS != si && !(si > 0 && segments[si-1] == "**") {
			return false
		}
		si++
	}
	return si == len(segments)
}

// matchSegment matches one name with one segment.
func matchSegment(segment, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(segment, ".") && !strings.HasPrefix(segment, `\.`) {
		return false
	}
	s, n := []rune(segment), []rune(name)
	si, ni := 0, 0
	backS, backN := -1, 0
	for ni < len(n) {
		if si < len(s) {
			if s[si] == '*' {
				backS, backN = si, ni
				si++
				continue
			}
			if width, ok := matchOne(s[si:], n[ni]); ok {
				si += width
				ni++
				continue
			}
		}
		if backS < 0 {
			return false
		}
		backN++
		si, ni = backS+1, backN
	}
	for si < len(s) && s[si] == '*' {
		si++
	}
	return si == len(s)
}

// matchOne matches c with the one character that s begins with, and returns how
// much of s that is.
func matchOne(s []rune, c rune) (width int, ok bool) {
	switch s[0] {
	case '?':
		return 1, true
	case '\\':
		if len(s) > 1 {
			return 2, s[1] == c
		}
	case '[':
		return matchClass(s, c)
	}
	return 1, s[0] == c
}

func matchClass(s []rune, c rune) (width int, ok bool) {
	i, not := 1, false
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i, not = i+1, true
	}
	for first := true; i < len(s); first = false {
		if s[i] == ']' && !first {
			return i + 1, ok != not
		}
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		low, high := s[i], s[i]
		i++
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			high = s[i+1]
			i += 2
			if high == '\\' && i < len(s) {
				high = s[i]
				i++
			}
		}
		if low <= c && c <= high {
			ok = true
		}
	}
	return 1, false
}

// soughtMost is how many bytes of a pattern are told. A longer one is not cut, for a
// secret in it could not be recognized by its beginning.
const soughtMost = 400

// sought says in a few words what is looked for, where below the start directory, and
// in which files alone.
func (s *set) sought(pattern, at, only string) string {
	told := func(p string) string {
		switch {
		case len(p) > soughtMost:
			return fmt.Sprintf("a pattern of %d bytes", len(p))
		case strings.ContainsFunc(p, unicode.IsSpace):
			return `"` + p + `"`
		}
		return p
	}
	text := told(pattern)
	switch below, is := strings.CutPrefix(at, strings.TrimSuffix(s.opts.Dir, "/")+"/"); {
	case is && below != "":
		text += " in " + below
	case !is && at != s.opts.Dir:
		text += " in " + at
	}
	if only != "" {
		text += ", only " + told(only)
	}
	return text
}

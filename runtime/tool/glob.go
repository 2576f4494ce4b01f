package tool

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed glob.md
var globDoc string

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

// Names are ended by what no name found here can hold. Links count as what
// their readers find: files, but never directories to walk into. BusyBox forgets
// an -exec with + inside parentheses.
const globScript = enter + `
shift
find . ! -name . "$@" -type f -exec sh -c 'printf "%s//\n" "$@"' sh {} + \
  -o -type l -exec sh -c 'for f do if [ -f "$f" ]; then printf "%s//\n" "$f"; fi; done; exit 0' sh {} +
`

func (s *set) glob() Tool {
	return &function[globArgs]{
		set: s, name: "glob", doc: globDoc,
		params: object(map[string]any{
			"pattern": property("string", "The glob pattern."),
			"path":    property("string", "The directory to search; default is the start directory."),
		}, "pattern"),
		check: func(args globArgs) (call, error) {
			dir, err := s.resolve(args.Path)
			given := or2(args.Path, dir)
			var p pattern
			if err == nil {
				if given = args.Pattern; args.Pattern == "" {
					err = invalid("pattern is required")
				} else {
					p, err = compile(args.Pattern, dir)
				}
				if err == nil {
					given = or2(args.Path, dir)
				}
			}
			return call{Plan: Plan{Effect: Reads, Path: dir, Subject: s.sought(args.Pattern, dir, "")}, given: given, run: func(ctx context.Context, _ func(Output)) (Result, error) {
				return s.find(ctx, p, dir)
			}}, err
		},
	}
}

func (s *set) find(ctx context.Context, p pattern, dir string) (Result, error) {
	most := s.opts.GlobMatches
	var names []string
	count := 0
	out := &splitter{end: "//\n", each: func(piece string) {
		name := strings.TrimPrefix(piece, "./")
		if !p.match(name) {
			return
		}
		count++
		names = append(names, path.Join(dir, name))
		if len(names) >= 2*most+1000 { // enough to choose from; the sorted first ones stay
			slices.Sort(names)
			names = names[:most]
		}
	}}
	var args []string
	if !p.hidden() {
		args = []string{"-name", ".*", "-prune", "-o"}
	}
	limited, cancel := context.WithTimeout(ctx, s.opts.GlobTime)
	defer cancel()
	stderr, err := s.script(limited, out, globScript, append([]string{dir}, args...)...)
	late := limited.Err() != nil && ctx.Err() == nil && err != nil
	note := ""
	if !late {
		if note, err = partial(stderr, err); err != nil {
			return Result{}, err
		}
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names[:min(most, len(names))] {
		b.WriteString(quoted(name) + "\n")
	}
	switch {
	case late:
		fmt.Fprintf(&b, "[truncated: the search took longer than %v]\n", s.opts.GlobTime)
	case count > most:
		fmt.Fprintf(&b, "[truncated: %d of %d matches shown]\n", most, count)
	case count == 0:
		b.WriteString("[no matches]\n")
	}
	if note != "" {
		b.WriteString(note + "\n")
	}
	return Result{Text: b.String()}, nil
}

package tool

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed ls.md
var lsDoc string

type lsArgs struct {
	Path string `json:"path"`
}

// Each entry is a letter, its name and, for a link, the target, ended by what
// no name can hold.
const lsScript = enter + `
for f in * .*; do
  case $f in .|..) continue;; esac
  if [ -L "./$f" ]; then
    to=$(readlink "./$f" 2>/dev/null; echo x)
    to=${to%x}
    printf 'l%s//%s//\n' "$f" "${to%
}"
  elif [ -d "./$f" ]; then printf 'd%s//\n' "$f"
  elif [ -f "./$f" ]; then printf 'f%s//\n' "$f"
  elif [ -e "./$f" ]; then printf 'o%s//\n' "$f"
  fi
done
exit 0
`

func (s *set) ls() Tool {
	return &function[lsArgs]{
		set: s, name: "ls", doc: lsDoc,
		params: object(map[string]any{"path": property("string", "The directory; default is the start directory.")}),
		check: func(args lsArgs) (call, error) {
			dir, err := s.resolve(args.Path)
			return call{Plan: Plan{Effect: Reads, Path: dir}, given: or2(args.Path, dir), run: func(ctx context.Context, _ func(Output)) (Result, error) {
				return s.list(ctx, dir)
			}}, err
		},
	}
}

func or2(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func (s *set) list(ctx context.Context, dir string) (Result, error) {
	type entry struct{ name, line string }
	var entries []entry
	out := &splitter{end: "//\n", each: func(piece string) {
		if piece == "" {
			return
		}
		name, target, _ := strings.Cut(piece[1:], "//")
		line := quoted(path.Join(dir, name))
		switch piece[0] {
		case 'd':
			line = "dir   " + line
		case 'l':
			line = "link  " + line + " -> " + quoted(target)
		case 'f':
			line = "file  " + line
		default:
			line = "other " + line
		}
		entries = append(entries, entry{name, line})
	}}
	if _, err := s.script(ctx, out, lsScript, dir); err != nil {
		return Result{}, err
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	for i, e := range entries {
		if i == s.opts.ListEntries {
			fmt.Fprintf(&b, "[truncated: %d of %d entries shown]\n", i, len(entries))
			break
		}
		b.WriteString(e.line + "\n")
	}
	if len(entries) == 0 {
		b.WriteString("[empty directory]\n")
	}
	return Result{Text: b.String()}, nil
}

package tool

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

//go:embed grep.md
var grepDoc string

const (
	grepMatches = 1000
	grepLine    = 2000 // characters shown of a line
	grepPattern = 32 << 10
)

type grepArgs struct {
	Pattern  string `json:"pattern"`
	Path     string `json:"path"`
	Glob     string `json:"glob"`
	Regex    bool   `json:"regex"`
	MaxCount *int   `json:"max_count"`
	Output   string `json:"output"`
}

// grepFiles searches the files $6 and on. For each with matches it prints the
// frame mark, the name, the mark, and what grep says; the mark $1 is random, so
// neither names nor text hold it. A file with a NUL byte is binary and skipped.
const grepFiles = `
mark=$1 mode=$2 how=$3 text=$4 most=$5
shift 5
nl='
'
found=$(grep -l "$how" -e "$text" -- "$@" 2>/dev/null)
status=$?
for f do
  if [ ! -r "$f" ]; then
    if [ -e "$f" ]; then printf '%s //%sU//' "$f" "$mark"; fi
    continue
  fi
  if [ $status -eq 1 ]; then continue
  elif [ $status -eq 0 ]; then
    case $nl$found$nl in *"$nl$f$nl"*) ;; *) continue;; esac
  else
    grep -q "$how" -e "$text" -- "$f"
    case $? in 0) ;; 1) continue;; *) [ -r "$f" ] || continue; exit 2;; esac
  fi
  tr -d '\000' <"$f" 2>/dev/null | cmp -s - "$f" || continue
  printf '%s //%sM//' "$f" "$mark"
  case $mode in
  count) grep -c "$how" -e "$text" -- "$f";;
  content) grep -n "$how" -e "$text" -- "$f" | head -n "$most";;
  esac
  printf '%s //' "$mark"
done
exit 0
`

// $2 is grepFiles, $3 to $7 its first arguments, the others narrow what find
// finds. What grep says of the pattern itself counts more than its status, which
// BusyBox has wrong; and BusyBox reads the pattern with the first line only.
const grepScript = classify + `
[ -e "$1" ] || exit 81
path=$1 files=$2 mark=$3 mode=$4 how=$5 text=$6 most=$7
shift 7
said=$(echo x | grep -q "$how" -e "$text" 2>&1)
case $?:$said in
[01]:|[01]:*warning*) ;;
*) printf '%s\n' "$said" >&2; exit 85;;
esac
if [ -f "$path" ]; then
  [ -r "$path" ] || exit 83
  exec sh -c "$files" sh "$mark" "$mode" "$how" "$text" "$most" "$path"
fi
[ -d "$path" ] || { echo "not a regular file" >&2; exit 86; }
[ -r "$path" ] && cd -- "$path" 2>/dev/null || exit 83
exec find . "$@" -type f -exec sh -c "$files" sh "$mark" "$mode" "$how" "$text" "$most" {} +
`

func (s *set) grep() Tool {
	return &function[grepArgs]{
		set: s, name: "grep", doc: grepDoc,
		params: object(map[string]any{
			"pattern":   property("string", "The text to find, taken literally unless regex is true."),
			"path":      property("string", "The file or directory to search; default is the start directory."),
			"glob":      property("string", "Search only files that match this glob pattern."),
			"regex":     property("boolean", "The pattern is a POSIX extended regular expression; default false."),
			"max_count": property("integer", "Most matches in all; default 1000."),
			"output": map[string]any{"type": "string", "enum": []string{"content", "files", "count"},
				"description": "Matching lines, names of files, or lines per file; default content."},
		}, "pattern"),
		check: func(args grepArgs) (call, error) {
			name, err := s.resolve(args.Path)
			q := query{args: args, most: grepMatches, path: name}
			if args.MaxCount != nil {
				q.most = *args.MaxCount
			}
			q.args.Output = or2(args.Output, "content")
			switch {
			case err != nil:
			case args.Pattern == "":
				err = invalid("pattern is required and must not be empty")
			case strings.ContainsAny(args.Pattern, "\x00\n"):
				err = invalid("pattern must be a single line of text")
			case len(args.Pattern) > grepPattern:
				err = invalid("pattern has %d bytes; at most %d are possible", len(args.Pattern), grepPattern)
			case q.most < 1:
				err = invalid("max_count must be at least 1")
			case !slices.Contains([]string{"content", "files", "count"}, q.args.Output):
				err = invalid("output is %q; it can be content, files or count", args.Output)
			case args.Glob != "":
				q.glob, err = compile(args.Glob, name)
			}
			return call{Plan: Plan{Effect: Reads, Path: name, Subject: s.sought(args.Pattern, name, args.Glob)}, given: or2(args.Path, name), run: func(ctx context.Context, _ func(Output)) (Result, error) {
				return s.search(ctx, q)
			}}, err
		},
	}
}

// A query is a checked call of grep.
type query struct {
	args grepArgs
	path string
	most int
	glob pattern
}

// A match is one line, or one file with the number of its lines.
type match struct {
	name string
	line int
	text string
}

func (s *set) search(ctx context.Context, q query) (Result, error) {
	f := &frames{query: q, mark: rand.Text(), secret: s.opts.Secret}
	how := "-F"
	if q.args.Regex {
		how = "-E"
	}
	args := []string{q.path, grepFiles, f.mark, q.args.Output, how, q.args.Pattern, strconv.Itoa(q.most + 1)}
	if !slices.Contains(strings.Split(q.path, "/"), ".git") {
		args = append(args, "-name", ".git", "-prune", "-o")
	}
	if q.glob != nil {
		args = append(args, q.glob.names()...)
	}
	limited, cancel := context.WithTimeout(ctx, s.opts.GrepTime)
	defer cancel()
	stderr, err := s.script(limited, f, grepScript, args...)
	late := limited.Err() != nil && ctx.Err() == nil && err != nil
	note := ""
	switch {
	case late:
	case statusOf(err) == statusPattern:
		return Result{}, sandbox.Errorf(sandbox.CodeInvalidPattern, "%s", or2(stderr, "the regular expression is wrong"))
	case statusOf(err) == 86:
		return Result{}, sandbox.Errorf(sandbox.CodeNotAFile, "it is neither a file nor a directory")
	default:
		if note, err = partial(stderr, err); err != nil {
			return Result{}, err
		}
	}
	f.sort()
	var b strings.Builder
	for _, m := range f.matches[:min(q.most, len(f.matches))] {
		switch q.args.Output {
		case "content":
			fmt.Fprintf(&b, "%s:%d:%s\n", quoted(m.name), m.line, m.text)
		case "count":
			fmt.Fprintf(&b, "%s:%d\n", quoted(m.name), m.line)
		default:
			b.WriteString(quoted(m.name) + "\n")
		}
	}
	switch {
	case late:
		fmt.Fprintf(&b, "[truncated: the search took longer than %v]\n", s.opts.GrepTime)
	case len(f.matches) > q.most || f.dropped:
		fmt.Fprintf(&b, "[truncated: the first %d matches are shown]\n", q.most)
	case len(f.matches) == 0 && !q.args.Regex && strings.ContainsAny(q.args.Pattern, `|*+?()[]\^$`):
		b.WriteString("[no matches; the pattern was taken literally, set regex to true for a regular expression]\n")
	case len(f.matches) == 0:
		b.WriteString("[no matches]\n")
	}
	for _, name := range f.unreadable {
		b.WriteString("[permission denied: " + quoted(name) + "]\n")
	}
	if f.secrets > 0 {
		fmt.Fprintf(&b, "[left out: %d with a name of files of credentials; name the file as path to search it]\n", f.secrets)
	}
	if note != "" {
		b.WriteString(note + "\n")
	}
	return Result{Text: b.String()}, nil
}

// names returns find's arguments that leave out files whose base names cannot
// match, or nothing if that is not easily said.
func (p pattern) names() []string {
	if len(p) > 50 {
		return nil
	}
	args := []string{"("}
	for i, segments := range p {
		last := segments[len(segments)-1]
		if strings.Contains(last, "**") || strings.ContainsAny(last, `[\`) {
			return nil
		}
		if i > 0 {
			args = append(args, "-o")
		}
		args = append(args, "-name", last)
	}
	return append(args, ")")
}

// frames reads what grepFiles prints, as it comes. Long lines are cut at once.
type frames struct {
	query
	mark       string
	buf        []byte
	name       string
	inside     bool // of a frame's lines
	skip       bool // the frame's file is filtered out
	cut        bool // the rest of the current line is not kept
	matches    []match
	unreadable []string
	dropped    bool
	secret     func(name string) bool
	secrets    int // files with matches, or unreadable, that are left out for that
}

func (f *frames) Write(p []byte) (int, error) {
	f.buf = append(f.buf, p...)
	for f.step() {
	}
	return len(p), nil
}

// step takes one piece from the buffer and reports whether there was one.
func (f *frames) step() bool {
	if !f.inside {
		for _, kind := range []string{"M", "U"} {
			name, rest, found := bytes.Cut(f.buf, []byte(" //"+f.mark+kind+"//"))
			// An unreadable file's frame may come first.
			if !found || bytes.Contains(name, []byte(" //"+f.mark)) {
				continue
			}
			f.name = f.absolute(string(name))
			f.buf = rest
			if kind == "U" {
				if f.wanted() {
					f.unreadable = append(f.unreadable, f.name)
				}
				return true
			}
			f.inside, f.cut = true, false
			if f.skip = !f.wanted(); !f.skip && f.args.Output == "files" {
				f.add(match{name: f.name})
			}
			return true
		}
		return false
	}
	end := []byte(f.mark + " //")
	if bytes.HasPrefix(f.buf, end) {
		f.inside = false
		f.buf = f.buf[len(end):]
		return true
	}
	i := bytes.IndexByte(f.buf, '\n')
	text := f.buf
	if i >= 0 {
		text = f.buf[:i]
	}
	// A file without a final line feed gets one from grep, but not from all.
	if j := bytes.Index(text, end); j >= 0 {
		f.line(string(f.buf[:j]))
		f.buf = f.buf[j:]
		return true
	}
	const keep = 4*grepLine + 100
	if i >= 0 {
		f.line(string(f.buf[:min(i, keep+1)]))
		f.buf = f.buf[i+1:]
		f.cut = false
		return true
	}
	if len(f.buf) > 4*keep {
		f.line(string(f.buf[:keep+1]))
		f.cut = true
		// What may be the beginning of the mark stays.
		f.buf = append(f.buf[:0], f.buf[len(f.buf)-len(end):]...)
	}
	return false
}

func (f *frames) absolute(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(f.path, name)
}

// wanted reports whether the current file is admitted by the glob parameter, and
// by its name, and counts those that are not for their names.
func (f *frames) wanted() bool {
	if !f.admits() {
		return false
	}
	if f.secret != nil && f.name != f.path && f.secret(f.name) {
		f.secrets++
		return false
	}
	return true
}

func (f *frames) admits() bool {
	if f.glob == nil {
		return true
	}
	if f.name == f.path {
		return f.glob.match(path.Base(f.name))
	}
	return f.glob.match(strings.TrimPrefix(f.name, strings.TrimSuffix(f.path, "/")+"/"))
}

// line takes one line of grep's.
func (f *frames) line(text string) {
	if f.skip || f.cut || text == "" {
		return
	}
	if f.args.Output == "count" {
		n, _ := strconv.Atoi(text)
		f.add(match{name: f.name, line: n})
		return
	}
	number, text, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	text = strings.TrimSuffix(text, "\r")
	if utf8.RuneCountInString(text) > grepLine {
		at, count := 0, 0
		for i := range text {
			if at = i; count == grepLine {
				break
			}
			count++
		}
		text = text[:at] + " [line cut]"
	}
	f.add(match{f.name, n, printable(text)})
}

// add keeps a match, and no more of them than can be needed.
func (f *frames) add(m match) {
	f.matches = append(f.matches, m)
	if len(f.matches) > 4*f.most+1000 {
		f.sort()
		f.matches = f.matches[:f.most]
		f.dropped = true
	}
}

func (f *frames) sort() {
	slices.SortFunc(f.matches, func(a, b match) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return a.line - b.line
	})
}

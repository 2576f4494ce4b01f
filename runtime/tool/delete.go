package tool

import (
	"context"
	_ "embed"
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

//go:embed delete.md
var deleteDoc string

type pathArgs struct {
	FilePath string `json:"file_path"`
}

// The protected directories, $2 and on, are compared by where they really are;
// a link to one of them may go.
const deleteScript = classify + `
if [ ! -L "$1" ]; then
  real=$(cd -P -- "${1%/*}/" 2>/dev/null && pwd -P) || exit 83
  real=${real%/}/${1##*/}
  [ "$1" = / ] && real=/
  target=$1
  shift
  for keep do
    case ${keep%/}/ in "${real%/}"/*) exit 84;; esac
    keep=$(cd -P -- "$keep" 2>/dev/null && pwd -P) || continue
    case ${keep%/}/ in "${real%/}"/*) exit 84;; esac
  done
  set -- "$target"
fi
rm -rf -- "$1" </dev/null || exit 1
if [ -e "$1" ] || [ -L "$1" ]; then echo "$1 is still there" >&2; exit 1; fi
`

func (s *set) delete() Tool {
	return &function[pathArgs]{
		set: s, name: "delete", doc: deleteDoc,
		params: object(map[string]any{"file_path": property("string", "The file or directory to delete.")}, "file_path"),
		check: func(args pathArgs) (call, error) {
			name, err := s.required("file_path", args.FilePath)
			return call{Plan: Plan{Effect: Writes, Path: name}, given: args.FilePath, edit: func(ctx context.Context) (Edit, error) {
				e, err := s.before(ctx, name)
				e.Gone = true
				return e, err
			}, run: func(ctx context.Context, _ func(Output)) (Result, error) {
				return s.remove(ctx, name)
			}}, err
		},
	}
}

func (s *set) remove(ctx context.Context, name string) (Result, error) {
	defer s.hold(name)()
	stderr, err := s.script(ctx, nil, deleteScript, name, s.sb.Info().Dir, s.opts.Dir)
	switch {
	case statusOf(err) == statusProtected || name == "/" && err == nil:
		return Result{}, invalid("the working directory and what holds it cannot be deleted")
	case statusOf(err) == 1:
		code := sandbox.CodeInternal
		for _, part := range []string{"ermission denied", "not permitted", "Read-only", "busy"} {
			if strings.Contains(stderr, part) {
				code = sandbox.CodePermissionDenied
			}
		}
		return Result{}, &sandbox.Error{Code: code, Msg: "not all of it could be deleted: " + stderr}
	case err != nil:
		return Result{}, err
	}
	return Result{Text: "deleted " + quoted(name) + "\n"}, nil
}

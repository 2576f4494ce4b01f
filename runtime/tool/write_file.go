package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed write_file.md
var writeFileDoc string

type writeFileArgs struct {
	FilePath string  `json:"file_path"`
	Content  *string `json:"content"`
}

func (s *set) writeFile() Tool {
	return &function[writeFileArgs]{
		set: s, name: "write_file", doc: writeFileDoc,
		params: object(map[string]any{
			"file_path": property("string", "The file to write."),
			"content":   property("string", "The whole new content, taken literally."),
		}, "file_path", "content"),
		check: func(args writeFileArgs) (call, error) {
			name, err := s.required("file_path", args.FilePath)
			if err == nil && args.Content == nil {
				err = invalid("content is required")
			}
			return call{Plan: Plan{Effect: Writes, Path: name}, given: args.FilePath, edit: func(ctx context.Context) (Edit, error) {
				e, err := s.before(ctx, name)
				e.After = []byte(*args.Content)
				return e, err
			}, run: func(ctx context.Context, _ func(Output)) (Result, error) {
				defer s.hold(name)()
				if err := s.sb.WriteFile(ctx, name, strings.NewReader(*args.Content), 0o644); err != nil {
					return Result{}, err
				}
				return Result{Text: fmt.Sprintf("wrote %s (%s)\n", quoted(name), counted(len(*args.Content), "byte"))}, nil
			}}, err
		},
	}
}

// counted words a number of things.
func counted(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}

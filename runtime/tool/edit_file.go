package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

//go:embed edit_file.md
var editFileDoc string

type editFileArgs struct {
	FilePath   string  `json:"file_path"`
	OldString  *string `json:"old_string"`
	NewString  *string `json:"new_string"`
	ReplaceAll bool    `json:"replace_all"`
}

func (s *set) editFile() Tool {
	return &function[editFileArgs]{
		set: s, name: "edit_file", doc: editFileDoc,
		params: object(map[string]any{
			"file_path":   property("string", "The file to change."),
			"old_string":  property("string", "The text to replace, taken literally. It must occur exactly once unless replace_all is true."),
			"new_string":  property("string", "The text to put in its place, taken literally."),
			"replace_all": property("boolean", "Replace every occurrence; default false."),
		}, "file_path", "old_string", "new_string"),
		check: func(args editFileArgs) (call, error) {
			name, err := s.required("file_path", args.FilePath)
			switch {
			case err != nil:
			case args.OldString == nil:
				err = invalid("old_string is required")
			case args.NewString == nil:
				err = invalid("new_string is required")
			case *args.OldString == "":
				err = invalid("old_string is empty; use write_file to make a new file")
			case *args.OldString == *args.NewString:
				err = sandbox.Errorf(sandbox.CodeNoChange, "old_string and new_string are the same")
			}
			return call{Plan: Plan{Effect: Writes, Path: name}, given: args.FilePath, edit: func(ctx context.Context) (Edit, error) {
				data, edited, _, err := s.edited(ctx, name, *args.OldString, *args.NewString, args.ReplaceAll)
				return Edit{Before: data, After: []byte(edited)}, err
			}, run: func(ctx context.Context, _ func(Output)) (Result, error) {
				return s.edit(ctx, name, *args.OldString, *args.NewString, args.ReplaceAll)
			}}, err
		},
	}
}

func (s *set) edit(ctx context.Context, name, old, new string, all bool) (Result, error) {
	defer s.hold(name)()
	_, edited, count, err := s.edited(ctx, name, old, new, all)
	if err != nil {
		return Result{}, err
	}
	if err := s.sb.WriteFile(ctx, name, strings.NewReader(edited), 0o644); err != nil {
		return Result{}, err
	}
	return Result{Text: fmt.Sprintf("edited %s (%d replaced)\n", quoted(name), count)}, nil
}

// edited reads a file and returns it as it is, as it would be, and how often old
// was replaced.
func (s *set) edited(ctx context.Context, name, old, new string, all bool) (data []byte, edited string, count int, err error) {
	data, err = s.read(ctx, name, s.opts.EditBytes)
	if err != nil {
		return nil, "", 0, err
	}
	if !isText(data) {
		return nil, "", 0, sandbox.Errorf(sandbox.CodeInvalidArgument, "it is a binary file (%d bytes, not UTF-8 text) and cannot be edited", len(data))
	}
	edited, count = replace(string(data), old, new, all)
	switch {
	case count == 0:
		err = sandbox.Errorf(sandbox.CodeNoMatch, "old_string does not occur in the file; read it again, spaces and line ends count")
	case count > 1 && !all:
		err = sandbox.Errorf(sandbox.CodeMultipleMatches, "old_string occurs %d times; give more of the text around it, or set replace_all", count)
	case edited == string(data):
		err = sandbox.Errorf(sandbox.CodeNoChange, "the file already reads like that")
	}
	return data, edited, count, err
}

// replace puts new in the place of old in text and returns how often old
// occurs. Where old has bare line feeds they match CRLF too, and where new has
// them they become the line ends of the part they replace. If old occurs more
// than once and all is false, text is returned as it is.
func replace(text, old, new string, all bool) (string, int) {
	crlf := strings.Contains(text, "\r\n")
	// Without CRLF, or if the caller minds carriage returns, text is literal.
	if !crlf || strings.Contains(old, "\r") {
		count := strings.Count(text, old)
		if count > 1 && !all {
			return text, count
		}
		return strings.ReplaceAll(text, old, new), count
	}
	plain := strings.ReplaceAll(text, "\r\n", "\n")
	count := strings.Count(plain, old)
	if count == 0 || count > 1 && !all {
		return text, count
	}
	var b strings.Builder
	at := 0 // in text
	advance := func(part string) int {
		// part is a piece of plain that begins at text[at:]; its length in text
		// is greater by the carriage returns left out.
		i := at
		for j := range len(part) {
			if part[j] == '\n' && text[i] == '\r' {
				i++
			}
			i++
		}
		return i
	}
	for rest := plain; ; {
		before, after, found := strings.Cut(rest, old)
		if !found {
			b.WriteString(text[at:])
			return b.String(), count
		}
		begin := advance(before)
		b.WriteString(text[at:begin])
		at = begin
		end := advance(old)
		b.WriteString(withEnds(new, lineEnd(text, begin, end)))
		at, rest = end, after
	}
}

// lineEnd returns the line end in use in text[begin:end]: the first in it, else
// the next after it, else the one before.
func lineEnd(text string, begin, end int) string {
	i := strings.IndexByte(text[begin:], '\n')
	if i >= 0 {
		i += begin
	} else {
		i = strings.LastIndexByte(text[:end], '\n')
	}
	if i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// withEnds returns text with its bare line feeds as end; text that has CRLF of
// its own is left alone.
func withEnds(text, end string) string {
	if end == "\n" || strings.Contains(text, "\r\n") {
		return text
	}
	return strings.ReplaceAll(text, "\n", end)
}

package tool

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

//go:embed read_file.md
var readFileDoc string

const (
	readLines  = 2000      // lines shown if no limit is given
	readBytes  = 80_000    // of an answer
	readMedia  = 512_000   // of an image
	readEnough = 256 << 20 // of a file whose window is full; counting its lines ends here
)

type readFileArgs struct {
	FilePath string `json:"file_path"`
	Offset   int    `json:"offset"`
	Limit    *int   `json:"limit"`
}

func (s *set) readFile() Tool {
	return &function[readFileArgs]{
		set: s, name: "read_file", doc: readFileDoc,
		params: object(map[string]any{
			"file_path": property("string", "The file to read."),
			"offset":    property("integer", "Lines to skip; default 0."),
			"limit":     property("integer", "Most lines to show; default 2000."),
		}, "file_path"),
		check: func(args readFileArgs) (call, error) {
			limit := readLines
			if args.Limit != nil {
				limit = *args.Limit
			}
			name, err := s.required("file_path", args.FilePath)
			switch {
			case err != nil:
			case args.Offset < 0:
				err = invalid("offset is negative")
			case limit < 0:
				err = invalid("limit is negative")
			}
			return call{Plan: Plan{Effect: Reads, Path: name}, given: args.FilePath, run: func(ctx context.Context, _ func(Output)) (Result, error) {
				return s.show(ctx, name, args.Offset, limit)
			}}, err
		},
	}
}

func (s *set) show(ctx context.Context, name string, offset, limit int) (Result, error) {
	w := &window{offset: offset, limit: limit}
	if err := s.sb.ReadFile(ctx, name, w); err != nil && !w.stopped {
		return Result{}, err
	}
	if w.nul || w.notUTF8() {
		return w.binary(name)
	}
	w.finish()
	var notes []string
	switch {
	case w.size == 0:
		notes = append(notes, "the file is empty")
	case limit == 0:
		notes = append(notes, fmt.Sprintf("no lines shown; the file has %d", w.lines))
	case w.shown == 0:
		return Result{}, sandbox.Errorf(sandbox.CodeOutOfRange, "offset %d is past the end; the file has %s", offset, counted(w.lines, "line"))
	case offset+w.shown < w.lines:
		more := fmt.Sprint(w.lines)
		if w.stopped {
			more = "more than " + more
		}
		notes = append(notes, fmt.Sprintf("lines %d-%d of %s; next offset %d", offset+1, offset+w.shown, more, offset+w.shown))
	}
	if w.crlf {
		notes = append(notes, "the file uses CRLF line ends")
	}
	for _, note := range notes {
		w.text.WriteString("[" + note + "]\n")
	}
	return Result{Text: w.text.String()}, nil
}

// A window takes the content of a file and keeps the lines asked for, numbered,
// and the beginning. Its memory is bounded whatever the file.
type window struct {
	offset, limit int

	head    []byte // the first readMedia+1 bytes
	size    int
	nul     bool
	invalid bool
	rest    []byte // of a character cut by the end of a piece

	text    bytes.Buffer
	full    bool // no further line is shown
	shown   int
	lines   int // begun
	line    []byte
	length  int // of the line, which may be longer than what is kept
	crlf    bool
	stopped bool
}

var errEnough = errors.New("enough was read")

func (w *window) Write(p []byte) (int, error) {
	if n := readMedia + 1 - len(w.head); n > 0 {
		w.head = append(w.head, p[:min(n, len(p))]...)
	}
	w.size += len(p)
	w.nul = w.nul || bytes.IndexByte(p, 0) >= 0
	w.validate(p)
	for rest := p; len(rest) > 0; {
		line, after, found := bytes.Cut(rest, []byte("\n"))
		w.add(line)
		if found {
			w.end()
		}
		rest = after
	}
	if w.full && w.size > readEnough {
		w.stopped = true
		return 0, errEnough
	}
	return len(p), nil
}

// validate notes whether what was written so far is UTF-8.
func (w *window) validate(p []byte) {
	for len(w.rest) > 0 && len(p) > 0 && !utf8.FullRune(w.rest) {
		w.rest = append(w.rest, p[0])
		p = p[1:]
	}
	if len(w.rest) > 0 {
		if !utf8.FullRune(w.rest) {
			return
		}
		w.invalid = w.invalid || !utf8.Valid(w.rest)
		w.rest = w.rest[:0]
	}
	for i := 1; i <= min(utf8.UTFMax-1, len(p)); i++ {
		if last := p[len(p)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				w.rest = append(w.rest, last...)
				p = p[:len(p)-i]
			}
			break
		}
	}
	w.invalid = w.invalid || !utf8.Valid(p)
}

func (w *window) notUTF8() bool { return w.invalid || len(w.rest) > 0 && !w.stopped }

// add adds part of a line.
func (w *window) add(part []byte) {
	if w.length == 0 && len(part) > 0 {
		w.lines++
	}
	w.length += len(part)
	if w.wanted() {
		w.line = append(w.line, part[:min(len(part), max(0, readBytes-len(w.line)))]...)
	}
}

// wanted reports whether the current line, the lines-th, is to be shown.
func (w *window) wanted() bool {
	return !w.full && w.lines > w.offset && w.shown < w.limit
}

// end ends a line.
func (w *window) end() {
	if w.length == 0 {
		w.lines++
	}
	if w.wanted() {
		w.show()
	}
	w.line, w.length = w.line[:0], 0
}

// finish ends the last line of a file that has no line feed there.
func (w *window) finish() {
	if w.length > 0 && w.wanted() {
		w.show()
	}
}

// show adds the current line to the text if it fits. A line that would not fit
// in any answer is cut.
func (w *window) show() {
	const room = readBytes - 200 // for notes
	line := w.line
	if w.length == len(line) && bytes.HasSuffix(line, []byte("\r")) {
		w.crlf = true
		line = line[:len(line)-1]
	}
	number := fmt.Sprintf("%6d\t", w.lines)
	mark := ""
	if w.length > room-len(number)-1 {
		keep := room - 100
		for keep > 0 && !utf8.RuneStart(line[keep]) {
			keep--
		}
		mark = fmt.Sprintf(" [line cut: %d of %d bytes shown]", keep, w.length)
		line = line[:keep]
	}
	if w.text.Len()+len(number)+len(line)+len(mark)+1 > room {
		w.full = true
		return
	}
	w.text.WriteString(number)
	w.text.Write(line)
	w.text.WriteString(mark + "\n")
	if w.shown++; w.shown >= w.limit {
		w.full = true
	}
}

// binary tells of a file that is not text, and hands over an image.
func (w *window) binary(name string) (Result, error) {
	kind := mime.TypeByExtension(strings.ToLower(path.Ext(name)))
	if sniffed := http.DetectContentType(w.head[:min(512, len(w.head))]); strings.HasPrefix(sniffed, "image/") {
		kind = sniffed
	}
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		if w.size > readMedia {
			return Result{}, sandbox.Errorf(sandbox.CodeTooLarge, "the image has %d bytes; at most %d can be shown", w.size, readMedia)
		}
		return Result{Text: fmt.Sprintf("[%s: %s, %d bytes]\n", quoted(name), kind, w.size), Media: w.head, Type: kind}, nil
	}
	why := "it holds NUL bytes"
	if !w.nul {
		why = "it is not UTF-8"
	}
	return Result{Text: fmt.Sprintf("[%s: binary file, %d bytes, not shown: %s]\n", quoted(name), w.size, why)}, nil
}

package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Statuses with which the scripts say what is wrong with a path.
const (
	statusMissing   = 81
	statusNotDir    = 82
	statusDenied    = 83
	statusProtected = 84
	statusPattern   = 85
)

// classify is the beginning of every script about the path $1: it ends the
// script if that is not there.
const classify = `
if [ ! -e "$1" ] && [ ! -L "$1" ]; then
  case $(ls -d -- "$1" 2>&1) in *'ermission denied'*) exit 83;; esac
  exit 81
fi
`

// enter goes into the directory $1, which must be readable.
const enter = classify + `
[ -e "$1" ] || exit 81
[ -d "$1" ] || exit 82
[ -r "$1" ] && cd -- "$1" 2>/dev/null || exit 83
`

// A scriptError is a script that ended with a status of its own.
type scriptError struct {
	status int
	stderr string
}

func (e *scriptError) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("the sandbox's command ended with %d", e.status)
	}
	return fmt.Sprintf("the sandbox's command ended with %d: %s", e.status, e.stderr)
}

// Unwrap gives the error that the status stands for.
func (e *scriptError) Unwrap() error {
	switch {
	case e.status == statusMissing:
		return &sandbox.Error{Code: sandbox.CodeFileNotFound, Msg: "there is no such file or directory"}
	case e.status == statusNotDir:
		return &sandbox.Error{Code: sandbox.CodeNotADirectory, Msg: "it is not a directory"}
	case e.status == statusDenied:
		return &sandbox.Error{Code: sandbox.CodePermissionDenied, Msg: "permission denied"}
	case strings.Contains(e.stderr, "No space left"):
		return &sandbox.Error{Code: sandbox.CodeNoSpace, Msg: e.stderr}
	}
	return &sandbox.Error{Code: sandbox.CodeInternal, Msg: e.Error()}
}

// script runs a POSIX shell script with args in the sandbox. Its output goes to
// stdout, which may be nil; what it says on standard error is returned. A
// status other than 0 is a scriptError. Text counts as bytes there, so that all
// systems agree.
func (s *set) script(ctx context.Context, stdout io.Writer, script string, args ...string) (stderr string, err error) {
	cmd := sandbox.Cmd{
		Args:   append([]string{"/bin/sh", "-c", script, "sh"}, args...),
		Dir:    "/",
		Env:    map[string]string{"LC_ALL": "C", "CDPATH": ""},
		Stdout: stdout,
	}
	// A vendor may send the whole as one line, and put it in quotes once more.
	if len(sandbox.Quote(sandbox.Quote(cmd.Args...))) > sandbox.MaxArg-8<<10 {
		text := "set -- " + sandbox.Quote(args...) + "\nmain() {\n" + script + "\n}\nmain \"$@\" </dev/null\n"
		cmd.Args = []string{"/bin/sh"}
		cmd.Stdin = strings.NewReader(text)
	}
	said := &tail{most: 4000}
	cmd.Stderr = said
	exit, err := s.sb.Exec(ctx, cmd)
	stderr = strings.TrimSpace(string(said.bytes()))
	if err == nil && exit != 0 {
		err = &scriptError{exit, stderr}
	}
	return stderr, err
}

// statusOf returns the status of a scriptError, or 0.
func statusOf(err error) int {
	if e, ok := errors.AsType[*scriptError](err); ok {
		return e.status
	}
	return 0
}

// A tail keeps the last bytes written to it.
type tail struct {
	buf  []byte
	most int
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	t.buf = append(t.buf, p[max(0, n-t.most):]...)
	if len(t.buf) > 2*t.most {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.most:]...)
	}
	return n, nil
}

// bytes returns what is kept.
func (t *tail) bytes() []byte { return t.buf[max(0, len(t.buf)-t.most):] }

// A splitter calls each with the text before every end, as it is written. It
// keeps no more than one piece.
type splitter struct {
	end  string
	each func(piece string)
	buf  []byte
}

func (s *splitter) Write(p []byte) (int, error) {
	from := max(0, len(s.buf)-len(s.end)+1)
	s.buf = append(s.buf, p...)
	begin := 0
	for {
		i := bytes.Index(s.buf[from:], []byte(s.end))
		if i < 0 {
			break
		}
		s.each(string(s.buf[begin : from+i]))
		begin = from + i + len(s.end)
		from = begin
	}
	s.buf = append(s.buf[:0], s.buf[begin:]...)
	return len(p), nil
}

// partial turns find's complaints about parts of a tree into a note for the
// model. Any other failure stays an error.
func partial(stderr string, err error) (note string, _ error) {
	if err == nil {
		return "", nil
	}
	if statusOf(err) != 1 || stderr == "" {
		return "", err
	}
	return "[not everything could be read: " + printable(strings.ReplaceAll(stderr, "\n", "; ")) + "]", nil
}

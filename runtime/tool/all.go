package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Options are the limits of the tools and the places they work in. The zero
// value of every field gives its default.
type Options struct {
	Dir  string // start directory, absolute; empty: the sandbox's working directory
	Home string // home directory in the sandbox, for messages; empty: asked for when needed

	ExecTimeout    time.Duration // of a command that names none; 0: 10 minutes
	ExecTimeoutMax time.Duration // the longest a command may ask for; 0: 60 minutes
	OutputBytes    int           // output shown whole, per stream; 0: 40,000
	LogBytes       int           // full log kept, per stream; 0: 10 MiB
	LogDir         string        // for full logs, in the sandbox; empty: a new temporary directory

	// Mask is put before what is kept and shown of a command's output, and closed
	// when the command has ended. Nil changes nothing.
	Mask func(io.Writer) io.WriteCloser

	// Secret says which files grep leaves out of a directory that it searches. Nil is
	// none; a file that is asked for by its name is searched all the same.
	Secret func(name string) bool

	EditBytes   int           // largest file edit_file takes; 0: 10 MiB
	ListEntries int           // most entries ls shows; 0: 5,000
	GlobMatches int           // most matches glob shows; 0: 10,000
	GlobTime    time.Duration // 0: 10 seconds
	GrepTime    time.Duration // 0: 30 seconds
}

func (o Options) withDefaults(sb sandbox.Sandbox) Options {
	if o.Dir == "" {
		o.Dir = sb.Info().Dir
	}
	o.ExecTimeout = or(o.ExecTimeout, 10*time.Minute)
	o.ExecTimeoutMax = or(o.ExecTimeoutMax, time.Hour)
	o.OutputBytes = or(o.OutputBytes, 40_000)
	o.LogBytes = or(o.LogBytes, 10<<20)
	o.EditBytes = or(o.EditBytes, 10<<20)
	o.ListEntries = or(o.ListEntries, 5_000)
	o.GlobMatches = or(o.GlobMatches, 10_000)
	o.GlobTime = or(o.GlobTime, 10*time.Second)
	o.GrepTime = or(o.GrepTime, 30*time.Second)
	return o
}

func or[T int | time.Duration](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
}

// All returns the tools over sb. They share what has to be shared: edits of one
// file wait for each other.
func All(sb sandbox.Sandbox, opts Options) []Tool {
	s := &set{sb: sb, opts: opts.withDefaults(sb), locks: make(map[string]*lock)}
	s.home, s.logs = s.opts.Home, s.opts.LogDir
	return []Tool{
		s.ls(), s.readFile(), s.writeFile(), s.editFile(), s.delete(), s.glob(), s.grep(), s.execute(),
	}
}

// A set is what the tools of one sandbox share.
type set struct {
	sb   sandbox.Sandbox
	opts Options

	mu    sync.Mutex
	home  string // as far as known
	logs  string // as far as made
	locks map[string]*lock
}

// A lock orders the changes of one file.
type lock struct {
	mu    sync.Mutex
	users int
}

// hold waits for the changes of name that are under way and returns the
// function that lets the next one go on.
func (s *set) hold(name string) (release func()) {
	s.mu.Lock()
	l := s.locks[name]
	if l == nil {
		l = new(lock)
		s.locks[name] = l
	}
	l.users++
	s.mu.Unlock()
	l.mu.Lock()
	return func() {
		l.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(s.locks, name)
		}
	}
}

// A call is a checked call of a tool.
type call struct {
	Plan
	given string // the path as the model gave it
	run   func(ctx context.Context, emit func(Output)) (Result, error)
	edit  func(ctx context.Context) (Edit, error) // nil: it changes no file by itself
}

// A function is a tool whose input is an A.
type function[A any] struct {
	set    *set
	name   string
	doc    string
	params map[string]any
	check  func(A) (call, error)
}

func (f *function[A]) Name() string               { return f.name }
func (f *function[A]) Description() string        { return strings.TrimSpace(f.doc) }
func (f *function[A]) Parameters() map[string]any { return f.params }

func (f *function[A]) Plan(input string) (Plan, error) {
	c, err := f.plan(input)
	return c.Plan, err
}

func (f *function[A]) plan(input string) (call, error) {
	var args A
	if err := decode(input, &args); err != nil {
		return call{}, err
	}
	return f.check(args)
}

func (f *function[A]) Run(ctx context.Context, input string, emit func(Output)) (Result, error) {
	if emit == nil {
		emit = func(Output) {}
	}
	if strings.Contains(input, `"~`) {
		f.set.findHome(ctx)
	}
	if ctx.Err() != nil {
		exit, err := sandbox.ExitOf(ctx)
		return Result{Code: sandbox.CodeOf(err), Exit: exit, Text: err.Error()}, err
	}
	c, err := f.plan(input)
	if err != nil {
		return failure(ctx, c.given, err)
	}
	result, err := c.run(ctx, emit)
	if err != nil && result.Text == "" {
		return failure(ctx, c.given, err)
	}
	return result, err
}

// failure is the result that tells the model of err, and err itself if it ends
// the run.
func failure(ctx context.Context, given string, err error) (Result, error) {
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		_, err = sandbox.ExitOf(ctx)
	}
	code := sandbox.CodeOf(err)
	msg := err.Error()
	if e, ok := errors.AsType[*sandbox.Error](err); ok && given != "" {
		bare := *e
		bare.Op = "" // the path is said already
		msg = bare.Error()
	}
	text := fmt.Sprintf("error %s: %s", code, printable(msg))
	if given != "" {
		text = fmt.Sprintf("error %s: %s: %s", code, quoted(given), printable(msg))
	}
	result := Result{Code: code, Text: text}
	if ctx.Err() != nil || errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrUnauthenticated) {
		return result, err
	}
	return result, nil
}

// decode reads the JSON object input into args, a pointer to a struct, and
// refuses what is not declared there.
func decode(input string, args any) error {
	if strings.TrimSpace(input) == "" {
		input = "{}"
	}
	dec := json.NewDecoder(strings.NewReader(input))
	dec.DisallowUnknownFields()
	err := dec.Decode(args)
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			return invalid("the input goes on after its JSON object")
		}
		return nil
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return invalid("the input is a %s, not an object", e.Value)
		}
		kind := e.Type.Kind().String()
		return invalid("%s is a %s, not a %s", e.Field, e.Value, strings.TrimSuffix(kind, "64"))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return invalid("there is no parameter %s", name)
	}
	return invalid("the input is not valid JSON: %v", err)
}

func invalid(format string, args ...any) error {
	return sandbox.Errorf(sandbox.CodeInvalidArgument, format, args...)
}

// object is the JSON Schema of a tool's input: the properties, and which of
// them must be given.
func object(properties map[string]any, required ...string) map[string]any {
	if required == nil {
		required = []string{}
	}
	return map[string]any{
		"type":                 "object",
		"properties":           properties,
		"required":             required,
		"additionalProperties": false,
	}
}

func property(kind, description string) map[string]any {
	return map[string]any{"type": kind, "description": description}
}

// read returns the content of a file of at most limit bytes.
func (s *set) read(ctx context.Context, name string, limit int) ([]byte, error) {
	w := &limited{limit: limit}
	err := s.sb.ReadFile(ctx, name, w)
	if w.over {
		return nil, sandbox.Errorf(sandbox.CodeTooLarge, "the file has more than %d bytes, the most this tool takes", limit)
	}
	return w.buf.Bytes(), err
}

// limited keeps what is written to it and fails when that is too much.
type limited struct {
	buf   bytes.Buffer
	limit int
	over  bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.buf.Len()+len(p) > l.limit {
		l.over = true
		return 0, errors.New("more than is wanted")
	}
	return l.buf.Write(p)
}

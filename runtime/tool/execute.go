package tool

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

//go:embed execute.md
var executeDoc string

// cleanup is how long may be spent on what has to be done after ctx has ended.
const cleanup = 20 * time.Second

// quiet is the environment of every command: programs do not page, colour or ask.
var quiet = map[string]string{
	"TERM":                "dumb",
	"PAGER":               "cat",
	"GIT_PAGER":           "cat",
	"GIT_TERMINAL_PROMPT": "0",
	"DEBIAN_FRONTEND":     "noninteractive",
	"CI":                  "1",
}

type executeArgs struct {
	Command string `json:"command"`
	Timeout *int   `json:"timeout"`
	Cwd     string `json:"cwd"`
}

func (s *set) execute() Tool {
	most := int(s.opts.ExecTimeoutMax / time.Second)
	return &function[executeArgs]{
		set: s, name: "execute", doc: executeDoc,
		params: object(map[string]any{
			"command": property("string", "The command line, for /bin/sh."),
			"timeout": property("integer", fmt.Sprintf("Seconds after which the command is ended, 1-%d; default %d.", most, int(s.opts.ExecTimeout/time.Second))),
			"cwd":     property("string", "The directory to run in; default is the start directory."),
		}, "command"),
		check: func(args executeArgs) (call, error) {
			limit := s.opts.ExecTimeout
			if args.Timeout != nil {
				limit = time.Duration(*args.Timeout) * time.Second
			}
			dir, err := s.resolve(args.Cwd)
			given := args.Cwd
			if err == nil {
				given = ""
				switch {
				case strings.TrimSpace(args.Command) == "":
					err = invalid("command is required")
				case strings.ContainsRune(args.Command, 0):
					err = invalid("command holds a NUL byte")
				case args.Timeout != nil && (*args.Timeout < 1 || *args.Timeout > most):
					err = invalid("timeout is %d; it can be 1-%d seconds", *args.Timeout, most)
				default:
					given = args.Cwd
				}
			}
			return call{Plan: Plan{Effect: Runs, Command: args.Command, Path: dir, Apart: args.Cwd != "" && dir != path.Clean(s.opts.Dir)}, given: given, run: func(ctx context.Context, emit func(Output)) (Result, error) {
				return s.command(ctx, args.Command, dir, args.Cwd != "", limit, emit)
			}}, err
		},
	}
}

func (s *set) command(ctx context.Context, command, dir string, check bool, limit time.Duration, emit func(Output)) (Result, error) {
	if check {
		if _, err := s.script(ctx, nil, enter, dir); err != nil {
			return Result{}, err
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Result{}, err
	}
	cmd := sandbox.Cmd{ID: id.String(), Args: []string{"/bin/sh", "-c", command}, Dir: dir, Env: quiet}
	if len(sandbox.Quote(sandbox.Quote(cmd.Args...))) > sandbox.MaxArg-4<<10 {
		logs, err := s.logDir(ctx)
		if err != nil {
			return Result{}, err
		}
		file := path.Join(logs, id.String()+".sh")
		if err := s.sb.WriteFile(ctx, file, strings.NewReader(command), 0o600); err != nil {
			return Result{}, err
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
			defer cancel()
			s.script(ctx, nil, `rm -f -- "$1"`, file)
		}()
		cmd.Args = []string{"/bin/sh", file}
	}
	var mu sync.Mutex
	pass := func(stderr bool) func([]byte) {
		return func(p []byte) {
			mu.Lock()
			defer mu.Unlock()
			emit(Output{Stderr: stderr, Data: p})
		}
	}
	stdout := newCapture(s.opts, pass(false))
	stderr := newCapture(s.opts, pass(true))
	cmd.Stdout, cmd.Stderr = stdout, stderr
	masked := func() {}
	if s.opts.Mask != nil {
		out, err := s.opts.Mask(stdout), s.opts.Mask(stderr)
		cmd.Stdout, cmd.Stderr = out, err
		masked = func() { out.Close(); err.Close() }
	}

	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	exit, err := s.sb.Exec(limited, cmd)
	masked()

	result := Result{Exit: exit, Code: sandbox.CodeOf(err)}
	var b strings.Builder
	late := err != nil && limited.Err() != nil && ctx.Err() == nil
	switch {
	case err == nil:
		fmt.Fprintf(&b, "exit status %d\n", exit)
	case late:
		result.Code, result.Exit = sandbox.CodeTimeout, sandbox.ExitTimeout
		fmt.Fprintf(&b, "exit status %d [timed out: the command was ended after %v]\n", result.Exit, limit)
	case ctx.Err() != nil:
		result.Exit, err = sandbox.ExitOf(ctx)
		result.Code = sandbox.CodeOf(err)
		fmt.Fprintf(&b, "exit status %d [%s: the command was ended before it was done]\n", result.Exit, result.Code)
	default:
		failed, _ := failure(ctx, "", err)
		b.WriteString(failed.Text + " [the output may not be complete]\n")
		if result.Code == sandbox.CodeUnavailable {
			b.WriteString("[contact was lost: it is not known whether the command ran, or ran to its end. It is not run again by itself; look at what it was to change before you do]\n")
		}
	}
	s.section(ctx, &b, "stdout", stdout, cmd.ID)
	s.section(ctx, &b, "stderr", stderr, cmd.ID)
	if stdout.size+stderr.size == 0 {
		b.WriteString("[no output]\n")
	}
	result.Text = b.String()
	if late {
		return result, nil
	}
	if err != nil {
		_, err = failure(ctx, "", err)
	}
	return result, err
}

// section adds what a stream gave to b. What is not shown whole, or cannot be
// shown as it is, is kept in the sandbox.
func (s *set) section(ctx context.Context, b *strings.Builder, name string, c *capture, id string) {
	if c.size == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n", name)
	head, tail := c.shown()
	log := ""
	if len(head)+len(tail) < c.size || !utf8.Valid(head) {
		log = s.keep(ctx, c, id+"-"+name+".log")
	}
	b.WriteString(printable(string(head)))
	if left := c.size - len(head) - len(tail); left > 0 {
		if !strings.HasSuffix(b.String(), "\n") {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "[%d bytes left out; %s]\n", left, log)
		b.WriteString(printable(string(tail)))
	}
	if !strings.HasSuffix(b.String(), "\n") {
		b.WriteString("\n")
	}
	if len(tail) == 0 && log != "" {
		fmt.Fprintf(b, "[%s is not all UTF-8; %s]\n", name, log)
	}
}

// keep writes the full log to the sandbox and says where it is, or why it is
// not there. It does so after a cancelled command too.
func (s *set) keep(ctx context.Context, c *capture, name string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	dir, err := s.logDir(ctx)
	if err == nil {
		name = path.Join(dir, name)
		err = s.sb.WriteFile(ctx, name, c.log(), 0o600)
	}
	if err != nil {
		return "the full log could not be kept: " + printable(err.Error())
	}
	return "full log: " + quoted(name)
}

// logDir returns the directory for logs in the sandbox, made when first needed.
func (s *set) logDir(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs != "" {
		return s.logs, nil
	}
	var stdout strings.Builder
	_, err := s.script(ctx, &stdout, `umask 077; mktemp -d "${TMPDIR:-/tmp}/talkops-XXXXXX"`)
	if err != nil {
		return "", err
	}
	s.logs = strings.TrimSuffix(stdout.String(), "\n")
	return s.logs, nil
}

package daytona

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	inlineMost = 16 << 10         // a longer command line travels as a file
	lostAfter  = time.Minute      // how long a running command may be out of sight
	stopWithin = 15 * time.Second // for ending a command; the toolbox gives it 5 s
	idleAfter  = 30 * time.Second // a download that stands still is asked for again
	noDir      = 97               // the status of a script whose directory is missing
)

// A box is one open sandbox.
type box struct {
	api     *api
	tools   *rest.Client
	id      string
	dir     string
	run     string // a private directory in the sandbox
	setsid  bool   // the sandbox has that program
	env     map[string]string
	expires time.Time
}

// Info tells what the sandbox is.
func (b *box) Info() sandbox.Info {
	return sandbox.Info{Provider: "daytona", ID: b.id, Dir: b.dir, Expires: b.expires}
}

// Close lets go of the sandbox.
func (b *box) Close() error { return nil }

// A job is one running command.
type job struct {
	*box
	id      string // its session is talkops-<id>, its files are run/<id>.*
	command string // the toolbox's id of it
	streams []*stream
}

// A stream is one output file and how much of it has been delivered.
type stream struct {
	name string
	have int64
	w    io.Writer
}

func (j *job) file(kind string) string { return path.Join(j.run, j.id+"."+kind) }

func (j *job) session() string { return "/process/session/talkops-" + j.id }

// Exec runs cmd to completion.
func (b *box) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	if ctx.Err() != nil {
		return sandbox.ExitOf(ctx)
	}
	if err := check(cmd); err != nil {
		return 0, err
	}
	j := &job{box: b, id: cmd.ID}
	if j.id == "" {
		j.id = random()
	}
	exit, err := j.execute(ctx, cmd)
	if ctx.Err() != nil && err != nil && !errors.Is(err, errWrite) {
		return sandbox.ExitOf(ctx)
	}
	return exit, err
}

func check(cmd sandbox.Cmd) error {
	if len(cmd.Args) == 0 || strings.TrimSpace(cmd.Args[0]) == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "no command given")
	}
	for _, arg := range cmd.Args {
		switch {
		case len(arg) > sandbox.MaxArg:
			return sandbox.Errorf(sandbox.CodeTooLarge, "an argument of %d bytes is longer than %d", len(arg), sandbox.MaxArg)
		case strings.Contains(arg, "\x00"):
			return sandbox.Errorf(sandbox.CodeInvalidArgument, "an argument holds a NUL byte")
		}
	}
	if cmd.Dir != "" && !path.IsAbs(cmd.Dir) || strings.Contains(cmd.Dir, "\x00") {
		return sandbox.Errorf(sandbox.CodeInvalidPath, "the directory %q is not absolute", cmd.Dir)
	}
	for name, value := range cmd.Env {
		if !isName(name) || strings.Contains(value, "\x00") || len(name)+len(value) >= sandbox.MaxArg {
			return sandbox.Errorf(sandbox.CodeInvalidArgument, "the environment variable %q is not valid", name)
		}
	}
	if len(cmd.ID) > 64 || strings.Trim(cmd.ID, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "the command id %q is not valid", cmd.ID)
	}
	return nil
}

// isName reports whether a shell can export name.
func isName(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// execute uploads what cmd needs, starts it and follows it to its end.
func (j *job) execute(ctx context.Context, cmd sandbox.Cmd) (exit int, err error) {
	script := j.script(cmd)
	program := "sh -c " + sandbox.Quote(script)
	if len(program) > inlineMost || !utf8.ValidString(script) {
		program = "sh " + sandbox.Quote(j.file("c"))
		if err := j.upload(ctx, j.file("c"), strings.NewReader(script)); err != nil {
			return 0, err
		}
	}
	if j.setsid {
		// In a session of its own the command's background children outlive the
		// toolbox's session.
		program = "setsid " + program
	}
	input := "/dev/null"
	if cmd.Stdin != nil {
		input = j.file("i")
		if err := j.upload(ctx, input, cmd.Stdin); err != nil {
			j.remove(ctx)
			return 0, err
		}
	}
	outputs := []string{"/dev/null", "/dev/null"}
	for i, w := range []io.Writer{cmd.Stdout, cmd.Stderr} {
		if w != nil {
			s := &stream{name: j.file([]string{"o", "e"}[i]), w: w}
			outputs[i] = s.name
			j.streams = append(j.streams, s)
		}
	}
	// Two shells: the inner becomes the command, the outer waits for it. So setsid
	// is no group leader, and what a shell says of a killed child is not output.
	line := fmt.Sprintf("mkdir -p -m 700 %s; ( ( exec %s >%s 2>%s <%s ); exit $? ) >/dev/null 2>&1 </dev/null",
		sandbox.Quote(j.run), program, sandbox.Quote(outputs[0]), sandbox.Quote(outputs[1]), sandbox.Quote(input))

	// A session that exists already is the one of an earlier attempt.
	err = j.tools.JSON(ctx, rest.Request{
		Op: "open session", Method: "POST", Path: "/process/session", Retry: rest.Always,
		JSON: map[string]string{"sessionId": "talkops-" + j.id},
	}, nil)
	if err != nil && status(err) != http.StatusConflict {
		j.stop(ctx)
		return 0, j.explain(ctx, err)
	}
	exit, err = j.start(ctx, line)
	if err == nil {
		exit, err = j.follow(ctx)
	}
	if err != nil {
		j.stop(ctx)
		if ctx.Err() != nil {
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin/3)
			j.drain(last)
			cancel()
		}
	}
	if err == nil && exit == noDir {
		if missing, code := j.missing(ctx); missing {
			err = &sandbox.Error{Code: code, Op: "run in " + cmd.Dir}
		}
	}
	j.remove(ctx)
	return exit, err
}

// script is the shell text that becomes the command.
func (j *job) script(cmd sandbox.Cmd) string {
	dir := cmd.Dir
	if dir == "" {
		dir = j.dir
	}
	var s strings.Builder
	fmt.Fprintf(&s, "echo $$ >%s\n", sandbox.Quote(j.file("p")))
	fmt.Fprintf(&s, "cd %s 2>/dev/null || { if [ -e %[1]s ]; then [ -d %[1]s ] && echo denied || echo file; else echo none; fi >%s; exit %d; }\n",
		word(dir), sandbox.Quote(j.file("f")), noDir)
	env := maps.Clone(j.env)
	if env == nil {
		env = make(map[string]string)
	}
	maps.Copy(env, cmd.Env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if isName(name) {
			fmt.Fprintf(&s, "export %s=%s\n", name, sandbox.Quote(env[name]))
		}
	}
	s.WriteString("exec " + sandbox.Quote(cmd.Args...) + "\n")
	return s.String()
}

// start sends the command line, once. When the answer is lost, the session says
// whether the command arrived.
func (j *job) start(ctx context.Context, line string) (int, error) {
	var answer struct {
		Command string `json:"cmdId"`
	}
	err := j.tools.JSON(ctx, rest.Request{
		Op: "start command", Method: "POST", Path: j.session() + "/exec", Retry: rest.Never,
		JSON: map[string]any{"command": line, "runAsync": true, "async": true},
	}, &answer)
	if err == nil && answer.Command == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: "start command", Msg: "Daytona's answer names no command"}
	}
	if err == nil {
		j.command = answer.Command
		return 0, nil
	}
	if code := status(err); ctx.Err() != nil || code != 0 && code < 500 {
		return 0, j.explain(ctx, err)
	}
	var session struct {
		Commands []struct {
			ID string `json:"id"`
		} `json:"commands"`
	}
	if j.tools.JSON(ctx, rest.Request{Op: "find command", Method: "GET", Path: j.session()}, &session) == nil && len(session.Commands) > 0 {
		j.command = session.Commands[0].ID
		return 0, nil
	}
	return 0, j.explain(ctx, err)
}

// follow delivers output until the command has ended and returns its status.
func (j *job) follow(ctx context.Context) (int, error) {
	once := *j.tools // follow itself repeats what fails
	once.Attempts = 1
	once.Timeout = 15 * time.Second
	seen := time.Now()
	delay := 50 * time.Millisecond
	for failures := 0; ; {
		var state struct {
			Exit *int `json:"exitCode"`
		}
		err := once.JSON(ctx, rest.Request{Op: "watch command", Method: "GET", Path: j.session() + "/command/" + url.PathEscape(j.command)}, &state)
		if err == nil {
			err = j.drain(ctx)
		}
		switch {
		case err == nil && state.Exit != nil:
			if *state.Exit < 0 || *state.Exit > 255 {
				return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "watch command", Msg: fmt.Sprintf("Daytona reports the status %d", *state.Exit)}
			}
			return *state.Exit, j.whole(ctx)
		case err == nil:
			seen, failures = time.Now(), 0
			delay = min(delay*5/4, 500*time.Millisecond)
		case ctx.Err() != nil || errors.Is(err, errWrite) || sandbox.CodeOf(err) == sandbox.CodeUnauthenticated:
			return 0, err
		default:
			failures++
			if gone := j.explain(ctx, err); sandbox.CodeOf(gone) == sandbox.CodeGone {
				return 0, gone
			}
			if code := status(err); code == http.StatusNotFound || code == http.StatusGone {
				return 0, &sandbox.Error{Code: sandbox.CodeGone, Op: "watch command", Msg: "the session was lost before the command's outcome was known", Err: err}
			}
			if time.Since(seen) > lostAfter {
				return 0, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "watch command", Msg: "contact was lost; the command's outcome is unknown", Err: err}
			}
			if rest.Sleep(ctx, rest.Backoff(failures, err)) != nil {
				return 0, rest.Ended(ctx, "watch command")
			}
			continue
		}
		if rest.Sleep(ctx, delay) != nil {
			return 0, rest.Ended(ctx, "watch command")
		}
	}
}

// drain delivers what the output files hold beyond what has been delivered.
func (j *job) drain(ctx context.Context) error {
	for _, s := range j.streams {
		if err := j.fetch(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// whole checks that the output files exist: a command that removed them, or a
// full disk, must not look like silence.
func (j *job) whole(ctx context.Context) error {
	for _, s := range j.streams {
		if s.have > 0 {
			continue
		}
		_, err := j.download(ctx, s.name, 0, io.Discard)
		if status(err) == http.StatusNotFound || status(err) == http.StatusBadRequest {
			return &sandbox.Error{Code: sandbox.CodeInternal, Op: "read output", Msg: "the command's output is lost"}
		}
	}
	return nil
}

// fetch delivers the rest of one output file. A file that is not there yet is empty.
func (j *job) fetch(ctx context.Context, s *stream) error {
	n, err := j.download(ctx, s.name, s.have, s.w)
	s.have += n
	if status(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// missing tells why the command's directory could not be entered, if that is
// what happened.
func (j *job) missing(ctx context.Context) (bool, sandbox.Code) {
	var why strings.Builder
	if _, err := j.download(ctx, j.file("f"), 0, &why); err != nil || why.Len() == 0 {
		return false, ""
	}
	switch strings.TrimSpace(why.String()) {
	case "denied":
		return true, sandbox.CodePermissionDenied
	case "file":
		return true, sandbox.CodeNotADirectory
	}
	return true, sandbox.CodeFileNotFound
}

// stop ends the command and everything it started, under a context of its own.
func (j *job) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	var wg sync.WaitGroup
	if j.setsid && j.command != "" {
		wg.Go(func() { j.shell(ctx, false, killScript, j.file("p")) })
	}
	wg.Go(func() {
		j.tools.JSON(ctx, rest.Request{Op: "end session", Method: "DELETE", Path: j.session()}, nil)
	})
	wg.Wait()
}

// killScript ends the process group whose leader is named in the file $1. The
// dead whom nobody has buried yet do not count.
const killScript = `p=$(cat "$1" 2>/dev/null) && [ "$p" -gt 1 ] || exit 1
alive() {
	kill -0 "-$p" 2>/dev/null || return 1
	[ -r /proc/self/stat ] || return 0
	sed -n 's/.*) \([^ ]*\) [0-9]* '"$p"' .*/\1/p' /proc/[0-9]*/stat 2>/dev/null | grep -q '[^ZX]'
}
kill -TERM "-$p" 2>/dev/null || exit 1
i=0
while alive && [ $i -lt 20 ]; do
	sleep 0.1 2>/dev/null || { sleep 1; i=$((i+9)); }
	i=$((i+1))
done
kill -KILL "-$p" 2>/dev/null
exit 0`

// remove ends the session and deletes the command's files.
func (j *job) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	quick := *j.tools
	quick.Attempts = 2
	var wg sync.WaitGroup
	wg.Go(func() {
		quick.JSON(ctx, rest.Request{Op: "end session", Method: "DELETE", Path: j.session()}, nil)
	})
	wg.Go(func() {
		j.shell(ctx, false, `rm -f "$1".[a-z]`, path.Join(j.run, j.id))
	})
	wg.Wait()
}

// Kill ends the command with that ID, whoever started it.
func (b *box) Kill(ctx context.Context, id string) error {
	if err := check(sandbox.Cmd{ID: id, Args: []string{"true"}}); err != nil || id == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "the command id %q is not valid", id)
	}
	j := &job{box: b, id: id}
	if b.setsid {
		// The session stays, so that who waits for the command learns its status.
		if _, exit, err := j.shell(ctx, false, killScript, j.file("p")); err == nil && exit == 0 {
			return nil
		}
	}
	err := b.tools.JSON(ctx, rest.Request{Op: "end session", Method: "DELETE", Path: j.session()}, nil)
	if err = b.explain(ctx, err); status(err) == http.StatusNotFound && sandbox.CodeOf(err) != sandbox.CodeGone {
		return nil
	}
	return err
}

// shell runs a short script of talkops's own in one request and returns what it
// prints. A script may be repeated only if it changes nothing twice.
func (b *box) shell(ctx context.Context, repeat bool, script string, args ...string) (out string, exit int, err error) {
	// The toolbox feeds the command to a shell's standard input.
	command := "sh -c " + sandbox.Quote(script) + " sh"
	for _, arg := range args {
		command += " " + word(arg)
	}
	retry := rest.Never
	if repeat {
		retry = rest.Always
	}
	var answer struct {
		Exit   *int   `json:"exitCode"`
		Result string `json:"result"`
	}
	err = b.tools.JSON(ctx, rest.Request{
		Op: "run script", Method: "POST", Path: "/process/execute", Retry: retry,
		JSON: map[string]any{"command": command + " </dev/null", "timeout": 25},
	}, &answer)
	if err != nil {
		return "", 0, b.explain(ctx, err)
	}
	if answer.Exit == nil {
		return "", 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "run script", Msg: "Daytona's answer has no status"}
	}
	return answer.Result, *answer.Exit, nil
}

// word quotes s for a command line that travels as JSON: bytes that are not
// UTF-8 are spelled out.
func word(s string) string {
	if utf8.ValidString(s) {
		return sandbox.Quote(s)
	}
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteString(`\0` + fmt.Sprintf("%03s", strconv.FormatUint(uint64(c), 8)))
	}
	return `"$(printf %b ` + sandbox.Quote(b.String()) + `)"`
}

// explain looks whether the machine still runs when the toolbox fails in a way
// that may mean it does not.
func (b *box) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	switch code := status(err); {
	case code == 0 && sandbox.CodeOf(err) == sandbox.CodeUnavailable:
	case code == http.StatusBadRequest, code == http.StatusNotFound, code == http.StatusGone, code >= 500:
	default:
		return err
	}
	look := b.api.Client
	look.Attempts = 2
	look.Timeout = 10 * time.Second
	m, gerr := (&api{Client: look}).get(ctx, b.id)
	switch {
	case status(gerr) == http.StatusNotFound:
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + b.id, Msg: "the sandbox no longer exists", Err: err}
	case gerr == nil && (ending(m.State) || stopped(m.State) || failed(m.State) || m.State == "stopping"):
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + b.id, Msg: "the sandbox is " + m.State, Err: err}
	}
	return err
}

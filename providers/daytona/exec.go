package daytona

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	inlineMost = 16 << 10         // a longer command line travels as a file
	lostAfter  = 5 * time.Minute  // how long a running command may be out of sight
	stopWithin = 8 * time.Second  // for ending a command; the toolbox gives it 5 s
	idleAfter  = 30 * time.Second // a download that stands still is asked for again

	silentAfter = 2 * time.Minute // an upload that stands still, or is not answered, has failed
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
	return sandbox.Info{Provider: "daytona", ID: b.id, Dir: b.dir, Token: b.token(), Expires: b.expires}
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
	return posix.Exec(ctx, cmd, func(ctx context.Context, cmd sandbox.Cmd) (int, error) {
		return (&job{box: b, id: cmd.ID}).execute(ctx, cmd)
	})
}

// execute uploads what cmd needs, starts it and follows it to its end.
func (j *job) execute(ctx context.Context, cmd sandbox.Cmd) (exit int, err error) {
	script := posix.Command(path.Join(j.run, j.id), j.dir, j.env, cmd)
	program := "sh -c " + sandbox.Quote(script)
	if len(program) > inlineMost || !utf8.ValidString(script) {
		program = "sh " + sandbox.Quote(j.file("c"))
		if _, err := j.upload(ctx, j.file("c"), strings.NewReader(script)); err != nil {
			j.remove(ctx)
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
		if _, err := j.upload(ctx, input, cmd.Stdin); err != nil {
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
	// What it writes last tells a full disk.
	line := fmt.Sprintf("mkdir -p -m 700 %s; ( d=%[1]s; "+posix.KeepRoom+"( exec %s >%s 2>%s <%s ); s=$?; echo end >%s; exit $s ) >/dev/null 2>&1 </dev/null",
		sandbox.Quote(j.run), program, sandbox.Quote(outputs[0]), sandbox.Quote(outputs[1]), sandbox.Quote(input), sandbox.Quote(j.file("x")))

	// A session that exists already is the one of an earlier attempt.
	err = j.tools.JSON(ctx, rest.Request{
		Op: "open session", Method: "POST", Path: "/process/session", Retry: rest.Always,
		JSON: map[string]string{"sessionId": "talkops-" + j.id},
	}, nil)
	if err != nil && rest.Status(err) != http.StatusConflict {
		j.stop(ctx)
		return 0, j.explain(ctx, err)
	}
	exit, err = j.start(ctx, line)
	if err == nil {
		exit, err = j.follow(ctx, rest.NewContact(lostAfter, cmd.Unheard))
	}
	if err != nil {
		j.stop(ctx)
		if ctx.Err() != nil {
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin/3)
			j.drain(last)
			cancel()
		}
	}
	if err == nil && exit == posix.NoDir {
		err = j.noDir(ctx, cmd.Dir)
	}
	if full := j.remove(ctx); full && err == nil {
		err = posix.FullDisk(exit)
	}
	return exit, err
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
	if code := rest.Status(err); ctx.Err() != nil || code != 0 && code < 500 {
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
func (j *job) follow(ctx context.Context, contact *rest.Contact) (int, error) {
	once := *j.tools // follow itself repeats what fails
	once.Attempts = 1
	once.Timeout = 15 * time.Second
	delay := 10 * time.Millisecond
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
			contact.Heard()
			failures = 0
			delay = min(delay*3/2, 500*time.Millisecond)
		case ctx.Err() != nil || errors.Is(err, rest.ErrWrite) || sandbox.CodeOf(err) == sandbox.CodeUnauthenticated:
			return 0, err
		default:
			failures++
			contact.Failed()
			if gone := j.explain(ctx, err); sandbox.CodeOf(gone) == sandbox.CodeGone {
				return 0, gone
			}
			if code := rest.Status(err); code == http.StatusNotFound || code == http.StatusGone {
				return 0, &sandbox.Error{Code: sandbox.CodeGone, Op: "watch command", Msg: "the session was lost before the command's outcome was known", Err: err}
			}
			if contact.Lost() {
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
		if rest.Status(err) == http.StatusNotFound || rest.Status(err) == http.StatusBadRequest {
			return &sandbox.Error{Code: sandbox.CodeInternal, Op: "read output", Msg: "the command's output is lost"}
		}
	}
	return nil
}

// fetch delivers the rest of one output file. A file that is not there yet is empty.
func (j *job) fetch(ctx context.Context, s *stream) error {
	n, err := j.download(ctx, s.name, s.have, s.w)
	s.have += n
	if rest.Status(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// noDir is the error of a command whose directory could not be entered, or nil.
func (j *job) noDir(ctx context.Context, dir string) error {
	var why posix.Text
	if _, err := j.download(ctx, j.file("f"), 0, &why); err != nil {
		return nil
	}
	return posix.NoDirError(dir, why.String())
}

// stop ends the command and everything it started, under a context of its own.
func (j *job) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	var wg sync.WaitGroup
	if j.setsid && j.command != "" {
		wg.Go(func() { j.shell(ctx, false, posix.KillScript, j.file("p")) })
	}
	wg.Go(func() {
		j.tools.JSON(ctx, rest.Request{Op: "end session", Method: "DELETE", Path: j.session()}, nil)
	})
	wg.Wait()
}

// removeScript deletes the files $1.* and says whether the disk was full when the
// command ended.
const removeScript = `whole=
if [ -s "$1.x" ]; then whole=1; elif [ -e "$1.x" ]; then echo full; fi
rm -f "$1".[a-z]
[ -n "$whole" ] && exit
d=${1%/*}
` + posix.GiveRoom

// remove ends the session and deletes the command's files. It reports whether the
// disk was full when the command ended.
func (j *job) remove(ctx context.Context) (full bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin/2)
	defer cancel()
	quick := *j.tools
	quick.Attempts = 2
	var wg sync.WaitGroup
	wg.Go(func() {
		quick.JSON(ctx, rest.Request{Op: "end session", Method: "DELETE", Path: j.session()}, nil)
	})
	wg.Go(func() {
		out, exit, err := j.shell(ctx, false, removeScript, path.Join(j.run, j.id))
		full = err == nil && exit == 0 && strings.TrimSpace(out) == "full"
	})
	wg.Wait()
	return full
}

// Kill ends the command with that ID, whoever started it.
func (b *box) Kill(ctx context.Context, id string) error {
	if err := posix.CheckID(id); err != nil {
		return err
	}
	j := &job{box: b, id: id}
	if b.setsid {
		// The session stays, so that who waits for the command learns its status.
		if _, exit, err := j.shell(ctx, false, posix.KillScript, j.file("p")); err == nil && exit == 0 {
			return nil
		}
	}
	err := b.tools.JSON(ctx, rest.Request{Op: "end session", Method: "DELETE", Path: j.session()}, nil)
	if err = b.explain(ctx, err); rest.Status(err) == http.StatusNotFound && sandbox.CodeOf(err) != sandbox.CodeGone {
		return nil
	}
	return err
}

// shell runs a short script of talkops's own in one request and returns what it
// prints. A script may be repeated only if it changes nothing twice.
func (b *box) shell(ctx context.Context, repeat bool, script string, args ...string) (out string, exit int, err error) {
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
		JSON: map[string]any{"command": posix.Script(script, args...) + " </dev/null", "timeout": 25}, // the toolbox feeds it to a shell,
	}, &answer)
	if err != nil {
		return "", 0, b.explain(ctx, err)
	}
	if answer.Exit == nil {
		return "", 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "run script", Msg: "Daytona's answer has no status"}
	}
	return answer.Result, *answer.Exit, nil
}

// explain looks whether the machine still runs when the toolbox fails in a way
// that may mean it does not.
func (b *box) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	switch code := rest.Status(err); {
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
	case rest.Status(gerr) == http.StatusNotFound:
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + b.id, Msg: "the sandbox no longer exists", Err: err}
	case gerr == nil && (ending(m.State) || stopped(m.State) || failed(m.State) || m.State == "stopping"):
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + b.id, Msg: "the sandbox is " + m.State, Err: err}
	}
	return err
}

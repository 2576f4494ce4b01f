package vercel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/providers/internal/spool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	inlineMost  = 16 << 10         // a longer command travels as a file
	lostAfter   = 5 * time.Minute  // how long a running command may be out of sight
	startAnswer = 30 * time.Second // how long the answer to a start may take
	stopWithin  = 15 * time.Second // for ending a command
	idleAfter   = time.Minute      // a stream that stands still is asked for again; the script sends a line before that
	lagWithin   = 3 * time.Second  // how long output may arrive after its command was ended
	limitGrace  = 30 * time.Second // how much later than here a command is ended there
	limitMost   = 5 * time.Hour    // Vercel's limit of a command
	lineMost    = 16 << 20
)

// A box is one open sandbox.
type box struct {
	api    *api
	name   string
	dir    string
	run    string // a private directory in the sandbox
	setsid bool   // the sandbox has that program
	tar    bool   // and this one
	env    map[string]string
	stale  spool.Stale

	mu  sync.Mutex
	now session // a snapshot begins another
}

// Info tells what the sandbox is.
func (b *box) Info() sandbox.Info {
	return sandbox.Info{Provider: "vercel", ID: b.name, Dir: b.dir, Expires: b.session().expires()}
}

// Close lets go of the sandbox.
func (b *box) Close() error { return nil }

func (b *box) session() session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// A job is one running command.
type job struct {
	*box
	unheard func(since, until time.Time) // see sandbox.Cmd; may be nil
	id      string                       // its files are run/<id>.*
	session string
	command string // Vercel's id of it; empty while it is not known
	output  *spool.Output
}

// A command is one as Vercel shows it.
type command struct {
	ID   string   `json:"id"`
	Args []string `json:"args"`
	Exit *int     `json:"exitCode"`
	Took *int64   `json:"durationMs"`
}

// ended reports whether the command has; its exit code may be unknown even then.
func (c command) ended() bool { return c.Exit != nil || c.Took != nil }

// A launch asks for a command. Program "sh" reads the second of Args; the third,
// its $0, tells the command from others.
type launch struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Sudo    bool              `json:"sudo"`
	Wait    bool              `json:"wait,omitempty"`
	Logs    bool              `json:"logs,omitempty"`
	Timeout int64             `json:"timeout,omitempty"` // milliseconds
}

func (j *job) files() string { return path.Join(j.run, j.id) }

// tag is the command's $0.
func (j *job) tag() string { return "talkops-" + j.id }

func newJob(b *box, id string) *job {
	if id == "" {
		id = rest.Random()
	}
	return &job{box: b, id: id, session: b.session().ID}
}

// Exec runs cmd to completion.
func (b *box) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	return posix.Exec(ctx, cmd, func(ctx context.Context, cmd sandbox.Cmd) (int, error) {
		j := newJob(b, cmd.ID)
		j.unheard = cmd.Unheard
		return j.execute(ctx, cmd)
	})
}

// killScript ends the process group whose leader is named in the file $1 or, where
// there is no setsid ($2 is "tree"), that process and its descendants.
const killScript = `( ` + posix.KillScript + ` ) && exit 0
[ "$2" = tree ] || exit 1
p=$(cat "$1" 2>/dev/null) && [ "$p" -gt 1 ] && kill -0 "$p" 2>/dev/null || exit 1
tree() {
	all=$p
	new=$p
	while [ -n "$new" ]; do
		next=
		for q in $new; do
			next="$next $(sed -n 's/^\([0-9]*\) (.*) [^ ]* '"$q"' .*/\1/p' /proc/[0-9]*/stat 2>/dev/null)"
		done
		new=$(echo $next)
		all="$all $new"
	done
}
tree
kill -TERM $all 2>/dev/null
i=0
while kill -0 $all 2>/dev/null && [ $i -lt 20 ]; do
	sleep 0.1 2>/dev/null || { sleep 1; i=$((i+9)); }
	i=$((i+1))
done
kill -KILL $all 2>/dev/null
exit 0`

// joinScript makes one file of the pieces that a long upload to $1 came in.
const joinScript = `join() {
	for p in "$1".[0-9]*; do
		[ -f "$p" ] || continue
		cat "$p" >>"$1" && rm -f "$p" || return 1
	done
}
`

// runScript is as package spool says; $5 is "tree" where there is no setsid. It makes
// one file of the input first, and sends an empty line before the stream is taken to
// stand still.
const runScript = joinScript + spool.Begin + `beat=40
[ -f "$input" ] && join "$input"
` + spool.Pump + killScript + spool.Run

// tree is what killScript is told of the sandbox.
func (b *box) tree() string {
	if b.setsid {
		return "group"
	}
	return "tree"
}

// execute uploads what cmd needs, starts it and follows it to its end.
func (j *job) execute(ctx context.Context, cmd sandbox.Cmd) (exit int, err error) {
	program, err := posix.Prepare(ctx, j.files(), j.dir, j.env, cmd, j.setsid, inlineMost, j.upload)
	if err != nil {
		j.remove(ctx, true)
		return 0, err
	}
	var limit, hard time.Duration
	if end, ok := ctx.Deadline(); ok {
		limit = time.Until(end) + limitGrace
		hard = min(limit+limitGrace, limitMost)
	}
	j.output = spool.Machine{Download: j.download, Absent: absent, Explain: j.explain, Twice: errTwice}.New(j.files(), cmd)
	args := append([]string{j.files(), strconv.FormatInt(int64(limit.Seconds()), 10), program.Input, j.output.Wanted, j.tree()}, program.Args...)
	if err = j.start(ctx, j.stale.Sweep()+"exec "+posix.Script(runScript, args...), hard); err == nil {
		exit, err = j.follow(ctx)
	}
	if err == nil {
		err = j.output.Fault(ctx, exit, cmd.Dir)
	}
	if err == nil && cmd.Stdin == nil && j.output.Small() {
		j.stale.Add(j.files())
		return exit, nil
	}
	if errors.Is(err, errTwice) {
		return 0, err // the files are the other's
	}
	// A command that may still be on its way must find that it is not to run.
	j.remove(ctx, j.command != "")
	return exit, err
}

// absent reports whether err says that there is no such file.
func absent(err error) bool {
	return rest.Status(err) == http.StatusNotFound && sandbox.CodeOf(err) != sandbox.CodeGone
}

// start sends the command, once. When the answer is lost, the session says whether
// it arrived. If start fails, the command does not run.
func (j *job) start(ctx context.Context, line string, timeout time.Duration) error {
	var answer struct {
		Command command `json:"command"`
	}
	once := *j.api
	once.Timeout = startAnswer
	err := once.json(ctx, rest.Request{
		Op: "start command", Method: "POST", Path: running(j.session, "cmd"), Retry: rest.Refused,
		JSON: launch{Command: "sh", Args: []string{"-c", line, j.tag()}, Env: map[string]string{}, Timeout: timeout.Milliseconds()},
	}, &answer)
	if err == nil && answer.Command.ID == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: "start command", Msg: "Vercel's answer names no command"}
	}
	if err == nil {
		j.command = answer.Command.ID
		return nil
	}
	if code := rest.Status(err); ctx.Err() == nil && (code == 0 || code >= 500) {
		if j.command = j.find(ctx, j.session, j.tag()); j.command != "" {
			return nil
		}
	}
	err = j.explain(ctx, err)
	if code := sandbox.CodeOf(err); code != sandbox.CodeGone && code != sandbox.CodeUnauthenticated {
		j.stop(ctx)
	}
	return err
}

// find returns the id of the command with that $0, or "".
func (b *box) find(ctx context.Context, session, tag string) string {
	var answer struct {
		Commands []command `json:"commands"`
	}
	b.api.json(ctx, rest.Request{Op: "find command", Method: "GET", Path: running(session, "cmd")}, &answer)
	for _, c := range answer.Commands {
		if len(c.Args) == 3 && c.Args[2] == tag {
			return c.ID
		}
	}
	return ""
}

// follow delivers output until the command has ended and returns its status. If
// that fails the command has been ended.
func (j *job) follow(ctx context.Context) (int, error) {
	// The stream goes on while a command is ended, so that its last output arrives.
	watch, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- j.read(watch) }()
	select {
	case err := <-done:
		if err != nil && !errors.Is(err, errTwice) && (sandbox.CodeOf(err) != sandbox.CodeGone || errors.Is(err, spool.ErrLost)) {
			j.stop(ctx)
		}
		if err != nil {
			return 0, err
		}
	case <-ctx.Done():
		j.stop(ctx)
		t := time.AfterFunc(lagWithin, cancel)
		defer t.Stop()
		<-done
		return 0, rest.Ended(ctx, "watch command")
	}
	return j.output.Complete(ctx)
}

// read delivers the log to its end, taking it up again when it breaks.
func (j *job) read(ctx context.Context) error {
	contact := rest.NewContact(lostAfter, j.unheard)
	for n, after := 1, 0; ; n++ {
		before := j.output.At()
		err := j.listen(ctx)
		if j.output.Whole() {
			return nil
		}
		if errors.Is(err, rest.ErrWrite) || errors.Is(err, errTwice) || sandbox.CodeOf(err) == sandbox.CodeUnauthenticated {
			return err
		}
		if j.output.At() > before {
			contact.Heard()
			n = 1
		}
		// The log has ended before its end: its command may have, too.
		c, gerr := j.look(ctx, j.session, j.command)
		switch {
		case gerr != nil:
			if err := j.judge(ctx, gerr, contact); err != nil {
				return err
			}
			err = gerr
		case c.ended():
			if after++; after > 2 {
				return j.output.Salvage(ctx)
			}
		default:
			contact.Heard()
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return rest.Ended(ctx, "watch command")
		}
	}
}

// look returns the command as it is now.
func (b *box) look(ctx context.Context, session, id string) (command, error) {
	var answer struct {
		Command command `json:"command"`
	}
	once := *b.api
	once.Attempts = 1
	once.Timeout = startAnswer
	err := once.json(ctx, rest.Request{Op: "watch command", Method: "GET", Path: running(session, "cmd", id)}, &answer)
	if err == nil && answer.Command.ID == "" {
		err = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "watch command", Msg: "Vercel's answer names no command"}
	}
	return answer.Command, err
}

// judge returns the error with which following ends after err, or nil if it may
// go on.
func (b *box) judge(ctx context.Context, err error, contact *rest.Contact) error {
	if ctx.Err() != nil {
		return rest.Ended(ctx, "watch command")
	}
	switch sandbox.CodeOf(err) {
	case sandbox.CodeUnauthenticated, sandbox.CodePermissionDenied, sandbox.CodeTooLarge:
		return err
	}
	contact.Failed()
	if gone := b.explain(ctx, err); sandbox.CodeOf(gone) == sandbox.CodeGone {
		return gone
	}
	if rest.Status(err) == http.StatusNotFound {
		return spool.ErrLost
	}
	if contact.Lost() {
		return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "watch command", Msg: "contact was lost; the command's outcome is unknown", Err: err}
	}
	return nil
}

// listen reads the log, which always begins at its beginning, until it ends.
func (j *job) listen(ctx context.Context) error {
	at := map[*spool.Stream]int64{}
	return j.lines(ctx, rest.Request{Op: "read output", Method: "GET", Path: running(j.session, "cmd", j.command, "logs")}, idleAfter, func(l logLine) (bool, error) {
		s := j.output.Out
		if l.Stream == "stderr" {
			s = j.output.Err
		}
		if s == nil || l.Stream != "stdout" && l.Stream != "stderr" {
			return false, nil
		}
		text := l.text()
		from := at[s]
		at[s] += int64(len(text))
		err := s.Take(text, from)
		return j.output.Whole(), err
	})
}

// A logLine is one line of a stream: a command, or a piece of output.
type logLine struct {
	Command *command        `json:"command"`
	Stream  string          `json:"stream"`
	Data    json.RawMessage `json:"data"`
}

func (l logLine) text() string {
	var text string
	json.Unmarshal(l.Data, &text)
	return text
}

// lines sends r once and calls f with each line of the answer until f says that it
// was the last, or they end. The answer may stand still for that long.
func (b *box) lines(ctx context.Context, r rest.Request, idle time.Duration, f func(logLine) (bool, error)) error {
	flow, err := b.api.flow(ctx, r, min(idle, startAnswer), idle)
	if err != nil {
		return err
	}
	defer flow.Close()
	if !strings.HasPrefix(flow.Header.Get("Content-Type"), "application/x-ndjson") {
		return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: r.Op, Msg: "Vercel answered with something that is no stream"}
	}
	lines := bufio.NewScanner(flow)
	lines.Buffer(make([]byte, 64<<10), lineMost)
	for lines.Scan() {
		var l logLine
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue // the last one, which may be cut, or one that is none
		}
		if l.Stream == "error" {
			var why struct {
				Code    string `json:"code"`
				Message string `json:"message"`
			}
			json.Unmarshal(l.Data, &why)
			return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: r.Op, Msg: "Vercel: " + b.api.Show(why.Code+": "+why.Message)}
		}
		if last, err := f(l); last || err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return rest.Cut(ctx, r.Op, err)
	}
	return nil
}

// errTwice says that the command's id had been used before.
var errTwice = &sandbox.Error{Code: sandbox.CodeInvalidArgument, Op: "start command", Msg: "a command with this id was started before"}

// endScript ends the command with the files $1.*, if it runs; $2 is as in killScript.
const endScript = `[ -e "$1.x" ] && exit 0
set -- "$1.p" "$2"
` + killScript

// stopScript is endScript; a command that has not started yet never will.
const stopScript = posix.HoldScript + endScript

// stop ends the command and everything it started, under a context of its own.
// Vercel's own signal reaches the script alone.
func (j *job) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	_, exit, err := j.shell(ctx, true, stopScript, j.files(), j.tree())
	if (err != nil || exit != 0) && j.command != "" && ctx.Err() == nil {
		j.api.json(ctx, rest.Request{
			Op: "end command", Method: "POST", Path: running(j.session, "cmd", j.command, "kill"), Retry: rest.Always,
			JSON: map[string]int{"signal": 9},
		}, nil)
	}
}

// remove deletes the command's files; the one that says that the command has
// started only if all is set.
func (j *job) remove(ctx context.Context, all bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin/2)
	defer cancel()
	kinds := "[a-km-z]*"
	if all {
		kinds = "*"
	}
	j.shell(ctx, true, `rm -rf "$1".`+kinds+"\nd=${1%/*}\n"+posix.GiveRoom, j.files())
}

// Kill ends the command with that ID, whoever started it.
func (b *box) Kill(ctx context.Context, id string) error {
	if err := posix.CheckID(id); err != nil {
		return err
	}
	_, _, err := b.shell(ctx, true, endScript, path.Join(b.run, id), b.tree())
	return err
}

// shell runs a short script of talkops's own and returns what it prints. When the
// answer is lost, the session says whether the script arrived and how it ended; one
// that did not may be sent again only if it may be repeated.
func (b *box) shell(ctx context.Context, repeat bool, script string, args ...string) (out string, exit int, err error) {
	tag := "talkops-" + rest.Random()
	session := b.session().ID
	request := rest.Request{
		Op: "run script", Method: "POST", Path: running(session, "cmd"), Retry: rest.Never,
		JSON: launch{Command: "sh", Args: []string{"-c", "exec " + posix.Script(script, args...) + " </dev/null", tag}, Env: map[string]string{}, Wait: true, Logs: true},
	}
	for n := 1; ; n++ {
		var text output
		id := ""
		var end *command
		err = b.lines(ctx, request, idleAfter, func(l logLine) (bool, error) {
			switch {
			case l.Command != nil && l.Command.ended():
				end = l.Command
			case l.Command != nil:
				id = l.Command.ID
			default:
				return false, text.add(l)
			}
			return end != nil, nil
		})
		status := rest.Status(err)
		if end == nil && ctx.Err() == nil && sandbox.CodeOf(err) != sandbox.CodeTooLarge && (status == 0 || status >= 500) {
			if id == "" {
				id = b.find(ctx, session, tag)
			}
			if id != "" {
				end, err = b.collect(ctx, session, id, &text)
			} else if err == nil {
				err = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "run script", Msg: "Vercel answered with an empty stream"}
			}
		}
		switch {
		case end != nil && end.Exit == nil:
			return "", 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "run script", Msg: "Vercel's answer has no exit code"}
		case end != nil && *end.Exit != 0:
			return text.out.String() + text.err.String(), *end.Exit, nil
		case end != nil:
			return text.out.String(), 0, nil
		case ctx.Err() != nil:
			return "", 0, rest.Ended(ctx, "run script")
		}
		again := status == http.StatusTooManyRequests || repeat && sandbox.CodeOf(err) == sandbox.CodeUnavailable
		if n >= 4 || !again {
			return "", 0, b.explain(ctx, err)
		}
		if gone := b.explain(ctx, err); sandbox.CodeOf(gone) == sandbox.CodeGone {
			return "", 0, gone
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return "", 0, rest.Ended(ctx, "run script")
		}
	}
}

// An output is what a script has printed.
type output struct{ out, err posix.Text }

func (o *output) add(l logLine) (err error) {
	switch l.Stream {
	case "stdout":
		_, err = o.out.Write([]byte(l.text()))
	case "stderr":
		_, err = o.err.Write([]byte(l.text()))
	}
	return err
}

// collect waits for the end of a script and reads its log.
func (b *box) collect(ctx context.Context, session, id string, text *output) (*command, error) {
	contact := rest.NewContact(lostAfter, nil)
	delay := 20 * time.Millisecond
	for n := 1; ; {
		c, err := b.look(ctx, session, id)
		if err == nil && c.ended() {
			*text = output{}
			err = b.lines(ctx, rest.Request{Op: "read output", Method: "GET", Path: running(session, "cmd", id, "logs")}, idleAfter, func(l logLine) (bool, error) {
				return false, text.add(l)
			})
			if err == nil {
				return &c, nil
			}
		} else if err == nil {
			contact.Heard()
			n = 1
			delay = min(delay*3/2, time.Second)
			if rest.Sleep(ctx, delay) != nil {
				return nil, rest.Ended(ctx, "run script")
			}
			continue
		}
		if err := b.judge(ctx, err, contact); err != nil {
			return nil, err
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return nil, rest.Ended(ctx, "run script")
		}
		n++
	}
}

// explain looks whether the session still runs when a call fails in a way that may
// mean it does not.
func (b *box) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	switch code := rest.Status(err); {
	case code == 0 && sandbox.CodeOf(err) == sandbox.CodeUnavailable:
	case code == http.StatusBadRequest, code == http.StatusNotFound, code == http.StatusGone, code == http.StatusUnprocessableEntity, code >= 500:
	default:
		return err
	}
	look := *b.api
	look.Attempts = 2
	look.Timeout = 10 * time.Second
	x, gerr := look.session(ctx, b.session().ID)
	switch {
	case rest.Status(gerr) == http.StatusNotFound:
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + b.name, Msg: "the sandbox no longer exists", Err: err}
	case gerr != nil:
		return err
	case over(x.Status), x.Status == "stopping", x.Status == "snapshotting":
		why := ""
		if end := x.expires(); x.Status == "stopped" && !end.IsZero() && !time.Now().Before(end) {
			why = ": its lifetime was over"
		}
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + b.name, Msg: "the sandbox is " + x.Status + why, Err: err}
	}
	return err
}

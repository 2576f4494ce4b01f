package vercel

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
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
	smallFiles  = 1 << 20          // files of a command up to this size wait for the next command
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

	mu    sync.Mutex
	now   session  // a snapshot begins another
	stale []string // files of ended commands, which the next one deletes
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
	unheard  func(since, until time.Time) // see sandbox.Cmd; may be nil
	id       string                       // its files are run/<id>.*
	session  string
	command  string // Vercel's id of it; empty while it is not known
	out, err *stream
}

// A stream is one output of a command: a file in the sandbox that arrives as lines
// of base64, followed by "." and its size, and on stdout "=" and the status.
type stream struct {
	file string
	w    io.Writer
	last bool // the line with the status follows the size

	have   int64  // bytes delivered
	at     int64  // bytes of Vercel's log read
	pos    int64  // where the present connection is in that log
	rest   []byte // the line that is not complete
	broken bool   // something is missing: the file has the rest
	size   int64  // of the file
	status int64  // of the command
	whole  bool   // everything has been read
	full   bool   // the disk was full when the command ended
}

// What a size or status is that has no value.
const (
	unknown = -1 - iota
	lost    // the file is not there
)

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

func (j *job) file(kind string) string { return path.Join(j.run, j.id+"."+kind) }

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
	if ctx.Err() != nil {
		return sandbox.ExitOf(ctx)
	}
	if err := posix.CheckCommand(cmd); err != nil {
		return 0, err
	}
	j := newJob(b, cmd.ID)
	j.unheard = cmd.Unheard
	exit, err := j.execute(ctx, cmd)
	if ctx.Err() != nil && err != nil && !errors.Is(err, rest.ErrWrite) {
		return sandbox.ExitOf(ctx)
	}
	return exit, err
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

// runScript runs the command "$@" with the private files $1.*, for at most $2
// seconds (0: any time), with the input $3 and the outputs that $4 names: "o",
// "e", both or none; $5 is "tree" where there is no setsid. It sends what they
// hold while they grow, and an empty line now and then. A second copy of the same
// command ends at once.
const runScript = joinScript + `b=$1 limit=$2 input=$3 want=$4 tree=$5
shift 5
[ -d "${b%/*}" ] || mkdir -p -m 700 "${b%/*}"
mkdir "$b.l" 2>/dev/null || { echo !; exit 0; }
exec 3>&1 4>&2 >/dev/null 2>&1 </dev/null
[ -f "$input" ] && join "$input"
send() {
	n=$2
	[ -s "$1" ] || return
	s=$(($(wc -c <"$1")))
	while [ "$s" -gt "$n" ]; do
		k=$((s-n))
		[ "$k" -gt 786429 ] && k=786429
		tail -c "+$((n+1))" "$1" | head -c "$k" | base64
		n=$((n+k)) quiet=0
	done
}
pump() {
	o=0 e=0 turn=0 quiet=0 begin=
	while :; do
		ended=
		{ [ -e "$b.x" ] || [ ! -d "$b.l" ]; } && ended=1
		case $want in *o*) send "$b.o" "$o" >&3; o=$n; esac
		case $want in *e*) send "$b.e" "$e" >&4; e=$n; esac
		[ -n "$ended" ] && break
		turn=$((turn+1)) quiet=$((quiet+1))
		[ $((quiet%40)) -eq 0 ] && echo >&3
		if [ "$limit" -gt 0 ] && [ $((turn%20)) -eq 0 ]; then
			now=$(date +%s)
			if [ $((now-${begin:=$now})) -ge "$limit" ]; then
				limit=0
				( set -- "$b.p" "$tree"; ` + killScript + ` )
			fi
		fi
		if [ $quiet -lt 5 ]; then sleep 0.01; elif [ $quiet -lt 20 ]; then sleep 0.1; else sleep 0.25; fi || sleep 1
	done
	case $want in *o*) [ -f "$b.o" ] || o=; esac
	case $want in *e*) [ -f "$b.e" ] || e=; esac
	echo ".$o" >&3
	echo ".$e" >&4
}
o=/dev/null e=/dev/null
case $want in *o*) o=$b.o; esac
case $want in *e*) e=$b.e; esac
pump &
pump=$!
( exec "$@" >"$o" 2>"$e" <"$input" 3>&- 4>&- )
status=$?
{ echo "$status" >"$b.x"; } || { [ -e "$b.x" ] || kill "$pump"; }
wait "$pump"
[ -s "$b.x" ] || [ ! -e "$b.x" ] || echo "#" >&3
echo "=$status" >&3
exit "$status"`

// tree is what killScript is told of the sandbox.
func (b *box) tree() string {
	if b.setsid {
		return "group"
	}
	return "tree"
}

// execute uploads what cmd needs, starts it and follows it to its end.
func (j *job) execute(ctx context.Context, cmd sandbox.Cmd) (exit int, err error) {
	script := posix.Command(path.Join(j.run, j.id), j.dir, j.env, cmd)
	program := []string{"sh", "-c", script}
	if len(script) > inlineMost || !utf8.ValidString(script) {
		program = []string{"sh", j.file("c")}
		if _, err := j.upload(ctx, j.file("c"), strings.NewReader(script)); err != nil {
			return 0, err
		}
	}
	if j.setsid {
		// In a session of its own the command is a group that can be ended, and what
		// it leaves in the background lives on.
		program = append([]string{"setsid"}, program...)
	}
	input := "/dev/null"
	if cmd.Stdin != nil {
		input = j.file("i")
		if _, err := j.upload(ctx, input, cmd.Stdin); err != nil {
			j.remove(ctx, true)
			return 0, err
		}
	}
	var limit, hard time.Duration
	if end, ok := ctx.Deadline(); ok {
		limit = time.Until(end) + limitGrace
		hard = min(limit+limitGrace, limitMost)
	}
	wanted := ""
	// The status comes on stdout even if nobody wants that.
	j.out = &stream{file: j.file("o"), w: cmd.Stdout, last: true, size: unknown, status: unknown}
	if cmd.Stdout != nil {
		wanted += "o"
	}
	if cmd.Stderr != nil {
		wanted += "e"
		j.err = &stream{file: j.file("e"), w: cmd.Stderr, size: unknown, status: unknown}
	}
	args := append([]string{path.Join(j.run, j.id), strconv.FormatInt(int64(limit.Seconds()), 10), input, wanted, j.tree()}, program...)
	if err = j.start(ctx, j.sweep()+"exec "+posix.Script(runScript, args...), hard); err == nil {
		exit, err = j.follow(ctx)
	}
	if err == nil && exit == posix.NoDir {
		err = j.noDir(ctx, cmd.Dir)
	}
	if err == nil && j.out.full {
		err = posix.FullDisk(exit)
	}
	if err == nil && cmd.Stdin == nil && j.out.have <= smallFiles && (j.err == nil || j.err.have <= smallFiles) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.stale = append(j.stale, path.Join(j.run, j.id))
		return exit, nil
	}
	if errors.Is(err, errTwice) {
		return 0, err // the files are the other's
	}
	// A command that may still be on its way must find that it is not to run.
	j.remove(ctx, j.command != "")
	return exit, err
}

// sweep returns the beginning of a command line that deletes stale files.
func (b *box) sweep() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	line := ""
	for _, files := range b.stale[:min(len(b.stale), 50)] {
		line += " " + sandbox.Quote(files) + ".*"
	}
	b.stale = b.stale[min(len(b.stale), 50):]
	if line == "" {
		return ""
	}
	return "rm -rf" + line + "; "
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

// errLost says that Vercel no longer knows the command, or not how it ended.
var errLost = &sandbox.Error{Code: sandbox.CodeGone, Op: "watch command", Msg: "the command was lost; its outcome is unknown"}

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
		if err != nil && !errors.Is(err, errTwice) && (sandbox.CodeOf(err) != sandbox.CodeGone || errors.Is(err, errLost)) {
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
	for _, s := range j.streams() {
		if err := j.complete(ctx, s); err != nil {
			return 0, err
		}
	}
	if j.out.status < 0 || j.out.status > 255 {
		return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "watch command", Msg: fmt.Sprintf("the command's status is %d", j.out.status)}
	}
	return int(j.out.status), nil
}

func (j *job) streams() []*stream {
	if j.err == nil {
		return []*stream{j.out}
	}
	return []*stream{j.out, j.err}
}

func (j *job) whole() bool { return j.out.whole && (j.err == nil || j.err.whole) }

// at is how much of the log has been read.
func (j *job) at() (n int64) {
	for _, s := range j.streams() {
		n += s.at
	}
	return n
}

// read delivers the log to its end, taking it up again when it breaks.
func (j *job) read(ctx context.Context) error {
	contact := rest.NewContact(lostAfter, j.unheard)
	for n, after := 1, 0; ; n++ {
		before := j.at()
		err := j.listen(ctx)
		if j.whole() {
			return nil
		}
		if errors.Is(err, rest.ErrWrite) || errors.Is(err, errTwice) || sandbox.CodeOf(err) == sandbox.CodeUnauthenticated {
			return err
		}
		if j.at() > before {
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
				return j.salvage(ctx)
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
		return errLost
	}
	if contact.Lost() {
		return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "watch command", Msg: "contact was lost; the command's outcome is unknown", Err: err}
	}
	return nil
}

// listen reads the log, which always begins at its beginning, until it ends.
func (j *job) listen(ctx context.Context) error {
	for _, s := range j.streams() {
		s.pos = 0
	}
	return j.lines(ctx, rest.Request{Op: "read output", Method: "GET", Path: running(j.session, "cmd", j.command, "logs")}, idleAfter, func(l logLine) (bool, error) {
		s := j.out
		if l.Stream == "stderr" {
			s = j.err
		}
		if s == nil || l.Stream != "stdout" && l.Stream != "stderr" {
			return false, nil
		}
		err := s.take(l.text())
		return j.whole(), err
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

// take reads a piece of the log, leaving out what was read before.
func (s *stream) take(piece string) error {
	skip := min(s.at-s.pos, int64(len(piece)))
	s.pos += int64(len(piece))
	piece = piece[skip:]
	s.at += int64(len(piece))
	s.rest = append(s.rest, piece...)
	end := bytes.LastIndexByte(s.rest, '\n') + 1
	var data []byte
	for line := range bytes.Lines(s.rest[:end]) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) > 0 && bytes.IndexByte([]byte("!.=#"), line[0]) >= 0 {
			if line[0] == '!' {
				return errTwice
			}
			s.mark(line[0], string(line[1:]))
			continue
		}
		if s.broken || s.w == nil {
			continue
		}
		more, err := base64.StdEncoding.AppendDecode(data, line)
		if err != nil {
			s.broken = true
			continue
		}
		data = more
	}
	s.rest = append(s.rest[:0], s.rest[end:]...)
	if len(s.rest) > lineMost {
		s.broken, s.rest = true, nil // no line of ours is so long
	}
	if len(data) == 0 {
		return nil
	}
	n, err := s.w.Write(data)
	s.have += int64(n)
	if err != nil {
		return rest.WriteFailed(err)
	}
	return nil
}

// mark reads a line that is no output.
func (s *stream) mark(kind byte, text string) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case kind == '#':
		s.full = true
	case kind == '=' && err == nil:
		s.status, s.whole = n, true
	case kind == '.' && err != nil:
		s.size, s.whole = lost, !s.last
	case kind == '.':
		s.size, s.whole = n, !s.last
	}
}

// salvage finds the status of a command that has ended, and the rest of its
// output, in its files.
func (j *job) salvage(ctx context.Context) error {
	if j.out.status < 0 {
		var text posix.Text
		if err := j.fetch(ctx, &stream{file: j.file("x"), w: &text}); err != nil {
			return err
		}
		status, err := strconv.ParseInt(strings.TrimSpace(text.String()), 10, 64)
		if err != nil {
			return errLost
		}
		j.out.status = status
	}
	for _, s := range j.streams() {
		if !s.whole && s.w != nil {
			if err := j.fetch(ctx, s); err != nil {
				return err
			}
		}
		if !s.whole {
			s.size = s.have
		}
	}
	return nil
}

// complete delivers what is missing of s, whose end is known.
func (j *job) complete(ctx context.Context, s *stream) error {
	if s.w == nil {
		return nil
	}
	if s.size == unknown {
		// What sends it on was killed, or its last word was in a gap.
		switch err := j.fetch(ctx, s); {
		case errors.Is(err, errLost):
			s.size = lost
		case err != nil:
			return err
		default:
			s.size = s.have
		}
	}
	if s.size == lost {
		return &sandbox.Error{Code: sandbox.CodeInternal, Op: "read output", Msg: "the command's output is lost"}
	}
	if s.have < s.size {
		if err := j.fetch(ctx, s); err != nil {
			return err
		}
	}
	if s.have < s.size {
		return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "read output", Msg: fmt.Sprintf("only %d of %d bytes arrived", s.have, s.size)}
	}
	return nil
}

// fetch delivers what the file of s holds beyond what has been delivered.
func (j *job) fetch(ctx context.Context, s *stream) error {
	for n := 1; ; n++ {
		got, err := j.download(ctx, s.file, s.have, s.w)
		s.have += got
		if err == nil {
			return nil
		}
		if err = j.explain(ctx, err); rest.Status(err) == http.StatusNotFound && sandbox.CodeOf(err) != sandbox.CodeGone {
			return errLost
		}
		if n >= 4 || sandbox.CodeOf(err) != sandbox.CodeUnavailable || errors.Is(err, rest.ErrWrite) {
			return err
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return rest.Ended(ctx, "read output")
		}
	}
}

// noDir is the error of a command whose directory could not be entered, or nil.
func (j *job) noDir(ctx context.Context, dir string) error {
	var why posix.Text
	if _, err := j.download(ctx, j.file("f"), 0, &why); err != nil {
		return nil
	}
	return posix.NoDirError(dir, why.String())
}

// stopScript ends the command with the files $1.*. One that has not started yet
// never will.
const stopScript = `mkdir "$1.l" 2>/dev/null && exit 0
i=0
while [ ! -s "$1.p" ] && [ ! -e "$1.x" ] && [ $i -lt 20 ]; do
	sleep 0.1 2>/dev/null || sleep 1
	i=$((i+1))
done
[ -e "$1.x" ] && exit 0
set -- "$1.p" "$2"
` + killScript

// stop ends the command and everything it started, under a context of its own.
// Vercel's own signal reaches the script alone.
func (j *job) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	_, exit, err := j.shell(ctx, true, stopScript, path.Join(j.run, j.id), j.tree())
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
	j.shell(ctx, true, `rm -rf "$1".`+kinds, path.Join(j.run, j.id))
}

// Kill ends the command with that ID, whoever started it.
func (b *box) Kill(ctx context.Context, id string) error {
	if err := posix.CheckID(id); err != nil {
		return err
	}
	_, _, err := b.shell(ctx, true, `[ -e "$1.x" ] && exit 0
set -- "$1.p" "$2"
`+killScript, path.Join(b.run, id), b.tree())
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

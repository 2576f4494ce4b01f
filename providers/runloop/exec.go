package runloop

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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
	inlineMost = 16 << 10         // a longer command travels as a file
	lostAfter  = 5 * time.Minute  // how long a running command may be out of sight
	stopWithin = 15 * time.Second // for ending a command
	idleAfter  = 30 * time.Second // a stream or download that stands still is asked for again
	lagWithin  = 3 * time.Second  // how long output may arrive after its command has ended
	limitGrace = 30 * time.Second // how much later than here a command is ended there
	aliveEvery = time.Minute      // how often a devbox with an idle limit is told of a running command
	smallFiles = 1 << 20          // files of a command up to this size wait for the next command
	lineMost   = 4 << 20          // of a stream

	silentAfter = 2 * time.Minute // an upload that stands still, or is not answered, has failed
)

// A box is one open devbox.
type box struct {
	api     *api
	id      string
	dir     string
	run     string // a private directory in the devbox
	setsid  bool   // the devbox has that program
	env     map[string]string
	expires time.Time
	idle    bool // it ends when it is idle

	mu    sync.Mutex
	stale []string // files of ended commands, which the next one deletes
}

// Info tells what the devbox is.
func (b *box) Info() sandbox.Info {
	return sandbox.Info{Provider: "runloop", ID: b.id, Dir: b.dir, Token: b.token(), Expires: b.expires}
}

// Close lets go of the devbox.
func (b *box) Close() error { return nil }

// A job is one running command.
type job struct {
	*box
	unheard   func(since, until time.Time) // see sandbox.Cmd; may be nil
	id        string                       // its files are run/<id>.*
	execution string                       // Runloop's id of it; empty while it is not known
	out, err  *stream
}

// A stream is one output of a command: a file in the devbox that arrives as lines
// of base64, followed by "." and its size, and on stdout "=" and the status.
// While the command is followed, one goroutine has it.
type stream struct {
	file string
	path string // of Runloop's stream
	w    io.Writer
	last bool // the line with the status follows the size

	have   int64  // bytes delivered
	at     int64  // bytes of Runloop's stream read
	style  style  // of its offsets
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

// A style is what Runloop means by the offset of a piece of output, which it does
// not say: the first piece tells.
type style int

const (
	unseen style = iota
	ofBegin
	ofEnd
	unclear
)

func (j *job) file(kind string) string { return path.Join(j.run, j.id+"."+kind) }

// Exec runs cmd to completion.
func (b *box) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	if ctx.Err() != nil {
		return sandbox.ExitOf(ctx)
	}
	if err := posix.CheckCommand(cmd); err != nil {
		return 0, err
	}
	j := &job{box: b, id: cmd.ID, unheard: cmd.Unheard}
	if j.id == "" {
		j.id = rest.Random()
	}
	exit, err := j.execute(ctx, cmd)
	if ctx.Err() != nil && err != nil && !errors.Is(err, rest.ErrWrite) {
		return sandbox.ExitOf(ctx)
	}
	return exit, err
}

// runScript runs the command "$@" with the private files $1.*, for at most $2
// seconds (0: any time), with the input $3 and the outputs that $4 names: "o",
// "e", both or none. It sends what they hold while they grow. A second copy of
// the same command ends at once.
const runScript = `b=$1 limit=$2 input=$3 want=$4
shift 4
[ -d "${b%/*}" ] || mkdir -p -m 700 "${b%/*}"
mkdir "$b.l" 2>/dev/null || { echo !; exit 0; }
exec 3>&1 4>&2 >/dev/null 2>&1 </dev/null
size() { echo $(($(wc -c <"$1"))); }
send() { tail -c "+$(($2+1))" "$1" | head -c "$3" | base64; }
pump() {
	n=0 m=0 i=0 turn=0 begin=
	while :; do
		ended=
		[ -e "$b.x" ] && ended=1
		case $want in *o*)
			s=0
			[ -s "$b.o" ] && s=$(size "$b.o")
			while [ "$s" -gt "$n" ]; do
				k=$((s-n))
				[ "$k" -gt 786429 ] && k=786429
				send "$b.o" "$n" "$k" >&3
				n=$((n+k)) i=0
			done
		esac
		case $want in *e*)
			s=0
			[ -s "$b.e" ] && s=$(size "$b.e")
			while [ "$s" -gt "$m" ]; do
				k=$((s-m))
				[ "$k" -gt 786429 ] && k=786429
				send "$b.e" "$m" "$k" >&4
				m=$((m+k)) i=0
			done
		esac
		[ -n "$ended" ] && break
		turn=$((turn+1)) i=$((i+1))
		if [ "$limit" -gt 0 ] && [ $((turn%20)) -eq 0 ]; then
			now=$(date +%s)
			if [ $((now-${begin:=$now})) -ge "$limit" ]; then
				limit=0
				( set -- "$b.p"; ` + posix.KillScript + ` )
			fi
		fi
		if [ $i -lt 5 ]; then sleep 0.01; elif [ $i -lt 20 ]; then sleep 0.1; else sleep 0.25; fi || sleep 1
	done
	case $want in *o*) [ -f "$b.o" ] || n=; esac
	case $want in *e*) [ -f "$b.e" ] || m=; esac
	echo ".$n" >&3
	echo ".$m" >&4
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
	limit := int64(0)
	if end, ok := ctx.Deadline(); ok {
		limit = seconds(time.Until(end) + limitGrace)
	}
	wanted := ""
	// The status comes on stdout even if nobody wants that.
	j.out = &stream{file: j.file("o"), path: "stream_stdout_updates", w: cmd.Stdout, last: true, size: unknown, status: unknown}
	if cmd.Stdout != nil {
		wanted += "o"
	}
	if cmd.Stderr != nil {
		wanted += "e"
		j.err = &stream{file: j.file("e"), path: "stream_stderr_updates", w: cmd.Stderr, size: unknown, status: unknown}
	}
	args := append([]string{path.Join(j.run, j.id), strconv.FormatInt(limit, 10), input, wanted}, program...)
	if err = j.start(ctx, j.sweep()+posix.Script(runScript, args...)); err == nil {
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
	// A command that may still be on its way must find that it is not to run.
	j.remove(ctx, j.execution != "")
	return exit, err
}

// sweep returns the beginning of a command line that deletes stale files.
func (b *box) sweep() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	line := ""
	for _, files := range b.stale[:min(len(b.stale), 50)] {
		line += " " + sandbox.Quote(files) + ".[a-z]"
	}
	b.stale = b.stale[min(len(b.stale), 50):]
	if line == "" {
		return ""
	}
	return "rm -rf" + line + "; "
}

// start sends the command. The request id makes Runloop run it once, and the
// script would not run it twice. If that fails, the command does not run.
func (j *job) start(ctx context.Context, line string) error {
	var answer struct {
		ID string `json:"execution_id"`
	}
	err := j.api.JSON(ctx, rest.Request{
		Op: "start command", Method: "POST", Path: j.api.path(j.box.id, "execute_async"), Header: once(), Retry: rest.Always,
		JSON: map[string]any{"command": line},
	}, &answer)
	if err == nil && answer.ID == "" {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: "start command", Msg: "Runloop's answer names no execution"}
	}
	if err != nil {
		err = j.explain(ctx, err)
		if code := sandbox.CodeOf(err); code != sandbox.CodeGone && code != sandbox.CodeUnauthenticated {
			j.stop(ctx)
		}
		return err
	}
	j.execution = answer.ID
	return nil
}

// errLost says that Runloop no longer knows the command; its files may.
var errLost = &sandbox.Error{Code: sandbox.CodeGone, Op: "watch command", Msg: "the command was lost before its outcome was known"}

// follow delivers output until the command has ended and returns its status. If
// that fails the command has been ended.
func (j *job) follow(ctx context.Context) (int, error) {
	// Streams go on while a command is ended, so that its last output arrives.
	watch, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	halt := func() { cancel(); wg.Wait() }
	defer halt()
	streams := j.streams()
	read := make(chan error, len(streams))
	for _, s := range streams {
		wg.Go(func() { read <- j.read(watch, s) })
	}
	ended := make(chan error, 1)
	wg.Go(func() { ended <- j.await(watch) })

	var lag <-chan time.Time
	for left := len(streams); left > 0; {
		var err error
		late := false
		select {
		case err = <-read:
			left--
			if errors.Is(err, errLost) {
				err, late = nil, true
			}
		case err = <-ended:
			if errors.Is(err, errLost) {
				err, late = nil, true
			} else if err == nil {
				t := time.NewTimer(lagWithin)
				defer t.Stop()
				lag = t.C
			}
		case <-lag:
			late = true
		case <-ctx.Done():
			j.stop(ctx)
			t := time.NewTimer(lagWithin)
			defer t.Stop()
			for waiting := left; waiting > 0; waiting-- {
				select {
				case <-read:
				case <-t.C:
					waiting = 0
				}
			}
			return 0, rest.Ended(ctx, "watch command")
		}
		if err == nil && late {
			halt()
			err = j.salvage(ctx)
			left = 0
		}
		if err != nil {
			if sandbox.CodeOf(err) != sandbox.CodeGone || errors.Is(err, errLost) {
				j.stop(ctx)
			}
			return 0, err
		}
	}
	for _, s := range streams {
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

// await returns nil when Runloop says that the command has ended.
func (j *job) await(ctx context.Context) error {
	hold := j.api.Client
	hold.Attempts = 1
	hold.Timeout = (holdFor + 15) * time.Second
	contact, told := rest.NewContact(lostAfter, j.unheard), time.Now()
	for n := 0; ; {
		begin := time.Now()
		var state struct {
			Status string `json:"status"`
		}
		err := hold.JSON(ctx, rest.Request{
			Op: "watch command", Method: "POST", Path: j.path("wait_for_status"), Retry: rest.Never,
			JSON: map[string]any{"statuses": []string{"completed"}, "timeout_seconds": holdFor},
		}, &state)
		switch {
		case err == nil && state.Status == "completed":
			return nil
		case err == nil, rest.Status(err) == http.StatusRequestTimeout:
			contact.Heard()
			n = 0
			if time.Since(begin) < time.Second {
				n = 1
			}
		default:
			n++
			if err := j.judge(ctx, err, contact); err != nil {
				return err
			}
		}
		if n > 0 && rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return rest.Ended(ctx, "watch command")
		}
		if j.idle && time.Since(told) > aliveEvery {
			told = time.Now()
			hold.JSON(ctx, rest.Request{Op: "keep devbox", Method: "POST", Path: j.api.path(j.box.id, "keep_alive"), Retry: rest.Never}, nil)
		}
	}
}

// judge returns the error with which following ends after err, or nil if it may
// go on.
func (j *job) judge(ctx context.Context, err error, contact *rest.Contact) error {
	if ctx.Err() != nil {
		return rest.Ended(ctx, "watch command")
	}
	switch sandbox.CodeOf(err) {
	case sandbox.CodeUnauthenticated, sandbox.CodePermissionDenied:
		return err
	}
	contact.Failed()
	if gone := j.explain(ctx, err); sandbox.CodeOf(gone) == sandbox.CodeGone {
		return gone
	}
	switch rest.Status(err) {
	case http.StatusNotFound, http.StatusGone:
		return errLost
	}
	if contact.Lost() {
		return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "watch command", Msg: "contact was lost; the command's outcome is unknown", Err: err}
	}
	return nil
}

func (j *job) path(rest string) string {
	return j.api.path(j.box.id, "executions", url.PathEscape(j.execution), rest)
}

// read delivers s to its end, taking up a stream that breaks.
func (j *job) read(ctx context.Context, s *stream) error {
	contact := rest.NewContact(lostAfter, j.unheard)
	for n := 1; ; n++ {
		before, begin := s.at, time.Now()
		err := j.listen(ctx, s)
		if s.whole {
			return nil
		}
		if errors.Is(err, rest.ErrWrite) || errors.Is(err, errTwice) {
			return err
		}
		if err == nil || s.at > before {
			contact.Heard()
		}
		if s.at > before || err == nil && time.Since(begin) > time.Second {
			n = 1
		}
		if err != nil {
			if err := j.judge(ctx, err, contact); err != nil {
				return err
			}
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return rest.Ended(ctx, "watch command")
		}
	}
}

// listen reads Runloop's stream from where it was left until it ends.
func (j *job) listen(ctx context.Context, s *stream) error {
	flow, err := j.api.Flow(ctx, rest.Request{
		Op: "read output", Method: "GET", Path: j.path(s.path), Query: url.Values{"offset": {strconv.FormatInt(s.at, 10)}},
		Header: http.Header{"Accept": {"text/event-stream"}},
	}, idleAfter, idleAfter)
	if err != nil {
		return err
	}
	defer flow.Close()
	events := rest.NewEvents(flow)
	for !s.whole {
		event, err := events.Next()
		switch {
		case err == io.EOF, err != nil && flow.Still():
			return nil // it has ended, or stood still
		case err != nil:
			return rest.Cut(ctx, "read output", err)
		}
		if event.Name == "error" {
			var why struct {
				Code    any    `json:"code"`
				Message string `json:"message"`
			}
			json.Unmarshal(event.Data, &why)
			if fmt.Sprint(why.Code) == "408" {
				return nil
			}
			return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "read output", Msg: "Runloop: " + j.api.Show(why.Message)}
		}
		var item struct {
			Output string `json:"output"`
			Offset *int64 `json:"offset"`
		}
		if json.Unmarshal(event.Data, &item) != nil {
			return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "read output", Msg: "Runloop sent something that is no output"}
		}
		if err := s.take(item.Output, item.Offset); err != nil {
			return err
		}
	}
	return nil
}

// errTwice says that the command ran already when it was started: its outcome
// went to somebody else.
var errTwice = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "start command", Msg: "it was started twice, and once was refused; its outcome is unknown"}

// take reads a piece of Runloop's stream, of which it says that offset.
func (s *stream) take(piece string, offset *int64) error {
	length := int64(len(piece))
	if s.style == unseen && length > 0 {
		s.style = unclear
		if offset != nil && *offset == 0 {
			s.style = ofBegin
		} else if offset != nil && *offset == length {
			s.style = ofEnd
		}
	}
	from := s.at
	switch {
	case offset == nil:
	case s.style == ofBegin:
		from = *offset
	case s.style == ofEnd:
		from = *offset - length
	}
	if from > s.at {
		// What came between is lost here, but not in the file.
		s.broken, s.rest = true, nil
		s.at = from
	}
	piece = piece[min(s.at-from, length):]
	s.at += int64(len(piece))
	s.rest = append(s.rest, piece...)
	end := bytes.LastIndexByte(s.rest, '\n') + 1
	var data []byte
	for line := range bytes.Lines(s.rest[:end]) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) > 0 && bytes.IndexByte([]byte("!.=#"), line[0]) >= 0 {
			if err := s.mark(line[0], string(line[1:])); err != nil {
				return err
			}
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
func (s *stream) mark(kind byte, text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	switch kind {
	case '!':
		return errTwice
	case '#':
		s.full = true
	case '.':
		if err != nil {
			n = lost
		}
		s.size, s.whole = n, !s.last
	case '=':
		// After a gap it may be the end of a line of base64.
		if err == nil {
			s.status, s.whole = n, true
		}
	}
	return nil
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
		got, err := j.download(ctx, s.file, s.have, -1, s.w)
		s.have += got
		if err == nil {
			return nil
		}
		if err = j.explain(ctx, err); absent(err) {
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
	if _, err := j.download(ctx, j.file("f"), 0, -1, &why); err != nil {
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
set -- "$1.p"
` + posix.KillScript

// stop ends the command and everything it started, under a context of its own.
func (j *job) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	_, exit, err := j.shell(ctx, stopScript, path.Join(j.run, j.id))
	if (err != nil || exit != 0 || !j.setsid) && j.execution != "" {
		j.api.JSON(ctx, rest.Request{
			Op: "end command", Method: "POST", Path: j.path("kill"), Retry: rest.Never,
			JSON: map[string]any{"kill_process_group": true},
		}, nil)
	}
}

// remove deletes the command's files; the one that says that the command has
// started only if all is set.
func (j *job) remove(ctx context.Context, all bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin/2)
	defer cancel()
	kinds := "[a-km-z]"
	if all {
		kinds = "[a-z]"
	}
	j.shell(ctx, `rm -rf "$1".`+kinds, path.Join(j.run, j.id))
}

// killScript ends the command with the files $1.*, if it runs.
const killScript = `[ -e "$1.x" ] && exit 0
set -- "$1.p"
` + posix.KillScript

// Kill ends the command with that ID, whoever started it.
func (b *box) Kill(ctx context.Context, id string) error {
	if err := posix.CheckID(id); err != nil {
		return err
	}
	_, exit, err := b.shell(ctx, killScript, path.Join(b.run, id))
	if err == nil && exit != 0 && !b.setsid {
		return &sandbox.Error{Code: sandbox.CodeUnsupported, Op: "end command " + id, Msg: "the devbox lacks setsid"}
	}
	return err
}

// shell runs a short script of talkops's own and returns what it prints. Its
// command id makes Runloop run it once.
func (b *box) shell(ctx context.Context, script string, args ...string) (out string, exit int, err error) {
	var answer struct {
		ID     string `json:"execution_id"`
		Status string `json:"status"`
		Exit   *int   `json:"exit_status"`
		Out    string `json:"stdout"`
	}
	err = b.api.JSON(ctx, rest.Request{
		Op: "run script", Method: "POST", Path: b.api.path(b.id, "execute"), Header: once(), Retry: rest.Always,
		JSON: map[string]any{"command": posix.Script(script, args...) + " </dev/null", "command_id": uuid(), "optimistic_timeout": holdFor},
	}, &answer)
	for err == nil && answer.Status != "completed" {
		if answer.ID == "" {
			break
		}
		begin := time.Now()
		err = b.api.JSON(ctx, rest.Request{
			Op: "run script", Method: "POST", Path: b.api.path(b.id, "executions", url.PathEscape(answer.ID), "wait_for_status"), Retry: rest.Always,
			JSON: map[string]any{"statuses": []string{"completed"}, "timeout_seconds": holdFor},
		}, &answer)
		if rest.Status(err) == http.StatusRequestTimeout {
			err = nil
		}
		if err == nil && answer.Status != "completed" && time.Since(begin) < time.Second && rest.Sleep(ctx, time.Second) != nil {
			err = rest.Ended(ctx, "run script")
		}
	}
	if err != nil {
		return "", 0, b.explain(ctx, err)
	}
	if answer.Exit == nil {
		return "", 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "run script", Msg: "Runloop's answer has no status"}
	}
	return answer.Out, *answer.Exit, nil
}

// explain looks whether the devbox still runs when a call fails in a way that may
// mean it does not.
func (b *box) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	switch code := rest.Status(err); {
	case code == 0 && sandbox.CodeOf(err) == sandbox.CodeUnavailable:
	case code == http.StatusBadRequest, code == http.StatusNotFound, code == http.StatusConflict, code == http.StatusGone, code >= 500:
	default:
		return err
	}
	look := b.api.Client
	look.Attempts = 2
	look.Timeout = 10 * time.Second
	m, gerr := (&api{Client: look}).get(ctx, b.id)
	if rest.Status(gerr) == http.StatusNotFound {
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "devbox " + b.id, Msg: "the devbox no longer exists", Err: err}
	}
	if gerr != nil {
		return err
	}
	switch m.Status {
	case "shutdown", "failure":
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "devbox " + b.id, Msg: fmt.Sprintf("Runloop reports %s: %s", m.Status, b.api.reason(m)), Err: err}
	case "suspending", "suspended", "resuming":
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "devbox " + b.id, Msg: "the devbox is " + m.Status, Err: err}
	}
	return err
}

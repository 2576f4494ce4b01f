package e2b

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	inlineMost = 64 << 10         // a longer command travels as a file
	blindMost  = time.Minute      // how long a running command may be out of sight
	stopWithin = 15 * time.Second // for ending a command
	lagWithin  = 3 * time.Second  // how long its last output may take after that
	idleAfter  = 30 * time.Second // a download that stands still is asked for again
	limitGrace = 30 * time.Second // how much later than here a command is ended there
	smallFiles = 1 << 20          // files of a command up to this size wait for a later command

	silentAfter = 2 * time.Minute // an upload that stands still, or is not answered, has failed
)

// A box is one open sandbox.
type box struct {
	api     *api
	id      string
	dir     string
	run     string // a private directory in the sandbox
	setsid  bool   // the sandbox has that program
	env     map[string]string
	expires time.Time

	mu    sync.Mutex
	tools *tools
}

// Info tells what the sandbox is.
func (b *box) Info() sandbox.Info {
	return sandbox.Info{Provider: "e2b", ID: b.id, Dir: b.dir, Token: b.token(), Expires: b.expires}
}

// Close lets go of the sandbox.
func (b *box) Close() error { return nil }

// client returns a client for the daemon in the sandbox.
func (b *box) client() *rest.Client {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tools.client(b.api, b.id)
}

// A job is one running command. It takes what the script in the sandbox sends.
type job struct {
	*box
	unheard  func(since, until time.Time) // see sandbox.Cmd; may be nil
	id       string                       // its files are run/<id>.*
	wd       string
	ctx      context.Context
	out, err *stream

	head   []byte  // of a record, as far as it is there
	body   *stream // of the record that is being read
	left   int64   // bytes of it
	report []string
	failed error // what the caller's writer says
	alive  bool  // something has come
}

// A stream is one output file and how much of it has been delivered.
type stream struct {
	file string
	have int64
	w    io.Writer // nil: nobody wants it
	done bool      // it does not grow
}

func (j *job) file(kind string) string { return path.Join(j.run, j.id+"."+kind) }

// Exec runs cmd to completion.
func (b *box) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	return posix.Exec(ctx, cmd, func(ctx context.Context, cmd sandbox.Cmd) (int, error) {
		j := &job{box: b, id: cmd.ID, wd: cmp.Or(cmd.Dir, b.dir), unheard: cmd.Unheard}
		return j.execute(ctx, cmd)
	})
}

// runScript runs the command "$@" with the private files $1.*, for at most $2
// seconds (0: any time), with the input $3 and the outputs that $4 names: "o",
// "e", both or none. It sends what they hold beyond $5 and $6 bytes while they
// grow, as records: "o N" or "e N" and so many bytes; "+o N" where there is much,
// which shall be fetched up to N; at last "=" with the status, both sizes, whether
// the disk is full, and why the directory could not be entered. A second copy of
// the same command sends the same and starts nothing.
const runScript = `b=$1 limit=$2 input=$3 want=$4 n=$5 m=$6
shift 6
d=${b%/*}
[ -d "$d" ] || mkdir -p -m 700 "$d"
size() {
	if [ -s "$1" ]; then echo $(($(wc -c <"$1"))); elif [ -f "$1" ]; then echo 0; else echo -1; fi
}
grown() {
	k=$(($2-$3))
	if [ $k -gt 65536 ]; then
		echo "+$1 $2"
	else
		echo "$1 $k"
		{ tail -c "+$(($3+1))" "$b.$1" | head -c $k; head -c $k /dev/zero; } | head -c $k
	fi
	i=0
}
pump() {
	i=0
	while :; do
		ended=
		[ -e "$b.x" ] && ended=1
		[ -z "$1" ] || [ -n "$ended" ] || kill -0 "$1" 2>/dev/null || [ -e "$b.x" ] || { echo "?"; exit 0; }
		case $want in *o*)
			s=-1
			[ -s "$b.o" ] && s=$(size "$b.o")
			[ "$s" -gt "$n" ] && grown o "$s" "$n" && n=$s
		esac
		case $want in *e*)
			s=-1
			[ -s "$b.e" ] && s=$(size "$b.e")
			[ "$s" -gt "$m" ] && grown e "$s" "$m" && m=$s
		esac
		[ -n "$ended" ] && break
		i=$((i+1))
		if [ $i -lt 4 ]; then sleep 0.003; elif [ $i -lt 9 ]; then sleep 0.01; elif [ $i -lt 20 ]; then sleep 0.1; else sleep 0.25; fi || sleep 1
	done
}
full=0
if mkdir "$b.l" 2>/dev/null; then
	echo $$ >"$b.l/w"
` + posix.KeepRoom + `	find "$d" -name '*.x' -mmin +10 2>/dev/null </dev/null | while read -r f; do rm -rf "${f%.x}".[a-z]; done >/dev/null 2>&1 &
	o=/dev/null e=/dev/null
	case $want in *o*) o=$b.o; esac
	case $want in *e*) e=$b.e; esac
	pump "" 2>/dev/null </dev/null &
	pump=$!
	dog=
	if [ "$limit" -gt 0 ] && command -v setsid >/dev/null; then
		setsid sh -c 'sleep "$2"; set -- "$1"; '"$0" sh "$b.p" "$limit" >/dev/null 2>&1 </dev/null &
		dog=$!
	fi
	( exec "$@" >"$o" 2>"$e" <"$input" )
	status=$?
	[ -n "$dog" ] && kill -KILL "-$dog" 2>/dev/null
	{ echo "$status" >"$b.x"; } || { [ -e "$b.x" ] || kill "$pump"; }
	[ -s "$b.x" ] || full=1
	wait "$pump"
	rm -f "$b.i" "$b.c"
elif [ -d "$b.l" ]; then
	i=0
	until [ -s "$b.l/w" ] || [ $i -gt 20 ]; do sleep 0.1 || sleep 1; i=$((i+1)); done
	[ -s "$b.l/w" ] || { echo "?"; exit 0; }
	w=$(cat "$b.l/w")
	pump "$w"
	i=0
	until [ -s "$b.x" ] || [ $i -gt 20 ]; do sleep 0.1 || sleep 1; i=$((i+1)); done
	[ -s "$b.x" ] || { echo "?"; exit 0; }
	status=$(cat "$b.x")
else
	echo "#"
	exit 0
fi
why=
[ ! -e "$b.f" ] || read -r why <"$b.f"
echo "= $status $(size "$b.o") $(size "$b.e") $full $why"`

// execute uploads what cmd needs, starts it and follows it to its end.
func (j *job) execute(ctx context.Context, cmd sandbox.Cmd) (exit int, err error) {
	program, err := posix.Prepare(ctx, path.Join(j.run, j.id), j.dir, j.env, cmd, j.setsid, inlineMost, j.upload)
	if err != nil {
		j.remove(ctx)
		return 0, err
	}
	limit := int64(0)
	if end, ok := ctx.Deadline(); ok {
		limit = seconds(time.Until(end) + limitGrace)
	}
	j.out, j.err = &stream{file: j.file("o"), w: cmd.Stdout}, &stream{file: j.file("e"), w: cmd.Stderr}
	wanted := ""
	if cmd.Stdout != nil {
		wanted += "o"
	}
	if cmd.Stderr != nil {
		wanted += "e"
	}
	exit, err = j.follow(ctx, func() process {
		return process{Cmd: "/bin/sh", Args: append([]string{
			"-c", runScript, posix.KillScript, path.Join(j.run, j.id), strconv.FormatInt(limit, 10), program.Input, wanted,
			strconv.FormatInt(j.out.have, 10), strconv.FormatInt(j.err.have, 10),
		}, program.Args...)}
	})
	if err != nil || j.out.have+j.err.have > smallFiles {
		j.remove(ctx)
	}
	return exit, err
}

// follow starts the command, or takes it up after the stream broke, until its
// outcome is known. When ctx ends it is stopped, and its last words count.
func (j *job) follow(ctx context.Context, p func() process) (int, error) {
	reading, halt := context.WithCancel(context.WithoutCancel(ctx))
	defer halt()
	j.ctx = reading
	stopped := make(chan struct{})
	cancelled := context.AfterFunc(ctx, func() {
		defer close(stopped)
		j.stop(ctx)
		time.AfterFunc(lagWithin, halt)
	})
	// What was begun to stop it is seen to its end.
	defer func() {
		if !cancelled() {
			<-stopped
		}
	}()
	contact := rest.NewContact(blindMost, j.unheard)
	for n := 1; ; n++ {
		j.head, j.body, j.left, j.alive = nil, nil, 0, false
		err := j.again(reading, false, func() error {
			_, err := j.box.start(reading, p(), j)
			return err
		})
		if j.failed != nil {
			j.stop(ctx)
			return 0, j.failed
		}
		if j.report != nil {
			return j.outcome(ctx)
		}
		if ctx.Err() != nil {
			return 0, rest.Ended(ctx, "watch command")
		}
		if err == nil {
			err = errCut // its last word is missing
		}
		if j.alive {
			contact.Heard()
			n = 1
		}
		if code := sandbox.CodeOf(err); code != sandbox.CodeUnavailable && code != sandbox.CodeRateLimited {
			if code != sandbox.CodeGone && code != sandbox.CodeUnauthenticated {
				j.stop(ctx)
			}
			return 0, err
		}
		contact.Failed()
		if err = j.explain(reading, err); sandbox.CodeOf(err) == sandbox.CodeGone {
			return 0, err
		}
		if contact.Lost() {
			j.stop(ctx)
			return 0, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "watch command", Msg: "contact was lost; the command's outcome is unknown", Err: err}
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return 0, rest.Ended(ctx, "watch command")
		}
	}
}

// outcome is the status that the report tells, once all output has been delivered.
func (j *job) outcome(ctx context.Context) (int, error) {
	var n [3]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(j.report[i], 10, 64); err != nil {
			return 0, errRecord
		}
	}
	for i, s := range []*stream{j.out, j.err} {
		switch size := n[i+1]; {
		case s.w == nil:
		case size < 0:
			return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "read output", Msg: "the command's output is lost"}
		case size > s.have:
			if err := j.fetch(s, size); err != nil {
				return 0, err
			}
		}
	}
	switch {
	case n[0] < 0 || n[0] > 255:
		return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "watch command", Msg: fmt.Sprintf("the command's status is %d", n[0])}
	case ctx.Err() != nil:
		return 0, rest.Ended(ctx, "watch command")
	case j.report[3] == "1":
		return int(n[0]), posix.FullDisk(int(n[0]))
	case n[0] == posix.NoDir:
		if err := posix.NoDirError(j.wd, strings.Join(j.report[4:], " ")); err != nil {
			return 0, err
		}
	}
	return int(n[0]), nil
}

var (
	// errRecord is the error of a script whose records cannot be read.
	errRecord = &sandbox.Error{Code: sandbox.CodeInternal, Op: "watch command", Msg: "what the sandbox sends cannot be read"}

	errLost = &sandbox.Error{Code: sandbox.CodeInternal, Op: "watch command", Msg: "the command was lost before its outcome was known"}
	errFull = &sandbox.Error{Code: sandbox.CodeNoSpace, Op: "start command", Msg: "the sandbox's disk is full"}
)

// Write takes what the script sends.
func (j *job) Write(p []byte) (int, error) {
	all := len(p)
	j.alive = true
	for len(p) > 0 {
		if j.left > 0 {
			k := min(j.left, int64(len(p)))
			j.left -= k
			if err := j.deliver(j.body, p[:k]); err != nil {
				return 0, err
			}
			p = p[k:]
			continue
		}
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if j.head = append(j.head, line...); len(j.head) > 200 {
			return 0, errRecord
		}
		p = rest
		if whole {
			err := j.record(strings.Fields(string(j.head)))
			if j.head = j.head[:0]; err != nil {
				return 0, err
			}
		}
	}
	return all, nil
}

// record reads the head of a record.
func (j *job) record(words []string) error {
	if len(words) == 0 || j.report != nil {
		return errRecord
	}
	s := j.out
	if strings.HasSuffix(words[0], "e") {
		s = j.err
	}
	switch kind := words[0]; {
	case kind == "?":
		return errLost
	case kind == "#":
		return errFull
	case kind == "=" && len(words) >= 5:
		j.report = words[1:]
	case len(words) == 2 && s.w != nil:
		n, err := strconv.ParseInt(words[1], 10, 64)
		switch {
		case err != nil || n < 0:
			return errRecord
		case kind == "o" || kind == "e":
			j.body, j.left = s, n
		case kind == "+o" || kind == "+e":
			return j.fetch(s, n)
		default:
			return errRecord
		}
	default:
		return errRecord
	}
	return nil
}

func (j *job) deliver(s *stream, p []byte) error {
	n, err := s.w.Write(p)
	s.have += int64(n)
	if err != nil {
		j.failed = rest.WriteFailed(err)
	}
	return j.failed
}

// fetch delivers what the file of s holds up to size.
func (j *job) fetch(s *stream, size int64) error {
	for n := 1; s.have < size; n++ {
		got, err := j.part(j.ctx, s, size)
		s.have += got
		switch {
		case errors.Is(err, rest.ErrWrite):
			j.failed = err
			return err
		case err == nil && got == 0:
			err = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "read output", Msg: fmt.Sprintf("only %d of %d bytes arrived", s.have, size)}
		case got > 0:
			n = 1
		}
		if err == nil || errors.Is(err, context.Canceled) && j.ctx.Err() == nil {
			continue // that the command shall end is no reason to stop reading
		}
		if n >= 4 || sandbox.CodeOf(err) != sandbox.CodeUnavailable && sandbox.CodeOf(err) != sandbox.CodeRateLimited {
			return err
		}
		if rest.Sleep(j.ctx, rest.Backoff(n, err)) != nil {
			return rest.Ended(j.ctx, "read output")
		}
	}
	return nil
}

// stopScript ends the command with the files $1.*. One that has not started yet
// never will.
const stopScript = `[ -d "${1%/*}" ] || mkdir -p -m 700 "${1%/*}"
` + posix.HoldScript + posix.EndScript

// stop ends the command and everything it started, under a context of its own.
func (j *job) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	// Once more does no harm.
	_, exit, err := j.shell(ctx, true, stopScript, path.Join(j.run, j.id))
	if err == nil && exit != 0 {
		// It leads no group where there is no setsid.
		j.shell(ctx, true, `p=$(cat "$1") && [ "$p" -gt 1 ] && kill -KILL "$p"`, j.file("p"))
	}
}

// removeScript deletes the files $1.* but the one that says that the command has started.
const removeScript = `rm -f "$1".[a-km-wyz]
d=${1%/*}
` + posix.GiveRoom

// remove deletes the command's files.
func (j *job) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin/2)
	defer cancel()
	j.shell(ctx, false, removeScript, path.Join(j.run, j.id))
}

// Kill ends the command with that ID, whoever started it.
func (b *box) Kill(ctx context.Context, id string) error {
	if err := posix.CheckID(id); err != nil {
		return err
	}
	_, exit, err := b.shell(ctx, true, posix.EndScript, path.Join(b.run, id))
	if err == nil && exit != 0 && !b.setsid {
		return &sandbox.Error{Code: sandbox.CodeUnsupported, Op: "end command " + id, Msg: "the sandbox lacks setsid"}
	}
	return err
}

// shell runs a short script of talkops's own and returns what it prints. It may be
// repeated only if it changes nothing twice.
func (b *box) shell(ctx context.Context, repeat bool, script string, args ...string) (out string, exit int, err error) {
	err = b.again(ctx, repeat, func() error {
		var text posix.Text
		exit, err = b.start(ctx, process{Cmd: "/bin/sh", Args: []string{"-c", posix.Script(script, args...)}}, &text)
		out = text.String()
		return err
	})
	return out, exit, b.explain(ctx, posix.InOp("run script", err))
}

// again calls f until it succeeds, fails for good, or has been tried often enough:
// what was refused, what was lost if repeat is set, and once what an old token was
// refused for.
func (b *box) again(ctx context.Context, repeat bool, f func() error) error {
	renewed := false
	for n := 1; ; n++ {
		err := f()
		code := sandbox.CodeOf(err)
		switch {
		case err == nil, ctx.Err() != nil, n >= 4:
			return err
		case rest.Status(err) == http.StatusUnauthorized && !renewed:
			if renewed = true; !b.renew(ctx) {
				return err
			}
			continue
		case code != sandbox.CodeRateLimited && !(repeat && code == sandbox.CodeUnavailable):
			return err
		}
		if gone := b.explain(ctx, err); sandbox.CodeOf(gone) == sandbox.CodeGone {
			return gone
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return rest.Ended(ctx, "run script")
		}
	}
}

// renew asks for the sandbox's access token and reports whether there is a new one.
func (b *box) renew(ctx context.Context) bool {
	m, err := b.api.get(ctx, b.id)
	if err != nil {
		return false
	}
	t, err := b.api.tools(m)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || t.Access == b.tools.Access && t.Base == b.tools.Base {
		return false
	}
	b.tools = t
	return true
}

// explain looks whether the sandbox still runs when a call fails in a way that may
// mean it does not.
func (b *box) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	switch code := rest.Status(err); {
	case code == 0 && sandbox.CodeOf(err) == sandbox.CodeUnavailable:
	case code == http.StatusUnauthorized, code == http.StatusNotFound, code == http.StatusConflict, code == http.StatusGone, code >= 500:
	default:
		return err
	}
	look := b.api.Client
	look.Attempts = 2
	look.Timeout = 10 * time.Second
	m, gerr := (&api{Client: look}).get(ctx, b.id)
	switch {
	case destroyed(gerr):
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + b.id, Msg: "the sandbox no longer exists", Err: err}
	case gerr == nil && m.State == "paused":
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + b.id, Msg: "the sandbox is paused", Err: err}
	}
	return err
}

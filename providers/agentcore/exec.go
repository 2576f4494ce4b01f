package agentcore

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	lineMost   = 60 << 10 // a command line; at 128 KiB the terminal hangs
	inlineMost = 24 << 10 // with a longer one the script of a command travels as a file
	shownMost  = 32000    // bytes of output in one report; more is cut into a file first
	pieceMost  = 4 << 20  // bytes of a file in one request
	smallFiles = 1 << 20  // files of a command up to this size wait for the next command

	// The service does about ten things at once for a session. What ends or cleans
	// does not wait for its turn.
	callsMost   = 4
	watchesMost = 4

	callWithin  = 30 * time.Second // for one short script
	moveWithin  = 5 * time.Minute  // for one piece of a file
	watchFor    = 2 * time.Second  // how long a report waits for news, in the session
	startsIn    = 20 * time.Second // how long a task may take to begin
	lostAfter   = 5 * time.Minute  // how long a running command may be out of sight
	stopWithin  = 10 * time.Second // for ending a command
	limitGrace  = 5 * time.Second  // how much later than here a command is ended there
	statusEvery = 15 * time.Second // how often a silent task's status is looked at
)

// A box is one open session.
type box struct {
	api     *api
	id      string
	dir     string
	run     string // a private directory directly below the session's own
	setsid  bool   // the session has that program
	tar     bool   // and tar and gzip
	env     map[string]string
	expires time.Time

	calls, watches chan struct{} // turns
	running        atomic.Int32  // commands

	mu    sync.Mutex
	stale []string // ids of ended commands, whose files the next one deletes
}

// Info tells what the sandbox is. Its id is "interpreter/session".
func (b *box) Info() sandbox.Info {
	return sandbox.Info{Provider: "agentcore", ID: b.api.interpreter + "/" + b.id, Dir: b.dir, Expires: b.expires}
}

// Close lets go of the session.
func (b *box) Close() error { return nil }

// A job is one running command.
type job struct {
	*box
	unheard func(since, until time.Time) // see sandbox.Cmd; may be nil
	id      string                       // its files are run/<id>.*
	task    string                       // the service's id of it; empty while it is not known
	streams [2]stream
	ended   bool
}

// A stream is one output file and how much of it has been delivered.
type stream struct {
	have int64
	end  int64     // what it held when the command had ended; more is of its children
	w    io.Writer // nil: there is no such file
}

func (j *job) base() string { return path.Join(j.run, j.id) }

// Exec runs cmd to completion.
func (b *box) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	return posix.Exec(ctx, cmd, func(ctx context.Context, cmd sandbox.Cmd) (int, error) {
		j := &job{box: b, id: cmd.ID, unheard: cmd.Unheard}
		b.running.Add(1)
		defer b.running.Add(-1)
		return j.execute(ctx, cmd)
	})
}

// runScript is the script that runs a command with the private files $1.*: the script $2, or the
// file $1.c if that is empty, for at most $3 seconds (0: any time), with an input
// of $4 parts $1.i0 … and the outputs that $5 names. $6 is "setsid" or empty; what
// follows are commands whose files are deleted. A second copy of the same command
// ends at once. When the command has ended its status is noted in $1.x, for which
// there is room on a full disk; $1.z is empty if the disk is full.
func runScript() string {
	watch := sandbox.Quote("sleep \"$2\"\n" + posix.KillScript)
	return `b=$1 code=$2 limit=$3 parts=$4 want=$5 own=$6
shift 6
d=${b%/*}
[ -d "$d" ] || mkdir -p -m 700 "$d"
mkdir "$b.l" 2>/dev/null || exit 0
echo $$ >"$b.r"
echo '    ' >"$b.t"
exec >/dev/null 2>&1 </dev/null
for old; do rm -rf "$d/$old".*; done
` + posix.KeepRoom + `in=/dev/null o=/dev/null e=/dev/null
[ "$parts" -gt 0 ] && in=${b}.i0
i=1
while [ $i -lt "$parts" ]; do
	cat "$b.i$i" >>"$in" && rm -f "$b.i$i"
	i=$((i+1))
done
case $want in *o*) o=$b.o ;; esac
case $want in *e*) e=$b.e ;; esac
watch=
if [ "$limit" -gt 0 ] && [ -n "$own" ]; then
	$own sh -c ` + watch + ` sh "$b.p" "$limit" &
	watch=$!
fi
if [ -n "$code" ]; then
	( exec $own sh -c "$code" >"$o" 2>"$e" <"$in" )
else
	( exec $own sh "$b.c" >"$o" 2>"$e" <"$in" )
fi
x=$?
echo end >"$b.z"
printf '%-3d\n' $x 1<>"$b.t" && mv -f "$b.t" "$b.x"
[ -n "$watch" ] && kill -KILL "-$watch"
exit 0`
}

// execute uploads what cmd needs, starts it and follows it to its end.
func (j *job) execute(ctx context.Context, cmd sandbox.Cmd) (exit int, err error) {
	parts := 0
	if cmd.Stdin != nil {
		if parts, err = j.upload(ctx, j.base()+".i", true, cmd.Stdin); err != nil {
			j.remove(ctx)
			return 0, err
		}
	}
	want := ""
	for i, w := range []io.Writer{cmd.Stdout, cmd.Stderr} {
		if w != nil {
			j.streams[i].w = w
			want += "oe"[i : i+1]
		}
	}
	limit := int64(0)
	if deadline, ok := ctx.Deadline(); ok {
		limit = int64((time.Until(deadline) + limitGrace + time.Second - 1) / time.Second)
	}
	own := ""
	if j.setsid {
		own = "setsid"
	}
	program := func(code string) string {
		return line(shellWords(runScript(), j.base(), code, strconv.FormatInt(limit, 10), strconv.Itoa(parts), want, own) + j.takeStale())
	}
	code := posix.Command(j.base(), j.dir, j.env, cmd)
	command := program(code)
	if len(command) > inlineMost {
		if _, err := j.upload(ctx, j.base()+".c", false, strings.NewReader(code)); err != nil {
			j.remove(ctx)
			return 0, err
		}
		command = program("")
	}
	why := ""
	err = j.start(ctx, command)
	if err == nil {
		exit, why, err = j.follow(ctx)
	}
	if err != nil {
		j.stop(ctx)
		if ctx.Err() != nil {
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin/3)
			j.drain(last)
			cancel()
		}
		j.remove(ctx)
		return 0, err
	}
	switch {
	case why == "full":
		err = posix.FullDisk(exit)
	case exit == posix.NoDir:
		err = posix.NoDirError(cmd.Dir, why)
	}
	j.discard(ctx, err != nil || parts > 1 || j.streams[0].have+j.streams[1].have > smallFiles)
	return exit, err
}

// discard deletes the command's files, large ones at once.
func (j *job) discard(ctx context.Context, large bool) {
	if large {
		j.remove(ctx)
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stale = append(j.stale, j.id)
}

// takeStale returns some ended commands whose files are to be deleted, as further
// arguments of the script that runs a command.
func (b *box) takeStale() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.stale), 50)
	old := strings.Join(append([]string{""}, b.stale[:n]...), " ")
	b.stale = b.stale[n:]
	return old
}

// claimScript takes the place of the command $1 if it has not begun within two
// seconds, which then never does.
const claimScript = `i=0
while [ ! -d "$1.l" ] && [ $i -lt 20 ]; do
	sleep 0.1 2>/dev/null || { sleep 1; i=$((i+9)); }
	i=$((i+1))
done
mkdir "$1.l" 2>/dev/null && : >"$1.n"
if [ -e "$1.n" ]; then echo never; elif [ -d "$1.l" ]; then echo begun; fi`

// start sends the command line, once. When the answer is lost, the command either
// has begun or never will.
func (j *job) start(ctx context.Context, line string) error {
	const op = "start command"
	if err := turn(ctx, j.calls, op); err != nil {
		return err
	}
	res, err := j.api.invoke(ctx, call{
		op: op, session: j.box.id, tool: "startCommandExecution", retry: rest.Refused, within: callWithin,
		arguments: map[string]string{"command": line},
	})
	<-j.calls
	if err == nil && res.Error {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "AgentCore: " + j.api.Show(res.text())}
	}
	if err == nil {
		j.task = res.Data.Task
		return nil
	}
	err = j.explain(ctx, err)
	switch sandbox.CodeOf(err) {
	case sandbox.CodeUnavailable:
		return j.begun(ctx, err)
	case sandbox.CodeRateLimited:
		if rest.Status(err) == 0 { // not before the answer had begun
			return j.begun(ctx, err)
		}
	}
	return err
}

// begun returns an error unless the command has begun: cause if it never will.
func (j *job) begun(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	out, _, err := j.shell(ctx, j.calls, rest.Always, claimScript, j.base())
	switch strings.TrimSpace(out) {
	case "begun":
		return nil
	case "never":
		return cause
	}
	if sandbox.CodeOf(err) == sandbox.CodeGone {
		return err
	}
	return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "start command", Msg: "contact was lost; the command's outcome is unknown", Err: cause}
}

// reportScript waits at most $4 tenths of a second for news of the command with
// the files $1.* and prints a line with: its status, or "-", or "none" if it has
// not begun, or "lost" if it has ended without one; the sizes of its outputs (-1:
// no file); how many bytes of each, from $2 and $3 on, come with this report; and
// whether they are here or in files; and why its directory could not be entered,
// or "full" for the disk.
// Then come the bytes as base64, two lines.
const reportScript = `b=$1 n=$2 m=$3 wait=$4 i=0
while :; do
	x=- s=-1 t=-1 p=
	if [ -s "$b.x" ]; then
		read -r x <"$b.x"
	elif [ ! -d "$b.l" ]; then
		x=none
	elif [ -s "$b.r" ] && read -r p <"$b.r" && ! kill -0 "$p" 2>/dev/null; then
		x=lost
		[ -s "$b.x" ] && read -r x <"$b.x"
	fi
	[ -f "$b.o" ] && s=0 && [ -s "$b.o" ] && s=$(($(wc -c <"$b.o")))
	[ -f "$b.e" ] && t=0 && [ -s "$b.e" ] && t=$(($(wc -c <"$b.e")))
	case $x in -|none) ;; *) break ;; esac
	[ "$s" -gt "$n" ] || [ "$t" -gt "$m" ] && break
	[ $i -ge "$wait" ] && break
	if [ $i -lt 1 ]; then sleep 0.02; sleep 0.03; else sleep 0.1; fi 2>/dev/null || sleep 1
	i=$((i+1))
done
k=$((s-n)) j=$((t-m)) where=here why=-
[ $k -gt 0 ] || k=0
[ $j -gt 0 ] || j=0
if [ $((k+j)) -gt ` + shownText + ` ]; then
	where=files
	[ $k -gt ` + pieceText + ` ] && k=` + pieceText + `
	[ $j -gt ` + pieceText + ` ] && j=` + pieceText + `
	rm -f "$b".[oe][0-9]*
	umask 077
	: >"$b.o$n" && : >"$b.e$m"
	if [ $k -gt 0 ]; then tail -c "+$((n+1))" "$b.o" | head -c $k | base64 >"$b.o$n" || where=here; fi
	if [ $j -gt 0 ]; then tail -c "+$((m+1))" "$b.e" | head -c $j | base64 >"$b.e$m" || where=here; fi
	if [ $where = here ]; then
		rm -f "$b".[oe][0-9]*
		[ $k -gt ` + halfText + ` ] && k=` + halfText + `
		[ $j -gt ` + halfText + ` ] && j=` + halfText + `
	fi
fi 2>/dev/null
if [ -s "$b.f" ]; then read -r why <"$b.f"; elif [ -e "$b.z" ] && [ ! -s "$b.z" ]; then why=full; fi
echo "$x $s $t $k $j $where $why"
[ $where = files ] && exit 0
[ $k -gt 0 ] && tail -c "+$((n+1))" "$b.o" | head -c $k | base64 | tr -d '\n'
echo
[ $j -gt 0 ] && tail -c "+$((m+1))" "$b.e" | head -c $j | base64 | tr -d '\n'
echo`

const (
	shownText = "32000"
	halfText  = "16000"
	pieceText = "4194304"
)

// A report is what is known of a running command.
type report struct {
	state string
	exit  int    // if state is "ended"
	why   string // its directory could not be entered, or "full"
	more  bool   // there is output that has not been delivered
}

// report asks for news of the command and delivers new output.
func (j *job) report(ctx context.Context, wait time.Duration) (report, error) {
	const op = "watch command"
	odd := &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "the report cannot be read"}
	offsets := []string{strconv.FormatInt(j.streams[0].have, 10), strconv.FormatInt(j.streams[1].have, 10)}
	out, exit, err := j.shell(ctx, j.watches, rest.Never, reportScript,
		j.base(), offsets[0], offsets[1], strconv.Itoa(int(wait/(100*time.Millisecond))))
	if err != nil {
		return report{}, err
	}
	lines := strings.Split(out, "\n")
	words := strings.Fields(lines[0])
	if exit != 0 || len(words) != 7 {
		return report{}, odd
	}
	var sizes [4]int64
	for i := range sizes {
		if sizes[i], err = strconv.ParseInt(words[i+1], 10, 64); err != nil {
			return report{}, odd
		}
	}
	r := report{state: words[0]}
	if words[6] != "-" {
		r.why = words[6]
	}
	if status, err := strconv.Atoi(words[0]); err == nil {
		r.state, r.exit = "ended", status
		if status < 0 || status > 255 {
			return report{}, odd
		}
	}
	var pieces [2][]byte
	if words[5] == "files" {
		read, err := j.readBack(ctx, j.base()+".o"+offsets[0], j.base()+".e"+offsets[1])
		if err != nil {
			return report{}, err
		}
		copy(pieces[:], read)
	} else {
		for i := range pieces {
			if len(lines) < 3 {
				return report{}, odd
			}
			if pieces[i], err = base64.StdEncoding.DecodeString(lines[i+1]); err != nil {
				return report{}, odd
			}
		}
	}
	for i := range j.streams {
		s := &j.streams[i]
		if s.w == nil {
			continue
		}
		if int64(len(pieces[i])) != sizes[i+2] {
			return report{}, odd
		}
		if r.state == "ended" && sizes[i] < s.have {
			// A command that removed its output, or a full disk, must not look like silence.
			return report{}, &sandbox.Error{Code: sandbox.CodeNoSpace, Op: "read output", Msg: "the command's output is lost"}
		}
		if len(pieces[i]) > 0 {
			n, err := s.w.Write(pieces[i])
			s.have += int64(n)
			if err != nil {
				return report{}, rest.WriteFailed(err)
			}
		}
		if r.state == "ended" && !j.ended {
			s.end = sizes[i]
		}
		if r.state == "ended" {
			r.more = r.more || s.have < s.end
		} else {
			r.more = r.more || s.have < sizes[i]
		}
	}
	j.ended = r.state == "ended"
	return r, nil
}

// follow delivers output until the command has ended and returns its status, and
// why its directory could not be entered.
func (j *job) follow(ctx context.Context) (exit int, why string, err error) {
	const op = "watch command"
	contact, looked := rest.NewContact(lostAfter, j.unheard), time.Now()
	begin := time.Now()
	begun := false
	lost := &sandbox.Error{Code: sandbox.CodeGone, Op: op, Msg: "the command was ended before its outcome was known"}
	for n, failures := 0, 0; ; n++ {
		wait := watchFor
		if j.running.Load() > watchesMost {
			wait = watchFor / 8 // others wait for their turn
		}
		r, err := j.report(ctx, wait)
		switch {
		case err == nil && r.state == "ended" && !r.more:
			return r.exit, r.why, nil
		case err == nil && r.more:
			contact.Heard()
			begin, failures = time.Now(), 0
			continue
		case err == nil && (r.state == "lost" || r.state == "none" && begun):
			return 0, "", lost
		case err == nil && r.state != "none":
			begun = true
			contact.Heard()
			begin, failures = time.Now(), 0
			if time.Since(looked) > statusEvery {
				looked = time.Now()
				if j.over(ctx) {
					// Its last act may have been to note the status.
					if r, err := j.report(ctx, 0); err == nil && r.state != "ended" {
						return 0, "", lost
					}
				}
			}
		case err == nil:
			failures = 0
			if n > 0 && j.over(ctx) {
				// It has ended and its files are gone, or it never was.
				if r, err := j.report(ctx, 0); err == nil && r.state == "none" {
					return 0, "", lost
				}
			}
			if time.Since(begin) > startsIn {
				late := &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "AgentCore did not start the command"}
				if err := j.begun(ctx, late); err != nil {
					return 0, "", err
				}
			}
		case ctx.Err() != nil || errors.Is(err, rest.ErrWrite):
			return 0, "", err
		default:
			failures++
			contact.Failed()
			err = j.explain(ctx, err)
			switch sandbox.CodeOf(err) {
			case sandbox.CodeGone, sandbox.CodeUnauthenticated, sandbox.CodePermissionDenied, sandbox.CodeNoSpace:
				return 0, "", err
			}
			if contact.Lost() {
				return 0, "", &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "contact was lost; the command's outcome is unknown", Err: err}
			}
			if rest.Sleep(ctx, rest.Backoff(failures, err)) != nil {
				return 0, "", rest.Ended(ctx, op)
			}
			continue
		}
		if rest.Sleep(ctx, min(50*time.Millisecond<<min(n, 5), 500*time.Millisecond)) != nil {
			return 0, "", rest.Ended(ctx, op)
		}
	}
}

// over reports whether the service says that the task has ended.
func (j *job) over(ctx context.Context) bool {
	if j.task == "" {
		return false
	}
	res, err := j.tool(ctx, "getTask", map[string]string{"taskId": j.task})
	if err != nil {
		return false
	}
	switch res.Data.Status {
	case "completed", "failed", "canceled":
		return true
	}
	return false
}

// drain delivers what is left of the output.
func (j *job) drain(ctx context.Context) {
	for {
		if r, err := j.report(ctx, 0); err != nil || !r.more {
			return
		}
	}
}

// stopScript ends the command with the files $1.*, also when it is only about to
// begin.
const stopScript = `b=$1
mkdir "$b.l" 2>/dev/null && exit 0
i=0
while [ ! -s "$b.p" ] && [ ! -e "$b.x" ] && [ $i -lt 10 ]; do
	sleep 0.1 2>/dev/null || sleep 1
	i=$((i+1))
done
[ -e "$b.x" ] && exit 0
set -- "$b.p"
` + posix.KillScript

// stop ends the command and everything it started, under a context of its own.
func (j *job) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if j.setsid {
		_, exit, err := j.shell(ctx, nil, rest.Always, stopScript, j.base())
		if err == nil && exit == 0 {
			return
		}
	}
	if j.task != "" {
		j.tool(ctx, "stopTask", map[string]string{"taskId": j.task})
	}
}

// removeScript deletes the files $1.* when the script that runs the command has
// noted its last. The mark that the command must not begin stays where a start may
// still be under way.
const removeScript = `i=0
while [ -s "$1.r" ] && kill -0 "$(cat "$1.r")" && [ $i -lt 20 ]; do
	sleep 0.05 || sleep 1
	i=$((i+1))
done 2>/dev/null
[ -e "$1.x" ] && rm -rf "$1.l"
rm -rf "$1".[!ln]*
d=${1%/*}
` + posix.GiveRoom

// remove deletes the command's files.
func (j *job) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin/2)
	defer cancel()
	j.shell(ctx, nil, rest.Always, removeScript, j.base())
}

// Kill ends the command with that ID, whoever started it.
func (b *box) Kill(ctx context.Context, id string) error {
	if err := posix.CheckID(id); err != nil {
		return err
	}
	// Who waits for the command learns its status.
	_, _, err := b.shell(ctx, nil, rest.Always, posix.EndScript, path.Join(b.run, id))
	return err
}

// tool uses a tool that may be used twice.
func (b *box) tool(ctx context.Context, name string, arguments any) (result, error) {
	return b.api.invoke(ctx, call{op: name, session: b.id, tool: name, arguments: arguments, retry: rest.Always, within: callWithin})
}

// turn waits until the service may be given one thing more to do. A nil gate is
// open.
func turn(ctx context.Context, gate chan struct{}, op string) error {
	if gate == nil {
		return nil
	}
	select {
	case gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return rest.Ended(ctx, op)
	}
}

// shellWords is the command line that runs the shell text script with args as $1
// and so on.
func shellWords(script string, args ...string) string {
	return sandbox.Quote(append([]string{"sh", "-c", script, "sh"}, args...)...)
}

// line is command as one line of plain ASCII, which no terminal changes.
func line(command string) string {
	return `eval "$(echo ` + base64.StdEncoding.EncodeToString([]byte(command)) + ` | base64 -d)"`
}

// shell runs a short script of talkops's own when gate lets it, and returns what
// it prints. What comes back over the terminal is one line between marks that no
// other output can hold.
func (b *box) shell(ctx context.Context, gate chan struct{}, retry rest.Retry, script string, args ...string) (out string, exit int, err error) {
	const op = "run script"
	if err := turn(ctx, gate, op); err != nil {
		return "", 0, err
	}
	if gate != nil {
		defer func() { <-gate }()
	}
	mark := "@" + rest.Random() + "@"
	command := line(`o=$(` + shellWords(script, args...) + ` 2>&1 </dev/null; echo ":$?")
printf '\n` + mark + `%s` + mark + `\n' "$(printf %s "$o" | base64 | tr -d '\n')"`)
	if len(command) > lineMost {
		return "", 0, &sandbox.Error{Code: sandbox.CodeInvalidPath, Op: op, Msg: "a name is too long"}
	}
	res, err := b.api.invoke(ctx, call{
		op: op, session: b.id, tool: "executeCommand", retry: retry, within: callWithin,
		arguments: map[string]string{"command": command},
	})
	if err != nil {
		return "", 0, b.explain(ctx, err)
	}
	odd := &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "AgentCore's answer has no status"}
	for _, text := range []string{res.Data.Stdout, res.text()} {
		parts := strings.Split(text, mark)
		if len(parts) != 3 {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(parts[1]))
		if err != nil {
			return "", 0, odd
		}
		end := strings.LastIndexByte(string(data), ':')
		if end < 0 {
			return "", 0, odd
		}
		exit, err := strconv.Atoi(string(data[end+1:]))
		if err != nil {
			return "", 0, odd
		}
		return string(data[:end]), exit, nil
	}
	return "", 0, odd
}

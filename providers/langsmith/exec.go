package langsmith

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	inlineMost = 16 << 10         // a longer command line travels as a file
	reportMost = 4 << 10          // an output file up to here is part of the report
	textMost   = 1 << 20          // a report is shorter
	stopWithin = 15 * time.Second // for ending a command
	idleAfter  = 30 * time.Second // a download that stands still is asked for again
	quietAfter = time.Minute      // after that without a request the sandbox may be asleep

	silentAfter = 2 * time.Minute // an upload that stands still, or is not answered, has failed
)

// A box is one open sandbox.
type box struct {
	api  *api
	data *rest.Client
	id   string
	dir  string
	run  string // a private directory in the sandbox
	env  map[string]string
	seen atomic.Int64 // when the dataplane answered last, in Unix seconds
}

// Info tells what the sandbox is.
func (b *box) Info() sandbox.Info {
	return sandbox.Info{Provider: "langsmith", ID: b.id, Dir: b.dir}
}

// Close lets go of the sandbox.
func (b *box) Close() error { return nil }

// A job is one running command.
type job struct {
	*box
	unheard func(since, until time.Time) // see sandbox.Cmd; may be nil
	id      string                       // its files are run/<id>.*
	streams []*stream
	sent    atomic.Bool // the service may have it
	started atomic.Bool
	report  report
}

// A stream is one output file and how much of it has been delivered.
type stream struct {
	kind string // "o" or "e", as in the report
	name string
	have int64
	w    io.Writer
}

func newJob(b *box, id string) *job {
	if id == "" {
		id = newID()
	}
	return &job{box: b, id: id}
}

func (j *job) file(kind string) string { return path.Join(j.run, j.id+"."+kind) }

// newID makes a UUIDv7.
func newID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16)
	rand.Read(b[6:])
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return formatID(b)
}

func formatID(b [16]byte) string {
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// wireID is the service's id of the command: a UUID, made from id if that is none.
func wireID(id string) string {
	if ok, _ := regexp.MatchString(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, id); ok {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	b := [16]byte(sum[:16])
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return formatID(b)
}

// Exec runs cmd to completion.
func (b *box) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	cmd.ID = cmp.Or(cmd.ID, newID())
	return posix.Exec(ctx, cmd, func(ctx context.Context, cmd sandbox.Cmd) (int, error) {
		j := newJob(b, cmd.ID)
		j.unheard = cmd.Unheard
		return j.execute(ctx, cmd)
	})
}

// execute uploads what cmd needs, starts it and follows it to its end.
func (j *job) execute(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	line, err := j.line(ctx, cmd)
	if err != nil {
		j.remove(ctx)
		return 0, err
	}
	first := frame{
		"type": "execute", "command_id": wireID(j.id), "command": line, "shell": "/bin/sh",
		"timeout_seconds": limit(ctx), "idle_timeout_seconds": 300, "ttl_seconds": 600,
		"kill_on_disconnect": false, "close_stdin": true,
	}
	type end struct {
		exit int
		err  error
	}
	done := make(chan end, 1)
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		exit, err := j.attend(watched, first)
		done <- end{exit, err}
	}()
	var got end
	var broken error // of the caller's writer
	delay := 40 * time.Millisecond
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for running := true; running; {
		select {
		case got = <-done:
			running = false
		case <-timer.C:
			// What cannot be fetched now is fetched later.
			if j.started.Load() && broken == nil {
				if err := j.drain(watched); errors.Is(err, rest.ErrWrite) {
					broken = err
					cancel()
				}
				delay = min(delay*5/4, 500*time.Millisecond)
			}
			timer.Reset(delay)
		}
	}
	if broken != nil {
		j.stop(ctx)
		j.remove(ctx)
		return 0, broken
	}
	if got.err != nil {
		j.stop(ctx)
		if ctx.Err() != nil || got.exit != 0 {
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin/3)
			j.drain(last)
			cancel()
		}
		j.remove(ctx)
		return got.exit, got.err
	}
	whole := j.report.read()
	if whole.again {
		j.stop(ctx)
	}
	if got.exit == posix.NoDir {
		err = posix.NoDirError(cmd.Dir, whole.noDir)
	}
	if err == nil {
		err = j.finish(ctx, whole, got.exit)
	}
	if err == nil && whole.full {
		err = posix.FullDisk(got.exit)
	}
	if !whole.ended || whole.left || whole.full {
		j.remove(ctx)
	}
	if err != nil {
		return 0, err
	}
	return got.exit, nil
}

// limit is the time after which the service ends the command if nobody else has,
// in seconds; 0 is never.
func limit(ctx context.Context) int {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return int(math.Ceil(max(time.Until(end), 0).Seconds())) + 30
}

// line uploads what cmd needs and returns the shell text that runs it. The shell
// is the leader of the process group and outlives a TERM to it, so that it can
// report how the command ended; nothing of its own output streams is handed on.
func (j *job) line(ctx context.Context, cmd sandbox.Cmd) (string, error) {
	files := path.Join(j.run, j.id)
	script := posix.Command(files, j.dir, j.env, cmd)
	program := "sh -c " + sandbox.Quote(script)
	whole := "" // what was uploaded has arrived
	if len(program) > inlineMost || !utf8.ValidString(script) {
		program = "sh " + sandbox.Quote(j.file("c"))
		size, err := j.upload(ctx, j.file("c"), strings.NewReader(script))
		if err != nil {
			return "", err
		}
		whole = fmt.Sprintf("[ $(wc -c <%s) = %d ] && ", sandbox.Quote(j.file("c")), size)
	}
	input := "/dev/null"
	if cmd.Stdin != nil {
		input = j.file("i")
		size, err := j.upload(ctx, input, cmd.Stdin)
		if err != nil {
			return "", err
		}
		whole += fmt.Sprintf("[ $(wc -c <%s) = %d ] && ", sandbox.Quote(input), size)
	}
	outputs := []string{"/dev/null", "/dev/null"}
	kinds := ""
	for i, w := range []io.Writer{cmd.Stdout, cmd.Stderr} {
		if w != nil {
			kind := []string{"o", "e"}[i]
			s := &stream{kind: kind, name: j.file(kind), w: w}
			outputs[i] = s.name
			kinds += " " + kind
			j.streams = append(j.streams, s)
		}
	}
	return fmt.Sprintf(runScript, sandbox.Quote(files), whole, sandbox.Quote(j.run), program,
		sandbox.Quote(outputs[0]), sandbox.Quote(outputs[1]), sandbox.Quote(input), kinds, reportMost), nil
}

// runScript runs a program and prints the report: for every output file its size
// and, if it is short, what it holds as numbers, whereupon it is deleted.
const runScript = `r=%s
[ -e "$r.g" ] && { echo again; exit 1; }
%s: || { echo part; exit 1; }
d=%s
mkdir -p -m 700 "$d"
echo $$ >"$r.g"
` + posix.KeepRoom + `trap : TERM
( exec %s >%s 2>%s <%s )
s=$?
[ -e "$r.f" ] && echo "f $(cat "$r.f")"
for k in%s; do
	if n=$(wc -c <"$r.$k"); then
		n=$((n))
		echo "$k $n"
		[ $n -le %d ] && od -An -v -tx1 <"$r.$k" && rm -f "$r.$k"
	fi
done
echo end >"$r.x"
[ -s "$r.x" ] || [ ! -e "$r.x" ] || echo full
rm -f "$r".[cfgipx]
echo end
exit $s
`

// A report is what runScript prints, as far as it has arrived.
type report struct {
	text []byte
	gap  bool // something is missing
}

// add takes a chunk that begins at offset. What is there already is passed over.
func (r *report) add(offset int64, data string) {
	have := int64(len(r.text))
	switch {
	case offset > have, have > textMost:
		r.gap = true // something is missing, or it is no report
	case have-offset < int64(len(data)):
		r.text = append(r.text, data[have-offset:]...)
	}
}

// A summary is a report that has been read.
type summary struct {
	ended bool // it is complete
	full  bool // the disk was full when the command ended
	again bool // the script ran a second time
	part  bool // what was uploaded had not arrived
	left  bool // there are output files left
	noDir string
	size  map[string]int64
	short map[string][]byte
}

func (r *report) read() summary {
	s := summary{size: map[string]int64{}, short: map[string][]byte{}}
	if r.gap {
		return s
	}
	kind := ""
	for line := range strings.Lines(string(r.text)) {
		if strings.HasPrefix(line, " ") {
			data, _ := hex.DecodeString(strings.Join(strings.Fields(line), ""))
			s.short[kind] = append(s.short[kind], data...)
			continue
		}
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "o", "e":
			kind = word
			s.size[kind], _ = strconv.ParseInt(rest, 10, 64)
		case "f":
			s.noDir = rest
		case "again":
			s.again = true
		case "part":
			s.part = true
		case "full":
			s.full = true
		case "end":
			s.ended = true
		}
	}
	for kind, size := range s.size {
		if int64(len(s.short[kind])) != size {
			s.left = true
			delete(s.short, kind)
		} else if size == 0 {
			s.short[kind] = nil
		}
	}
	return s
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

// fetch delivers the rest of one output file. A file that is not there, yet or
// any more, is empty.
func (j *job) fetch(ctx context.Context, s *stream) error {
	n, err := j.part(ctx, s.name, s.have, -1, s.w)
	s.have += n
	if rest.Status(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// finish delivers what is left of the output of a command that ended with exit.
func (j *job) finish(ctx context.Context, sum summary, exit int) error {
	lost := &sandbox.Error{Code: sandbox.CodeInternal, Op: "read output", Msg: "the command's output is lost"}
	if sum.again {
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "run command", Msg: "the command was lost on its way; its outcome is unknown"}
	}
	if sum.part {
		return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "run command", Msg: "its input did not arrive; it was not run"}
	}
	for _, s := range j.streams {
		size, known := sum.size[s.kind]
		if data, ok := sum.short[s.kind]; ok && s.have <= int64(len(data)) {
			n, err := s.w.Write(data[s.have:])
			s.have += int64(n)
			if err != nil {
				return rest.WriteFailed(err)
			}
			continue
		}
		if sum.ended && !known {
			return lost
		}
		for n := 1; !known || s.have < size; n++ {
			got, err := j.part(ctx, s.name, s.have, -1, s.w)
			s.have += got
			switch {
			case err == nil && (!known || s.have >= size):
				known, size = true, 0
				continue
			case rest.Status(err) == http.StatusNotFound:
				// A command that was killed may not have come as far as its output.
				if gone := j.explain(ctx, err); sandbox.CodeOf(gone) == sandbox.CodeGone {
					return gone
				}
				if known || j.report.gap || exit <= 128 {
					return lost
				}
				known, size = true, 0
				continue
			case got > 0:
				n = 1
			}
			if err == nil {
				err = lost // shorter than it was
			}
			if errors.Is(err, rest.ErrWrite) || n >= 5 || ctx.Err() != nil || sandbox.CodeOf(err) == sandbox.CodeUnauthenticated {
				return j.explain(ctx, err)
			}
			if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
				return rest.Ended(ctx, "read output")
			}
		}
	}
	return nil
}

// stop ends the command and everything it started, under a context of its own.
func (j *job) stop(ctx context.Context) {
	if !j.sent.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if _, exit, err := j.shell(ctx, false, posix.KillScript, j.file("g")); err == nil && exit == 0 {
		return
	}
	// It may be on its way still.
	for n := 1; n <= 3; n++ {
		found, err := j.kill(ctx, wireID(j.id))
		if found || err != nil && sandbox.CodeOf(err) != sandbox.CodeUnavailable || rest.Sleep(ctx, time.Duration(n)*200*time.Millisecond) != nil {
			return
		}
	}
}

const removeScript = `rm -f "$1".[a-z]
d=${1%/*}
` + posix.GiveRoom

// remove deletes the command's files.
func (j *job) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	j.shell(ctx, false, removeScript, path.Join(j.run, j.id))
}

// Kill ends the command with that ID, whoever started it.
func (b *box) Kill(ctx context.Context, id string) error {
	if err := posix.CheckID(id); err != nil {
		return err
	}
	j := newJob(b, id)
	if _, exit, err := j.shell(ctx, false, posix.KillScript, j.file("g")); err == nil && exit == 0 {
		return nil
	}
	_, err := j.kill(ctx, wireID(id))
	return err
}

// shell runs a short script of talkops's own in one request and returns what it
// prints. A script may be repeated only if it changes nothing twice. A sandbox
// that is asleep is awaited: it has not run the script.
func (b *box) shell(ctx context.Context, repeat bool, script string, args ...string) (out string, exit int, err error) {
	retry := rest.Never
	if repeat {
		retry = rest.Always
	}
	var answer struct {
		Exit   *int   `json:"exit_code"`
		Stdout string `json:"stdout"`
		Stderr string `json:"stderr"`
	}
	begin := time.Now()
	for n := 1; ; n++ {
		err = b.data.JSON(ctx, rest.Request{
			Op: "run script", Method: "POST", Path: "/execute", Retry: retry,
			JSON: map[string]any{"command": posix.Script(script, args...), "timeout": 25, "shell": "/bin/sh"},
		}, &answer)
		if err == nil || !asleep(err) || time.Since(begin) > startWithin {
			break
		}
		// Nothing wakes what has failed or is being deleted.
		if gone := b.explain(ctx, err); sandbox.CodeOf(gone) == sandbox.CodeGone {
			return "", 0, gone
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return "", 0, rest.Ended(ctx, "run script")
		}
	}
	if err != nil {
		return "", 0, b.explain(ctx, err)
	}
	if answer.Exit == nil {
		return "", 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "run script", Msg: "LangSmith's answer has no status"}
	}
	b.seen.Store(time.Now().Unix())
	return answer.Stdout + answer.Stderr, *answer.Exit, nil
}

// awake makes sure, after a quiet time, that the sandbox is not asleep and that
// its private directory is there: a request whose body can be sent only once
// must not be the one that wakes it.
func (b *box) awake(ctx context.Context) error {
	if time.Since(time.Unix(b.seen.Load(), 0)) < quietAfter {
		return nil
	}
	_, _, err := b.shell(ctx, true, `mkdir -p -m 700 "$1"`, b.run)
	return err
}

// explain looks whether the machine still runs when the dataplane fails in a way
// that may mean it does not.
func (b *box) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	switch code := rest.Status(err); {
	case code == 0 && (sandbox.CodeOf(err) == sandbox.CodeUnavailable || sandbox.CodeOf(err) == sandbox.CodeGone):
	case code == http.StatusBadRequest, code == http.StatusNotFound, code == http.StatusGone, code >= 500:
	default:
		return err
	}
	look := b.api.Client
	look.Attempts = 2
	look.Timeout = 10 * time.Second
	m, gerr := (&api{look}).get(ctx, b.id)
	switch {
	case rest.Status(gerr) == http.StatusNotFound:
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + b.id, Msg: "the sandbox no longer exists", Err: err}
	case gerr == nil && (ending(m.Status) || m.Status == "stopped" || m.Status == "failed"):
		return &sandbox.Error{Code: sandbox.CodeGone, Op: "sandbox " + b.id, Msg: "the sandbox is " + m.Status, Err: err}
	}
	return err
}

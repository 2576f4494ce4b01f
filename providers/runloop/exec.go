package runloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/providers/internal/spool"
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
	stale   spool.Stale
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
	output    *spool.Output
}

// A stream is one output of a command as Runloop sends it. While the command is
// followed, one goroutine has it.
type stream struct {
	*spool.Stream
	path  string // of Runloop's stream
	style style  // of its offsets
}

// A style is what Runloop means by the offset of a piece of output, which it does
// not say: the first piece tells.
type style int

const (
	unseen style = iota
	ofBegin
	ofEnd
	unclear
)

func (j *job) files() string { return path.Join(j.run, j.id) }

// Exec runs cmd to completion.
func (b *box) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	return posix.Exec(ctx, cmd, func(ctx context.Context, cmd sandbox.Cmd) (int, error) {
		return (&job{box: b, id: cmd.ID, unheard: cmd.Unheard}).execute(ctx, cmd)
	})
}

// runScript is as package spool says.
const runScript = spool.Begin + spool.Pump + posix.KillScript + spool.Run

// execute uploads what cmd needs, starts it and follows it to its end.
func (j *job) execute(ctx context.Context, cmd sandbox.Cmd) (exit int, err error) {
	program, err := posix.Prepare(ctx, j.files(), j.dir, j.env, cmd, j.setsid, inlineMost, j.upload)
	if err != nil {
		j.remove(ctx, true)
		return 0, err
	}
	limit := int64(0)
	if end, ok := ctx.Deadline(); ok {
		limit = seconds(time.Until(end) + limitGrace)
	}
	j.output = spool.Machine{Download: j.fetch, Absent: absent, Explain: j.explain, Twice: errTwice}.New(j.files(), cmd)
	args := append([]string{j.files(), strconv.FormatInt(limit, 10), program.Input, j.output.Wanted, ""}, program.Args...)
	if err = j.start(ctx, j.stale.Sweep()+posix.Script(runScript, args...)); err == nil {
		exit, err = j.follow(ctx)
	}
	if err == nil {
		err = j.output.Fault(ctx, exit, cmd.Dir)
	}
	if err == nil && cmd.Stdin == nil && j.output.Small() {
		j.stale.Add(j.files())
		return exit, nil
	}
	// A command that may still be on its way must find that it is not to run.
	j.remove(ctx, j.execution != "")
	return exit, err
}

// fetch is download of a file whose size is not known.
func (b *box) fetch(ctx context.Context, name string, offset int64, w io.Writer) (int64, error) {
	return b.download(ctx, name, offset, -1, w)
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
			if errors.Is(err, spool.ErrLost) {
				err, late = nil, true
			}
		case err = <-ended:
			if errors.Is(err, spool.ErrLost) {
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
			err = j.output.Salvage(ctx)
			left = 0
		}
		if err != nil {
			if sandbox.CodeOf(err) != sandbox.CodeGone || errors.Is(err, spool.ErrLost) {
				j.stop(ctx)
			}
			return 0, err
		}
	}
	return j.output.Complete(ctx)
}

func (j *job) streams() []*stream {
	streams := []*stream{{Stream: j.output.Out, path: "stream_stdout_updates"}}
	if j.output.Err != nil {
		streams = append(streams, &stream{Stream: j.output.Err, path: "stream_stderr_updates"})
	}
	return streams
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
		return spool.ErrLost
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
		before, begin := s.At, time.Now()
		err := j.listen(ctx, s)
		if s.Whole {
			return nil
		}
		if errors.Is(err, rest.ErrWrite) || errors.Is(err, errTwice) {
			return err
		}
		if err == nil || s.At > before {
			contact.Heard()
		}
		if s.At > before || err == nil && time.Since(begin) > time.Second {
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
		Op: "read output", Method: "GET", Path: j.path(s.path), Query: url.Values{"offset": {strconv.FormatInt(s.At, 10)}},
		Header: http.Header{"Accept": {"text/event-stream"}},
	}, idleAfter, idleAfter)
	if err != nil {
		return err
	}
	defer flow.Close()
	events := rest.NewEvents(flow)
	for !s.Whole {
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
	from := s.At
	switch {
	case offset == nil:
	case s.style == ofBegin:
		from = *offset
	case s.style == ofEnd:
		from = *offset - length
	}
	return s.Take(piece, from)
}

// stopScript ends the command with the files $1.*. One that has not started yet
// never will.
const stopScript = posix.HoldScript + posix.EndScript

// stop ends the command and everything it started, under a context of its own.
func (j *job) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	_, exit, err := j.shell(ctx, stopScript, j.files())
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
	j.shell(ctx, `rm -rf "$1".`+kinds+"\nd=${1%/*}\n"+posix.GiveRoom, j.files())
}

// Kill ends the command with that ID, whoever started it.
func (b *box) Kill(ctx context.Context, id string) error {
	if err := posix.CheckID(id); err != nil {
		return err
	}
	_, exit, err := b.shell(ctx, posix.EndScript, path.Join(b.run, id))
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

package langsmith

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	dialWithin  = 30 * time.Second
	startBudget = 2 * time.Minute // for a command to be started
	lostAfter   = 5 * time.Minute // how long a running command may be out of sight
	pingEvery   = 30 * time.Second
	frameMost   = 64 << 20
)

// A frame is a message to the service.
type frame map[string]any

// A told is a message from the service. Other fields and types are passed over.
type told struct {
	Type   string `json:"type"`
	Data   string `json:"data"`
	Offset int64  `json:"offset"`
	Exit   *int   `json:"exit_code"`
	Kind   string `json:"error_type"`
	Error  string `json:"error"`
}

// A cutError is the end of a WebSocket before the end of the command.
type cutError struct {
	reload bool // the service restarts and says so
	err    error
}

func (e *cutError) Error() string { return "the connection broke: " + e.err.Error() }

// attend starts the command by the frame first and follows it to its end, over
// as many WebSockets as it takes. It returns the status; with an error the status
// is 0, or 124 if the service says that the time is up.
//
// The id makes starting idempotent: what is sent again finds the command that is
// there. Once it has started, only reconnecting is tried.
func (j *job) attend(ctx context.Context, first frame) (int, error) {
	const op = "run command"
	contact, reloads := rest.NewContact(startBudget, j.unheard), 0
	for n := 1; ; n++ {
		next := first
		if j.started.Load() {
			next = frame{"type": "reconnect", "command_id": first["command_id"], "stdout_offset": len(j.report.text), "stderr_offset": 0}
		}
		exit, started, err := j.connect(ctx, next)
		if started {
			j.started.Store(true)
			contact.Heard()
			contact, n = rest.NewContact(lostAfter, j.unheard), 1
		}
		var cut *cutError
		switch {
		case err == nil:
			return exit, nil
		case ctx.Err() != nil:
			return 0, rest.Ended(ctx, op)
		case !errors.As(err, &cut):
			if exit == sandbox.ExitTimeout {
				return exit, err
			}
			return 0, j.explain(ctx, err)
		case cut.reload && started && reloads < 5:
			reloads++
			continue
		}
		// Dialling would wake a machine that has been stopped; its commands are lost.
		err = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: j.data.Show(cut.Error()), Err: cut.err}
		contact.Failed()
		if !asleep(cut.err) || j.started.Load() {
			if gone := j.explain(ctx, err); sandbox.CodeOf(gone) == sandbox.CodeGone {
				return 0, gone
			}
		}
		if contact.Lost() || n > 5 && !j.started.Load() && !asleep(cut.err) {
			if !j.sent.Load() {
				return 0, err
			}
			return 0, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "contact was lost; the command's outcome is unknown", Err: err}
		}
		if rest.Sleep(ctx, rest.Backoff(n, cut.err)) != nil {
			return 0, rest.Ended(ctx, op)
		}
	}
}

// connect opens a WebSocket with the frame first and reads it to its end.
func (j *job) connect(ctx context.Context, first frame) (exit int, started bool, err error) {
	conn, hangUp, err := j.dial(ctx)
	if err != nil {
		return 0, false, err
	}
	defer hangUp()
	j.sent.Store(true)
	if err := say(ctx, conn, first); err != nil {
		return 0, false, &cutError{err: err}
	}
	for {
		t, err := hear(ctx, conn)
		if err != nil {
			return 0, started, err
		}
		switch t.Type {
		case "started":
			started = true
			j.started.Store(true)
			j.seen.Store(time.Now().Unix())
		case "stdout":
			j.report.add(t.Offset, t.Data)
		case "exit", "error":
			exit, err := j.outcome(t)
			return exit, started, err
		}
	}
}

// outcome is the end of the command that t tells of.
func (b *box) outcome(t told) (int, error) {
	const op = "run command"
	if t.Type == "exit" {
		if t.Exit == nil || *t.Exit < 0 || *t.Exit > 255 {
			return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "LangSmith reports no valid status"}
		}
		return *t.Exit, nil
	}
	message := b.data.Show(t.Error)
	switch t.Kind {
	case "CommandTimeout":
		return sandbox.ExitTimeout, &sandbox.Error{Code: sandbox.CodeTimeout, Op: op, Msg: "the command's time is up"}
	case "CommandNotFound", "SessionExpired":
		return 0, &sandbox.Error{Code: sandbox.CodeGone, Op: op, Msg: "the command was lost before its outcome was known: " + message}
	}
	return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "LangSmith: " + message}
}

// kill has the service end the process group of the command with that id of its
// own. It reports whether there is such a command.
func (b *box) kill(ctx context.Context, id string) (found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, hangUp, err := b.dial(ctx)
	var cut *cutError
	if errors.As(err, &cut) {
		err = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "end command", Msg: b.data.Show(cut.Error()), Err: cut.err}
	}
	if err != nil {
		return false, b.explain(ctx, err)
	}
	defer hangUp()
	if err := say(ctx, conn, frame{"type": "reconnect", "command_id": id, "stdout_offset": 0, "stderr_offset": 0}); err != nil {
		return false, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "end command", Msg: b.data.Show(err.Error())}
	}
	for {
		t, err := hear(ctx, conn)
		switch {
		case err != nil && found:
			return true, nil // it does not wait to be told
		case err != nil:
			return false, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "end command", Msg: b.data.Show(err.Error())}
		case t.Type == "started":
			found = true
			if err := say(ctx, conn, frame{"type": "kill"}); err != nil {
				return true, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "end command", Msg: b.data.Show(err.Error())}
			}
		case t.Type == "exit":
			return true, nil
		case t.Type == "error":
			return found, nil
		}
	}
}

func say(ctx context.Context, conn *websocket.Conn, f frame) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, data)
}

// hear returns the next message. Its error is a cutError.
func hear(ctx context.Context, conn *websocket.Conn) (told, error) {
	_, data, err := conn.Read(ctx)
	if err != nil {
		return told{}, &cutError{reload: websocket.CloseStatus(err) == websocket.StatusGoingAway, err: err}
	}
	var t told
	if err := json.Unmarshal(data, &t); err != nil {
		return told{}, &sandbox.Error{Code: sandbox.CodeInternal, Op: "run command", Msg: "LangSmith sent a frame that is not the JSON expected"}
	}
	return t, nil
}

// dial opens a WebSocket, which hangUp ends. An error that may pass is a cutError.
func (b *box) dial(ctx context.Context) (conn *websocket.Conn, hangUp func(), err error) {
	limited, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, resp, err := websocket.Dial(limited, b.data.Base+"/execute/ws", &websocket.DialOptions{
		HTTPClient: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		HTTPHeader: b.data.Header,
	})
	if err != nil {
		if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols {
			return nil, nil, &cutError{err: plain(err)}
		}
		return nil, nil, b.refused(resp)
	}
	conn.SetReadLimit(frameMost)

	// A connection that is dead without a word is found out.
	pinging, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for rest.Sleep(pinging, pingEvery) == nil {
			answer, cancel := context.WithTimeout(pinging, pingEvery)
			err := conn.Ping(answer)
			cancel()
			if err != nil {
				conn.CloseNow()
				return
			}
		}
	})
	return conn, func() {
		stop()
		conn.CloseNow()
		wg.Wait()
	}, nil
}

// plain is err without the address, which may hold what the caller did not mean
// to show.
func plain(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if !strings.Contains(e.Error(), "://") {
			return e
		}
	}
	return errors.New("the service cannot be reached")
}

// refused is the error of an upgrade that was answered otherwise.
func (b *box) refused(resp *http.Response) error {
	const op = "run command"
	e := &rest.StatusError{Status: resp.StatusCode}
	if s, err := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64); err == nil && s > 0 && s < 1e6 {
		e.RetryAfter = time.Duration(s * float64(time.Second))
	}
	if resp.Body != nil {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		var body struct {
			Detail struct {
				Kind    string `json:"error"`
				Message string `json:"message"`
			} `json:"detail"`
		}
		if json.Unmarshal(data, &body) == nil {
			e.Code, e.Message = b.data.Show(body.Detail.Kind), b.data.Show(body.Detail.Message)
		}
	}
	switch {
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return &sandbox.Error{Code: sandbox.CodeUnauthenticated, Op: op, Msg: fmt.Sprintf("LangSmith: %v", e), Err: e}
	case asleep(e), e.Status == http.StatusTooManyRequests, e.Status >= 500 && e.Status != http.StatusNotImplemented:
		return &cutError{err: e}
	}
	return &sandbox.Error{Code: rest.CodeOf(e), Op: op, Msg: fmt.Sprintf("LangSmith: %v", e), Err: e}
}

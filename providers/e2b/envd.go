package e2b

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	port      = 49983
	pingEvery = 15 * time.Second // how often a silent stream says that it lives
	lostAfter = 40 * time.Second // a stream that says nothing for so long is lost
	bornAfter = 10 * time.Second // and one that does not even begin
	frameMost = 4 << 20
)

// tools is how the daemon in a sandbox is reached: what its token keeps of it.
type tools struct {
	Base    string `json:"base"`
	Access  string `json:"access"`
	Traffic string `json:"traffic,omitempty"`
	Old     bool   `json:"old,omitempty"`   // it must be told the user
	Forms   bool   `json:"forms,omitempty"` // it takes files as forms alone
}

// client returns a client for the daemon of the sandbox id.
func (t *tools) client(a *api, id string) *rest.Client {
	c := a.Client
	c.Base = t.Base
	c.Timeout = 30 * time.Second
	c.Header = http.Header{
		"X-Access-Token":   {t.Access},
		"E2b-Sandbox-Id":   {id},
		"E2b-Sandbox-Port": {strconv.Itoa(port)},
		"User-Agent":       {"talkops"},
	}
	if t.Traffic != "" {
		c.Header["E2b-Traffic-Access-Token"] = []string{t.Traffic}
	}
	if t.Old {
		c.Header["Authorization"] = []string{"Basic dXNlcjo="} // "user:"
	}
	keys := a.Secrets()
	c.Secrets = func() []string { return append(keys, t.Access, t.Traffic) }
	c.Classify = func(e *rest.StatusError) sandbox.Code {
		if e.Status == http.StatusBadGateway {
			return sandbox.CodeUnavailable
		}
		return classify(e)
	}
	return &c
}

// A process is what Start begins.
type process struct {
	Cmd  string            `json:"cmd"`
	Args []string          `json:"args"`
	Envs map[string]string `json:"envs"`
}

// An ended is how a process ended.
type ended struct {
	Exit   int    `json:"exitCode"`
	Exited bool   `json:"exited"`
	Status string `json:"status"`
}

// status is the exit status, 128 + n for the signal n.
func (e ended) status() (int, error) {
	if e.Exited && e.Exit >= 0 && e.Exit <= 255 {
		return e.Exit, nil
	}
	for text, n := range map[string]int{"hangup": 1, "interrupt": 2, "quit": 3, "aborted": 6, "killed": 9, "segmentation fault": 11, "broken pipe": 13, "terminated": 15} {
		if strings.HasPrefix(e.Status, "signal: "+text) {
			return 128 + n, nil
		}
	}
	return 0, &sandbox.Error{Code: sandbox.CodeInternal, Msg: fmt.Sprintf("E2B reports the end %q", rest.Clean(e.Status))}
}

// errCut is the error of a stream that ended before its process did.
var errCut = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "run", Msg: "the connection broke before the outcome was known"}

// start starts a process and copies what it writes to stdout to w, until it has ended.
// If the stream breaks the outcome is unknown, which is an error of code
// unavailable.
func (b *box) start(ctx context.Context, p process, w io.Writer) (int, error) {
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(bornAfter, cancel)
	defer idle.Stop()
	message, err := json.Marshal(map[string]any{"process": p, "stdin": false})
	if err != nil {
		return 0, err
	}
	once := b.client()
	once.Attempts = 1
	resp, err := once.Stream(watched, rest.Request{
		Op: "run", Method: "POST", Path: "/process.Process/Start", Retry: rest.Never,
		Body: bytes.NewReader(envelope(message)), Type: "application/connect+json",
		Header: http.Header{"Connect-Protocol-Version": {"1"}, "Keepalive-Ping-Interval": {strconv.Itoa(int(pingEvery.Seconds()))}},
	})
	if err != nil {
		if ctx.Err() == nil && watched.Err() != nil {
			return 0, errCut
		}
		return 0, err
	}
	defer resp.Body.Close()
	if rest.IsPage(resp) {
		return 0, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "run", Msg: "E2B answered with a web page"}
	}
	for {
		flags, data, err := frame(resp.Body)
		idle.Reset(lostAfter)
		switch {
		case ctx.Err() != nil:
			return 0, rest.Ended(ctx, "run")
		case errors.Is(err, errFrame):
			return 0, err
		case err != nil:
			return 0, errCut
		case flags&2 != 0:
			return 0, over(once, data)
		}
		var message struct {
			Event struct {
				Data *struct {
					Stdout []byte `json:"stdout"`
				} `json:"data"`
				End *ended `json:"end"`
			} `json:"event"`
		}
		if flags != 0 || json.Unmarshal(data, &message) != nil {
			return 0, errFrame
		}
		if e := message.Event.End; e != nil {
			return e.status()
		}
		if d := message.Event.Data; d != nil && len(d.Stdout) > 0 {
			if _, err := w.Write(d.Stdout); err != nil {
				return 0, err
			}
		}
	}
}

// over is the error of a stream that says it ended, without the end of its process.
func over(c *rest.Client, data []byte) error {
	var last struct {
		Error *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(data, &last) != nil || last.Error == nil {
		return errCut
	}
	code := sandbox.CodeInternal
	switch last.Error.Code {
	case "unauthenticated":
		code = sandbox.CodeUnauthenticated
	case "permission_denied":
		code = sandbox.CodePermissionDenied
	case "invalid_argument", "failed_precondition", "out_of_range":
		code = sandbox.CodeInvalidArgument
	case "unavailable", "aborted", "deadline_exceeded", "canceled":
		code = sandbox.CodeUnavailable
	case "unimplemented":
		code = sandbox.CodeUnsupported
	case "resource_exhausted":
		code = sandbox.CodeNoSpace
	}
	return &sandbox.Error{Code: code, Op: "run", Msg: "E2B: " + c.Show(last.Error.Message)}
}

// errFrame is the error of an answer that is no stream of messages.
var errFrame = &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "run", Msg: "E2B answered with something that is no stream of messages"}

// envelope is a message as it is sent: flags, length, bytes.
func envelope(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// frame reads one message.
func frame(r io.Reader) (flags byte, data []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > frameMost || head[0] > 3 {
		return 0, nil, errFrame
	}
	data = make([]byte, n)
	_, err = io.ReadFull(r, data)
	return head[0], data, err
}

package hostfuncs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// pingEvery is how often a WebSocket is shown to be alive.
const pingEvery = 30 * time.Second

// A socket is an open WebSocket.
type socket struct {
	conn   *websocket.Conn
	header http.Header

	mu     sync.Mutex
	code   int
	reason string
}

// isSocket reports whether an address is a WebSocket's.
func isSocket(address string) bool {
	scheme, _, _ := strings.Cut(strings.ToLower(address), "://")
	return scheme == "wss" || scheme == "ws"
}

// dial opens the WebSocket. The rules are those of a request to https, or to http
// on this computer.
func (x *exchange) dial() *abi.Error {
	_, rest, _ := strings.Cut(x.req.URL, "://")
	scheme := "https://"
	if strings.HasPrefix(strings.ToLower(x.req.URL), "ws:") {
		scheme = "http://"
	}
	at, err := x.c.f.grant.check(scheme + rest)
	if err != nil {
		return denied(err)
	}
	req := &http.Request{URL: at, Header: http.Header{}}
	if err := x.c.setHeaders(req, x.req.Headers); err != nil {
		return denied(err)
	}
	protocols := req.Header.Values("Sec-WebSocket-Protocol")
	for key := range req.Header {
		if strings.HasPrefix(key, "Sec-Websocket-") || key == "Connection" || key == "Upgrade" {
			req.Header.Del(key)
		}
	}
	conn, resp, err := websocket.Dial(x.ctx, at.String(), &websocket.DialOptions{
		HTTPClient: x.c.f.client, HTTPHeader: req.Header, Subprotocols: protocols,
	})
	if err != nil {
		if resp != nil {
			e := &abi.Error{Kind: string(sandbox.CodeUnavailable), Status: resp.StatusCode, Sent: true}
			e.Message = fmt.Sprintf("the WebSocket was refused with status %d", resp.StatusCode)
			switch resp.StatusCode {
			case 401, 403:
				e.Kind = string(sandbox.CodeUnauthenticated)
			case 404:
				e.Kind = string(sandbox.CodeNotFound)
			}
			return e
		}
		return x.explain(err)
	}
	if x.timer != nil {
		x.timer.Stop() // it was for the opening
	}
	// A record has to fit a message, in base64.
	conn.SetReadLimit(x.mostRecord())
	x.sent.Store(true)
	x.socket = &socket{conn: conn, header: resp.Header}
	x.c.wg.Go(x.write)
	return nil
}

// open is the WebSocket once it is there, else nil.
func (x *exchange) open() *socket {
	select {
	case <-x.head:
		return x.socket
	default:
		return nil
	}
}

// check holds a message of the module to its form.
func (s *socket) check(block []byte) *abi.Error {
	if _, _, err := readMessage(block); err != nil {
		return &abi.Error{Kind: string(sandbox.CodeInvalidArgument), Message: err.Error()}
	}
	return nil
}

func readMessage(block []byte) (websocket.MessageType, []byte, error) {
	var m abi.Message
	if json.Unmarshal(block, &m) != nil {
		return 0, nil, errors.New("a message is not JSON")
	}
	switch m.Op {
	case "text":
		return websocket.MessageText, []byte(m.Data), nil
	case "binary":
		data, err := base64.StdEncoding.DecodeString(m.B64)
		if err != nil {
			return 0, nil, errors.New("a message's b64 is not base64")
		}
		return websocket.MessageBinary, data, nil
	}
	return 0, nil, fmt.Errorf("a message is text or binary, not %q", abi.Clean(m.Op, 20))
}

// write sends what the module sends, and pings between.
func (x *exchange) write() {
	defer close(x.taken)
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case block, ok := <-x.body:
			if !ok {
				x.socket.conn.Close(websocket.StatusNormalClosure, "")
				return
			}
			typ, data, err := readMessage(block)
			if err == nil {
				err = x.socket.conn.Write(x.ctx, typ, data)
			}
			if err != nil {
				return
			}
		case <-ping.C:
			ctx, cancel := context.WithTimeout(x.ctx, pingEvery/2)
			err := x.socket.conn.Ping(ctx)
			cancel()
			if err != nil && x.ctx.Err() == nil && x.reading.Load() {
				x.socket.conn.CloseNow() // nobody is there
				return
			}
		case <-x.ctx.Done():
			return
		}
	}
}

// messages reads the other side's messages into records.
func (x *exchange) messages(give func(record) bool) error {
	for {
		typ, data, err := x.socket.conn.Read(x.ctx)
		if err != nil {
			return x.socket.end(err)
		}
		m := abi.Message{Op: "text"}
		if typ == websocket.MessageText && utf8.Valid(data) {
			if done, err := x.route(data); err != nil {
				return err
			} else if done {
				continue
			}
			m.Data = x.c.scrub(string(data))
		} else {
			m.Op, m.B64 = "binary", base64.StdEncoding.EncodeToString(data)
		}
		if !give(record{data: encode(m)}) {
			return errUnread
		}
	}
}

// end keeps how the connection was closed. A close in good order is no error.
func (s *socket) end(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := errors.AsType[websocket.CloseError](err); ok {
		s.code, s.reason = int(e.Code), abi.Clean(e.Reason, 200)
		return nil
	}
	if errors.Is(err, websocket.ErrMessageTooBig) {
		return &abi.Error{Kind: string(sandbox.CodeTooLarge), Message: "a message is larger than may be", Sent: true}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the connection was cut")
	}
	return err
}

func (s *socket) closed() (int, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.code, s.reason
}

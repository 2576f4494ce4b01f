//go:build wasip1

package guest

import (
	"context"
	"encoding/base64"
	"runtime"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Socket is an open WebSocket.
type Socket struct{ stream *Stream }

// Dial opens a WebSocket at r's wss:// address. Messages that route says are
// output of the running command are delivered by the host; route may be nil.
func Dial(ctx context.Context, r Request, route *abi.Route) (*Socket, error) {
	s, _, err := Open(ctx, r, Framing{Route: route})
	if err != nil {
		return nil, err
	}
	return &Socket{s}, nil
}

// Send sends a message, as text if it is that.
func (s *Socket) Send(ctx context.Context, message []byte) error {
	m := abi.Message{Op: "text", Data: string(message)}
	if !utf8.Valid(message) {
		m = abi.Message{Op: "binary", B64: base64.StdEncoding.EncodeToString(message)}
	}
	data, err := encode(m)
	if err != nil {
		return err
	}
	for {
		switch with(data, func(at uint64) int32 { return hostStreamSend(s.stream.handle, at) }) {
		case 0:
			return nil
		case abi.StatusEnd:
			return sandbox.Errorf(sandbox.CodeUnavailable, "the connection is closed")
		case abi.StatusFailed:
			return lastError()
		case abi.StatusStop:
			current.stop()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		runtime.Gosched()
	}
}

// Receive returns the next message, or io.EOF when the other side closed in good
// order; Info tells the code.
func (s *Socket) Receive(ctx context.Context) ([]byte, error) {
	data, err := s.stream.Next(ctx)
	if err != nil {
		return nil, err
	}
	var m abi.Message
	if err := decode(data, &m); err != nil {
		return nil, err
	}
	if m.Op == "text" {
		return []byte(m.Data), nil
	}
	return base64.StdEncoding.DecodeString(m.B64)
}

// Info tells how the connection stands.
func (s *Socket) Info() (abi.StreamInfo, error) { return s.stream.Info() }

// Finish closes the connection in good order.
func (s *Socket) Finish() { hostStreamFinish(s.stream.handle) }

// Close lets go of the connection.
func (s *Socket) Close() error { return s.stream.Close() }

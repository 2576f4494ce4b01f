package hostfuncs

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// start begins a request and gives its handle at once.
func (c *Call) start(block []byte) int64 {
	if c.stopping() {
		return abi.StatusStop
	}
	if err := c.full(); err != nil {
		return c.failed(err)
	}
	x, err := c.begin(block, true)
	if err != nil {
		return c.failed(err)
	}
	return int64(c.opened(x))
}

func (c *Call) exchange(handle int32) *exchange {
	x, _ := c.handles[handle].(*exchange)
	if x == nil {
		c.fail(sandbox.CodeInvalidArgument, "%d is no request", handle)
	}
	return x
}

// wait gives the headers of an answer within a time.
func (c *Call) wait(handle, waitMS int32) (int64, []byte) {
	x := c.exchange(handle)
	if x == nil {
		return abi.StatusFailed, nil
	}
	t := time.NewTimer(time.Duration(max(waitMS, 0)) * time.Millisecond)
	defer t.Stop()
	select {
	case <-x.head:
		a, _ := x.answer()
		if a.Error != nil {
			c.last = a.Error
		}
		return 0, encode(a)
	case <-t.C:
		return abi.StatusWait, nil
	case <-c.stop():
		c.told = true
		return abi.StatusStop, nil
	case <-c.ctx.Done():
		return abi.StatusStop, nil
	}
}

// send adds a piece to a request's body.
func (c *Call) send(handle int32, block []byte) int64 {
	x := c.exchange(handle)
	if x == nil {
		return abi.StatusFailed
	}
	socket := x.open()
	switch {
	case x.body == nil || x.finish:
		return c.fail(sandbox.CodeInvalidArgument, "this request's body is not sent in pieces, or is complete")
	case socket != nil:
		if err := socket.check(block); err != nil {
			return c.failed(err)
		}
	case isSocket(x.req.URL):
		return c.fail(sandbox.CodeInvalidArgument, "the connection is not there yet")
	case len(block) == 0 || len(block) > abi.MaxBlock:
		return c.fail(sandbox.CodeInvalidArgument, "a piece has 1 to %d bytes, not %d", abi.MaxBlock, len(block))
	}
	t := time.NewTimer(20 * time.Millisecond)
	defer t.Stop()
	answered := x.head
	if socket != nil {
		answered = nil // it goes on
	}
	select {
	case x.body <- block:
		return 0
	case <-x.taken:
		return abi.StatusEnd
	case <-answered:
		return abi.StatusEnd
	case <-t.C:
		return abi.StatusWait
	case <-c.stop():
		c.told = true
		return abi.StatusStop
	case <-x.ctx.Done():
		return abi.StatusEnd
	}
}

// finish says that a request's body is complete.
func (c *Call) finish(handle int32) int64 {
	x := c.exchange(handle)
	if x == nil {
		return abi.StatusFailed
	}
	if x.body != nil && !x.finish {
		x.finish = true
		close(x.body)
	}
	return 0
}

// A record is one piece of an answer.
type record struct {
	data []byte
	err  *abi.Error // io.EOF is nil data and nil err
}

// next gives the next piece or record of an answer within a time.
func (c *Call) next(handle, waitMS int32) (int64, []byte) {
	x := c.exchange(handle)
	if x == nil {
		return abi.StatusFailed, nil
	}
	if x.records == nil {
		select {
		case <-x.head:
		default:
			return c.fail(sandbox.CodeInvalidArgument, "the answer is not there yet"), nil
		}
		if x.err != nil {
			return c.failed(x.err), nil
		}
		x.records = make(chan record, 4)
		if x.timer != nil && x.req.Response.Frame == "" {
			x.timer.Stop() // it was for the headers; the module bounds the rest
		}
		c.wg.Go(x.pump)
	}
	t := time.NewTimer(time.Duration(max(waitMS, 0)) * time.Millisecond)
	defer t.Stop()
	select {
	case r, ok := <-x.records:
		switch {
		case !ok:
			return abi.StatusEnd, nil
		case r.err != nil:
			return c.failed(r.err), nil
		}
		return 0, r.data
	case <-t.C:
		return abi.StatusWait, nil
	case <-c.stop():
		c.told = true
		return abi.StatusStop, nil
	case <-c.ctx.Done():
		return abi.StatusStop, nil
	}
}

// pump reads the answer into records.
func (x *exchange) pump() {
	defer close(x.records)
	x.reading.Store(true)
	defer x.read.Store(true)
	give := func(r record) bool {
		select {
		case x.records <- r:
			return true
		case <-x.ctx.Done():
			return false
		}
	}
	var err error
	switch x.req.Response.Frame {
	case "envelope":
		err = x.envelopes(give)
	case "", "raw":
		if x.socket != nil {
			err = x.messages(give)
			break
		}
		err = x.raw(give)
	case "lines":
		err = x.lines(func(line []byte) error { return x.deliver(line, give) })
	case "sse":
		err = x.events(give)
	default:
		err = &abi.Error{Kind: string(sandbox.CodeInvalidArgument), Message: fmt.Sprintf("resp.frame %q is not known", abi.Clean(x.req.Response.Frame, 40))}
	}
	if err != nil && !errors.Is(err, errUnread) {
		give(record{err: x.explain(err)})
	}
}

var errUnread = errors.New("nobody reads on")

func (x *exchange) raw(give func(record) bool) error {
	var n int64
	for {
		buf := make([]byte, abi.MaxBlock)
		k, err := x.resp.Body.Read(buf)
		n += int64(k)
		if k > 0 && !give(record{data: buf[:k]}) {
			return errUnread
		}
		if err == io.EOF {
			if x.resp.ContentLength > n && x.req.Method != http.MethodHead {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// lines calls f with each line of the answer.
func (x *exchange) lines(f func([]byte) error) error {
	most := x.req.Response.MaxRecord
	if most <= 0 || most > abi.MaxMessage {
		most = abi.MaxMessage
	}
	r := bufio.NewReaderSize(x.resp.Body, 64<<10)
	for {
		var line []byte
		for {
			part, err := r.ReadSlice('\n')
			line = append(line, part...)
			if int64(len(line)) > most {
				return &abi.Error{Kind: string(sandbox.CodeTooLarge), Message: fmt.Sprintf("a record is larger than %d bytes", most), Sent: true}
			}
			if err == nil {
				break
			}
			if err == bufio.ErrBufferFull {
				continue
			}
			if err == io.EOF && len(line) == 0 {
				return nil
			}
			if err == io.EOF {
				break // a last line without its end
			}
			return err
		}
		if err := f(bytes.TrimRight(line, "\r\n")); err != nil {
			return err
		}
	}
}

// events reads server-sent events.
func (x *exchange) events(give func(record) bool) error {
	var e struct {
		Event string `json:"event,omitempty"`
		ID    string `json:"id,omitempty"`
		Data  string `json:"data"`
	}
	var data []string
	return x.lines(func(line []byte) error {
		if len(line) == 0 {
			if data == nil {
				e.Event = ""
				return nil
			}
			e.Data = strings.Join(data, "\n")
			data = nil
			out := []byte(e.Data)
			if x.req.Response.Route == nil {
				out = encode(e)
			}
			e.Event = ""
			return x.deliver(out, give)
		}
		field, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			e.Event = value
		case "id":
			e.ID = value
		case "data":
			data = append(data, value)
		}
		return nil
	})
}

// deliver gives a record to the module, or emits it where the route says.
func (x *exchange) deliver(line []byte, give func(record) bool) error {
	if len(line) == 0 {
		return nil
	}
	if done, err := x.route(line); done || err != nil {
		return err
	}
	if !give(record{data: append([]byte(x.c.scrub(string(line))), '\n')}) {
		return errUnread
	}
	return nil
}

// route emits a record that is output of the running command, and reports whether
// it was.
func (x *exchange) route(line []byte) (bool, error) {
	route := x.req.Response.Route
	var fields map[string]json.RawMessage
	var kind, text string
	if route == nil || json.Unmarshal(line, &fields) != nil || json.Unmarshal(fields[route.Field], &kind) != nil {
		return false, nil
	}
	stream := int32(0)
	switch kind {
	case route.Stdout:
		stream = 1
	case route.Stderr:
		stream = 2
	}
	if stream == 0 {
		return false, nil
	}
	out := fields[route.Data]
	if n := len(out); n >= 2 && out[0] == '"' && !bytes.ContainsRune(out, '\\') && utf8.Valid(out) {
		out = out[1 : n-1] // it stands for itself
	} else if json.Unmarshal(out, &text) != nil {
		return false, nil
	} else {
		out = []byte(text)
	}
	if route.As == "base64" {
		n, err := base64.StdEncoding.Decode(out, out)
		if out = out[:n]; err != nil {
			return false, &abi.Error{Kind: string(sandbox.CodeInternal), Message: "a record's data is not base64", Sent: true}
		}
	}
	w, _ := x.c.output(stream)
	w.Write(out) // its failure is the operation's, not the stream's
	x.routed[stream-1].Add(int64(len(out)))
	return true, nil
}

// envelopes reads messages that have their flags and length before them.
func (x *exchange) envelopes(give func(record) bool) error {
	const compressed = 1
	most := x.mostRecord()
	for {
		var head [5]byte
		if _, err := io.ReadFull(x.resp.Body, head[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		n := int64(binary.BigEndian.Uint32(head[1:]))
		if n > most {
			return &abi.Error{Kind: string(sandbox.CodeTooLarge), Message: fmt.Sprintf("a record of %d bytes; the limit is %d", n, most), Sent: true}
		}
		data := make([]byte, n)
		if _, err := io.ReadFull(x.resp.Body, data); err != nil {
			return io.ErrUnexpectedEOF
		}
		flags := int(head[0])
		if flags&compressed != 0 {
			z, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				return &abi.Error{Kind: string(sandbox.CodeUnsupported), Message: "a record is compressed, and not by gzip", Sent: true}
			}
			if data, err = io.ReadAll(io.LimitReader(z, most+1)); err != nil {
				return err
			}
			if int64(len(data)) > most {
				return &abi.Error{Kind: string(sandbox.CodeTooLarge), Message: fmt.Sprintf("a record is larger than %d bytes", most), Sent: true}
			}
			flags &^= compressed
		}
		if flags == 0 {
			if done, err := x.route(data); err != nil {
				return err
			} else if done {
				continue
			}
		}
		e := abi.Envelope{Flags: flags}
		if utf8.Valid(data) {
			e.Data = x.c.scrub(string(data))
		} else {
			e.B64 = base64.StdEncoding.EncodeToString(data)
		}
		if !give(record{data: encode(e)}) {
			return errUnread
		}
	}
}

// mostRecord is how large a record may be, so that it fits a message in JSON.
func (x *exchange) mostRecord() int64 {
	if most := x.req.Response.MaxRecord; most > 0 && most < recordMost {
		return most
	}
	return recordMost
}

const recordMost = 700 << 10

// info tells of a stream.
func (c *Call) info(handle int32) abi.StreamInfo {
	x := c.exchange(handle)
	if x == nil {
		return abi.StreamInfo{Error: c.last}
	}
	out := abi.StreamInfo{Stdout: x.routed[0].Load(), Stderr: x.routed[1].Load()}
	select {
	case <-x.head:
	default:
		return out
	}
	switch {
	case x.socket != nil:
		out.Status = http.StatusSwitchingProtocols
		out.Code, out.Reason = x.socket.closed()
	case x.resp != nil:
		out.Status = x.resp.StatusCode
		if x.read.Load() {
			out.Trailers = c.scrubHeaders(x.resp.Trailer)
		}
	}
	return out
}

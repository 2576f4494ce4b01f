package hostfuncs

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// start begins a request and gives its handle at once.
func (c *Call) start(block []byte) int64 {
	if c.stopping() {
		return abi.StatusStop
	}
	x, err := c.begin(block, true)
	if err != nil {
		return c.failed(err)
	}
	return int64(c.add(x))
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
	switch {
	case x == nil:
		return abi.StatusFailed
	case x.body == nil || x.finish:
		return c.fail(sandbox.CodeInvalidArgument, "this request's body is not sent in pieces, or is complete")
	case len(block) == 0 || len(block) > abi.MaxBlock:
		return c.fail(sandbox.CodeInvalidArgument, "a piece has 1 to %d bytes, not %d", abi.MaxBlock, len(block))
	}
	t := time.NewTimer(20 * time.Millisecond)
	defer t.Stop()
	select {
	case x.body <- block:
		return 0
	case <-x.taken:
		return abi.StatusEnd
	case <-x.head:
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
		if x.resp == nil {
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
	case "", "raw":
		err = x.raw(give)
	case "lines":
		err = x.lines(func(line []byte) error { return x.deliver(line, give) })
	case "sse":
		err = x.events(give)
	default:
		err = fmt.Errorf("resp.frame %q is not known", x.req.Response.Frame)
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
	route := x.req.Response.Route
	if route != nil && len(line) > 0 {
		var fields map[string]json.RawMessage
		var kind, text string
		if json.Unmarshal(line, &fields) == nil && json.Unmarshal(fields[route.Field], &kind) == nil {
			stream := int32(0)
			switch kind {
			case route.Stdout:
				stream = 1
			case route.Stderr:
				stream = 2
			}
			if stream > 0 && json.Unmarshal(fields[route.Data], &text) == nil {
				out := []byte(text)
				if route.As == "base64" {
					var err error
					if out, err = base64.StdEncoding.DecodeString(text); err != nil {
						return &abi.Error{Kind: string(sandbox.CodeInternal), Message: "a record's data is not base64", Sent: true}
					}
				}
				w, _ := x.c.output(stream)
				w.Write(out) // its failure is the operation's, not the stream's
				return nil
			}
		}
	}
	if len(line) == 0 {
		return nil
	}
	if !give(record{data: append([]byte(x.c.scrub(string(line))), '\n')}) {
		return errUnread
	}
	return nil
}

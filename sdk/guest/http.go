//go:build wasip1

package guest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"time"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Request is one HTTP request.
type Request struct {
	Method string
	URL    string
	Header map[string][]string

	JSON any       // the body; nil is none
	Body []byte    // or these bytes
	From io.Reader // or a reader the caller handed over, whose bytes stay outside

	Parts     []Part    // or these, one after the other
	Multipart []Part    // or these as multipart/form-data
	Gzip      bool      // the body is compressed by the host
	Sign      *abi.Sign // the host signs the request

	To    io.Writer // takes the body of a 2xx answer, which stays outside if the caller handed it over
	OK    []int     // the statuses whose body it takes if the caller handed it over; none: 2xx
	Again bool      // it may be sent again after a failure

	Timeout time.Duration // 0: the operation's own
	Most    int64         // bytes of an answer that is kept; 0 is 256 KiB
}

// A Part is a piece of a body: Text, else Bytes, else From.
type Part struct {
	Text  string
	Bytes []byte
	From  io.Reader // a reader the caller handed over
	As    string    // of From: "raw" (default), "base64", or "json" for the inside of a JSON string

	Name, Filename string // of multipart
	Header         map[string]string
}

func (p Part) wire() (abi.Part, error) {
	w := abi.Part{Text: p.Text, As: p.As, Name: p.Name, Filename: p.Filename, Headers: p.Header}
	switch s, ok := p.From.(*source); {
	case ok:
		w.Ref = s.handle
	case p.From != nil:
		return w, sandbox.Errorf(sandbox.CodeInvalidArgument, "a part can be read from what the caller handed over alone")
	case p.Text == "":
		w.B64 = base64.StdEncoding.EncodeToString(p.Bytes)
	}
	return w, nil
}

// A Response is its answer.
type Response struct {
	Status int
	Header map[string][]string // names in lower case
	Body   []byte
	N      int64 // bytes that To took
}

// Do sends r and waits for the whole answer. A status of any kind is an answer;
// the error is the network's, or that of a host that is not allowed. If it breaks
// off, the Response beside the error says how much To took.
func Do(ctx context.Context, r Request) (*Response, error) {
	wire, err := r.wire(ctx)
	if err != nil {
		return nil, err
	}
	wire.Response.Mode, wire.Response.Max, wire.Response.OK = "inline", r.Most, r.OK
	to, direct := r.To.(*sink)
	if direct && to.stream > 0 {
		wire.Response.Mode, wire.Response.To = "emit", to.stream
	} else if direct {
		wire.Response.Mode, wire.Response.Ref = "ref", to.handle
	}
	if r.From != nil && wire.BodyRef == 0 || r.To != nil && !direct {
		return r.pass(ctx, wire)
	}
	data, err := encode(wire)
	if err != nil {
		return nil, err
	}
	at := with(data, hostHTTP)
	if at < 0 {
		return nil, lastError()
	}
	var a abi.HTTPResponse
	if err := decode(take(uint64(at)), &a); err != nil {
		return nil, err
	}
	return response(a)
}

// response reads an answer that is whole.
func response(a abi.HTTPResponse) (*Response, error) {
	if a.Error != nil {
		if a.Error.Kind == string(sandbox.CodeCancelled) {
			current.stop()
			return &Response{N: a.N}, context.Canceled
		}
		return &Response{N: a.N}, a.Error.Sandbox()
	}
	out := &Response{Status: a.Status, Header: a.Headers, Body: []byte(a.Body), N: a.N}
	if a.BodyB64 != "" {
		var err error
		if out.Body, err = base64.StdEncoding.DecodeString(a.BodyB64); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// wire is the request as the host takes it.
func (r Request) wire(ctx context.Context) (abi.HTTPRequest, error) {
	w := abi.HTTPRequest{Method: r.Method, URL: r.URL, Headers: map[string][]string{}, Again: r.Again}
	for k, v := range r.Header {
		w.Headers[k] = v
	}
	body := r.Body
	if r.JSON != nil {
		var err error
		if body, err = json.Marshal(r.JSON); err != nil {
			return w, err
		}
		w.Headers["content-type"] = []string{"application/json"}
	}
	if utf8.Valid(body) {
		w.Body = string(body)
	} else {
		w.BodyB64 = base64.StdEncoding.EncodeToString(body)
	}
	if s, ok := r.From.(*source); ok {
		w.BodyRef = s.handle
	}
	w.Sign = r.Sign
	if r.Gzip {
		w.Encode = "gzip"
	}
	for _, list := range []struct {
		from []Part
		to   *[]abi.Part
	}{{r.Parts, &w.Parts}, {r.Multipart, &w.Multipart}} {
		for _, p := range list.from {
			part, err := p.wire()
			if err != nil {
				return w, err
			}
			*list.to = append(*list.to, part)
		}
	}
	timeout := r.Timeout
	if end, ok := ctx.Deadline(); ok && (timeout == 0 || time.Until(end) < timeout) {
		timeout = time.Until(end)
	}
	if timeout > 0 {
		w.TimeoutMS = max(1, timeout.Milliseconds())
	}
	return w, nil
}

// pass is Do where bytes go through the module.
func (r Request) pass(ctx context.Context, wire abi.HTTPRequest) (*Response, error) {
	wire.Response = abi.HTTPMode{Mode: "stream"}
	wire.BodySent = r.From != nil
	s, err := Begin(ctx, wire, r.From)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	head, err := s.Head(ctx)
	if err != nil {
		return nil, err
	}
	out := &Response{Status: head.Status, Header: head.Headers}
	most := r.Most
	if most <= 0 {
		most = 256 << 10
	}
	for {
		piece, err := s.Next(ctx)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if r.To != nil && out.Status/100 == 2 {
			n, err := r.To.Write(piece)
			out.N += int64(n)
			if err != nil {
				return out, err
			}
			continue
		}
		if out.Body = append(out.Body, piece...); int64(len(out.Body)) > most {
			return out, sandbox.Errorf(sandbox.CodeTooLarge, "the answer is larger than %d bytes", most)
		}
	}
}

// A Stream is an answer that is read while it arrives.
type Stream struct {
	handle int32
	done   chan error // of the body, if there is one to send
}

// Framing says how an answer is cut into records, and which of them are output of
// the running command that the host delivers itself.
type Framing struct {
	Frame string // "raw", "lines", "sse" or "envelope"
	Route *abi.Route
}

// Open sends r and returns its answer's status and records.
func Open(ctx context.Context, r Request, f Framing) (*Stream, *Response, error) {
	wire, err := r.wire(ctx)
	if err != nil {
		return nil, nil, err
	}
	wire.Response = abi.HTTPMode{Mode: "stream", Frame: f.Frame, Route: f.Route}
	s, err := Begin(ctx, wire, nil)
	if err != nil {
		return nil, nil, err
	}
	head, err := s.Head(ctx)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, &Response{Status: head.Status, Header: head.Headers}, nil
}

// Start begins r, whose body goes on being sent while the module does other
// things. Its answer is read, or let go, by the Stream's methods.
func Start(ctx context.Context, r Request) (*Stream, error) {
	wire, err := r.wire(ctx)
	if err != nil {
		return nil, err
	}
	wire.BodySent = r.From != nil && wire.BodyRef == 0
	return Begin(ctx, wire, r.From)
}

// Begin starts a request in the host; with BodySent its body is what body gives.
func Begin(ctx context.Context, wire abi.HTTPRequest, body io.Reader) (*Stream, error) {
	data, err := encode(wire)
	if err != nil {
		return nil, err
	}
	if len(data) > abi.MaxMessage {
		return nil, sandbox.Errorf(sandbox.CodeTooLarge, "a request of %d bytes", len(data))
	}
	for {
		handle := with(data, hostHTTPStart)
		switch {
		case handle > 0:
			s := &Stream{handle: handle}
			streams++
			if wire.BodySent {
				s.done = make(chan error, 1)
				go func() { s.done <- s.send(ctx, body) }()
			}
			return s, nil
		case handle == abi.StatusStop:
			if err := stopped(ctx); err != nil {
				return nil, err
			}
		default:
			return nil, lastError()
		}
	}
}

// stopped passes the host's wish to end on, and says whether it concerns ctx: a
// clean-up has a context of its own and goes on.
func stopped(ctx context.Context) error {
	current.stop()
	return ctx.Err()
}

// send passes body on in pieces.
func (s *Stream) send(ctx context.Context, body io.Reader) error {
	buf := make([]byte, abi.MaxBlock)
	for {
		n, err := body.Read(buf)
		for sent := n == 0; !sent; {
			status := with(buf[:n], func(at uint64) int32 { return hostStreamSend(s.handle, at) })
			switch status {
			case 0:
				sent = true
			case abi.StatusEnd:
				return nil // there is an answer already
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
		if err == io.EOF {
			hostStreamFinish(s.handle)
			return nil
		}
		if err != nil {
			hostStreamClose(s.handle) // so that half a body is not taken for a whole
			return err
		}
	}
}

// patience is short while the body is sent beside.
func (s *Stream) patience() int32 {
	if s.done != nil {
		return 5
	}
	return patience(streams - 1)
}

// Head waits for the answer's status and headers.
func (s *Stream) Head(ctx context.Context) (*abi.HTTPResponse, error) {
	for {
		at := hostHTTPWait(s.handle, s.patience())
		switch {
		case at >= 0:
			var a abi.HTTPResponse
			if err := decode(take(uint64(at)), &a); err != nil {
				return nil, err
			}
			if a.Error != nil {
				return nil, a.Error.Sandbox()
			}
			return &a, nil
		case at == abi.StatusStop:
			current.stop()
		case at == abi.StatusFailed:
			select {
			case err := <-s.done:
				if err != nil {
					return nil, err
				}
			default:
			}
			return nil, lastError()
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		runtime.Gosched()
	}
}

// Next returns the next record, or io.EOF.
func (s *Stream) Next(ctx context.Context) ([]byte, error) {
	for {
		at := hostStreamNext(s.handle, s.patience())
		switch {
		case at >= 0:
			return take(uint64(at)), nil
		case at == abi.StatusEnd:
			return nil, io.EOF
		case at == abi.StatusStop:
			current.stop()
		case at == abi.StatusFailed:
			return nil, lastError()
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		runtime.Gosched()
	}
}

// Info tells how the stream stands: what the route delivered, trailers once it is
// read, the code of a WebSocket's close.
func (s *Stream) Info() (abi.StreamInfo, error) {
	at := hostStreamInfo(s.handle)
	if at < 0 {
		return abi.StreamInfo{}, lastError()
	}
	var info abi.StreamInfo
	if err := decode(take(uint64(at)), &info); err != nil {
		return info, err
	}
	if info.Error != nil {
		return info, info.Error.Sandbox()
	}
	return info, nil
}

// Close lets go of the answer.
func (s *Stream) Close() error {
	if s.handle != 0 {
		hostStreamClose(s.handle)
		s.handle = 0
		streams--
	}
	return nil
}

// Sleep waits for d or until ctx is done.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// ReadFile reads a file of a folder that the user granted by name (allow_paths).
func ReadFile(folder, name string) ([]byte, error) {
	r, err := ask[abi.FileResult](hostFS, abi.FileCall{Fn: "open", Root: folder, Path: name})
	if err != nil {
		return nil, err
	}
	if r.Error != nil {
		return nil, r.Error.Sandbox()
	}
	defer hostStreamClose(r.Handle)
	content, err := io.ReadAll(io.LimitReader(&source{r.Handle}, 16<<20))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return content, nil
}

//go:build wasip1

package guesthttp

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/guest"
)

// Install makes every client that names no transport use the host's. It is
// called once, by a variable's initial value.
func Install() bool {
	http.DefaultTransport = Transport{}
	return true
}

// A Transport sends requests through the host.
type Transport struct{}

// small is the largest body that travels with its request.
const small = 128 << 10

// RoundTrip sends req.
func (Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	wire := abi.HTTPRequest{Method: req.Method, URL: req.URL.String(), Headers: req.Header, Redirect: "manual"}
	var body io.Reader
	outside, given := req.Body.(handle)
	pieces, joined := req.Body.(interface{ Parts() []io.Reader })
	switch {
	case given:
		wire.BodyRef, wire.BodySize = outside.Handle(), max(req.ContentLength, 0)
	case joined && slices.ContainsFunc(pieces.Parts(), isHandle):
		for _, r := range pieces.Parts() {
			part := abi.Part{}
			if h, ok := r.(handle); ok {
				part.Ref = h.Handle()
			} else {
				data, err := io.ReadAll(r)
				if err != nil {
					return nil, err
				}
				part.B64 = base64.StdEncoding.EncodeToString(data)
			}
			wire.Parts = append(wire.Parts, part)
		}
	case req.Body == nil || req.Body == http.NoBody:
	case req.ContentLength > 0 && req.ContentLength <= small:
		data, err := io.ReadAll(req.Body)
		req.Body.Close()
		if err != nil {
			return nil, err
		}
		if utf8.Valid(data) {
			wire.Body = string(data)
		} else {
			wire.BodyB64 = base64.StdEncoding.EncodeToString(data)
		}
	default:
		defer req.Body.Close()
		wire.BodySent, wire.BodySize, body = true, max(req.ContentLength, 0), req.Body
	}
	s, err := guest.Begin(ctx, wire, body)
	if err != nil {
		return nil, err
	}
	head, err := s.Head(ctx)
	if err != nil {
		s.Close()
		return nil, err
	}
	resp := &http.Response{
		Status: http.StatusText(head.Status), StatusCode: head.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: &answer{s: s, ctx: ctx}, ContentLength: head.Length, Request: req,
	}
	for k, values := range head.Headers {
		resp.Header[http.CanonicalHeaderKey(k)] = values
	}
	return resp, nil
}

// A handle is a reader or writer that the caller handed over.
type handle interface{ Handle() int32 }

func isHandle(r io.Reader) bool { _, ok := r.(handle); return ok }

// Carry sends req, whose body is small, and has the host deliver the body of an answer
// with one of these statuses to w, n bytes in all, also when it fails. Another
// answer is returned as it is, though not more than its beginning. If w is not one
// that the caller handed over, nothing is sent and carried is false.
func (Transport) Carry(req *http.Request, w io.Writer, ok ...int) (resp *http.Response, n int64, carried bool, err error) {
	if _, given := w.(handle); !given || req.ContentLength > small || req.Body != nil && req.ContentLength <= 0 {
		return nil, 0, false, nil
	}
	ask := guest.Request{Method: req.Method, URL: req.URL.String(), Header: req.Header, To: w, OK: ok}
	if req.Body != nil {
		defer req.Body.Close()
		if ask.Body, err = io.ReadAll(req.Body); err != nil {
			return nil, 0, false, err
		}
	}
	a, err := guest.Do(req.Context(), ask)
	if a != nil {
		n = a.N
	}
	if err != nil {
		return nil, n, true, err
	}
	resp = &http.Response{
		Status: http.StatusText(a.Status), StatusCode: a.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a.Body)), ContentLength: -1, Request: req,
	}
	for k, values := range a.Header {
		resp.Header[http.CanonicalHeaderKey(k)] = values
	}
	if !slices.Contains(ok, a.Status) {
		n = 0 // of an answer that is none
	}
	return resp, n, true, nil
}

// An answer is a body that is read while it arrives.
type answer struct {
	s    *guest.Stream
	ctx  context.Context
	left []byte
}

func (a *answer) Read(p []byte) (int, error) {
	for len(a.left) == 0 {
		var err error
		if a.left, err = a.s.Next(a.ctx); err != nil {
			return 0, err
		}
	}
	n := copy(p, a.left)
	a.left = a.left[n:]
	return n, nil
}

func (a *answer) Close() error { return a.s.Close() }

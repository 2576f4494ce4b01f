//go:build wasip1

package guesthttp

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
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
	switch {
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

package rest

import (
	"context"
	"io"
	"net/http"
)

// A Carrier is a transport that can deliver a body without handing it over: that of
// a module, whose caller's readers and writers are outside.
type Carrier interface {
	// Carry sends req and delivers the body of an answer with one of these statuses
	// to w. It returns how many bytes w took, also when it fails. If it cannot,
	// nothing is sent and carried is false.
	Carry(req *http.Request, w io.Writer, ok ...int) (resp *http.Response, n int64, carried bool, err error)
}

// Carry sends r once and has the transport deliver the body of an answer with the
// status ok to w, if it can. Of another answer the body is only begun.
func (c *Client) Carry(ctx context.Context, r Request, w io.Writer, ok int) (resp *http.Response, n int64, carried bool, err error) {
	carrier, can := http.DefaultTransport.(Carrier)
	if !can || c.Doer != nil {
		return nil, 0, false, nil
	}
	req, err := c.request(ctx, r)
	if err != nil {
		return nil, 0, true, err
	}
	resp, n, carried, err = carrier.Carry(req, w, ok)
	if err == nil && carried {
		err = c.judge(r, resp)
	}
	if err != nil {
		return nil, n, carried, c.failed(ctx, r, err)
	}
	return resp, n, carried, nil
}

// Outside reports whether r is a reader that the transport of a module sends
// without reading it, given as the body of a Request as it is.
func Outside(r io.Reader) bool {
	_, outside := r.(interface{ Handle() int32 })
	return outside
}

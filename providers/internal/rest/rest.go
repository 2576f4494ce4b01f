// Package rest is HTTP as sandbox vendors speak it: JSON calls, streamed bodies,
// errors as sandbox codes, and careful retries.
package rest

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Doer sends one request. *http.Client is one.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// A Client calls one service. The zero value of every field but Base is useful.
// It is safe for concurrent use.
type Client struct {
	Base   string      // the address every Request.Path is added to
	Header http.Header // sent with every request; its values never appear in an error
	Doer   Doer        // nil is a client that follows no redirect to another host
	Vendor string      // begins error messages: "Daytona"

	// Timeout bounds one attempt of a call whose answer is not streamed; 0 is a minute.
	Timeout time.Duration

	// Attempts is the most often a call that may be repeated is sent; 0 is 4.
	Attempts int

	// Secrets, if not nil, returns what beside Header must never appear in an error.
	Secrets func() []string

	// Classify may choose the code for a refused call; empty leaves it to CodeOf.
	Classify func(*StatusError) sandbox.Code
}

// A Retry says when a call may be sent again.
type Retry int

const (
	// Safe repeats GET, HEAD, PUT and DELETE after failures of the network or the
	// service, and nothing else.
	Safe Retry = iota
	// Never sends the call once: a command, or anything that must not happen twice.
	Never
	// Refused repeats only what the service said it did not do (429).
	Refused
	// Always repeats the call whatever its method.
	Always
)

// A Request is one call.
type Request struct {
	Op     string // what is being done, for errors: "create sandbox"
	Method string
	Path   string // added to Client.Base as it is
	Query  url.Values
	Header http.Header

	JSON any // the body; nil is none

	// Body, if not nil, streams a body instead, and Type is its media type. It is
	// sent once.
	Body io.Reader
	Type string

	Retry  Retry
	Accept []int // statuses beside 2xx that are an answer
}

// Default is the Doer of clients that name none.
var Default Doer = Through(nil)

// Through returns a Doer that sends requests by t (nil: http.DefaultTransport)
// and follows no redirect to another host.
func Through(t http.RoundTripper) Doer {
	return &http.Client{Transport: t, CheckRedirect: sameHost}
}

func sameHost(req *http.Request, via []*http.Request) error {
	if len(via) >= 5 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

// JSON sends r and decodes the answer into out, which may be nil.
func (c *Client) JSON(ctx context.Context, r Request, out any) error {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = time.Minute
	}
	return c.repeat(ctx, r, func() error {
		attempt, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		resp, err := c.send(attempt, r)
		if err != nil {
			return c.failed(ctx, r, err)
		}
		defer resp.Body.Close()
		if IsPage(resp) {
			return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: r.Op, Msg: c.Vendor + " answered with a web page"}
		}
		const most = 64 << 20
		body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
		if err != nil {
			return c.failed(ctx, r, err)
		}
		if out == nil {
			return nil
		}
		if len(body) > most {
			return &sandbox.Error{Code: sandbox.CodeTooLarge, Op: r.Op, Msg: c.Vendor + "'s answer is too large"}
		}
		if err := json.Unmarshal(body, out); err != nil {
			return &sandbox.Error{Code: sandbox.CodeInternal, Op: r.Op, Msg: c.Vendor + " answered with something that is not the JSON expected"}
		}
		return nil
	})
}

// Stream sends r and returns the answer, whose body the caller reads and closes.
// Only ctx bounds it.
func (c *Client) Stream(ctx context.Context, r Request) (*http.Response, error) {
	var resp *http.Response
	err := c.repeat(ctx, r, func() error {
		var err error
		resp, err = c.send(ctx, r)
		if err != nil {
			return c.failed(ctx, r, err)
		}
		return nil
	})
	return resp, err
}

// repeat calls f until it succeeds, fails for good, or has been tried often enough.
func (c *Client) repeat(ctx context.Context, r Request, f func() error) error {
	attempts := c.Attempts
	if attempts == 0 {
		attempts = 4
	}
	for n := 1; ; n++ {
		err := f()
		if err == nil || n >= attempts || ctx.Err() != nil || !r.again(err) {
			return err
		}
		if Sleep(ctx, Backoff(n, err)) != nil {
			return Ended(ctx, r.Op)
		}
	}
}

// again reports whether the call that failed with err may be sent once more.
func (r Request) again(err error) bool {
	status, answered := errors.AsType[*StatusError](err)
	if answered && status.Status == http.StatusTooManyRequests {
		return r.Retry != Never && r.Body == nil && (r.Retry != Safe || r.idempotent())
	}
	if r.Retry == Never || r.Retry == Refused || r.Body != nil || r.Retry == Safe && !r.idempotent() {
		return false
	}
	if answered {
		return status.Status >= 500 && status.Status != http.StatusNotImplemented
	}
	return sandbox.CodeOf(err) == sandbox.CodeUnavailable
}

func (r Request) idempotent() bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// send makes one attempt. A status that is no answer is a StatusError.
func (c *Client) send(ctx context.Context, r Request) (*http.Response, error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return nil, err
	}
	doer := c.Doer
	if doer == nil {
		doer = Default
	}
	resp, err := doer.Do(req)
	if err != nil {
		return nil, err
	}
	return resp, c.judge(r, resp)
}

// judge returns the StatusError of an answer that is none, whose body it closes.
func (c *Client) judge(r Request, resp *http.Response) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 || slices.Contains(r.Accept, resp.StatusCode) {
		return nil
	}
	defer resp.Body.Close()
	return c.statusError(resp)
}

// request is r as it is sent.
func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	address := strings.TrimSuffix(c.Base, "/") + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	body, media := r.Body, r.Type
	if r.JSON != nil {
		data, err := json.Marshal(r.JSON)
		if err != nil {
			return nil, &sandbox.Error{Code: sandbox.CodeInternal, Op: r.Op, Msg: "the request cannot be encoded"}
		}
		body, media = bytes.NewReader(data), "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, address, body)
	if err != nil {
		return nil, &sandbox.Error{Code: sandbox.CodeInvalidArgument, Op: r.Op, Msg: "the address of the service is not valid"}
	}
	for _, h := range []http.Header{c.Header, r.Header} {
		for key, values := range h {
			req.Header[key] = values
		}
	}
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	return req, nil
}

// failed gives err its code and says what was being done.
func (c *Client) failed(ctx context.Context, r Request, err error) error {
	if ctx.Err() != nil {
		return Ended(ctx, r.Op)
	}
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		return e
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		code := sandbox.Code("")
		if c.Classify != nil {
			code = c.Classify(status)
		}
		if code == "" {
			code = CodeOf(status)
		}
		return &sandbox.Error{Code: code, Op: r.Op, Msg: strings.TrimSpace(c.Vendor + ": " + status.Error()), Err: status}
	}
	// The address may hold what the caller did not mean to show.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	what := "cannot be reached"
	if errors.Is(err, context.DeadlineExceeded) {
		what = "does not answer"
		err = errors.New("time is up") // not the caller's deadline
	}
	return &sandbox.Error{
		Code: sandbox.CodeUnavailable,
		Op:   r.Op,
		Msg:  fmt.Sprintf("%s %s: %s", c.Vendor, what, c.Show(err.Error())),
	}
}

// Ended is the error of an operation whose ctx is done.
func Ended(ctx context.Context, op string) error {
	code := sandbox.CodeCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = sandbox.CodeTimeout
	}
	return &sandbox.Error{Code: code, Op: op, Err: context.Cause(ctx)}
}

// Sleep waits for d or until ctx is done, whose error it then returns.
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

// Backoff returns how long to wait after the n-th failure (from 1): what the
// service asked for, at most a minute, else a growing time with jitter.
func Backoff(n int, err error) time.Duration {
	if status, ok := errors.AsType[*StatusError](err); ok && status.RetryAfter > 0 {
		return min(status.RetryAfter, time.Minute) + rand.N(50*time.Millisecond)
	}
	d := min(200*time.Millisecond<<min(n-1, 10), 5*time.Second)
	return d/2 + rand.N(d/2)
}

// IsPage reports whether resp is a web page, as something on the way to the
// service sends it, and not an answer of the service.
func IsPage(resp *http.Response) bool {
	return strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "text/html")
}

// Trusted reports whether a key may be sent to address: by https, or to this
// computer.
func Trusted(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && local
}

// Random returns 16 hexadecimal digits nobody has had before.
func Random() string {
	var b [8]byte
	crand.Read(b[:])
	return hex.EncodeToString(b[:])
}

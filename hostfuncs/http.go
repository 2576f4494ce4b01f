package hostfuncs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	inlineDefault = 256 << 10
	inlineMost    = 512 << 10 // so that it fits a message as base64
	refusedMost   = 64 << 10  // of an answer that is not what a sink takes
	mostRedirects = 5
	mostTries     = 4
)

// An exchange is one request and its answer.
type exchange struct {
	c      *Call
	req    abi.HTTPRequest
	ctx    context.Context // ends the request and its answer
	cancel context.CancelFunc
	timer  *time.Timer // of req.TimeoutMS

	body   chan []byte   // of a body that is sent in pieces
	taken  chan struct{} // closed when nobody takes more of it
	finish bool
	socket *socket // of a wss address

	head chan struct{} // closed when resp or err is there
	resp *http.Response
	err  *abi.Error
	sent atomic.Bool

	records chan record // once its answer is read in records
	reading atomic.Bool
	read    atomic.Bool // to its end
	routed  [2]atomic.Int64
}

// begin starts a request in the background.
func (c *Call) begin(block []byte, stream bool) (*exchange, *abi.Error) {
	x := &exchange{c: c, head: make(chan struct{})}
	if err := json.Unmarshal(block, &x.req); err != nil {
		return nil, &abi.Error{Kind: string(sandbox.CodeInvalidArgument), Message: "http: the request is not JSON"}
	}
	if x.req.Method == "" {
		x.req.Method = http.MethodGet
	}
	if stream {
		x.req.Response.Mode = "stream"
	}
	x.ctx, x.cancel = context.WithCancel(c.ctx)
	if x.req.TimeoutMS > 0 {
		x.timer = time.AfterFunc(time.Duration(x.req.TimeoutMS)*time.Millisecond, x.cancel)
	}
	b, err := c.bodyOf(x.req)
	if err != nil {
		x.cancel()
		return nil, err
	}
	socket := isSocket(x.req.URL)
	if x.req.BodySent || socket {
		x.body, x.taken = make(chan []byte, 1), make(chan struct{})
		b.source, b.size = &sentBody{x: x}, -1
		if x.req.BodySize > 0 {
			b.size = x.req.BodySize
		}
	}
	c.wg.Go(func() {
		defer close(x.head)
		began := time.Now()
		if socket {
			x.err = x.dial()
		} else {
			x.resp, x.err = x.run(b)
		}
		x.audit(began)
	})
	return x, nil
}

// A sentBody is what the module sends in pieces.
type sentBody struct {
	x    *exchange
	left []byte
	once atomic.Bool
}

func (b *sentBody) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		select {
		case data, ok := <-b.x.body:
			if !ok {
				return 0, io.EOF
			}
			b.left = data
		case <-b.x.ctx.Done():
			return 0, b.x.ctx.Err()
		}
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

func (b *sentBody) Close() error {
	if b.once.CompareAndSwap(false, true) {
		close(b.x.taken)
	}
	return nil
}

// A loose body is read by the transport for as long as it likes and may stand
// still: it is never waited for.
type loose struct{ io.Reader }

func (loose) Close() error { return nil }

// run makes the request, following redirects within the grant.
func (x *exchange) run(b body) (*http.Response, *abi.Error) {
	again := x.req.Again && b.source == nil
	for try := 1; ; try++ {
		resp, err := x.follow(b)
		retry := again && try < mostTries
		var wait time.Duration
		switch {
		case err != nil:
			retry = retry && err.Kind == string(sandbox.CodeUnavailable)
		case resp.StatusCode == 429 || resp.StatusCode == 502 || resp.StatusCode == 503 || resp.StatusCode == 504:
			wait = retryAfter(resp.Header)
			retry = retry && wait < time.Minute
		default:
			retry = false
		}
		if !retry {
			return resp, err
		}
		if resp != nil {
			resp.Body.Close()
		}
		if wait == 0 {
			wait = 100*time.Millisecond<<try + rand.N(100*time.Millisecond)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-x.ctx.Done():
			t.Stop()
			return nil, x.explain(x.ctx.Err())
		case <-x.c.op.Stop:
			t.Stop()
			return nil, &abi.Error{Kind: string(sandbox.CodeCancelled), Message: "the operation shall end"}
		}
	}
}

func retryAfter(h http.Header) time.Duration {
	s, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if err != nil || s < 0 || s > 1e6 {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

func inlineBody(r abi.HTTPRequest) ([]byte, *abi.Error) {
	if r.BodyB64 == "" {
		return []byte(r.Body), nil
	}
	body, err := base64.StdEncoding.DecodeString(r.BodyB64)
	if err != nil {
		return nil, &abi.Error{Kind: string(sandbox.CodeInvalidArgument), Message: "body_b64 is not base64"}
	}
	return body, nil
}

func denied(err error) *abi.Error {
	return &abi.Error{Kind: string(sandbox.CodePermissionDenied), Message: err.Error()}
}

// follow sends the request once, and again where a redirect leads.
func (x *exchange) follow(b body) (*http.Response, *abi.Error) {
	method, headers, sign := x.req.Method, x.req.Headers, x.req.Sign
	at, err := x.c.f.grant.check(x.req.URL)
	if err != nil {
		return nil, denied(err)
	}
	for hop := 0; ; hop++ {
		resp, failure := x.once(method, at, headers, sign, b)
		if failure != nil {
			return nil, failure
		}
		where := resp.Header.Get("Location")
		redirected := where != "" && slices.Contains([]int{301, 302, 303, 307, 308}, resp.StatusCode)
		if !redirected || x.req.Redirect == "manual" {
			return resp, nil
		}
		resp.Body.Close()
		if x.req.Redirect == "error" || hop >= mostRedirects {
			return nil, &abi.Error{Kind: string(sandbox.CodeUnavailable), Message: "the answer is a redirect", Sent: true}
		}
		target, err := at.Parse(where)
		if err != nil {
			return nil, &abi.Error{Kind: string(sandbox.CodeUnavailable), Message: "the answer redirects to what is no address", Sent: true}
		}
		next, err := x.c.f.grant.check(target.String())
		if err == nil && at.Scheme == "https" && next.Scheme != "https" {
			err = errors.New("a redirect from https to http is not followed")
		}
		if err != nil {
			e := denied(fmt.Errorf("a redirect: %w", err))
			e.Sent = true
			return nil, e
		}
		if resp.StatusCode == 303 || method == http.MethodPost && resp.StatusCode < 303 {
			method, b = http.MethodGet, body{}
			headers = maps.Clone(headers)
			maps.DeleteFunc(headers, func(k string, _ []string) bool { return strings.HasPrefix(strings.ToLower(k), "content-") })
		} else if b.source != nil {
			return nil, &abi.Error{Kind: string(sandbox.CodeUnavailable), Message: "a redirect asks for a streamed body again", Sent: true}
		}
		if next.Host != at.Host || next.Scheme != at.Scheme {
			headers, sign = nil, nil
		}
		at = next
	}
}

// once sends one request.
func (x *exchange) once(method string, at *url.URL, headers map[string][]string, sign *abi.Sign, b body) (*http.Response, *abi.Error) {
	ctx := httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, &abi.Error{Kind: string(sandbox.CodeInvalidArgument), Message: "the request is not valid"}
	}
	switch {
	case b.source != nil:
		if sent, ok := b.source.(*sentBody); ok {
			req.Body = sent
		} else {
			req.Body = loose{b.source}
		}
		req.ContentLength = b.size
	case len(b.data) > 0:
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(b.data)), int64(len(b.data))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.data)), nil }
	}
	if err := x.c.setHeaders(req, headers); err != nil {
		return nil, denied(err)
	}
	if b.typ != "" {
		req.Header.Set("Content-Type", b.typ)
	}
	if x.req.Encode != "" && req.Body != nil {
		req.Header.Set("Content-Encoding", x.req.Encode)
	}
	if sign != nil {
		if err := x.c.sign(ctx, req, *sign, b.data, b.source != nil); err != nil {
			return nil, denied(err)
		}
	}
	type answer struct {
		resp *http.Response
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		resp, err := x.c.f.client.Do(req)
		done <- answer{resp, err}
	}()
	var got answer
	select {
	case got = <-done:
	case <-x.ctx.Done():
		// The transport waits for its body, which may be a reader that stands
		// still: then it is left behind.
		patience := time.NewTimer(time.Second)
		defer patience.Stop()
		select {
		case got = <-done:
		case <-patience.C:
			go func() {
				if late := <-done; late.resp != nil {
					late.resp.Body.Close()
				}
			}()
			return nil, x.explain(x.ctx.Err())
		}
	}
	if got.err != nil {
		return nil, x.explain(got.err)
	}
	return got.resp, nil
}

// setHeaders gives a request the module's headers, with secrets in their places.
func (c *Call) setHeaders(req *http.Request, headers map[string][]string) error {
	for key, values := range headers {
		if strings.EqualFold(key, "host") {
			return errors.New("the header Host is not a module's to set")
		}
		for _, v := range values {
			v, err := c.fill(v, req.URL)
			if err != nil {
				return err
			}
			req.Header.Add(key, v)
		}
	}
	return nil
}

// explain is a failure of the network as the module learns it.
func (x *exchange) explain(err error) *abi.Error {
	if e, ok := errors.AsType[*abi.Error](err); ok {
		return e
	}
	e := &abi.Error{Kind: string(sandbox.CodeUnavailable), Sent: x.sent.Load()}
	if x.c.ctx.Err() != nil {
		e.Kind = string(sandbox.CodeCancelled)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the address may hold what is not to be shown
	}
	e.Message = x.c.scrub(abi.Clean(err.Error(), 500))
	if x.ctx.Err() != nil && x.c.ctx.Err() == nil {
		e.Message = "no answer in time"
	}
	return e
}

// audit writes a line about a request: never a header, query or body.
func (x *exchange) audit(began time.Time) {
	r := Record{Event: "http", Method: abi.Clean(x.req.Method, 20), URL: "an invalid address"}
	switch {
	case x.socket != nil:
		r.Status = http.StatusSwitchingProtocols
	case x.resp != nil:
		r.Status = x.resp.StatusCode
	case x.err != nil:
		r.Error = x.err.Error()
	}
	if u, err := url.Parse(x.req.URL); err == nil {
		r.URL = abi.Clean(u.Scheme+"://"+u.Host+u.EscapedPath(), 300)
	}
	x.c.record(r, began)
}

// Close ends the exchange.
func (x *exchange) Close() error {
	x.cancel()
	if x.timer != nil {
		x.timer.Stop()
	}
	<-x.head
	if x.socket != nil {
		x.socket.conn.CloseNow()
	} else if x.resp != nil {
		x.resp.Body.Close()
	}
	return nil
}

// placeholder matches what stands for a secret in a header.
func placeholder() *regexp.Regexp {
	return regexp.MustCompile(`\{\{(secret|basic):([^{}:]+)(?::([^{}:]+))?\}\}`)
}

// fill puts secrets into a header value that goes to u.
func (c *Call) fill(value string, u *url.URL) (string, error) {
	if !strings.Contains(value, "{{") {
		return value, nil
	}
	var failure error
	get := func(key string) string {
		s, ok := c.op.Secrets[key]
		switch {
		case !ok:
			failure = fmt.Errorf("the module sends the secret %q, which it was not given", key)
		case !s.bound(u):
			failure = fmt.Errorf("the secret %q is not for %s", key, u.Hostname())
		}
		return s.Value
	}
	out := placeholder().ReplaceAllStringFunc(value, func(m string) string {
		parts := placeholder().FindStringSubmatch(m)
		if parts[1] == "secret" && parts[3] == "" {
			return get(parts[2])
		}
		if parts[1] == "basic" && parts[3] != "" {
			return "Basic " + base64.StdEncoding.EncodeToString([]byte(get(parts[2])+":"+get(parts[3])))
		}
		return m
	})
	return out, failure
}

// scrub hides secrets in text for the module or a log.
func (c *Call) scrub(s string) string { return c.hide().Replace(s) }

// hider puts a word in the place of every secret, the longest first. In base64 a
// secret looks otherwise after other bytes, as in basic authentication: what no
// neighbour can change is found at each of the three places.
func hider(secrets map[string]Secret) *strings.Replacer {
	var forms []string
	for _, secret := range secrets {
		v := secret.Value
		if len(v) < 6 {
			continue
		}
		inJSON, _ := json.Marshal(v)
		forms = append(forms, v, base64.StdEncoding.EncodeToString([]byte(v)), url.QueryEscape(v), url.PathEscape(v), string(inJSON[1:len(inJSON)-1]))
		for before := range 3 {
			from, to := (before*8+5)/6, (before+len(v))*8/6
			if to-from < 6 {
				continue
			}
			for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				forms = append(forms, e.EncodeToString(append(make([]byte, before), v...))[from:to])
			}
		}
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var pairs []string
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, "[secret]")
	}
	return strings.NewReplacer(pairs...)
}

func (c *Call) scrubHeaders(h http.Header) map[string][]string {
	out := make(map[string][]string, len(h))
	for k, values := range h {
		for _, v := range values {
			out[strings.ToLower(k)] = append(out[strings.ToLower(k)], c.scrub(strings.ToValidUTF8(v, "\uFFFD")))
		}
	}
	return out
}

// http makes one request and waits for its answer.
func (c *Call) http(block []byte) abi.HTTPResponse {
	if c.stopping() {
		return abi.HTTPResponse{Error: &abi.Error{Kind: string(sandbox.CodeCancelled), Message: "the operation shall end"}}
	}
	err := c.full() // its answer may stay open
	var x *exchange
	if err == nil {
		x, err = c.begin(block, false)
	}
	if err != nil {
		c.last = err
		return abi.HTTPResponse{Error: err}
	}
	var answer abi.HTTPResponse
	done := make(chan struct{})
	keep := false
	c.wg.Go(func() {
		defer close(done)
		<-x.head
		answer, keep = x.answer()
	})
	select {
	case <-done:
	case <-c.stop():
		c.told = true
		x.cancel()
		<-done
		if answer.Error != nil {
			answer.Error.Kind = string(sandbox.CodeCancelled)
		}
	}
	if keep {
		answer.Stream = c.opened(x)
	} else {
		x.Close()
	}
	if answer.Error != nil {
		c.last = answer.Error
	}
	return answer
}

// answer is what the module gets once the headers are there. Keep says that the
// body is still to be read.
func (x *exchange) answer() (a abi.HTTPResponse, keep bool) {
	if x.err != nil {
		return abi.HTTPResponse{Error: x.err}, false
	}
	if x.socket != nil {
		return abi.HTTPResponse{Status: http.StatusSwitchingProtocols, Headers: x.c.scrubHeaders(x.socket.header), Length: -1}, true
	}
	a = abi.HTTPResponse{Status: x.resp.StatusCode, Headers: x.c.scrubHeaders(x.resp.Header), Length: x.resp.ContentLength}
	mode := x.req.Response
	wanted := x.resp.StatusCode >= 200 && x.resp.StatusCode < 300
	if len(mode.OK) > 0 {
		wanted = slices.Contains(mode.OK, x.resp.StatusCode)
	}
	fail := func(code sandbox.Code, format string, args ...any) (abi.HTTPResponse, bool) {
		a.Error = &abi.Error{Kind: string(code), Message: fmt.Sprintf(format, args...), Sent: true}
		return a, false
	}
	if mode.Mode == "stream" {
		return a, true
	}
	var sink io.Writer
	switch mode.Mode {
	case "", "inline":
	case "ref":
		w, ok := x.c.handles[mode.Ref].(io.Writer)
		if !ok {
			return fail(sandbox.CodeInvalidArgument, "%d is no handle to write to", mode.Ref)
		}
		sink = w
	case "emit":
		w, err := x.c.output(mode.To)
		if err != nil {
			a.Error = err
			return a, false
		}
		sink = w
	default:
		return fail(sandbox.CodeInvalidArgument, "resp.mode %q is not known", mode.Mode)
	}
	if sink != nil && wanted {
		n, err := io.Copy(sink, x.resp.Body)
		a.N = n
		if err == nil && x.resp.ContentLength > n && x.req.Method != http.MethodHead {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fail(sandbox.CodeUnavailable, "the answer broke off after %d bytes: %s", n, x.explain(err).Message)
		}
		return a, false
	}
	most := cmp.Or(x.c.f.grant.InlineBytes, inlineMost)
	most = min(cmp.Or(max(mode.Max, 0), inlineDefault), most, inlineMost)
	if sink != nil {
		most = refusedMost
	}
	data, err := io.ReadAll(io.LimitReader(x.resp.Body, most+1))
	if err != nil {
		return fail(sandbox.CodeUnavailable, "the answer broke off: %s", x.explain(err).Message)
	}
	if int64(len(data)) > most {
		if sink == nil {
			return fail(sandbox.CodeTooLarge, "the answer is larger than %d bytes", most)
		}
		data = data[:most]
	}
	a.N = int64(len(data))
	if utf8.Valid(data) {
		a.Body = x.c.scrub(string(data))
	} else {
		a.BodyB64 = base64.StdEncoding.EncodeToString([]byte(x.c.scrub(string(data))))
	}
	return a, false
}

package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxTries  = 5                // of one HTTP request
	maxWait   = 60 * time.Second // a vendor asking for more is not waited for
	idleLimit = 10 * time.Minute // without one byte in a stream

	answerLimit = 64 << 20 // bytes of one answer on the wire, more than any model gives
)

// shared keeps connections between answers.
var shared = http.DefaultTransport.(*http.Transport).Clone()

// A courier carries the HTTP requests of one answer: it waits and tries again as
// the vendor asks, and turns refusals into an Error before any library sees them.
type courier struct {
	conf Config
	emit func(Delta)
	fail *Error // the last refusal; survives what a library makes of it
}

func (c *courier) client() *http.Client {
	return &http.Client{
		Transport: c,
		// A redirect would carry the key to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// RoundTrip implements http.RoundTripper.
func (c *courier) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	req = req.Clone(ctx)
	if c.conf.UserAgent != "" {
		req.Header.Set("User-Agent", c.conf.UserAgent)
	}
	if c.conf.wire() == wireOpenAI && c.conf.Provider != "openai" {
		// The library takes these from the environment, for whichever server.
		req.Header.Del("OpenAI-Organization")
		req.Header.Del("OpenAI-Project")
		if c.conf.APIKey == "" {
			req.Header.Del("Authorization")
		}
	}
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	for try := 1; ; try++ {
		if body != nil {
			req.Body = io.NopCloser(bytes.NewReader(body))
		}
		resp, err := shared.RoundTrip(req)
		if err := ctx.Err(); err != nil {
			if resp != nil {
				_ = resp.Body.Close()
			}
			return nil, err
		}
		if err == nil && resp.StatusCode/100 == 2 {
			return c.accept(resp)
		}
		wait, told := c.backoff(try), false
		if err != nil {
			c.fail = &Error{Provider: c.conf.Provider, Kind: ErrUnavailable, Msg: c.conf.clean(err.Error()), final: true}
		} else {
			text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
			_ = resp.Body.Close()
			c.fail = c.conf.refusal(resp.StatusCode, text, resp.Header)
			if d, ok := retryAfter(resp.Header, time.Now()); ok {
				wait, told = d, true
			}
			if !worthRetrying(resp, text) {
				return nil, c.fail
			}
		}
		if try == maxTries || wait > maxWait {
			if told && wait > maxWait {
				c.fail.Msg = strings.TrimSpace(fmt.Sprintf("%s (it asks to wait %s)", c.fail.Msg, wait.Round(time.Second)))
			}
			return nil, c.fail
		}
		c.emit(Delta{Kind: DeltaRetry, Text: c.fail.Error(), Wait: wait})
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// accept hands on a stream, watched for silence.
func (c *courier) accept(resp *http.Response) (*http.Response, error) {
	c.fail = nil
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		_ = resp.Body.Close()
		c.fail = &Error{Provider: c.conf.Provider, Kind: ErrUnavailable, Status: resp.StatusCode, final: true,
			Msg: "it answered with a web page; the base URL may be wrong"}
		return nil, c.fail
	}
	body := resp.Body
	resp.Body = &watched{ReadCloser: body, post: c, left: answerLimit, timer: time.AfterFunc(idleLimit, func() { _ = body.Close() })}
	return resp, nil
}

type watched struct {
	io.ReadCloser
	post  *courier
	left  int64 // bytes that may still come
	timer *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if w.left -= int64(n); w.left < 0 {
		_ = w.Close()
		w.post.fail = &Error{Provider: w.post.conf.Provider, Kind: ErrUnavailable, final: true,
			Msg: fmt.Sprintf("its answer does not end: more than %d MiB came", answerLimit>>20)}
		return 0, w.post.fail
	}
	if w.timer.Stop() && err == nil {
		w.timer.Reset(idleLimit)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
	}
	return n, err
}

func (w *watched) Close() error {
	w.timer.Stop()
	return w.ReadCloser.Close()
}

// backoff doubles from a first wait, with a quarter of chance.
func (c *courier) backoff(try int) time.Duration {
	first := c.conf.Backoff
	if first <= 0 {
		first = 300 * time.Millisecond
	}
	d := min(first<<(try-1), 8*time.Second)
	return d + rand.N(d/4+1)
}

func worthRetrying(resp *http.Response, body []byte) bool {
	switch resp.Header.Get("X-Should-Retry") {
	case "true":
		return true
	case "false":
		return false
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		// An account without money does not get better by waiting.
		return !bytes.Contains(body, []byte("insufficient_quota"))
	case http.StatusRequestTimeout, http.StatusConflict:
		return true
	}
	return resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented
}

// retryAfter reads how long a vendor asks to wait. Keys are compared without
// regard to case: some libraries put lower-case ones into the map.
func retryAfter(header http.Header, now time.Time) (time.Duration, bool) {
	find := func(name string) string {
		for key, values := range header {
			if strings.EqualFold(key, name) && len(values) > 0 {
				return strings.TrimSpace(values[0])
			}
		}
		return ""
	}
	if ms, err := strconv.ParseFloat(find("retry-after-ms"), 64); err == nil && ms >= 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond)), true
	}
	value := find("retry-after")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s >= 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second)), true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

package agentcore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A call is one use of a session's tool.
type call struct {
	op        string // for errors
	session   string
	tool      string
	arguments any
	retry     rest.Retry
	within    time.Duration // for one attempt
}

// A result is what a tool answers.
type result struct {
	Content []struct {
		Text     string `json:"text"`
		Resource struct {
			Text string `json:"text"`
			Blob []byte `json:"blob"`
		} `json:"resource"`
	} `json:"content"`
	Data struct {
		Task   string `json:"taskId"`
		Status string `json:"taskStatus"`
		Stdout string `json:"stdout"`
		Exit   *int   `json:"exitCode"`
	} `json:"structuredContent"`
	Error bool `json:"isError"`
}

// text is what the tool says in words.
func (r *result) text() string {
	var parts []string
	for _, c := range r.Content {
		if c.Text != "" {
			parts = append(parts, c.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// add joins a later part of the same answer to r.
func (r *result) add(next result) {
	r.Content = append(r.Content, next.Content...)
	r.Error = r.Error || next.Error
	r.Data.Stdout += next.Data.Stdout
	if next.Data.Task != "" {
		r.Data.Task = next.Data.Task
	}
	if next.Data.Status != "" {
		r.Data.Status = next.Data.Status
	}
	if next.Data.Exit != nil {
		r.Data.Exit = next.Data.Exit
	}
}

// invoke uses a tool and reads its whole answer. Only what the service refuses
// before it begins, or what may be done twice, is tried again.
func (a *api) invoke(ctx context.Context, c call) (result, error) {
	once := a.Client
	once.Attempts = 1
	for n := 1; ; n++ {
		res, err := func() (result, error) {
			limited, cancel := context.WithTimeout(ctx, c.within)
			defer cancel()
			resp, err := once.Stream(limited, rest.Request{
				Op: c.op, Method: "POST", Path: "/tools/invoke", Retry: rest.Never,
				Header: http.Header{"X-Amzn-Code-Interpreter-Session-Id": {c.session}},
				JSON:   map[string]any{"name": c.tool, "arguments": c.arguments},
			})
			if err == nil {
				defer resp.Body.Close()
				var res result
				res, err = a.read(c.op, resp)
				if err == nil {
					return res, nil
				}
			}
			switch {
			case ctx.Err() != nil:
				return result{}, rest.Ended(ctx, c.op)
			case limited.Err() != nil:
				return result{}, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: c.op, Msg: "AgentCore does not answer"}
			}
			return result{}, err
		}()
		if err == nil || n >= 4 || ctx.Err() != nil || !again(c.retry, err) {
			return res, err
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return res, rest.Ended(ctx, c.op)
		}
	}
}

// again reports whether a call that failed with err may be made once more.
func again(retry rest.Retry, err error) bool {
	switch retry {
	case rest.Refused:
		return rest.Status(err) == http.StatusTooManyRequests
	case rest.Always:
		code := sandbox.CodeOf(err)
		return code == sandbox.CodeUnavailable || code == sandbox.CodeRateLimited
	}
	return false
}

// read reads an answer's events. An answer without a result is none.
func (a *api) read(op string, resp *http.Response) (result, error) {
	const most = 64 << 20
	broken := &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "AgentCore's answer broke off"}
	if rest.IsPage(resp) {
		return result{}, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "AgentCore answered with a web page"}
	}
	body := &counting{r: io.LimitReader(resp.Body, most)}
	decoder := eventstream.NewDecoder()
	var whole result
	seen := false
	for {
		before := body.n
		m, err := decoder.Decode(body, nil)
		switch {
		case err != nil && errors.Is(err, io.EOF) && body.n == before && seen:
			return whole, nil
		case err != nil:
			return result{}, broken
		}
		switch header(m, ":message-type") {
		case "event":
			if header(m, ":event-type") != "result" {
				continue
			}
			var next result
			if json.Unmarshal(m.Payload, &next) != nil {
				return result{}, &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "AgentCore answered with something that is not the JSON expected"}
			}
			whole.add(next)
			seen = true
		case "exception":
			var e struct {
				Message string `json:"message"`
			}
			json.Unmarshal(m.Payload, &e)
			return result{}, a.exception(op, header(m, ":exception-type"), e.Message)
		case "error":
			return result{}, a.exception(op, header(m, ":error-code"), header(m, ":error-message"))
		}
	}
}

// exception is the error of a tool that failed after its answer had begun.
func (a *api) exception(op, kind, message string) error {
	e := &sandbox.Error{Op: op, Msg: fmt.Sprintf("AgentCore: %s (%s)", a.Show(message), a.Show(kind))}
	switch strings.ToLower(kind) {
	case "accessdeniedexception":
		e.Code = sandbox.CodePermissionDenied
	case "conflictexception", "validationexception":
		e.Code = sandbox.CodeInvalidArgument
	case "resourcenotfoundexception":
		e.Code = sandbox.CodeNotFound
	case "servicequotaexceededexception":
		e.Code = sandbox.CodeQuota
	case "throttlingexception":
		e.Code = sandbox.CodeRateLimited
	default:
		e.Code = sandbox.CodeUnavailable
	}
	return e
}

func header(m eventstream.Message, name string) string {
	if v := m.Headers.Get(name); v != nil {
		return v.String()
	}
	return ""
}

// counting counts what is read.
type counting struct {
	r io.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

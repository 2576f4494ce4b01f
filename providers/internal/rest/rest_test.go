package rest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// answers replies with each response in turn and then with the last.
type answers struct {
	calls atomic.Int32
	list  []func() (*http.Response, error)
}

func (a *answers) Do(*http.Request) (*http.Response, error) {
	n := int(a.calls.Add(1))
	return a.list[min(n, len(a.list))-1]()
}

func status(code int, body string, header ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		rec := httptest.NewRecorder()
		for i := 0; i < len(header); i += 2 {
			rec.Header().Set(header[i], header[i+1])
		}
		rec.WriteHeader(code)
		io.WriteString(rec, body)
		return rec.Result(), nil
	}
}

func broken() (*http.Response, error) { return nil, errors.New("connection reset by peer") }

func TestRepeatsOnlyWhatMayBeRepeated(t *testing.T) {
	ok := status(200, `{}`)
	for _, row := range []struct {
		name  string
		req   rest.Request
		list  []func() (*http.Response, error)
		calls int32
		code  sandbox.Code
	}{
		{"a read after a failure of the service", rest.Request{Method: "GET"}, []func() (*http.Response, error){status(502, ""), ok}, 2, ""},
		{"a read after a broken connection", rest.Request{Method: "GET"}, []func() (*http.Response, error){broken, ok}, 2, ""},
		{"a read that is refused for good", rest.Request{Method: "GET"}, []func() (*http.Response, error){status(404, "")}, 1, sandbox.CodeNotFound},
		{"a read that never works", rest.Request{Method: "GET"}, []func() (*http.Response, error){status(503, "")}, 4, sandbox.CodeUnavailable},
		{"a command after a failure", rest.Request{Method: "POST", Retry: rest.Never}, []func() (*http.Response, error){status(500, ""), ok}, 1, sandbox.CodeUnavailable},
		{"a command after a broken connection", rest.Request{Method: "POST", Retry: rest.Never}, []func() (*http.Response, error){broken, ok}, 1, sandbox.CodeUnavailable},
		{"a plain post", rest.Request{Method: "POST"}, []func() (*http.Response, error){status(500, ""), ok}, 1, sandbox.CodeUnavailable},
		{"a creation that was throttled", rest.Request{Method: "POST", Retry: rest.Refused}, []func() (*http.Response, error){status(429, ""), ok}, 2, ""},
		{"a creation that failed", rest.Request{Method: "POST", Retry: rest.Refused}, []func() (*http.Response, error){status(500, ""), ok}, 1, sandbox.CodeUnavailable},
		{"a post declared safe", rest.Request{Method: "POST", Retry: rest.Always}, []func() (*http.Response, error){status(500, ""), ok}, 2, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{list: row.list}
				c := &rest.Client{Base: "http://127.0.0.1", Doer: a}
				err := c.JSON(t.Context(), row.req, nil)
				if got := sandbox.CodeOf(err); got != row.code || a.calls.Load() != row.calls {
					t.Errorf("got code %q after %d calls (%v), want %q after %d", got, a.calls.Load(), err, row.code, row.calls)
				}
			})
		})
	}
}

func TestWaitsAsLongAsAsked(t *testing.T) {
	for _, header := range []string{"Retry-After", "Retry-After-sandbox-create"} {
		t.Run(header, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{list: []func() (*http.Response, error){status(429, "", header, "7"), status(200, "{}")}}
				begin := time.Now()
				if err := (&rest.Client{Doer: a}).JSON(t.Context(), rest.Request{Method: "GET"}, nil); err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(begin); waited < 7*time.Second || waited > 8*time.Second {
					t.Errorf("waited %v, want 7s", waited)
				}
			})
		})
	}
}

func TestErrorsShowNoSecretAndNoControlCharacter(t *testing.T) {
	a := &answers{list: []func() (*http.Response, error){
		status(401, `{"message":"bad key sekrit-123456\u001b[2J\nnext"}`),
	}}
	c := &rest.Client{Vendor: "Daytona", Doer: a, Header: http.Header{"Authorization": {"Bearer sekrit-123456"}}}
	err := c.JSON(t.Context(), rest.Request{Method: "GET", Op: "list"}, nil)
	want := "list: Daytona: bad key ***\ufffd[2J next (401)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if !errors.Is(err, sandbox.ErrUnauthenticated) {
		t.Errorf("got %v, want ErrUnauthenticated", err)
	}
}

// A message is cut where it is too long, which must not leave a part of a key.
func TestErrorsShowNoPartOfASecret(t *testing.T) {
	key, other := "sekrit-"+strings.Repeat("0123456789", 80), "other-secret"
	for _, body := range []string{
		`{"message":"` + strings.Repeat("x", 480) + ` ` + key + `"}`,
		`{"error":{"code":"` + key + `","message":"Authorization: Bearer ` + key + `"}}`,
		strings.Repeat("x", 490) + key,
		"your headers were: Authorization: Bearer " + key + " and " + other,
	} {
		a := &answers{list: []func() (*http.Response, error){status(403, body)}}
		c := &rest.Client{Doer: a, Header: http.Header{"Authorization": {"Bearer " + key}}, Secrets: func() []string { return []string{other} }}
		err := c.JSON(t.Context(), rest.Request{Method: "GET"}, nil)
		refused, ok := errors.AsType[*rest.StatusError](err)
		if !ok {
			t.Fatalf("got %v, want a refusal", err)
		}
		for _, text := range []string{err.Error(), refused.Code, refused.Message} {
			if strings.Contains(text, "sekrit") || strings.Contains(text, "other-s") {
				t.Errorf("it shows a secret: %q", text)
			}
		}
	}
}

func TestPagesEnd(t *testing.T) {
	for name, cursor := range map[string]func(n int) string{
		"the same cursor": func(int) string { return "a" },
		"a circle":        func(n int) string { return string(rune('a' + n%3)) },
		"no end":          func(n int) string { return strings.Repeat("a", n) },
	} {
		t.Run(name, func(t *testing.T) {
			var p rest.Pages
			for n := range 10_000 {
				if err := p.Next("list", "Acme", cursor(n)); err != nil {
					if sandbox.CodeOf(err) != sandbox.CodeInternal || n == 0 {
						t.Errorf("page %d: %v", n, err)
					}
					return
				}
			}
			t.Error("it goes on for ever")
		})
	}
}

func TestQuotaKeepsTheVendorsWords(t *testing.T) {
	a := &answers{list: []func() (*http.Response, error){status(400, `{"message":"Total CPU limit exceeded. Maximum allowed: 10"}`)}}
	err := (&rest.Client{Vendor: "Daytona", Doer: a}).JSON(t.Context(), rest.Request{Method: "POST"}, nil)
	if !errors.Is(err, sandbox.ErrQuota) || !strings.Contains(err.Error(), "Total CPU limit exceeded") {
		t.Errorf("got %v, want a quota error in the vendor's words", err)
	}
}

func TestDeadlineIsTheCallers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := (&rest.Client{Base: server.URL}).JSON(ctx, rest.Request{Method: "GET"}, nil)
	if sandbox.CodeOf(err) != sandbox.CodeCancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want cancelled", err)
	}
	c := &rest.Client{Base: server.URL, Timeout: 20 * time.Millisecond, Attempts: 1}
	err = c.JSON(t.Context(), rest.Request{Method: "GET"}, nil)
	if sandbox.CodeOf(err) != sandbox.CodeUnavailable || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want unavailable", err)
	}
}

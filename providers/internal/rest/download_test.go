package rest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A download of "0123456789" from 4 on.
func TestFlow(t *testing.T) {
	const file = "0123456789"
	part := func(w http.ResponseWriter, begin int, data string) {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-9/10", begin))
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, data)
	}
	for _, row := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request)
		most   int64 // bytes that are wanted; 0 is as many as come
		got    string
		code   sandbox.Code
		says   string
	}{
		{"the part", func(w http.ResponseWriter, _ *http.Request) { part(w, 4, file[4:]) }, 0, "456789", "", ""},
		{"the whole file", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, file) }, 0, "456789", "", ""},
		{"more than is wanted", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, file) }, 3, "456", "", ""},
		{"less than is wanted", func(w http.ResponseWriter, _ *http.Request) { part(w, 4, "45") }, 3, "45", sandbox.CodeUnavailable, "the connection broke"},
		{"a file that is shorter", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, file[:2]) }, 0, "", "", ""},
		{"nothing there", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestedRangeNotSatisfiable) }, 0, "", "", ""},
		{"another part", func(w http.ResponseWriter, _ *http.Request) { part(w, 5, file[5:]) }, 0, "", sandbox.CodeInternal, "Acme sent another part"},
		{"a refusal", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, 0, "", sandbox.CodeNotFound, ""},
		{"the connection breaks", func(w http.ResponseWriter, _ *http.Request) {
			part(w, 4, "45")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, 0, "45", sandbox.CodeUnavailable, "the connection broke"},
		{"it stands still", func(w http.ResponseWriter, r *http.Request) {
			part(w, 4, "45")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, 0, "45", sandbox.CodeUnavailable, "Acme does not answer"},
		{"it never begins", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0, "", sandbox.CodeUnavailable, "Acme does not answer"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(row.answer))
			defer server.Close()
			c := rest.Client{Base: server.URL, Vendor: "Acme"}
			idle := time.Minute
			if strings.Contains(row.says, "does not answer") {
				idle = 2 * time.Second
			}
			var out strings.Builder
			f, err := c.Flow(t.Context(), rest.Request{Op: "download", Method: "GET", Accept: []int{http.StatusRequestedRangeNotSatisfiable}}, idle, idle)
			if err == nil {
				defer f.Close()
				var skip, want int64
				if skip, want, _, err = f.From(4); err == nil {
					if row.most > 0 {
						want = row.most
					}
					_, err = f.Copy(&out, skip, want)
				}
			}
			if out.String() != row.got || sandbox.CodeOf(err) != row.code || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %q, %v; want %q, code %q saying %q", out.String(), err, row.got, row.code, row.says)
			}
		})
	}
}

var errFull = errors.New("the disk is full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestFlowTellsTheWritersErrorFromItsOwn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "data") }))
	defer server.Close()
	f, err := (&rest.Client{Base: server.URL}).Flow(t.Context(), rest.Request{Method: "GET"}, time.Minute, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Copy(full{}, 0, -1); !errors.Is(err, rest.ErrWrite) || !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

func TestUpload(t *testing.T) {
	errSource := errors.New("the source failed")
	for _, row := range []struct {
		name   string
		source io.Reader
		hangs  bool // the service takes nothing
		status int
		sent   int64
		code   sandbox.Code
		err    error
	}{
		{"a file", strings.NewReader("data"), false, 200, 4, "", nil},
		{"a refusal", strings.NewReader("data"), false, 413, 4, sandbox.CodeTooLarge, nil},
		{"a source that fails", io.MultiReader(strings.NewReader("da"), failing{errSource}), false, 200, 0, "", errSource},
		{"a service that takes nothing", strings.NewReader("data"), true, 200, 0, sandbox.CodeUnavailable, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if row.hangs {
					<-release
					return
				}
				if file, _, err := r.FormFile("file"); err == nil {
					if data, _ := io.ReadAll(file); string(data) != "data" || r.FormValue("path") != "/f" {
						t.Errorf("%q arrived for %q", data, r.FormValue("path"))
					}
				}
				w.WriteHeader(row.status)
			}))
			defer server.Close()
			defer close(release)
			silent := time.Minute
			if row.hangs {
				silent = 200 * time.Millisecond
			}
			c := &rest.Client{Base: server.URL, Vendor: "Acme"}
			sent, err := c.Upload(t.Context(), rest.Request{Op: "upload", Method: "POST"}, row.source, silent, rest.Multipart("path", "/f", "file", "f"), func(ctx context.Context, r rest.Request) error {
				return c.Unbounded().JSON(ctx, r, nil)
			})
			if sent != row.sent || (err == nil) != (row.code == "" && row.err == nil) || row.code != "" && sandbox.CodeOf(err) != row.code || row.err != nil && !errors.Is(err, row.err) {
				t.Errorf("got %d, %v; want %d, code %q, %v", sent, err, row.sent, row.code, row.err)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

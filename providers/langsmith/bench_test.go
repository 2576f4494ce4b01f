//go:build unix

package langsmith_test

import (
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/providers/langsmith"
	"github.com/talkops-ai/talkops/providers/langsmith/langsmithtest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func BenchmarkCalls(b *testing.B) {
	emulate.Bench(b, emulate.Subject{Provider: langsmith.Provider{}, Start: start}, emulate.Plain{
		Exec: func(ctx context.Context, s emulate.Service, info sandbox.Info, command string) error {
			return dataplane(s, info).JSON(ctx, rest.Request{
				Method: "POST", Path: "/execute", JSON: map[string]any{"command": command, "shell": "/bin/sh"},
			}, nil)
		},
		Upload: func(ctx context.Context, s emulate.Service, info sandbox.Info, name string, r io.Reader) error {
			pr, pw := io.Pipe()
			form := multipart.NewWriter(pw)
			go func() {
				part, err := form.CreateFormFile("file", "file")
				if err == nil {
					_, err = io.Copy(part, r)
				}
				form.Close()
				pw.CloseWithError(err)
			}()
			return dataplane(s, info).JSON(ctx, rest.Request{
				Method: "POST", Path: "/upload", Query: url.Values{"path": {name}}, Body: pr, Type: form.FormDataContentType(),
			}, nil)
		},
		Download: func(ctx context.Context, s emulate.Service, info sandbox.Info, name string, w io.Writer) error {
			resp, err := dataplane(s, info).Stream(ctx, rest.Request{
				Method: "GET", Path: "/download", Query: url.Values{"path": {name}},
			})
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(w, resp.Body)
			return err
		},
	})
}

func start() (emulate.Service, func(), error) {
	s, err := langsmithtest.Start(langsmithtest.Config{})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// dataplane is a client of the machine's own address; the emulator takes a name
// there, too.
func dataplane(s emulate.Service, info sandbox.Info) *rest.Client {
	settings := s.Settings()
	return &rest.Client{
		Base:   settings["endpoint"] + "/dp/" + info.ID,
		Vendor: "LangSmith",
		Header: http.Header{"X-Api-Key": {settings["api_key"]}},
	}
}

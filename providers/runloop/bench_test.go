//go:build unix

package runloop_test

import (
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/providers/runloop"
	"github.com/talkops-ai/talkops/providers/runloop/runlooptest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func BenchmarkCalls(b *testing.B) {
	emulate.Bench(b, emulate.Subject{Provider: runloop.Provider{}, Start: start}, emulate.Plain{
		Exec: func(ctx context.Context, s emulate.Service, info sandbox.Info, command string) error {
			return plain(s, info).JSON(ctx, rest.Request{Method: "POST", Path: "/execute", JSON: map[string]any{"command": command}}, nil)
		},
		Upload: func(ctx context.Context, s emulate.Service, info sandbox.Info, name string, r io.Reader) error {
			pr, pw := io.Pipe()
			form := multipart.NewWriter(pw)
			go func() {
				form.WriteField("path", name)
				part, err := form.CreateFormFile("file", "f")
				if err == nil {
					_, err = io.Copy(part, r)
				}
				form.Close()
				pw.CloseWithError(err)
			}()
			return plain(s, info).JSON(ctx, rest.Request{Method: "POST", Path: "/upload_file", Body: pr, Type: form.FormDataContentType()}, nil)
		},
		Download: func(ctx context.Context, s emulate.Service, info sandbox.Info, name string, w io.Writer) error {
			resp, err := plain(s, info).Stream(ctx, rest.Request{Method: "POST", Path: "/download_file", JSON: map[string]string{"path": name}})
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
	s, err := runlooptest.Start(runlooptest.Config{})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

func plain(s emulate.Service, info sandbox.Info) *rest.Client {
	settings := s.Settings()
	return &rest.Client{
		Base:   settings["base_url"] + "/v1/devboxes/" + info.ID,
		Vendor: "Runloop",
		Header: http.Header{"Authorization": {"Bearer " + settings["api_key"]}},
	}
}

//go:build unix

package daytona_test

import (
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/providers/daytona"
	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func BenchmarkCalls(b *testing.B) {
	emulate.Bench(b, emulate.Subject{Provider: daytona.Provider{}, Start: start}, emulate.Plain{
		Exec: func(ctx context.Context, s emulate.Service, info sandbox.Info, command string) error {
			return toolbox(s, info).JSON(ctx, rest.Request{
				Method: "POST", Path: "/process/execute", JSON: map[string]any{"command": command},
			}, nil)
		},
		Upload: func(ctx context.Context, s emulate.Service, info sandbox.Info, name string, r io.Reader) error {
			pr, pw := io.Pipe()
			form := multipart.NewWriter(pw)
			go func() {
				form.WriteField("files[0].path", name)
				part, err := form.CreateFormFile("files[0].file", "f")
				if err == nil {
					_, err = io.Copy(part, r)
				}
				form.Close()
				pw.CloseWithError(err)
			}()
			return toolbox(s, info).JSON(ctx, rest.Request{
				Method: "POST", Path: "/files/bulk-upload", Body: pr, Type: form.FormDataContentType(),
			}, nil)
		},
		Download: func(ctx context.Context, s emulate.Service, info sandbox.Info, name string, w io.Writer) error {
			resp, err := toolbox(s, info).Stream(ctx, rest.Request{
				Method: "GET", Path: "/files/download", Query: url.Values{"path": {name}},
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
	s, err := daytonatest.Start(daytonatest.Config{})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

func toolbox(s emulate.Service, info sandbox.Info) *rest.Client {
	settings := s.Settings()
	return &rest.Client{
		Base:   strings.TrimSuffix(settings["api_url"], "/api") + "/toolbox/" + info.ID,
		Vendor: "Daytona",
		Header: http.Header{"Authorization": {"Bearer " + settings["api_key"]}},
	}
}

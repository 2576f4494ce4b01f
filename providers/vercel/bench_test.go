//go:build unix

package vercel_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/providers/vercel"
	"github.com/talkops-ai/talkops/providers/vercel/verceltest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func BenchmarkCalls(b *testing.B) {
	emulate.Bench(b, emulate.Subject{Provider: vercel.Provider{}, Start: start}, emulate.Plain{
		Exec: func(ctx context.Context, s emulate.Service, info sandbox.Info, command string) error {
			resp, err := plain(ctx, s, info, rest.Request{Method: "POST", Path: "/cmd", JSON: map[string]any{
				"command": "sh", "args": []string{"-c", command}, "env": map[string]string{}, "wait": true, "logs": true,
			}})
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		},
		// The size of a file comes before it, so what has none is put aside first.
		Upload: func(ctx context.Context, s emulate.Service, info sandbox.Info, name string, r io.Reader) error {
			f, err := os.CreateTemp("", "")
			if err != nil {
				return err
			}
			defer os.Remove(f.Name())
			defer f.Close()
			size, err := io.Copy(f, r)
			if err == nil {
				_, err = f.Seek(0, io.SeekStart)
			}
			if err != nil {
				return err
			}
			pr, pw := io.Pipe()
			go func() {
				zw, _ := gzip.NewWriterLevel(pw, gzip.BestSpeed)
				tw := tar.NewWriter(zw)
				tw.WriteHeader(&tar.Header{Name: strings.TrimPrefix(name, "/"), Mode: 0o644, Size: size})
				_, err := io.Copy(tw, f)
				tw.Close()
				zw.Close()
				pw.CloseWithError(err)
			}()
			resp, err := plain(ctx, s, info, rest.Request{Method: "POST", Path: "/fs/write", Header: http.Header{"X-Cwd": {"/"}}, Body: pr, Type: "application/gzip"})
			if err == nil {
				resp.Body.Close()
			}
			return err
		},
		Download: func(ctx context.Context, s emulate.Service, info sandbox.Info, name string, w io.Writer) error {
			resp, err := plain(ctx, s, info, rest.Request{Method: "POST", Path: "/fs/read", JSON: map[string]string{"path": name}})
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
	s, err := verceltest.Start(verceltest.Config{})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// plain sends r to the session of the sandbox.
func plain(ctx context.Context, s emulate.Service, info sandbox.Info, r rest.Request) (*http.Response, error) {
	settings := s.Settings()
	session := s.(*verceltest.Server).Sandbox(info.ID)["currentSessionId"].(string)
	c := &rest.Client{
		Base:   settings["base_url"] + "/v2/sandboxes/sessions/" + session,
		Vendor: "Vercel",
		Header: http.Header{"Authorization": {"Bearer " + settings["token"]}},
	}
	r.Query = url.Values{"teamId": {settings["team_id"]}}
	return c.Stream(ctx, r)
}

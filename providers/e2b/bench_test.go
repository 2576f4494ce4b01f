//go:build unix

package e2b_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/talkops-ai/talkops/providers/e2b"
	"github.com/talkops-ai/talkops/providers/e2b/e2btest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func BenchmarkCalls(b *testing.B) {
	emulate.Bench(b, emulate.Subject{Provider: e2b.Provider{}, Start: start}, emulate.Plain{
		Exec: func(ctx context.Context, s emulate.Service, info sandbox.Info, command string) error {
			message, err := json.Marshal(map[string]any{"process": map[string]any{"cmd": "/bin/sh", "args": []string{"-c", command}}, "stdin": false})
			if err != nil {
				return err
			}
			body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
			return plain(s, info).copy(ctx, rest.Request{Method: "POST", Path: "/process.Process/Start", Body: bytes.NewReader(body), Type: "application/connect+json"}, io.Discard)
		},
		Upload: func(ctx context.Context, s emulate.Service, info sandbox.Info, name string, r io.Reader) error {
			return plain(s, info).copy(ctx, rest.Request{Method: "POST", Path: "/files", Query: url.Values{"path": {name}}, Body: io.MultiReader(r), Type: "application/octet-stream"}, io.Discard)
		},
		Download: func(ctx context.Context, s emulate.Service, info sandbox.Info, name string, w io.Writer) error {
			return plain(s, info).copy(ctx, rest.Request{Method: "GET", Path: "/files", Query: url.Values{"path": {name}}, Header: http.Header{"Accept-Encoding": {"identity"}}}, w)
		},
	})
}

func start() (emulate.Service, func(), error) {
	s, err := e2btest.Start(e2btest.Config{})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

type daemon struct{ rest.Client }

func plain(s emulate.Service, info sandbox.Info) *daemon {
	return &daemon{rest.Client{
		Base:   s.Settings()["sandbox_url"],
		Vendor: "E2B",
		Header: http.Header{"X-Access-Token": {"access-token-of-" + info.ID}, "E2b-Sandbox-Id": {info.ID}},
	}}
}

func (d *daemon) copy(ctx context.Context, r rest.Request, w io.Writer) error {
	resp, err := d.Stream(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(w, resp.Body)
	return err
}

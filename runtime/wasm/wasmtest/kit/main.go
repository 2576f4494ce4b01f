//go:build wasip1

// Command kit is a module whose commands try what the Go kit reaches, for tests.
package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/guest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

var _ = guest.Serve(provider{})

func main() {}

type provider struct{}

func (provider) Describe() sandbox.Description {
	return sandbox.Description{
		Name: "kit", Settings: []sandbox.Setting{{Key: "key", Env: []string{"KIT_KEY"}, Secret: true}, {Key: "url", Env: []string{"KIT_URL"}}},
		Features: sandbox.Features{Attach: true},
	}
}

func (provider) Open(_ context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	return &box{spec.Settings["url"], spec.Settings["key"]}, nil
}

func (provider) Destroy(context.Context, sandbox.Spec) error { return nil }

type box struct{ url, key string }

func (*box) Info() sandbox.Info { return sandbox.Info{ID: "k-1", Dir: "/"} }
func (*box) Close() error       { return nil }

func (*box) ReadFile(context.Context, string, io.Writer) error { return fs.ErrNotExist }

// WriteFile uploads the file in a form, whose bytes never enter the module.
func (b *box) WriteFile(ctx context.Context, name string, r io.Reader, _ fs.FileMode) error {
	resp, err := guest.Do(ctx, guest.Request{Method: "POST", URL: b.url + name, Multipart: []guest.Part{{Name: "file", Filename: "f", From: r}}})
	if err == nil && resp.Status != 200 {
		err = fmt.Errorf("status %d", resp.Status)
	}
	return err
}

func (b *box) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	text, err := b.try(ctx, cmd)
	if err != nil {
		return 0, err
	}
	_, err = io.WriteString(cmd.Stdout, text)
	return 0, err
}

func (b *box) try(ctx context.Context, cmd sandbox.Cmd) (string, error) {
	switch cmd.Args[0] {
	case "socket":
		r := guest.Request{URL: "ws" + strings.TrimPrefix(b.url, "http"), Header: map[string][]string{"Authorization": {"Bearer " + b.key}}}
		s, err := guest.Dial(ctx, r, &abi.Route{Field: "type", Stdout: "out", Data: "data"})
		if err != nil {
			return "", err
		}
		defer s.Close()
		var got []string
		for _, m := range []string{"hello", "\xff\x00"} {
			if err := s.Send(ctx, []byte(m)); err != nil {
				return "", err
			}
			data, err := s.Receive(ctx)
			if err != nil {
				return "", err
			}
			got = append(got, fmt.Sprintf("%q", data))
		}
		s.Finish()
		_, end := s.Receive(ctx)
		info, err := s.Info()
		return fmt.Sprintf("%s %v %d", strings.Join(got, " "), end, info.Stdout), err
	case "mac":
		sum, err := guest.MAC("hmac-sha256", "key", []byte("data"))
		return hex.EncodeToString(sum), err
	case "state":
		if err := guest.Keep("a", "kept"); err != nil {
			return "", err
		}
		guest.Keep("b", "lost")
		guest.Forget("b")
		a, _, err := guest.Load("a")
		_, found, _ := guest.Load("b")
		return fmt.Sprint(a, " ", found), err
	case "parts":
		resp, err := guest.Do(ctx, guest.Request{
			Method: "POST", URL: b.url + "/parts", Gzip: true, Sign: &abi.Sign{Kind: "sigv4", Service: "s", Region: "r", KeyID: "key", Key: "key"},
			Parts: []guest.Part{{Text: `{"stdin":"`}, {From: cmd.Stdin, As: "base64"}, {Bytes: []byte(`"}`)}},
		})
		if err != nil {
			return "", err
		}
		return string(resp.Body), nil
	case "envelope":
		s, _, err := guest.Open(ctx, guest.Request{URL: b.url + "/envelope"}, guest.Framing{Frame: "envelope"})
		if err != nil {
			return "", err
		}
		defer s.Close()
		data, err := s.Next(ctx)
		return string(data), err
	}
	return "", fmt.Errorf("there is no %s", cmd.Args[0])
}

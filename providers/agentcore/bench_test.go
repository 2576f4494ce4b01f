//go:build unix

package agentcore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/talkops-ai/talkops/providers/agentcore"
	"github.com/talkops-ai/talkops/providers/agentcore/agentcoretest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func BenchmarkCalls(b *testing.B) {
	emulate.Bench(b, emulate.Subject{Provider: agentcore.Provider{}, Start: start}, emulate.Plain{
		Exec: func(ctx context.Context, s emulate.Service, info sandbox.Info, command string) error {
			_, err := tool(ctx, s, info, "executeCommand", map[string]any{"command": command})
			return err
		},
		// The largest file that one answer can hold is smaller than the one moved.
		Upload: func(ctx context.Context, s emulate.Service, info sandbox.Info, _ string, r io.Reader) error {
			for n := 0; ; n++ {
				data, err := io.ReadAll(io.LimitReader(r, 8<<20))
				if err != nil || len(data) == 0 {
					return err
				}
				file := map[string]any{"path": fmt.Sprintf("plain%d", n), "blob": data}
				if _, err := tool(ctx, s, info, "writeFiles", map[string]any{"content": []any{file}}); err != nil {
					return err
				}
			}
		},
		Download: func(ctx context.Context, s emulate.Service, info sandbox.Info, _ string, w io.Writer) error {
			for n := range 12 {
				answer, err := tool(ctx, s, info, "readFiles", map[string]any{"paths": []string{fmt.Sprintf("plain%d", n)}})
				if err != nil {
					return err
				}
				var got struct {
					Content []struct {
						Resource struct{ Text, Blob string } `json:"resource"`
					} `json:"content"`
				}
				if err := json.Unmarshal(answer, &got); err != nil {
					return err
				}
				for _, c := range got.Content {
					io.Copy(w, base64.NewDecoder(base64.StdEncoding, strings.NewReader(c.Resource.Blob)))
					io.WriteString(w, c.Resource.Text)
				}
			}
			return nil
		},
	})
}

func start() (emulate.Service, func(), error) {
	s, err := agentcoretest.Start(agentcoretest.Config{})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// tool uses a tool as the vendor's client does and returns the last event.
func tool(ctx context.Context, s emulate.Service, info sandbox.Info, name string, arguments any) ([]byte, error) {
	settings := s.Settings()
	body, err := json.Marshal(map[string]any{"name": name, "arguments": arguments})
	if err != nil {
		return nil, err
	}
	interpreter, session, _ := strings.Cut(info.ID, "/")
	r, err := http.NewRequestWithContext(ctx, "POST", settings["endpoint"]+"/code-interpreters/"+interpreter+"/tools/invoke", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Amzn-Code-Interpreter-Session-Id", session)
	sum := sha256.Sum256(body)
	keys := aws.Credentials{AccessKeyID: settings["access_key_id"], SecretAccessKey: settings["secret_access_key"]}
	if err := v4.NewSigner().SignHTTP(ctx, keys, r, hex.EncodeToString(sum[:]), "bedrock-agentcore", settings["region"], time.Now()); err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	m, err := eventstream.NewDecoder().Decode(resp.Body, nil)
	return m.Payload, err
}

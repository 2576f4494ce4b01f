//go:build linux && (amd64 || arm64)

package wasm_test

import (
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/talkops-ai/talkops/hostfuncs"
	"github.com/talkops-ai/talkops/runtime/wasm"
	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// The Go kit reaches what the host offers, and the module never sees the key.
func TestTheKitReachesTheHost(t *testing.T) {
	const key = "sekrit-value-123"
	uploaded := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/file":
			f, _, err := r.FormFile("file")
			if err == nil {
				data, _ := io.ReadAll(f)
				uploaded = string(data)
			}
		case "/parts":
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				return
			}
			data, _ := io.ReadAll(z)
			fmt.Fprintf(w, "%s signed %v", data, strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="+key))
		case "/envelope":
			w.Write([]byte("\x00\x00\x00\x00\x02{}"))
		default:
			if r.Header.Get("Authorization") != "Bearer "+key {
				http.Error(w, "no", http.StatusUnauthorized)
				return
			}
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow()
			conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"out","data":"streamed "}`))
			for {
				typ, data, err := conn.Read(r.Context())
				if err != nil {
					return
				}
				conn.Write(r.Context(), typ, data)
			}
		}
	}))
	defer s.Close()
	hosts, err := hostfuncs.ParseHosts([]string{s.URL})
	if err != nil {
		t.Fatal(err)
	}
	p, err := wasm.Load(t.Context(), wasm.Config{
		Name: "kit", File: wasmtest.Build(t, "./wasmtest/kit"), Cache: wasmtest.Cache(t),
		Grant: hostfuncs.Grant{Hosts: hosts, State: filepath.Join(t.TempDir(), "state.json")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	sb, err := p.Open(t.Context(), sandbox.Spec{Settings: map[string]string{"url": s.URL, "key": key}})
	if err != nil {
		t.Fatal(err)
	}
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write([]byte("data"))
	for command, want := range map[string]string{
		"socket": `streamed "hello" "\xff\x00" EOF 9`, "mac": hex.EncodeToString(sum.Sum(nil)), "state": "kept false",
		"parts": `{"stdin":"aW5wdXQ="} signed true`, "envelope": `{"flags":0,"data":"{}"}`,
	} {
		var out bytes.Buffer
		exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{command}, Stdin: strings.NewReader("input"), Stdout: &out})
		if err != nil || exit != 0 || out.String() != want {
			t.Errorf("%s: %q, %d, %v; want %q", command, out.String(), exit, err, want)
		}
	}
	if err := sb.WriteFile(t.Context(), "/file", strings.NewReader("content"), 0o644); err != nil || uploaded != "content" {
		t.Errorf("uploaded %q, %v", uploaded, err)
	}
}

// Kits that import from nowhere else have the functions in their own namespace.
func TestTheFunctionsHaveASecondNamespace(t *testing.T) {
	p := wasmtest.Load(t, "hand", wasmtest.Source{
		Namespace: abi.UserNamespace, Code: map[string][]byte{abi.Exec: wasmtest.Output("by alias")},
	}.Write(t))
	sb, err := p.Open(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"x"}, Stdout: &out}); err != nil || exit != 0 || out.String() != "by alias" {
		t.Errorf("%q, %d, %v", out.String(), exit, err)
	}
}

// What Extism itself offers is denied, in one line that says what it was.
func TestExtismsOwnHTTPIsDenied(t *testing.T) {
	p := wasmtest.Load(t, "hand", wasmtest.Source{Fetch: true, Code: map[string][]byte{abi.Exec: wasmtest.Fetch(`{"url":"https://acme.example/"}`)}}.Write(t))
	sb, err := p.Open(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"x"}})
	if err == nil || sandbox.CodeOf(err) != sandbox.CodeInternal || !strings.Contains(err.Error(), "not allowed") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

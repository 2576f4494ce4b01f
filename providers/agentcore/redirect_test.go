//go:build unix

package agentcore_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/talkops-ai/talkops/providers/agentcore"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// With certificates of the user's own the requests go another way than otherwise.
func TestKeysAreNotRedirected(t *testing.T) {
	var heard atomic.Pointer[http.Header]
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard.Store(&r.Header) }))
	defer elsewhere.Close()
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer service.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bundle := range []string{"", file} {
		t.Setenv("AWS_CA_BUNDLE", bundle)
		_, err := agentcore.Provider{}.List(t.Context(), sandbox.Spec{Settings: map[string]string{
			"access_key_id": "AKIATEST", "secret_access_key": "secret", "session_token": "token", "region": "eu-west-1", "endpoint": service.URL,
		}})
		if err == nil {
			t.Error("a redirect is an answer")
		}
		if h := heard.Load(); h != nil {
			t.Errorf("another host was sent %v", *h)
		}
	}
}

package model_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/model"
)

// gemini answers each request with the next of the replies, as one event.
func gemini(t *testing.T, replies ...string) model.Model {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := replies[0]
		if len(replies) > 1 {
			replies = replies[1:]
		}
		if strings.HasPrefix(reply, `{"error"`) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, reply)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+reply+"\r\n\r\n")
	}))
	t.Cleanup(srv.Close)
	m, err := model.Open(t.Context(), model.Config{Provider: "gemini", Name: "gemini-x", APIKey: key, KeyVar: "GEMINI_API_KEY",
		BaseURL: srv.URL, Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestGeminiAnswers(t *testing.T) {
	m := gemini(t, `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hello."},`+
		`{"functionCall":{"name":"execute","args":{"command":"ls"}}}]},"finishReason":"STOP"}],`+
		`"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":3,"totalTokenCount":15}}`)
	got, err := m.Answer(t.Context(), question, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Message.Text != "Hello." || len(got.Message.Calls) != 1 || got.Message.Calls[0].Input != `{"command":"ls"}` ||
		got.Finish != model.FinishCalls || got.Usage.Input != 12 || got.Usage.Output != 3 {
		t.Errorf("got %+v", got)
	}
}

func TestGeminiFailuresHaveTheirKind(t *testing.T) {
	for _, row := range []struct {
		name, reply string
		kind        error
	}{
		{"a refused key", `{"error":{"code":400,"message":"API key not valid: ` + key + `","status":"INVALID_ARGUMENT"}}`, model.ErrAuth},
		{"no finish mark", `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hel"}]}}]}`, model.ErrIncomplete},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := gemini(t, row.reply).Answer(t.Context(), question, nil)
			if !errors.Is(err, row.kind) || strings.Contains(fmt.Sprint(err), key) {
				t.Errorf("got %v, want %v", err, row.kind)
			}
		})
	}
}

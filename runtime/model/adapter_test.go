package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

const key = "k-3f9a-secret-77c1"

// wires runs a test over each wire that the scripted server speaks.
func wires(t *testing.T, test func(t *testing.T, srv *modeltest.Server, m model.Model)) {
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			srv := modeltest.New(t)
			conf := model.Config{Provider: provider, Name: "scripted", APIKey: key, KeyVar: "THE_KEY",
				BaseURL: srv.OpenAI(), UserAgent: "talkops/test", Backoff: time.Millisecond}
			if provider == "anthropic" {
				conf.BaseURL = srv.Anthropic()
			}
			m, err := model.Open(t.Context(), conf)
			if err != nil {
				t.Fatal(err)
			}
			test(t, srv, m)
		})
	}
}

var question = model.Request{
	System:   "Be brief.",
	Messages: []model.Message{{Role: model.RoleUser, Text: "hello"}},
	Tools: []model.Tool{{Name: "execute", Description: "Run it.", Parameters: map[string]any{
		"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}, "required": []string{"command"}}}},
}

// seen is what a screen would show of an answer.
type seen struct {
	text    string
	thought string
	resets  int
	retries []model.Delta
}

func (s *seen) emit(d model.Delta) {
	switch d.Kind {
	case model.DeltaText:
		s.text += d.Text
	case model.DeltaReasoning:
		s.thought += d.Text
	case model.DeltaReset:
		s.text, s.thought = "", ""
		s.resets++
	case model.DeltaRetry:
		s.retries = append(s.retries, d)
	}
}

func TestAnswerHasTextReasoningCallsAndUsage(t *testing.T) {
	wires(t, func(t *testing.T, srv *modeltest.Server, m model.Model) {
		srv.Script(modeltest.Step{Reasoning: "let me see", Text: "Running two things – now.",
			Calls: []modeltest.Call{{ID: "a", Name: "execute", Input: `{"command":"ls"}`}, {ID: "b", Name: "execute", Input: `{"command":"pwd"}`}},
			Usage: modeltest.Usage{Input: 50, Output: 7, CacheRead: 30}})
		var s seen
		got, err := m.Answer(t.Context(), question, s.emit)
		if err != nil {
			t.Fatal(err)
		}
		if got.Message.Text != "Running two things – now." || s.text != got.Message.Text {
			t.Errorf("text is %q, streamed %q", got.Message.Text, s.text)
		}
		if s.thought != "let me see" || len(got.Message.Reasoning) != 1 || got.Message.Reasoning[0].Text != "let me see" {
			t.Errorf("reasoning is %+v, streamed %q", got.Message.Reasoning, s.thought)
		}
		want := []model.Call{{ID: "a", Name: "execute", Input: `{"command":"ls"}`}, {ID: "b", Name: "execute", Input: `{"command":"pwd"}`}}
		if fmt.Sprint(got.Message.Calls) != fmt.Sprint(want) {
			t.Errorf("calls are %v, want %v", got.Message.Calls, want)
		}
		if want := (model.Usage{Input: 50, Output: 7, CacheRead: 30}); got.Usage != want {
			t.Errorf("usage is %+v, want %+v", got.Usage, want)
		}
		if got.Finish != model.FinishCalls {
			t.Errorf("finish is %q, want calls", got.Finish)
		}
		req := srv.Requests()[0]
		if ua := req.Header.Get("User-Agent"); ua != "talkops/test" {
			t.Errorf("User-Agent is %q", ua)
		}
		limit, _ := req.JSON()["max_tokens"].(float64)
		if more, ok := req.JSON()["max_completion_tokens"].(float64); ok {
			limit = more
		}
		if limit != 8192 {
			t.Errorf("output limit is %v, want 8192 in %s", limit, req.Body)
		}
		if !strings.Contains(req.Body, `"required":["command"]`) {
			t.Errorf("the tool's required list is not sent: %s", req.Body)
		}
	})
}

func TestConversationGoesBackWithReasoningAndResults(t *testing.T) {
	wires(t, func(t *testing.T, srv *modeltest.Server, m model.Model) {
		srv.Script(modeltest.Step{Reasoning: "thinking", Calls: []modeltest.Call{{ID: "a", Name: "execute", Input: `{"command":"ls"}`}}},
			modeltest.Step{Text: "done"})
		first, err := m.Answer(t.Context(), question, nil)
		if err != nil {
			t.Fatal(err)
		}
		// A session is stored and read again between two turns.
		b, err := json.Marshal(first.Message)
		if err != nil {
			t.Fatal(err)
		}
		var stored model.Message
		if err := json.Unmarshal(b, &stored); err != nil {
			t.Fatal(err)
		}
		req := question
		req.Messages = append(req.Messages, stored, model.Message{Role: model.RoleTool,
			Results: []model.Result{{CallID: "a", Name: "execute", Text: "main.tf-listing"}}})
		if _, err := m.Answer(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		body := srv.Requests()[1].Body
		for _, want := range []string{"main.tf-listing", "thinking", `"a"`} {
			if !strings.Contains(body, want) {
				t.Errorf("the second request lacks %s: %s", want, body)
			}
		}
		if m.Info().Provider == "anthropic" {
			if !strings.Contains(body, "c2lnbmVk") {
				t.Errorf("the signature of the reasoning is not sent back: %s", body)
			}
			if n := strings.Count(body, `"cache_control"`); n < 2 || n > 4 {
				t.Errorf("there are %d cache marks, want 2 to 4: %s", n, body)
			}
		}
	})
}

func TestRateLimitIsWaitedForAsAsked(t *testing.T) {
	wires(t, func(t *testing.T, srv *modeltest.Server, m model.Model) {
		srv.Script(modeltest.Step{Status: 429, RetryAfter: "0.02"}, modeltest.Step{Text: "hi"})
		var s seen
		got, err := m.Answer(t.Context(), question, s.emit)
		if err != nil || got.Message.Text != "hi" {
			t.Fatalf("got %q, %v", got.Message.Text, err)
		}
		if len(s.retries) != 1 || s.retries[0].Wait != 20*time.Millisecond {
			t.Errorf("retries are %+v, want one of 20ms", s.retries)
		}
	})
}

// Each row is an end that must be an error, with its kind.
func TestFailuresAreErrorsWithoutTheKey(t *testing.T) {
	echo := `{"error":{"message":"wrong key ` + key + ` in request","type":"authentication_error"}}`
	for _, row := range []struct {
		name  string
		step  modeltest.Step
		kind  error
		asked int
	}{
		{"a refused key names its variable", modeltest.Step{Status: 401, Body: echo}, model.ErrAuth, 1},
		{"a rate limit that does not end", modeltest.Step{Status: 429}, model.ErrRateLimited, 5},
		{"a wait of an hour is not waited for", modeltest.Step{Status: 429, RetryAfter: "3600"}, model.ErrRateLimited, 1},
		{"a fault that does not end", modeltest.Step{Status: 500, Body: echo}, model.ErrUnavailable, 5},
		{"a web page as an error", modeltest.Step{Status: 403, ContentType: "text/html", Body: "<html>proxy login " + key}, model.ErrAuth, 1},
		{"a web page as an answer", modeltest.Step{Status: 200, ContentType: "text/html", Body: "<html>welcome"}, model.ErrUnavailable, 1},
		{"a conversation too large", modeltest.Step{Status: 400, Body: `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`}, model.ErrContext, 1},
		{"an unknown model", modeltest.Step{Status: 404, Body: `{"error":{"message":"no such model"}}`}, model.ErrRejected, 1},
		{"a stream that is always cut", modeltest.Step{Text: strings.Repeat("long ", 50), CutAfter: 900}, model.ErrIncomplete, 3},
		{"a clean end without a finish mark", modeltest.Step{Text: "half", NoFinish: true}, model.ErrIncomplete, 3},
		{"a call without a finish mark", modeltest.Step{Calls: []modeltest.Call{{Name: "execute", Input: `{"command":"rm -rf /tmp/x"}`}}, NoFinish: true}, model.ErrIncomplete, 3},
		{"half a call without a finish mark", modeltest.Step{Calls: []modeltest.Call{{Name: "execute", Input: `{"command":"rm -rf /tmp/x"}`}}, TruncatedCall: true, NoFinish: true}, model.ErrIncomplete, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			wires(t, func(t *testing.T, srv *modeltest.Server, m model.Model) {
				srv.Forever(row.step)
				got, err := m.Answer(t.Context(), question, nil)
				if !errors.Is(err, row.kind) {
					t.Fatalf("got error %v, want %v", err, row.kind)
				}
				if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), key) {
					t.Errorf("the error holds the key: %v", err)
				}
				if len(got.Message.Calls) != 0 {
					t.Errorf("calls came with the error: %v", got.Message.Calls)
				}
				if n := len(srv.Requests()); n != row.asked {
					t.Errorf("asked %d times, want %d", n, row.asked)
				}
				if row.kind == model.ErrAuth && !strings.Contains(err.Error(), "THE_KEY") {
					t.Errorf("the error does not say which variable: %v", err)
				}
			})
		})
	}
}

func TestCutStreamStartsAgain(t *testing.T) {
	wires(t, func(t *testing.T, srv *modeltest.Server, m model.Model) {
		srv.Script(modeltest.Step{Text: strings.Repeat("long ", 50), CutAfter: 1500}, modeltest.Step{Text: "whole"})
		var s seen
		got, err := m.Answer(t.Context(), question, s.emit)
		if err != nil || got.Message.Text != "whole" || s.text != "whole" || s.resets != 1 {
			t.Errorf("got %q, shown %q after %d resets, %v", got.Message.Text, s.text, s.resets, err)
		}
	})
}

func TestOutputLimitIsSaidAlsoWithCalls(t *testing.T) {
	wires(t, func(t *testing.T, srv *modeltest.Server, m model.Model) {
		srv.Script(modeltest.Step{Calls: []modeltest.Call{{Name: "execute", Input: `{"command":"rm -rf /tmp/x/y"}`}}, TruncatedCall: true})
		got, err := m.Answer(t.Context(), question, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Finish != model.FinishLength {
			t.Errorf("finish is %q, want length", got.Finish)
		}
		for _, c := range got.Message.Calls {
			if json.Valid([]byte(c.Input)) {
				t.Errorf("a truncated input was mended: %s", c.Input)
			}
		}
	})
}

func TestMalformedInputStaysAsSent(t *testing.T) {
	wires(t, func(t *testing.T, srv *modeltest.Server, m model.Model) {
		srv.Script(modeltest.Step{Calls: []modeltest.Call{{ID: "a", Name: "execute", Input: `{"command":"rm -rf /tmp/x/y"}`}},
			TruncatedCall: true, Finish: "tool_calls"}, modeltest.Step{Text: "sorry"})
		got, err := m.Answer(t.Context(), question, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Message.Calls) != 1 || json.Valid([]byte(got.Message.Calls[0].Input)) {
			t.Fatalf("calls are %v, want one that is malformed", got.Message.Calls)
		}
		req := question
		req.Messages = append(req.Messages, got.Message, model.Message{Role: model.RoleTool,
			Results: []model.Result{{CallID: "a", Name: "execute", Text: "malformed", Failed: true}}})
		if _, err := m.Answer(t.Context(), req, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestEmptyAnswerIsAnAnswer(t *testing.T) {
	wires(t, func(t *testing.T, srv *modeltest.Server, m model.Model) {
		srv.Script(modeltest.Step{})
		got, err := m.Answer(t.Context(), question, nil)
		if err != nil || got.Message.Text != "" || got.Finish != model.FinishStop {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestCancelledAnswerEndsAtOnce(t *testing.T) {
	wires(t, func(t *testing.T, srv *modeltest.Server, m model.Model) {
		srv.Script(modeltest.Step{Text: "some text", Hang: true})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := m.Answer(ctx, question, func(model.Delta) { cancel() })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context canceled", err)
		}
	})
}

func TestAnswerWithoutAnEndIsGivenUp(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		event := `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 1<<20) + `"}}]}` + "\n\n"
		for {
			if _, err := io.WriteString(w, event); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	m, err := model.Open(t.Context(), model.Config{Provider: "openai", Name: "scripted", APIKey: key, BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Answer(t.Context(), question, nil); !errors.Is(err, model.ErrUnavailable) || !strings.Contains(err.Error(), "does not end") {
		t.Errorf("got %v", err)
	}
}

func TestServerThatIsNotThereIsGivenUp(t *testing.T) {
	wires(t, func(t *testing.T, srv *modeltest.Server, m model.Model) {
		srv.Close()
		var s seen
		_, err := m.Answer(t.Context(), question, s.emit)
		if !errors.Is(err, model.ErrUnavailable) || len(s.retries) != 4 {
			t.Errorf("got %v after %d more tries, want 4", err, len(s.retries))
		}
	})
}

func TestNoKeyOfAnotherProviderIsSent(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	t.Setenv("OPENAI_ORG_ID", "org-"+key)
	srv := modeltest.New(t)
	srv.Script(modeltest.Step{Text: "hi"})
	m, err := model.Open(t.Context(), model.Config{Provider: "ollama", Name: "x", BaseURL: srv.OpenAI()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Answer(t.Context(), question, nil); err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprint(srv.Requests()[0].Header); strings.Contains(all, key) || strings.Contains(all, "Bearer") {
		t.Errorf("headers hold a key: %s", all)
	}
}

package model_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/model"
)

func TestChoose(t *testing.T) {
	for _, row := range []struct {
		name   string
		env    string // "A=1 B=2"
		wish   model.Wish
		ollama []string
		want   string // provider:name url
		err    error
	}{
		{name: "the first provider with a key", env: "OPENAI_API_KEY=o ANTHROPIC_API_KEY=a", want: "anthropic:claude-sonnet-4-6"},
		{name: "openai before gemini", env: "GEMINI_API_KEY=g OPENAI_API_KEY=o", want: "openai:gpt-5.6-sol"},
		{name: "bedrock by the AWS chain", env: "AWS_PROFILE=p AWS_REGION=us-east-1", want: "bedrock:us.anthropic.claude-opus-5"},
		{name: "the flag before the setting", env: "ANTHROPIC_API_KEY=a OPENAI_API_KEY=o",
			wish: model.Wish{Model: "openai:gpt-x", Default: "anthropic:y"}, want: "openai:gpt-x"},
		{name: "the setting", env: "ANTHROPIC_API_KEY=a OPENAI_API_KEY=o", wish: model.Wish{Default: "openai:"}, want: "openai:gpt-5.6-sol"},
		{name: "a bare name finds its provider", env: "ANTHROPIC_API_KEY=a OPENAI_API_KEY=o", wish: model.Wish{Model: "gpt-5.6-sol"}, want: "openai:gpt-5.6-sol"},
		{name: "a bare unknown name goes to the first", env: "ANTHROPIC_API_KEY=a", wish: model.Wish{Model: "claude-99"}, want: "anthropic:claude-99"},
		{name: "a base URL from the environment", env: "ANTHROPIC_API_KEY=a ANTHROPIC_BASE_URL=http://x", wish: model.Wish{Model: "anthropic:m"}, want: "anthropic:m http://x"},
		{name: "a configured server needs no key", wish: model.Wish{Model: "lab:qwen:7b",
			Providers: map[string]model.Endpoint{"lab": {BaseURL: "http://lab/v1"}}}, want: "lab:qwen:7b http://lab/v1"},
		{name: "a configured server with a missing key", wish: model.Wish{Model: "lab:q",
			Providers: map[string]model.Endpoint{"lab": {BaseURL: "http://lab/v1", APIKeyEnv: "LAB_KEY"}}}, err: model.ErrNoKey},
		{name: "ollama when there is nothing else", ollama: []string{"qwen3:8b"}, want: "ollama:qwen3:8b http://127.0.0.1:11434/v1"},
		{name: "ollama elsewhere on this computer", env: "OLLAMA_HOST=0.0.0.0:9999", ollama: []string{"q"}, want: "ollama:q http://127.0.0.1:9999/v1"},
		{name: "ollama on another computer is not probed", env: "OLLAMA_HOST=10.0.0.1:9999", ollama: []string{"q"}, want: "ollama:q http://127.0.0.1:11434/v1"},
		{name: "nothing", err: model.ErrNoModel},
		{name: "a provider without its key", wish: model.Wish{Model: "openai:gpt-x"}, err: model.ErrNoKey},
		{name: "an unknown provider", env: "ANTHROPIC_API_KEY=a", wish: model.Wish{Model: "nobody:x"}, err: model.ErrUnknownProvider},
		{name: "a provider of the catalogue", env: "GROQ_API_KEY=g", wish: model.Wish{Model: "groq:llama"}, want: "groq:llama https://api.groq.com/openai/v1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			env := map[string]string{}
			for _, pair := range strings.Fields(row.env) {
				name, value, _ := strings.Cut(pair, "=")
				env[name] = value
			}
			row.wish.Getenv = func(name string) string { return env[name] }
			row.wish.Probe = func(context.Context, string) ([]string, error) {
				if row.ollama == nil {
					return nil, errors.New("no answer")
				}
				return row.ollama, nil
			}
			conf, err := model.Choose(t.Context(), row.wish)
			if !errors.Is(err, row.err) {
				t.Fatalf("got error %v, want %v", err, row.err)
			}
			got := strings.TrimSpace(conf.Provider + ":" + conf.Name + " " + conf.BaseURL)
			if err == nil && got != row.want {
				t.Errorf("chose %s, want %s", got, row.want)
			}
		})
	}
}

func TestCachePricesAreNotSwapped(t *testing.T) {
	info, ok := model.Lookup("anthropic", "claude-sonnet-4-6")
	if !ok {
		t.Fatal("not in the catalogue")
	}
	if p := info.Price; p.CacheRead >= p.Input || p.CacheWrite <= p.Input || info.Window == 0 {
		t.Errorf("got %+v; a cache read costs less than the input, a write more", info)
	}
}

package cmd

import (
	"maps"
	"testing"

	"github.com/talkops-ai/talkops/runtime/config"
)

// No program on this computer is given the key of a model, whichever its server is.
func TestProgramsGetNoKeysOfModels(t *testing.T) {
	a := &app{dir: t.TempDir(), environ: []string{"OPENAI_API_KEY=a", "GROQ_API_KEY=b", "TALKOPS_GROQ_API_KEY=c", "MY_SERVER_KEY=d", "TALKOPS_MY_SERVER_KEY=e", "GITHUB_TOKEN=f", "A=g"}}
	cfg := &config.Config{}
	cfg.Model.Providers = map[string]config.Endpoint{"mine": {APIKeyEnv: "MY_SERVER_KEY"}, "open": {}}
	if got, want := withoutKeys(a.hostEnv(), cfg), map[string]string{"GITHUB_TOKEN": "f", "A": "g"}; !maps.Equal(got, want) {
		t.Errorf("programs get %v", got)
	}
}

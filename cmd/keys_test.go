package cmd

import (
	"maps"
	"testing"

	"github.com/talkops-ai/talkops/runtime/config"
)

// No program on this computer is given the key of a model or a cloud, whichever its server is and also where it is not used.
func TestProgramsGetNoKeysOfModels(t *testing.T) {
	a := &app{dir: t.TempDir(), home: t.TempDir(), environ: []string{"E2B_API_KEY=h", "E2B_DOMAIN=i", "OPENAI_API_KEY=a", "GROQ_API_KEY=b", "TALKOPS_GROQ_API_KEY=c", "MY_SERVER_KEY=d", "TALKOPS_MY_SERVER_KEY=e", "GITHUB_TOKEN=f", "A=g"}}
	if err := a.agree("e2b.wasm", agreed{SHA256: "0", Env: []string{"E2B_API_KEY", "E2B_DOMAIN"}}); err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{}
	cfg.Model.Providers = map[string]config.Endpoint{"mine": {APIKeyEnv: "MY_SERVER_KEY"}, "open": {}}
	if got, want := withoutKeys(a.hostEnv(), cfg), map[string]string{"GITHUB_TOKEN": "f", "A": "g", "E2B_DOMAIN": "i"}; !maps.Equal(got, want) {
		t.Errorf("programs get %v", got)
	}
}

package cmd

import (
	"math"
	"testing"

	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestPriceOfAMachine(t *testing.T) {
	own := func(name string, usd float64) *config.Config {
		return &config.Config{Providers: map[string]config.Provider{name: {USDPerHour: &usd}}}
	}
	for _, row := range []struct {
		says     string
		provider string
		spec     sandbox.Spec
		cfg      *config.Config
		usd      float64 // an hour; -1: not known
	}{
		{"a core and two GiB, by the second", "modal", sandbox.Spec{}, nil, 0.1903},
		{"whatever it starts from", "modal", sandbox.Spec{Snapshot: "mine", Image: "debian"}, nil, 0.1903},
		{"one CPU and one GiB", "daytona", sandbox.Spec{Image: "debian"}, nil, 0.0666},
		{"a snapshot has its own size", "daytona", sandbox.Spec{Snapshot: "mine"}, nil, -1},
		{"one CPU and two GiB", "runloop", sandbox.Spec{}, nil, 0.1584},
		{"a blueprint has its own size", "runloop", sandbox.Spec{Settings: map[string]string{"blueprint_name": "mine"}}, nil, -1},
		{"two CPUs and four GB that are never idle", "vercel", sandbox.Spec{}, nil, 0.3408},
		{"two CPUs and eight GB that are never idle", "agentcore", sandbox.Spec{}, nil, 0.2546},
		{"not published", "langsmith", sandbox.Spec{}, nil, -1},
		{"this computer", "local", sandbox.Spec{}, nil, -1},
		{"what the user says comes first", "daytona", sandbox.Spec{}, own("daytona", 2), 2},
		{"also that it costs nothing", "daytona", sandbox.Spec{}, own("daytona", 0), 0},
		{"also where nothing else is known", "langsmith", sandbox.Spec{}, own("langsmith", 0.5), 0.5},
		{"of its own provider only", "daytona", sandbox.Spec{}, own("modal", 2), 0.0666},
	} {
		if row.cfg == nil {
			row.cfg = &config.Config{}
		}
		usd, known := price(row.cfg, builtin().Find(row.provider), row.spec)
		if !known {
			usd = -1
		}
		if math.Abs(usd-row.usd) > 0.0001 {
			t.Errorf("%s: %s costs %v an hour, want %v", row.provider, row.says, usd, row.usd)
		}
	}
}

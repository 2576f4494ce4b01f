package config_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/config"
)

// BenchmarkLoad resolves every setting from a user's file, a project's file, the
// environment and flags. It reports the time over the limit of 2 ms, and over that
// of reading both files.
func BenchmarkLoad(b *testing.B) {
	home, root := b.TempDir(), b.TempDir()
	files := map[string]string{
		filepath.Join(home, "config.toml"):             "[sandboxes]\ndefault = \"daytona\"\nmax_lifetime = \"2h\"\n[approval]\nallow = [\"make test\"]\n[model]\ndefault = \"openai:gpt-5.1\"\n",
		filepath.Join(root, ".talkops", "config.toml"): "[sync]\nexclude = [\"*.log\"]\n[run]\nmax_turns = 10\n",
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	env := map[string]string{"TALKOPS_TIMEOUT": "10m", "TALKOPS_MODEL": "anthropic:claude"}
	src := config.Sources{
		Home: home, Dir: root, Flags: map[string]string{"max-turns": "5"}, Providers: []string{"local", "daytona"},
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	}
	var ours, reading time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := config.Load(src); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(began)
		began = time.Now()
		for name := range files {
			if _, err := os.ReadFile(name); err != nil {
				b.Fatal(err)
			}
		}
		reading += time.Since(began)
	}
	b.ReportMetric(float64(ours)/float64(b.N)/float64(2*time.Millisecond), "of-2ms")
	b.ReportMetric(float64(ours)/float64(reading), "ratio")
}

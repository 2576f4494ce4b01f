//go:build unix

package local_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// The benchmarks report "ratio": our time over that of the standard library.

// compare alternates two ways of doing the same.
func compare(b *testing.B, ours, theirs func() error) {
	b.Helper()
	var us, them time.Duration
	for b.Loop() {
		start := time.Now()
		if err := ours(); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		if err := theirs(); err != nil {
			b.Fatal(err)
		}
		us, them = us+middle.Sub(start), them+time.Since(middle)
	}
	b.ReportMetric(float64(us.Microseconds())/float64(b.N), "µs")
	b.ReportMetric(float64(us)/float64(them), "ratio")
}

func openBench(b *testing.B) sandbox.Sandbox {
	b.Helper()
	sb, err := local.Provider{}.Open(b.Context(), sandbox.Spec{Dir: b.TempDir(), Env: map[string]string{"PATH": os.Getenv("PATH")}})
	if err != nil {
		b.Fatal(err)
	}
	return sb
}

func BenchmarkExec(b *testing.B) {
	sb := openBench(b)
	compare(b, func() error {
		var out bytes.Buffer
		_, err := sb.Exec(b.Context(), sandbox.Cmd{Args: []string{"echo", "hello"}, Stdout: &out})
		return err
	}, func() error {
		_, err := exec.Command("echo", "hello").Output()
		return err
	})
}

func BenchmarkReadFile(b *testing.B) {
	sb := openBench(b)
	name := filepath.Join(sb.Info().Dir, "file")
	if err := os.WriteFile(name, make([]byte, 64<<10), 0o600); err != nil {
		b.Fatal(err)
	}
	compare(b, func() error { return sb.ReadFile(b.Context(), name, io.Discard) }, func() error {
		_, err := os.ReadFile(name)
		return err
	})
}

func BenchmarkWriteFile(b *testing.B) {
	sb := openBench(b)
	name, data := filepath.Join(sb.Info().Dir, "file"), make([]byte, 64<<10)
	compare(b, func() error { return sb.WriteFile(b.Context(), name, bytes.NewReader(data), 0o600) },
		func() error { return os.WriteFile(name+"-plain", data, 0o600) })
}

//go:build unix

package daytona_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/daytona"
	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// BenchmarkCalls reports "ratio": the time of a call over that of one bare HTTP
// round trip to the same emulator. The emulated network has no latency, so that
// the processes the emulator starts weigh most; "requests" is what a far service
// would make felt.
func BenchmarkCalls(b *testing.B) {
	s := daytonatest.New(b)
	sb, err := daytona.Provider{}.Open(b.Context(), sandbox.Spec{Settings: s.Settings()})
	if err != nil {
		b.Fatal(err)
	}
	info, data := sb.Info(), make([]byte, 64<<10)
	name := info.Dir + "/file"
	bare := func() error {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.URL()+"/sandbox/"+info.ID, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+s.Key())
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("HTTP %d, %w", resp.StatusCode, err)
		}
		return nil
	}
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"Exec", func() error {
			var out bytes.Buffer
			_, err := sb.Exec(b.Context(), sandbox.Cmd{Args: []string{"echo", "hello"}, Stdout: &out})
			return err
		}},
		{"WriteFile", func() error { return sb.WriteFile(b.Context(), name, bytes.NewReader(data), 0o600) }},
		{"ReadFile", func() error { return sb.ReadFile(b.Context(), name, io.Discard) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ours, theirs time.Duration
			requests := 0
			for b.Loop() {
				before := len(s.Requests(""))
				start := time.Now()
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
				ours += time.Since(start)
				requests += len(s.Requests("")) - before
				start = time.Now()
				if err := bare(); err != nil {
					b.Fatal(err)
				}
				theirs += time.Since(start)
			}
			b.ReportMetric(float64(requests)/float64(b.N), "requests")
			b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "µs")
			b.ReportMetric(float64(ours)/float64(theirs), "ratio")
		})
	}
}

package wasmtest

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Bench measures a module against the same provider without a module, on the same
// service: "ms-above" is what an operation takes more, "ratio" our time over that
// of the plain way. Bulk is also told as MB/s.
func Bench(b *testing.B, module, plain sandbox.Provider, settings map[string]string) {
	ctx := b.Context()
	spec := sandbox.Spec{Settings: settings, Lifetime: time.Hour}
	sb, err := module.Open(ctx, spec)
	if err != nil {
		b.Fatal(err)
	}
	spec.ID, spec.Token = sb.Info().ID, sb.Info().Token
	b.Cleanup(func() {
		sb.Close()
		module.Destroy(context.WithoutCancel(ctx), spec)
	})
	theirs, err := plain.Open(ctx, sandbox.Spec{ID: spec.ID, Settings: settings})
	if err != nil {
		b.Fatal(err)
	}
	defer theirs.Close()
	name := sb.Info().Dir + "/large"
	const large = 32 << 20
	exec := func(sb sandbox.Sandbox, args ...string) error {
		exit, err := sb.Exec(ctx, sandbox.Cmd{Args: args, Stdout: io.Discard})
		if err == nil && exit != 0 {
			err = sandbox.Errorf(sandbox.CodeInternal, "%v ended with %d", args, exit)
		}
		return err
	}
	for _, row := range []struct {
		name  string
		bytes int64
		do    func(sandbox.Sandbox) error
	}{
		{"Kill", 0, func(sb sandbox.Sandbox) error {
			sandbox.Kill(ctx, sb, "none") // some say that there is none
			return nil
		}},
		{"Exec", 0, func(sb sandbox.Sandbox) error { return exec(sb, "echo", "hello") }},
		{"Output", 16 << 20, func(sb sandbox.Sandbox) error { return exec(sb, "head", "-c", "16777216", "/dev/zero") }},
		{"Write", large, func(sb sandbox.Sandbox) error {
			return sb.WriteFile(ctx, name, io.LimitReader(zeros{}, large), 0o644)
		}},
		{"Read", large, func(sb sandbox.Sandbox) error { return sb.ReadFile(ctx, name, io.Discard) }},
	} {
		b.Run(row.name, func(b *testing.B) {
			var us, them time.Duration
			for b.Loop() {
				began := time.Now()
				if err := row.do(theirs); err != nil {
					b.Fatal(err)
				}
				between := time.Now()
				if err := row.do(sb); err != nil {
					b.Fatal(err)
				}
				us, them = us+time.Since(between), them+between.Sub(began)
			}
			if row.bytes > 0 {
				b.ReportMetric(float64(row.bytes)*float64(b.N)/us.Seconds()/1e6, "MB/s-module")
				b.ReportMetric(float64(row.bytes)*float64(b.N)/them.Seconds()/1e6, "MB/s-plain")
			}
			b.ReportMetric((us-them).Seconds()*1000/float64(b.N), "ms-above")
			b.ReportMetric(float64(us)/float64(them), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

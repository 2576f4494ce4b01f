package emulate

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Plain is the vendor's protocol at its barest: one command without care for
// its outcome, one file moved by the vendor's own way. Each call is for the
// machine of info; names are absolute.
type Plain struct {
	Exec     func(ctx context.Context, s Service, info sandbox.Info, command string) error
	Upload   func(ctx context.Context, s Service, info sandbox.Info, name string, r io.Reader) error
	Download func(ctx context.Context, s Service, info sandbox.Info, name string, w io.Writer) error
}

// Bench measures the calls that users wait for. It reports "ratio", the time of a
// call over that of the plain operation on the same emulator, and "requests", what
// a far service would make felt.
func Bench(b *testing.B, s Subject, p Plain) {
	service, stop, err := s.Start()
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	ctx := b.Context()
	sb, err := s.Provider.Open(ctx, sandbox.Spec{Settings: service.Settings(), Lifetime: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	info := sb.Info()
	const large = 100 << 20
	tree := smallFiles(1000)
	echo := func() error { return p.Exec(ctx, service, info, "echo hello") }
	upload := func(data io.Reader) error { return p.Upload(ctx, service, info, info.Dir+"/plain", data) }
	if err := sb.WriteFile(ctx, info.Dir+"/large", io.LimitReader(zeros{}, large), 0o644); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		call, plain func() error
	}{
		{"Exec", func() error {
			_, err := sb.Exec(ctx, sandbox.Cmd{Args: []string{"echo", "hello"}, Stdout: io.Discard})
			return err
		}, echo},
		{"FirstByte", func() error {
			first := make(firstByte)
			short, cancel := context.WithCancel(ctx)
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := sb.Exec(short, sandbox.Cmd{Args: []string{"sh", "-c", "echo hello; sleep 0.5"}, Stdout: first})
				ended <- err
			}()
			select {
			case <-first:
				return nil
			case err := <-ended:
				return fmt.Errorf("no output: %w", err)
			}
		}, echo},
		{"Unpack1000Files", func() error {
			return sandbox.Unpack(ctx, sb, info.Dir+"/tree", bytes.NewReader(tree))
		}, func() error { return upload(bytes.NewReader(tree)) }},
		{"Write100MB", func() error {
			return sb.WriteFile(ctx, info.Dir+"/large", io.LimitReader(zeros{}, large), 0o644)
		}, func() error { return upload(io.LimitReader(zeros{}, large)) }},
		{"Read100MB", func() error { return sb.ReadFile(ctx, info.Dir+"/large", io.Discard) },
			func() error { return p.Download(ctx, service, info, info.Dir+"/large", io.Discard) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ours, plain time.Duration
			requests := 0
			for b.Loop() {
				before := len(service.Requests(""))
				began := time.Now()
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
				ours += time.Since(began)
				requests += len(service.Requests("")) - before
				began = time.Now()
				if err := c.plain(); err != nil {
					b.Fatal(err)
				}
				plain += time.Since(began)
			}
			n := float64(b.N)
			b.ReportMetric(float64(requests)/n, "requests")
			b.ReportMetric(float64(ours.Microseconds())/n/1000, "ms")
			b.ReportMetric(float64(ours)/float64(plain), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// firstByte is a writer that is closed by the first write.
type firstByte chan struct{}

func (f firstByte) Write(p []byte) (int, error) {
	select {
	case <-f:
	default:
		close(f)
	}
	return len(p), nil
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func smallFiles(n int) []byte {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for i := range n {
		data := fmt.Appendf(nil, "file %d\n", i)
		tw.WriteHeader(&tar.Header{Name: fmt.Sprintf("d%d/f%d", i%20, i), Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data))})
		tw.Write(data)
	}
	tw.Close()
	return buf.Bytes()
}

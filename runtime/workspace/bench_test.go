//go:build unix

package workspace

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// manyFiles is a tree of n files of so many bytes, which look like source.
func manyFiles(b *testing.B, n, size int) string {
	b.Helper()
	root := b.TempDir()
	words := strings.Fields("func return if err nil package import string int range the of resource aws_instance variable = { } ( ) := == \n \n\t \n\t\t")
	r := rand.New(rand.NewPCG(1, uint64(n)))
	var text strings.Builder
	for text.Len() < size+64<<10 {
		text.WriteString(words[r.IntN(len(words))])
		if r.IntN(8) == 0 {
			fmt.Fprintf(&text, "%x", r.Uint32())
		}
		text.WriteByte(" \n"[r.IntN(8)/7])
	}
	for i := range n {
		dir := filepath.Join(root, fmt.Sprintf("d%d", i/100))
		if i%100 == 0 {
			os.MkdirAll(dir, 0o755)
		}
		at := r.IntN(64 << 10)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%d.go", i)), []byte(text.String()[at:at+size]), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return root
}

// took runs a script of a shell over the tree and returns its time.
func took(b *testing.B, script, root string) time.Duration {
	b.Helper()
	began := time.Now()
	if out, err := exec.Command("sh", "-c", script, "sh", root, b.TempDir()).CombinedOutput(); err != nil {
		b.Skipf("%v: %s", err, out)
	}
	return time.Since(began)
}

// The measures: an archive into nothing, which is the least that can be, and one
// that is unpacked.
const (
	intoNothing = `tar -C "$1" -c . | zstd -1 -q -c > /dev/null`
	unpacked    = `tar -C "$1" -c . | zstd -1 -q -c | zstd -d -q -c | tar -C "$2" -x`
)

// A hole is a sandbox that takes archives and throws them away.
type hole struct{ sandbox.Sandbox }

func (h hole) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	if cmd.Stdin != nil {
		_, err := io.Copy(io.Discard, cmd.Stdin)
		return 0, err
	}
	return h.Sandbox.Exec(ctx, cmd)
}

// peak forgets how much memory the process had at most and returns a function that
// tells what it has had since, in MiB.
func peak(b *testing.B) func() float64 {
	os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200)
	return func() float64 {
		data, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return 0
		}
		_, rest, _ := strings.Cut(string(data), "VmHWM:")
		kb, _ := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64)
		return kb / 1024
	}
}

func planOf(b *testing.B, root string) *Plan {
	b.Helper()
	p, err := Make(b.Context(), root, Rules{MaxFileBytes: 10 << 20})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkUpload sends trees, the plan included. It reports "limit", our time over
// that of an archive into nothing when the sandbox throws it away; "ratio", that of
// the whole way over that of an archive that is unpacked; "each", the whole way
// over writing file by file, as far as a hundred of them tell; and the most memory.
func BenchmarkUpload(b *testing.B) {
	for _, row := range []struct {
		name    string
		n, size int
	}{
		{"10,000 files of 10 kB", 10_000, 10_000},
		{"100 files of 10 MB", 100, 10_000_000},
		{"100,000 files of 2 kB", 100_000, 2_000},
	} {
		b.Run(row.name, func(b *testing.B) {
			root := manyFiles(b, row.n, row.size)
			took(b, intoNothing, root) // the disk is warm
			nothing, whole := took(b, intoNothing, root), took(b, unpacked, root)
			here := os.Getenv("PATH")
			one := b.TempDir()
			sb := boxAt(b, one, here)
			began := time.Now()
			each := planOf(b, root).Items
			for _, item := range each[1:101] {
				if err := sb.WriteFile(b.Context(), filepath.Join(one, item.Name), strings.NewReader(strings.Repeat("x", int(item.Size))), 0o644); err != nil && !item.Mode.IsDir() {
					b.Fatal(err)
				}
			}
			eachTook := time.Since(began) * time.Duration(len(each)/100)

			began = time.Now()
			if err := planOf(b, root).Upload(b.Context(), hole{sb}, one, nil, nil); err != nil {
				b.Fatal(err)
			}
			thrown := time.Since(began)
			most := peak(b)
			for b.Loop() {
				box := b.TempDir()
				if err := planOf(b, root).Upload(b.Context(), boxAt(b, box, here), box, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
			one1 := float64(b.Elapsed()) / float64(b.N)
			b.ReportMetric(float64(thrown)/float64(nothing), "limit")
			b.ReportMetric(one1/float64(whole), "ratio")
			b.ReportMetric(one1/float64(eachTook), "each")
			b.ReportMetric(most(), "MiB")
		})
	}
}

// BenchmarkSecondUpload attaches to a sandbox that holds the tree but for ten files;
// "ratio" is to the first upload.
func BenchmarkSecondUpload(b *testing.B) {
	root, box := manyFiles(b, 10_000, 10_000), b.TempDir()
	sb := boxAt(b, box, os.Getenv("PATH"))
	began := time.Now()
	if err := planOf(b, root).Upload(b.Context(), sb, box, nil, nil); err != nil {
		b.Fatal(err)
	}
	first := time.Since(began)
	most := peak(b)
	for b.Loop() {
		for i := range 10 {
			if err := os.Remove(filepath.Join(box, fmt.Sprintf("d%d/file-%d.go", i, i*100))); err != nil {
				b.Fatal(err)
			}
		}
		p := planOf(b, root)
		same, differ, err := p.Existing(b.Context(), sb, box, nil)
		if err == nil {
			err = p.Upload(b.Context(), sb, box, func(name string) bool { return same[name] || differ[name] != "" }, nil)
		}
		if n := len(p.Records()); err != nil || n != 10 {
			b.Fatalf("%d were sent: %v", n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(first), "ratio")
	b.ReportMetric(most(), "MiB")
}

// BenchmarkOneEdit brings home one edit in a tree of 10,000 files, as after every
// call; "ratio" is to an archive of the tree into nothing.
func BenchmarkOneEdit(b *testing.B) {
	box := manyFiles(b, 10_000, 10_000)
	settle()
	took(b, intoNothing, box)
	plain := took(b, intoNothing, box)
	sb := boxAt(b, box, os.Getenv("PATH"))
	h := homeOf(b, sb, b.TempDir(), box, nil)
	n := 0
	for b.Loop() {
		n++
		if err := os.WriteFile(filepath.Join(box, "d1", "edited"), fmt.Append(nil, n), 0o644); err != nil {
			b.Fatal(err)
		}
		if err := h.Bring(context.Background(), sb, false); err != nil || len(h.Changes) != 1 {
			b.Fatal(h.Changes, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(plain), "ratio")
}

//go:build unix

package workspace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// manyFiles is a tree of n small files.
func manyFiles(b *testing.B, n int) string {
	b.Helper()
	root := b.TempDir()
	for i := range n {
		dir := filepath.Join(root, fmt.Sprintf("d%d", i/100))
		if i%100 == 0 {
			os.MkdirAll(dir, 0o755)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%d.go", i)), []byte(strings.Repeat(fmt.Sprint(i, "\n"), 300)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return root
}

// BenchmarkUpload reports "ratio", our time over that of tar and gzip making and
// unpacking the same tree, and "each", over that of writing file by file, as far
// as a hundredth of them tells.
func BenchmarkUpload(b *testing.B) {
	root := manyFiles(b, 10_000)
	began := time.Now()
	if out, err := exec.Command("sh", "-c", `tar -C "$1" -c . | gzip -1 | tar -C "$2" -xz`, "sh", root, b.TempDir()).CombinedOutput(); err != nil {
		b.Skipf("%v: %s", err, out)
	}
	plain := time.Since(began)
	p, err := Make(b.Context(), root, Rules{MaxFileBytes: 10 << 20})
	if err != nil {
		b.Fatal(err)
	}
	one := b.TempDir()
	sb := boxAt(b, one, os.Getenv("PATH"))
	began = time.Now()
	for _, item := range p.Items[:100] {
		sb.WriteFile(b.Context(), filepath.Join(one, item.Name), strings.NewReader(strings.Repeat("x", int(item.Size))), 0o644)
		sb.Exec(b.Context(), sandbox.Cmd{Args: []string{"true"}})
	}
	each := time.Since(began) * time.Duration(len(p.Items)/100)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		box := b.TempDir()
		if err := p.Upload(b.Context(), boxAt(b, box, os.Getenv("PATH")), box, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(plain), "ratio")
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(each), "each")
	b.ReportMetric(float64(after.Sys)/(1<<20), "MiB")
}

// BenchmarkOneEdit brings home one edit in a tree of 10,000 files, as after every
// call; "ratio" is to tar and gzip reading the tree.
func BenchmarkOneEdit(b *testing.B) {
	box := manyFiles(b, 10_000)
	settle()
	began := time.Now()
	if out, err := exec.Command("sh", "-c", `tar -C "$1" -c . | gzip -1 > /dev/null`, "sh", box).CombinedOutput(); err != nil {
		b.Skipf("%v: %s", err, out)
	}
	plain := time.Since(began)
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

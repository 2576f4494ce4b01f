package cmd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

// The benchmarks of this file report "ratio": our time over that of a Go program
// which prints one line and ends, both built and run here.

// programs are what is compared, in a directory of their own.
type programs struct{ talkops, hello, dir string }

func buildPrograms(b *testing.B) programs {
	b.Helper()
	dir := b.TempDir()
	ending := ""
	if runtime.GOOS == "windows" {
		ending = ".exe"
	}
	p := programs{talkops: filepath.Join(dir, "talkops"+ending), hello: filepath.Join(dir, "hello"+ending), dir: dir}
	source := filepath.Join(dir, "hello.go")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, args := range [][]string{{"build", "-o", p.talkops, "./talkops"}, {"build", "-o", p.hello, source}} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			b.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	return p
}

// run executes a program to its end, without the user's keys and settings.
func (p programs) run(b *testing.B, env []string, program string, args ...string) {
	b.Helper()
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.Dir = p.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "SYSTEMROOT=" + os.Getenv("SYSTEMROOT"), "HOME=" + p.dir, "TALKOPS_HOME=" + filepath.Join(p.dir, "home")}, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s %v: %v\n%s", filepath.Base(program), args, err, out)
	}
}

func BenchmarkColdStart(b *testing.B) {
	p := buildPrograms(b)
	for _, args := range [][]string{{"--version"}, {"config", "show"}} {
		b.Run(strings.Join(args, " "), func(b *testing.B) {
			var ours, theirs time.Duration
			for b.Loop() {
				start := time.Now()
				p.run(b, nil, p.talkops, args...)
				middle := time.Now()
				p.run(b, nil, p.hello)
				ours, theirs = ours+middle.Sub(start), theirs+time.Since(middle)
			}
			b.ReportMetric(ours.Seconds()*1000/float64(b.N), "ms")
			b.ReportMetric(float64(ours)/float64(theirs), "ratio")
		})
	}
}

// BenchmarkFirstRequest measures from exec to the first request at the model.
func BenchmarkFirstRequest(b *testing.B) {
	p := buildPrograms(b)
	srv := modeltest.New(b)
	srv.Forever(modeltest.Step{Text: "hi"})
	env := []string{"OPENAI_API_KEY=x", "OPENAI_BASE_URL=" + srv.OpenAI()}
	var ours, theirs time.Duration
	for b.Loop() {
		before := len(srv.Requests())
		start := time.Now()
		arrived, ended := make(chan time.Duration), make(chan struct{})
		go func() {
			for over := false; !over && len(srv.Requests()) == before; {
				select {
				case <-ended:
					over = true
				case <-time.After(100 * time.Microsecond):
				}
			}
			arrived <- time.Since(start)
		}()
		p.run(b, env, p.talkops, "-p", "hi", "--model", "openai:gpt-5.1")
		close(ended)
		took := <-arrived
		if len(srv.Requests()) != before+1 {
			b.Fatalf("%d requests came, want 1", len(srv.Requests())-before)
		}
		middle := time.Now()
		p.run(b, nil, p.hello)
		ours, theirs = ours+took, theirs+time.Since(middle)
	}
	b.ReportMetric(ours.Seconds()*1000/float64(b.N), "ms")
	b.ReportMetric(float64(ours)/float64(theirs), "ratio")
}

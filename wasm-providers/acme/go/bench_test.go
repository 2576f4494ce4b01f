//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/hostfuncs"
	"github.com/talkops-ai/talkops/runtime/wasm"
	"github.com/talkops-ai/talkops/runtime/wasm/helper"
	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
	"github.com/talkops-ai/talkops/sdk/practice"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// The benchmarks of this file report "ratio": our time over that of the same
// requests made by net/http, without a module. Another module of the same provider
// is measured with ACME_WASM=FILE.

func file(b *testing.B) string {
	if f := os.Getenv("ACME_WASM"); f != "" {
		return f
	}
	return wasmtest.Build(b, ".")
}

// A stage is the practice service, a sandbox through the module, and the plain way.
type stage struct {
	*practice.Server
	sb    sandbox.Sandbox
	cache string
}

func open(b *testing.B, file, cache string) stage {
	b.Helper()
	s, err := practice.Start(practice.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	hosts, err := hostfuncs.ParseHosts([]string{s.URL()})
	if err != nil {
		b.Fatal(err)
	}
	p, err := wasm.Load(b.Context(), wasm.Config{Name: "acme", File: file, Cache: cache, Grant: hostfuncs.Grant{Hosts: hosts}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	sb, err := p.Open(b.Context(), sandbox.Spec{Settings: s.Settings()})
	if err != nil {
		b.Fatal(err)
	}
	return stage{s, sb, cache}
}

// plain makes one request to the box.
func (s stage) plain(b *testing.B, method, path string, body io.Reader) {
	req, err := http.NewRequest(method, s.URL()+"/v1/boxes/"+s.sb.Info().ID+path, body)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Key())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// beside runs ours and theirs by turns.
func beside(b *testing.B, ours, theirs func()) {
	var us, them time.Duration
	for b.Loop() {
		began := time.Now()
		theirs()
		between := time.Now()
		ours()
		us, them = us+time.Since(between), them+between.Sub(began)
	}
	b.ReportMetric((us-them).Seconds()*1000/float64(b.N), "ms-above")
	b.ReportMetric(float64(us)/float64(them), "ratio")
}

// From the file to the first sandbox, with everything to be compiled.
func BenchmarkColdCompile(b *testing.B) {
	f := file(b)
	for b.Loop() {
		open(b, f, b.TempDir())
	}
}

// The same with native code and description kept: a process and an instance.
func BenchmarkWarmLoad(b *testing.B) {
	f, cache := file(b), b.TempDir()
	open(b, f, cache)
	for b.Loop() {
		open(b, f, cache)
	}
}

// A kill of a command that is not there is one request and its answer.
func BenchmarkOperation(b *testing.B) {
	s := open(b, file(b), wasmtest.Cache(b))
	beside(b, func() { sandbox.Kill(b.Context(), s.sb, "none") }, func() { s.plain(b, "DELETE", "/commands/none", nil) })
}

// A command is started by one request and followed by another.
func BenchmarkExec(b *testing.B) {
	s := open(b, file(b), wasmtest.Cache(b))
	n := 0
	beside(b, func() { s.exec(b, "true", io.Discard) }, func() {
		n++
		s.command(b, fmt.Sprint("n-", n), "true")
	})
}

func (s stage) exec(b *testing.B, script string, out io.Writer) {
	if exit, err := s.sb.Exec(b.Context(), sandbox.Cmd{Args: []string{"sh", "-c", script}, Stdout: out}); err != nil || exit != 0 {
		b.Fatal(exit, err)
	}
}

func (s stage) command(b *testing.B, id, script string) {
	s.plain(b, "PUT", "/commands/"+id, strings.NewReader(fmt.Sprintf(`{"args":["sh","-c",%q],"dir":%q}`, script, s.sb.Info().Dir)))
	s.plain(b, "GET", "/commands/"+id+"/output", nil)
}

// Output that the vendor frames in JSON lines is delivered by the host.
func BenchmarkOutput(b *testing.B) {
	s := open(b, file(b), wasmtest.Cache(b))
	const script = "head -c 16777216 /dev/zero"
	n := 0
	b.SetBytes(16 << 20)
	beside(b, func() { s.exec(b, script, io.Discard) }, func() {
		n++
		s.command(b, fmt.Sprint("o-", n), script)
	})
}

// Bytes by handle never enter the module.
func BenchmarkBytes(b *testing.B) {
	s := open(b, file(b), wasmtest.Cache(b))
	name, content := s.sb.Info().Dir+"/f", strings.Repeat("0123456789abcdef", 4<<20)
	b.SetBytes(2 * int64(len(content)))
	query := "/files?mode=0644&path=" + url.QueryEscape(name)
	beside(b, func() {
		if err := s.sb.WriteFile(b.Context(), name, strings.NewReader(content), 0o644); err != nil {
			b.Fatal(err)
		}
		if err := s.sb.ReadFile(b.Context(), name, io.Discard); err != nil {
			b.Fatal(err)
		}
	}, func() {
		s.plain(b, "PUT", query, io.MultiReader(strings.NewReader(content)))
		s.plain(b, "GET", query, nil)
	})
}

// From the cancellation of a command to its return, its end at the vendor included.
func BenchmarkCancel(b *testing.B) {
	s := open(b, file(b), wasmtest.Cache(b))
	var took time.Duration
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		var at time.Time
		_, err := s.sb.Exec(ctx, sandbox.Cmd{Args: []string{"sh", "-c", "echo; exec sleep 60"}, Stdout: writer(func() { at = time.Now(); cancel() })})
		if !errors.Is(err, context.Canceled) {
			b.Fatal(err)
		}
		took += time.Since(at)
	}
	b.ReportMetric(took.Seconds()*1000/float64(b.N), "ms-cancel")
}

type writer func()

func (w writer) Write(p []byte) (int, error) { w(); return len(p), nil }

// What the module's process takes, and what each operation adds.
func BenchmarkMemory(b *testing.B) {
	s := open(b, file(b), b.TempDir())
	const running = 8
	sandbox.Kill(b.Context(), s.sb, "none")
	idle := s.resident(b)
	var busy float64
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		began, ended := make(chan bool, running), make(chan bool, running)
		for range running {
			go func() {
				s.sb.Exec(ctx, sandbox.Cmd{Args: []string{"sh", "-c", "echo; exec sleep 60"}, Stdout: writer(func() { began <- true })})
				ended <- true
			}()
		}
		for range running {
			<-began
		}
		busy = s.resident(b)
		cancel()
		for range running {
			<-ended
		}
	}
	b.ReportMetric(idle, "MiB-idle")
	b.ReportMetric((busy-idle)/running, "MiB-each")
}

// resident is the memory of the module's process, in MiB.
func (s stage) resident(b *testing.B) float64 {
	b.Helper()
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, l := range lines {
		text, _ := os.ReadFile(l)
		dir := filepath.Dir(l)
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		if !strings.Contains(string(text), helper.Arg) || !strings.HasPrefix(cwd, s.cache) {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(dir, "status"))
		for line := range strings.Lines(string(status)) {
			var kb float64
			if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kb); n == 1 {
				return kb / 1024
			}
		}
	}
	b.Fatal("the module has no process")
	return 0
}

package emulate

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	patience = 3 * time.Second  // how long the caller of a matrix operation waits
	cleaning = 40 * time.Second // how long a provider may take to clean up after that
	atOnce   = 24               // cases that run side by side
)

// switches are the faults of the matrix. Want lists the codes an operation may
// end with; success is always right if the work was done.
var switches = []struct {
	name  string
	fault Fault
	want  []sandbox.Code
}{
	{"429 once", Fault{Status: 429, Header: map[string]string{"Retry-After": "1"}}, []sandbox.Code{sandbox.CodeRateLimited}},
	{"500 once", Fault{Status: 500}, []sandbox.Code{sandbox.CodeUnavailable}},
	{"503 always", Fault{Status: 503, Times: -1}, []sandbox.Code{sandbox.CodeUnavailable, sandbox.CodeTimeout}},
	{"401 always", Fault{Status: 401, Times: -1}, []sandbox.Code{sandbox.CodeUnauthenticated}},
	{"garbage", Fault{Status: 200, Body: "<html>maintenance</html>"}, []sandbox.Code{sandbox.CodeInternal, sandbox.CodeUnavailable, sandbox.CodeTimeout}},
	{"no answer", Fault{Hang: true}, []sandbox.Code{sandbox.CodeUnavailable, sandbox.CodeTimeout}},
	{"no answer ever", Fault{Hang: true, Times: -1}, []sandbox.Code{sandbox.CodeUnavailable, sandbox.CodeTimeout}},
	{"done, answer lost", Fault{Late: true}, []sandbox.Code{sandbox.CodeUnavailable, sandbox.CodeTimeout}},
	{"answer cut", Fault{Cut: 1}, []sandbox.Code{sandbox.CodeUnavailable, sandbox.CodeTimeout, sandbox.CodeInternal}},
}

// An operation is one call of the contract: prepare happens in health, do under
// the fault, check afterwards in health again.
type operation struct {
	name    string
	closed  bool // no sandbox is open when it begins
	prepare func(*bench)
	do      func(context.Context, *bench) error
	check   func(*bench, error)
}

// A bench is one case: a service, an open sandbox, and what is wrong.
type bench struct {
	Subject
	service Service
	spec    sandbox.Spec
	sb      sandbox.Sandbox
	out     bytes.Buffer
	exit    int
	listed  []sandbox.Listed
	made    []string // ids told to Created

	mu       sync.Mutex
	failures []string
}

func (b *bench) errorf(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = append(b.failures, fmt.Sprintf(format, args...))
}

func (b *bench) path(name string) string { return filepath.Join(b.sb.Info().Dir, name) }

// file returns what the machine's tree holds; the emulators report true paths.
func (b *bench) file(name string) string {
	data, _ := os.ReadFile(b.path(name))
	return string(data)
}

var (
	oldText = strings.Repeat("old\n", 1000)
	newText = strings.Repeat("new text\n", 30000)
)

func operations() []operation {
	return []operation{
		{
			name: "open", closed: true,
			do: func(ctx context.Context, b *bench) (err error) {
				b.sb, err = b.Provider.Open(ctx, b.spec)
				return err
			},
			check: func(b *bench, err error) {
				boxes := b.service.Boxes()
				switch {
				case err != nil && len(boxes) != 0:
					b.errorf("a failed Open left %v", boxes)
				case err == nil && !slices.Equal(boxes, []string{b.sb.Info().ID}):
					b.errorf("there are the machines %v, want %s alone", boxes, b.sb.Info().ID)
				case err == nil && !slices.Contains(b.made, b.sb.Info().ID):
					b.errorf("Created was not told of %s", b.sb.Info().ID)
				}
			},
		},
		{
			name: "attach",
			do: func(ctx context.Context, b *bench) error {
				spec := b.spec
				spec.ID = b.sb.Info().ID
				sb, err := b.Provider.Open(ctx, spec)
				if err == nil {
					sb.Close()
				}
				return err
			},
			check: func(b *bench, err error) {
				if boxes := b.service.Boxes(); !slices.Equal(boxes, []string{b.sb.Info().ID}) {
					b.errorf("after attaching there are the machines %v, want %s", boxes, b.sb.Info().ID)
				}
			},
		},
		{
			name: "exec",
			do: func(ctx context.Context, b *bench) (err error) {
				b.exit, err = b.sb.Exec(ctx, sandbox.Cmd{
					Args:   []string{"sh", "-c", "echo x >>count; echo begin; sleep 0.2; cat; exit 3"},
					Stdin:  strings.NewReader("input\n"),
					Stdout: &b.out,
				})
				return err
			},
			check: func(b *bench, err error) {
				const whole = "begin\ninput\n"
				runs := strings.Count(b.file("count"), "x")
				switch {
				case runs > 1:
					b.errorf("the command ran %d times", runs)
				case err == nil && (b.exit != 3 || b.out.String() != whole || runs != 1):
					b.errorf("exit %d, output %q, %d runs and no error; want 3, %q, 1", b.exit, b.out.String(), runs, whole)
				case !strings.HasPrefix(whole, b.out.String()):
					b.errorf("output %q is no beginning of %q", b.out.String(), whole)
				}
			},
		},
		{
			name:    "read",
			prepare: func(b *bench) { b.must(b.sb.WriteFile(b.now(), b.path("f"), strings.NewReader(newText), 0o644)) },
			do: func(ctx context.Context, b *bench) error {
				return b.sb.ReadFile(ctx, b.path("f"), &b.out)
			},
			check: func(b *bench, err error) {
				if got := b.out.String(); !strings.HasPrefix(newText, got) || err == nil && got != newText {
					b.errorf("%d bytes were read that are not the file's %d (error %v)", len(got), len(newText), err)
				}
			},
		},
		{
			name:    "write",
			prepare: func(b *bench) { b.must(b.sb.WriteFile(b.now(), b.path("f"), strings.NewReader(oldText), 0o640)) },
			do: func(ctx context.Context, b *bench) error {
				return b.sb.WriteFile(ctx, b.path("f"), strings.NewReader(newText), 0o644)
			},
			check: func(b *bench, err error) {
				got := b.file("f")
				if got != newText && got != oldText || err == nil && got != newText {
					b.errorf("the file has %d bytes, neither old nor new (error %v)", len(got), err)
				}
				names, _ := filepath.Glob(b.path(".talkops-*"))
				if len(names) > 0 && err == nil {
					b.errorf("a temporary file is left: %v", names)
				}
			},
		},
		{
			name: "unpack",
			do: func(ctx context.Context, b *bench) error {
				return sandbox.Unpack(ctx, b.sb, b.path("tree"), bytes.NewReader(archive()))
			},
			check: func(b *bench, err error) {
				if err == nil && b.file("tree/d/f") != newText {
					b.errorf("Unpack succeeded, yet the file has %d bytes", len(b.file("tree/d/f")))
				}
			},
		},
		{
			name: "pack",
			prepare: func(b *bench) {
				b.must(b.sb.WriteFile(b.now(), b.path("tree/f"), strings.NewReader(oldText), 0o644))
			},
			do: func(ctx context.Context, b *bench) error {
				return sandbox.Pack(ctx, b.sb, b.path("tree"), []string{"f"}, &b.out)
			},
			check: func(b *bench, err error) {
				if err != nil {
					return
				}
				tr := tar.NewReader(&b.out)
				h, terr := tr.Next()
				data, rerr := io.ReadAll(tr)
				if terr != nil || rerr != nil || h.Name != "f" || string(data) != oldText {
					b.errorf("Pack succeeded with an archive that is not the file: %v, %v", terr, rerr)
				}
			},
		},
		{
			name: "list",
			do: func(ctx context.Context, b *bench) (err error) {
				l, ok := b.Provider.(sandbox.Lister)
				if !ok {
					return nil
				}
				spec := b.spec
				spec.Created = nil
				b.listed, err = l.List(ctx, spec)
				return err
			},
			check: func(b *bench, err error) {
				if _, ok := b.Provider.(sandbox.Lister); ok && err == nil && (len(b.listed) != 1 || b.listed[0].ID != b.sb.Info().ID) {
					b.errorf("listed %v, want %s", b.listed, b.sb.Info().ID)
				}
			},
		},
		{
			name: "destroy",
			do: func(ctx context.Context, b *bench) error {
				return b.Provider.Destroy(ctx, b.named())
			},
			check: func(b *bench, err error) {
				if boxes := b.service.Boxes(); err == nil && len(boxes) != 0 {
					b.errorf("Destroy succeeded, yet there are %v", boxes)
				}
			},
		},
	}
}

func archive() []byte {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	tw.WriteHeader(&tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755})
	tw.WriteHeader(&tar.Header{Name: "d/f", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(newText))})
	io.WriteString(tw, newText)
	tw.Close()
	return buf.Bytes()
}

func (b *bench) now() context.Context { return context.Background() }

func (b *bench) must(err error) {
	if err != nil {
		b.errorf("preparing: %v", err)
	}
}

func (b *bench) named() sandbox.Spec {
	spec := b.spec
	spec.ID, spec.Token = b.sb.Info().ID, b.sb.Info().Token
	return spec
}

// Matrix runs every operation of the contract under every fault, on each request
// the operation makes when all is well. Whatever happens: it ends in time, with
// the work done or an error of the right kind; no command has run twice; no
// machine is there twice or left behind.
func Matrix(t *testing.T, s Subject) {
	t.Helper()
	if testing.Short() {
		t.Skip("every fault on every request takes a minute")
	}
	type row struct {
		name     string
		failures []string
		skip     string
	}
	var rows []*row
	var wg sync.WaitGroup
	gate := make(chan struct{}, atOnce)
	for _, op := range operations() {
		requests, failures := s.one(op, nil, nil)
		if len(failures) > 0 {
			t.Errorf("%s without a fault: %s", op.name, strings.Join(failures, "; "))
			continue
		}
		for _, request := range requests {
			for _, sw := range switches {
				r := &row{name: op.name + "/" + request + "/" + sw.name}
				rows = append(rows, r)
				for pattern, why := range s.Skip {
					if matches(pattern, r.name) {
						r.skip = why
					}
				}
				if r.skip != "" {
					continue
				}
				fault := sw.fault
				fault.Op = request
				wg.Go(func() {
					gate <- struct{}{}
					defer func() { <-gate }()
					_, r.failures = s.one(op, &fault, sw.want)
				})
			}
		}
	}
	wg.Wait()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if r.skip != "" {
				t.Skip(r.skip)
			}
			for _, f := range r.failures {
				t.Error(f)
			}
		})
	}
}

// matches reports whether each of the three parts of pattern is that of name or "*".
func matches(pattern, name string) bool {
	p, n := strings.Split(pattern, "/"), strings.Split(name, "/")
	for i := range n {
		if i >= len(p) || p[i] != "*" && p[i] != n[i] {
			return false
		}
	}
	return true
}

// one runs op once under fault, which may be nil. It returns the requests that op
// made and what was wrong.
func (s Subject) one(op operation, fault *Fault, want []sandbox.Code) (requests, failures []string) {
	service, stop, err := s.Start()
	if err != nil {
		return nil, []string{err.Error()}
	}
	defer stop()
	b := &bench{Subject: s, service: service}
	b.spec = sandbox.Spec{
		Settings: service.Settings(),
		Name:     "matrix-box",
		Labels:   map[string]string{"talkops": "1", "run": "matrix"},
		Lifetime: time.Hour,
	}
	b.spec.Created = func(i sandbox.Info) { b.made = append(b.made, i.ID) }
	if !op.closed {
		if b.sb, err = s.Provider.Open(b.now(), b.spec); err != nil {
			return nil, []string{"open: " + err.Error()}
		}
	}
	if op.prepare != nil {
		op.prepare(b)
	}
	before := len(service.Requests(""))
	within := 30 * time.Second
	if fault != nil {
		service.Inject(*fault)
		within = patience
		if !slices.Contains(want, sandbox.CodeTimeout) || fault.Times >= 0 && !fault.Hang {
			within *= 5 // it should get through, or fail at once
		}
	}
	ctx, cancel := context.WithTimeout(b.now(), within)
	defer cancel()
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- op.do(ctx, b) }()
	select {
	case err = <-done:
	case <-time.After(within + cleaning):
		return nil, []string{fmt.Sprintf("it hangs: no answer after %v", time.Since(began).Round(time.Second))}
	}
	service.Heal()
	for _, r := range service.Requests("")[before:] {
		if r.Op != "" && !slices.Contains(requests, r.Op) {
			requests = append(requests, r.Op)
		}
	}
	switch code := sandbox.CodeOf(err); {
	case err != nil && fault == nil:
		b.errorf("error: %v", err)
	case err != nil && !slices.Contains(want, code):
		b.errorf("the error %v has the code %q, want one of %q", err, code, want)
	}
	op.check(b, err)
	if b.sb != nil {
		b.sb.Close()
		ctx, cancel := context.WithTimeout(b.now(), cleaning)
		defer cancel()
		if derr := s.Provider.Destroy(ctx, b.named()); derr != nil {
			b.errorf("destroying afterwards: %v", derr)
		}
	}
	if boxes := service.Boxes(); len(boxes) != 0 {
		b.errorf("left at the end: %v", boxes)
	}
	return requests, b.failures
}

//go:build linux && (amd64 || arm64)

package e2b_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/talkops-ai/talkops/hostfuncs"
	"github.com/talkops-ai/talkops/providers/e2b/e2btest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/runtime/wasm"
	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// What the provider promises under every fault, it promises as a module too.
func TestFaultsThroughTheWall(t *testing.T) {
	if testing.Short() || wasmtest.Raced {
		t.Skip("every fault on every request, through the wall, takes minutes")
	}
	// A module is granted its hosts when it is loaded: there is a place for each case.
	var mu sync.Mutex
	var places []net.Listener
	var grant hostfuncs.Grant
	for range 200 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		h, err := hostfuncs.ParseHost("http://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		places, grant.Hosts = append(places, l), append(grant.Hosts, h)
	}
	p, err := wasm.Load(t.Context(), wasm.Config{
		Name: "e2b", File: wasmtest.Build(t, "../../wasm-providers/e2b"), Grant: grant, Cache: wasmtest.Cache(t),
		Limits: wasm.Limits{AtOnce: 64}, Log: func(r hostfuncs.Record) {
			if os.Getenv("WASM_LOG") != "" {
				t.Log(r)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	emulate.Matrix(t, emulate.Subject{Provider: p, Start: func() (emulate.Service, func(), error) {
		mu.Lock()
		defer mu.Unlock()
		if len(places) == 0 {
			return nil, nil, errors.New("there are more cases than places")
		}
		l := places[0]
		places = places[1:]
		s, err := e2btest.Start(e2btest.Config{Listener: l})
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}})
	for _, l := range places {
		l.Close()
	}
}

// A command that is cancelled while its output goes past the module has ended, with
// its output delivered in order.
func TestCancelWhileMuchIsWritten(t *testing.T) {
	if wasmtest.Raced {
		t.Skip("preparing the module takes minutes with the race detector")
	}
	s := e2btest.New(t)
	p := wasmtest.Load(t, "e2b", wasmtest.Build(t, "../../wasm-providers/e2b"), s.URL())
	sb, err := p.Open(t.Context(), sandbox.Spec{Settings: s.Settings()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines := &numbered{enough: 5 << 20, tell: cancel}
	exit, err := sb.Exec(ctx, sandbox.Cmd{Args: emulate.Sh("echo $$ >pid; exec seq 1000000000"), Stdout: lines})
	if exit != 130 || sandbox.CodeOf(err) != sandbox.CodeCancelled {
		t.Errorf("got %d, %v", exit, err)
	}
	if lines.wrong != "" || lines.n < lines.enough {
		t.Errorf("after %d bytes: %s", lines.n, lines.wrong)
	}
	pid, err := os.ReadFile(sb.Info().Dir + "/pid")
	if err != nil {
		t.Fatal(err)
	}
	emulate.Ended(t, string(pid))
}

// numbered checks that what it gets are the numbers from 1 on, and tells when there
// are enough.
type numbered struct {
	n, enough int
	tell      func()
	last      int
	rest      []byte
	wrong     string
}

func (n *numbered) Write(p []byte) (int, error) {
	if n.n += len(p); n.n >= n.enough {
		n.tell()
	}
	n.rest = append(n.rest, p...)
	end := bytes.LastIndexByte(n.rest, '\n') + 1
	for line := range bytes.Lines(n.rest[:end]) {
		n.last++
		if want := strconv.Itoa(n.last); n.wrong == "" && string(line) != want+"\n" {
			n.wrong = "got " + string(line) + " for " + want
		}
	}
	n.rest = append(n.rest[:0], n.rest[end:]...)
	return len(p), nil
}

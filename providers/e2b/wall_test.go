//go:build linux && (amd64 || arm64)

package e2b_test

import (
	"errors"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/talkops-ai/talkops/hostfuncs"
	"github.com/talkops-ai/talkops/providers/e2b/e2btest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/runtime/wasm"
	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
)

// What the provider promises under every fault, it promises as a module too.
func TestFaultsThroughTheWall(t *testing.T) {
	if testing.Short() {
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

//go:build linux && (amd64 || arm64)

package wasm_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

type counted struct{ n atomic.Int64 }

func (c *counted) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// A module cannot hold talkops up, whatever it does: the operation ends, and the
// rest of the program runs on meanwhile.
func TestHostileModulesAreContained(t *testing.T) {
	for name, body := range map[string][]byte{
		"an endless loop": wasmtest.Spin(), "a tree of calls without a loop": wasmtest.Tree(),
		"output without end": wasmtest.Flood(), "log lines without end": wasmtest.Chatter(), "sleep without end": wasmtest.Sleep(),
		"memory without end": wasmtest.Grow(), "kernel memory without end": wasmtest.Blocks(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sb := hostile(t, body)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			out := &counted{}
			began := time.Now()
			beat := heartbeat(t)
			exit, err := sb.Exec(ctx, sandbox.Cmd{Args: []string{"x"}, Stdout: out})
			took := time.Since(began)
			if late := beat(); late > 10*time.Second {
				t.Errorf("the program stood still for %v", late)
			}
			if exit != sandbox.ExitTimeout || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("exit %d, %v", exit, err)
			}
			if took > 40*time.Second {
				t.Errorf("it took %v", took)
			}
			// And the module can be used again.
			if err := sb.WriteFile(t.Context(), "/a", strings.NewReader("x"), 0o644); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// What breaks a module is its own error, in one line.
func TestBrokenModulesSayWhatHappened(t *testing.T) {
	for name, row := range map[string]struct {
		body []byte
		want string
	}{
		"a trap":                 {wasmtest.Trap(), "unreachable"},
		"endless recursion":      {wasmtest.Recurse(), "too deeply"},
		"no answer":              {wasmtest.Silent(), "no answer"},
		"a status":               {wasmtest.Fails(), "ended with 7"},
		"an answer not JSON":     {wasmtest.Say("hello"), "not JSON"},
		"an answer without exit": {wasmtest.Say(`{"ok":{}}`), "exit status"},
		"a strange status":       {wasmtest.Say(`{"ok":{"exit":999}}`), "exit status"},
		"both":                   {wasmtest.Say(`{"ok":{},"error":{"kind":"gone"}}`), "both"},
		"an untrue timeout":      {wasmtest.Say(`{"error":{"kind":"timeout","message":"no time"}}`), "no time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := hostile(t, row.body).Exec(t.Context(), sandbox.Cmd{Args: []string{"x"}})
			if err == nil || sandbox.CodeOf(err) != sandbox.CodeInternal || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v (%s), want internal with %q", err, sandbox.CodeOf(err), row.want)
			}
		})
	}
}

// A module that tells of one machine and answers with another has lost the first,
// which is ended. A machine that was never ours is not.
func TestAMachineThatWasToldOfIsTheOneThatIsOpen(t *testing.T) {
	source := wasmtest.Source{Code: map[string][]byte{
		abi.Open:    wasmtest.Opens(`{"id":"m-1","token":"eu"}`, `{"ok":{"id":"m-2","dir":"/work"}}`),
		abi.Destroy: wasmtest.Say(`{"error":{"kind":"unavailable","message":"it cannot be ended now"}}`),
	}}
	var told []sandbox.Info
	_, err := wasmtest.Load(t, "hand", source.Write(t)).Open(t.Context(), sandbox.Spec{Created: func(i sandbox.Info) { told = append(told, i) }})
	if err == nil || !strings.Contains(err.Error(), "another id than the machine it told of") || !strings.Contains(err.Error(), "sandbox m-1 could not be ended") || strings.Contains(err.Error(), "m-2") {
		t.Errorf("got %v", err)
	}
	if len(told) != 1 || told[0].ID != "m-1" || told[0].Token != "eu" {
		t.Errorf("told %+v", told)
	}
}

// What a module answers opening with is held to its form before anybody shows it.
func TestAnOpenedMachineIsHeldToItsForm(t *testing.T) {
	for name, row := range map[string][2]string{
		"no id":                        {`{"dir":"/w"}`, "no valid id"},
		"an id of two words":           {`{"id":"a b","dir":"/w"}`, "no valid id"},
		"a directory not absolute":     {`{"id":"m-1","dir":"w"}`, "not absolute"},
		"a directory of two lines":     {`{"id":"m-1","dir":"/w\nall is well"}`, "control character"},
		"a directory with an escape":   {`{"id":"m-1","dir":"/w\u001b[2J"}`, "control character"},
		"a directory longer than most": {`{"id":"m-1","dir":"/` + strings.Repeat("w", 5000) + `"}`, "too long"},
		"a token larger than may be":   {`{"id":"m-1","dir":"/w","token":"` + strings.Repeat("t", 9000) + `"}`, "token that is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := wasmtest.Load(t, "hand", wasmtest.Source{Code: map[string][]byte{abi.Open: wasmtest.Say(`{"ok":` + row[0] + `}`)}}.Write(t))
			if _, err := p.Open(t.Context(), sandbox.Spec{}); sandbox.CodeOf(err) != sandbox.CodeInternal || !strings.Contains(err.Error(), row[1]) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, row[1])
			}
		})
	}
}

// A list has an end.
func TestAListWithoutEndIsGivenUp(t *testing.T) {
	page := strings.Repeat(`{"id":"m-1"},`, 5000) + `{"id":"m-1"}`
	p := wasmtest.Load(t, "hand", wasmtest.Source{Code: map[string][]byte{abi.List: wasmtest.Say(`{"ok":{"next":"more","sandboxes":[` + page + `]}}`)}}.Write(t))
	l, ok := sandbox.As[sandbox.Lister](p)
	if !ok {
		t.Fatal("it does not list")
	}
	if found, err := l.List(t.Context(), sandbox.Spec{}); err == nil || !strings.Contains(err.Error(), "a list without end") {
		t.Errorf("%d sandboxes, %v", len(found), err)
	}
}

// Memory a module took is given back.
func TestInstancesLeaveNothingBehind(t *testing.T) {
	sb := hostile(t, wasmtest.Say(`{"ok":{"exit":0}}`))
	run := func(n int) uint64 {
		for range n {
			if _, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"x"}}); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := run(50)
	if after := run(300); after > before+4<<20 {
		t.Errorf("%d KB are kept after 300 operations", (after-before)>>10)
	}
}

func hostile(t *testing.T, exec []byte) sandbox.Sandbox {
	t.Helper()
	p := wasmtest.Load(t, "hand", wasmtest.Source{Code: map[string][]byte{abi.Exec: exec}}.Write(t))
	sb, err := p.Open(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// heartbeat measures the longest pause of the whole program, its collector
// included. The function it returns ends it.
func heartbeat(t *testing.T) func() time.Duration {
	t.Helper()
	stop, done := make(chan struct{}), make(chan time.Duration)
	go func() {
		var worst time.Duration
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-stop:
				done <- worst
				return
			case <-time.After(20 * time.Millisecond):
				runtime.GC()
			}
			worst = max(worst, time.Since(last))
		}
	}()
	return func() time.Duration { close(stop); return <-done }
}

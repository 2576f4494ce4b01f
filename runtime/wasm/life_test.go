//go:build linux && (amd64 || arm64)

package wasm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/wasm"
	"github.com/talkops-ai/talkops/runtime/wasm/helper"
	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// helpers lists the processes whose native code lies below cache.
func helpers(t *testing.T, cache string) []string {
	t.Helper()
	cache, err := filepath.EvalSymlinks(cache)
	if err != nil {
		t.Fatal(err)
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var found []string
	for _, d := range dirs {
		line, _ := os.ReadFile(filepath.Join(d, "cmdline"))
		cwd, _ := os.Readlink(filepath.Join(d, "cwd"))
		if bytes.HasSuffix(line, []byte("\x00"+helper.Arg+"\x00")) && strings.HasPrefix(cwd, cache) {
			found = append(found, d)
		}
	}
	return found
}

// gone waits until no helper is left.
func gone(t *testing.T, cache string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); len(helpers(t, cache)) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("left running: %v", helpers(t, cache))
		}
	}
}

// open opens a sandbox of a module whose native code lies in cache.
func open(t testing.TB, cache string, limits wasm.Limits, s wasmtest.Source) (sandbox.Sandbox, func()) {
	t.Helper()
	p, err := wasm.Load(t.Context(), wasm.Config{Name: "hand", File: s.Write(t), Cache: cache, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	sb, err := p.Open(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	return sb, func() { p.Close() }
}

func TestAModuleHasAProcessOfItsOwn(t *testing.T) {
	cache := t.TempDir()
	_, end := open(t, cache, wasm.Limits{}, wasmtest.Source{})
	found := helpers(t, cache)
	if len(found) != 1 {
		t.Fatalf("%d helpers run", len(found))
	}
	if env, err := os.ReadFile(filepath.Join(found[0], "environ")); err != nil || len(env) != 0 {
		t.Errorf("its environment is %q, %v", env, err)
	}
	if group := stat(t, found[0], 4); group != filepath.Base(found[0]) {
		t.Errorf("it is in the process group %s", group)
	}
	limits, _ := os.ReadFile(filepath.Join(found[0], "limits"))
	for line := range strings.Lines(string(limits)) {
		if (strings.HasPrefix(line, "Max core file size") || strings.HasPrefix(line, "Max address space")) && strings.Contains(line, "unlimited") {
			t.Errorf("limit: %s", line)
		}
	}
	end()
	gone(t, cache)
}

// stat is a field of a process's status line, counted from zero.
func stat(t *testing.T, process string, field int) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(process, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.Fields(rest)[field-2]
}

// What the module said of itself is kept, so that to know it needs no process.
func TestADescriptionNeedsNoProcess(t *testing.T) {
	cache, s := t.TempDir(), wasmtest.Source{}
	_, end := open(t, cache, wasm.Limits{}, s)
	end()
	p, err := wasm.Load(t.Context(), wasm.Config{Name: "hand", File: s.Write(t), Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if d := p.Describe(); !d.Features.Attach || len(helpers(t, cache)) != 0 {
		t.Errorf("described as %+v by %d processes", d, len(helpers(t, cache)))
	}
}

// TestNothingOutlivesTheProgram kills a program in the middle of an endless
// operation.
func TestNothingOutlivesTheProgram(t *testing.T) {
	if cache := os.Getenv("WASM_ENDLESS_IN"); cache != "" {
		sb, _ := open(t, cache, wasm.Limits{}, wasmtest.Source{Code: map[string][]byte{abi.Exec: wasmtest.Tree()}})
		sb.Exec(context.Background(), sandbox.Cmd{Args: []string{"x"}})
		return
	}
	cache := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(exe, "-test.run=^TestNothingOutlivesTheProgram$")
	parent.Env = append(os.Environ(), "WASM_ENDLESS_IN="+cache)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		// It is at work once it takes time.
		if found := helpers(t, cache); len(found) == 1 {
			if ticks, _ := strconv.Atoi(stat(t, found[0], 13)); ticks > 20 {
				break
			}
		}
		if time.Now().After(end) {
			parent.Process.Kill()
			t.Fatal("the operation did not begin")
		}
	}
	parent.Process.Kill()
	parent.Wait()
	gone(t, cache)
}

// A module that takes too long to compile is given up, with its process.
func TestCompileBombsAreGivenUp(t *testing.T) {
	cache := t.TempDir()
	file := wasmtest.Source{Code: map[string][]byte{abi.Exec: wasmtest.Nested(30_000)}}.Write(t)
	beat := heartbeat(t)
	_, err := wasm.Load(t.Context(), wasm.Config{Name: "hand", File: file, Cache: cache, Limits: wasm.Limits{Compile: 2 * time.Second}})
	if late := beat(); late > 2*time.Second {
		t.Errorf("the program stood still for %v", late)
	}
	if _, ok := errors.AsType[*wasm.BadModule](err); !ok || !strings.Contains(err.Error(), "took longer than 2s to compile") {
		t.Errorf("got %v", err)
	}
	gone(t, cache)
}

// Memory is bounded in the process of the module, whose peak is near its limit.
func TestAModulesMemoryIsBounded(t *testing.T) {
	cache := t.TempDir()
	sb, _ := open(t, cache, wasm.Limits{MemoryMB: 64}, wasmtest.Source{Code: map[string][]byte{abi.Exec: wasmtest.GrowAndTouch()}})
	if exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"x"}}); err == nil {
		t.Errorf("exit %d", exit)
	}
	found := helpers(t, cache)
	if len(found) != 1 {
		t.Fatalf("%d helpers run", len(found))
	}
	status, _ := os.ReadFile(filepath.Join(found[0], "status"))
	for line := range strings.Lines(string(status)) {
		var kb int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 && (kb > 200<<10 || kb < 60<<10) {
			t.Errorf("its peak is %d MB", kb>>10)
		}
	}
}

// A process that has to be killed takes the module's other operations along, and
// one that has to be killed again and again is not started any more.
func TestAModuleThatHasToBeKilled(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	sb, _ := open(t, cache, wasm.Limits{}, wasmtest.Source{Code: map[string][]byte{abi.ReadFile: wasmtest.Tree(), abi.WriteFile: wasmtest.Sleep()}})
	for range 3 {
		other := make(chan error)
		go func() { other <- sb.WriteFile(t.Context(), "/a", strings.NewReader("x"), 0o644) }()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := sb.ReadFile(ctx, "/a", &bytes.Buffer{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the one that was killed: %v", err)
		}
		if err := <-other; err == nil || !strings.Contains(err.Error(), "because another call did not end") || sandbox.CodeOf(err) != sandbox.CodeInternal {
			t.Errorf("the other: %v", err)
		}
		gone(t, cache)
	}
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"x"}})
	if err == nil || !strings.Contains(err.Error(), "out of use for this session") || len(helpers(t, cache)) != 0 {
		t.Errorf("afterwards: %v, %d helpers", err, len(helpers(t, cache)))
	}
}

// Files can be read while as many commands run as may.
func TestCommandsLeaveRoomForFiles(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	sb, _ := open(t, cache, wasm.Limits{AtOnce: 4}, wasmtest.Source{Code: map[string][]byte{abi.Exec: wasmtest.Sleep()}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for range 6 {
		go func() {
			_, err := sb.Exec(ctx, sandbox.Cmd{Args: []string{"x"}})
			ended <- err
		}()
	}
	for range 3 {
		if err := sb.WriteFile(t.Context(), "/a", strings.NewReader("x"), 0o644); err != nil {
			t.Error(err)
		}
	}
	cancel()
	for range 6 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

//go:build unix

package agentcore_test

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/agentcore"
	"github.com/talkops-ai/talkops/providers/agentcore/agentcoretest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// TestMain hides every AWS login of the computer.
func TestMain(m *testing.M) {
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	os.Setenv("AWS_CONFIG_FILE", os.DevNull)
	os.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	os.Exit(m.Run())
}

func open(t *testing.T, s *agentcoretest.Server, change ...func(*sandbox.Spec)) sandbox.Sandbox {
	t.Helper()
	return emulate.Open(t, agentcore.Provider{}, s, change...)
}

func TestChildrenThatGoOnWritingAreNotAwaited(t *testing.T) {
	s := agentcoretest.New(t)
	sb := open(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out bytes.Buffer
	exit, err := sb.Exec(ctx, sandbox.Cmd{Args: emulate.Sh("echo own; while :; do echo child; sleep 0.01; done &"), Stdout: &out})
	if exit != 0 || err != nil || !strings.HasPrefix(out.String(), "own\n") {
		t.Errorf("got %d, %v, %q", exit, err, out.String())
	}
}

func TestMuchOutputIsWhole(t *testing.T) {
	for _, op := range []string{"executeCommand", "readFiles"} {
		t.Run(op, func(t *testing.T) {
			s := agentcoretest.New(t)
			sb := open(t, s)
			s.Inject(agentcoretest.Fault{Op: op, Cut: 1000})
			s.Inject(agentcoretest.Fault{Op: op, Skip: 2, Late: true})
			s.Inject(agentcoretest.Fault{Op: op, Skip: 3, Cut: 1})
			var out emulate.Counter
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("head -c 50000000 /dev/zero; sleep 0.2; echo; exit 4"), Stdout: &out})
			if exit != 4 || err != nil || out != 50000001 {
				t.Errorf("got %d, %v, %d bytes", exit, err, out)
			}
		})
	}
}

func TestFilesOfCommandsAreDeleted(t *testing.T) {
	s := agentcoretest.New(t)
	sb := open(t, s)
	for range 5 {
		var out bytes.Buffer
		sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("cat"), Stdin: strings.NewReader("x"), Stdout: &out})
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	sb.Exec(short, sandbox.Cmd{Args: emulate.Sh("sleep 60")})
	out, _, _ := emulate.Run(t, sb, "cd .. && ls -A .talkops-* | grep -v -e '^.talk' -e '^room' | sed 's/[.].*//' | sort -u | wc -l")
	if strings.TrimSpace(out) != "1" { // of this command
		t.Errorf("files of %s commands are left", strings.TrimSpace(out))
	}
}

func TestReadAsksAgainForALostPiece(t *testing.T) {
	s := agentcoretest.New(t)
	sb := open(t, s)
	data := strings.Repeat("0123456789", 1<<20)
	if err := sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader(data), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Inject(agentcoretest.Fault{Op: "readFiles", Cut: 70000, Times: 2})
	s.Inject(agentcoretest.Fault{Op: "executeCommand", Skip: 1, Late: true})
	var got bytes.Buffer
	if err := sb.ReadFile(t.Context(), sb.Info().Dir+"/f", &got); err != nil || got.String() != data {
		t.Errorf("got %d bytes, %v; want %d", got.Len(), err, len(data))
	}
	names, _ := filepath.Glob(path.Dir(sb.Info().Dir) + "/.talkops-*/*.[0-9]*")
	if len(names) != 0 {
		t.Errorf("pieces are left: %v", names)
	}
}

func TestATerminalChangesNothing(t *testing.T) {
	for name, cfg := range map[string]agentcoretest.Config{"terminal": {}, "none": {Clean: true}, "instant answers": {Delay: -1}} {
		t.Run(name, func(t *testing.T) {
			s := agentcoretest.New(t, cfg)
			sb := open(t, s)
			stdout, stderr, exit := emulate.Run(t, sb, `printf 'a\r\nb\n\000\033[2J\377'; printf 'e\n' >&2; exit 9`)
			if stdout != "a\r\nb\n\x00\x1b[2J\xff" || stderr != "e\n" || exit != 9 {
				t.Errorf("got %q, %q, %d", stdout, stderr, exit)
			}
		})
	}
}

func TestFileCallsAreRelative(t *testing.T) {
	s := agentcoretest.New(t)
	sb := open(t, s)
	name := t.TempDir() // elsewhere
	if err := os.Chmod(path.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o777); err != nil {
		t.Fatal(err)
	}
	data := strings.Repeat("0123456789", 10<<10)
	if err := sb.WriteFile(t.Context(), name+"/f", strings.NewReader(data), 0o644); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := sb.ReadFile(t.Context(), name+"/f", &got); err != nil || got.String() != data {
		t.Errorf("got %d bytes, %v", got.Len(), err)
	}
	for _, op := range []string{"writeFiles", "readFiles"} {
		for _, r := range s.Requests(op) {
			if strings.Contains(r.Body, name) {
				t.Errorf("%s was given %s", op, name)
			}
		}
	}
}

func TestCommandsAreSentInPiecesThatTheTerminalTakes(t *testing.T) {
	s := agentcoretest.New(t)
	sb := open(t, s)
	if exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"true", strings.Repeat("é\x01", 30<<10)}}); exit != 0 || err != nil {
		t.Fatalf("got %d, %v", exit, err)
	}
	for _, op := range []string{"executeCommand", "startCommandExecution"} {
		for _, r := range s.Requests(op) {
			if len(r.Body) > 61<<10 {
				t.Errorf("%s sent %d bytes, which may hang the terminal", r.Op, len(r.Body))
			}
		}
	}
}

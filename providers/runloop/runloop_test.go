//go:build unix

package runloop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/runloop"
	"github.com/talkops-ai/talkops/providers/runloop/runlooptest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func open(t *testing.T, s *runlooptest.Server, change ...func(*sandbox.Spec)) sandbox.Sandbox {
	t.Helper()
	spec := sandbox.Spec{Settings: s.Settings()}
	for _, f := range change {
		f(&spec)
	}
	sb, err := runloop.Provider{}.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Close() })
	return sb
}

func sh(script string) []string { return []string{"/bin/sh", "-c", script, "sh"} }

// run runs a script that must be run, whatever its status.
func run(t *testing.T, sb sandbox.Sandbox, script string) (stdout, stderr string, exit int) {
	t.Helper()
	var o, e bytes.Buffer
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: sh(script), Stdout: &o, Stderr: &e})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return o.String(), e.String(), exit
}

func wantCode(t *testing.T, err error, code sandbox.Code) {
	t.Helper()
	if got := sandbox.CodeOf(err); got != code {
		t.Errorf("got code %q (%v), want %q", got, err, code)
	}
}

// A notice is a writer that tells of the first bytes it gets.
type notice struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	first chan struct{}
}

func newNotice() *notice { return &notice{first: make(chan struct{})} }

func (n *notice) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.buf.Len() == 0 && len(p) > 0 {
		close(n.first)
	}
	return n.buf.Write(p)
}

func (n *notice) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.String()
}

func TestCommands(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Env = map[string]string{"BOX": "a b"} })
	dir := sb.Info().Dir
	for _, row := range []struct {
		name, script   string
		stdout, stderr string
		exit           int
	}{
		{"output", "echo hi", "hi\n", "", 0},
		{"status", "exit 3", "", "", 3},
		{"streams stay apart", "printf out; printf err >&2", "out", "err", 0},
		{"signal", "kill -9 $$", "", "", 137},
		{"set -e", "set -e; false; echo no", "", "", 1},
		{"empty stdin", `cat; read x; echo "[$x]"`, "[]\n", "", 0},
		{"bytes", `printf '\377\000\200'`, "\xff\x00\x80", "", 0},
		{"working directory", "pwd", dir + "\n", "", 0},
		{"environment of the sandbox", `printf %s "$BOX"`, "a b", "", 0},
		{"background child", "(sleep 60; echo late) & echo now", "now\n", "", 0},
		{"several lines", "f() { cat <<X\n$1\nX\n}\nfor i in 1 2; do f $i; done", "1\n2\n", "", 0},
		{"quotes", `echo "it's" '$HOME' \` + "`", "it's $HOME `\n", "", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			stdout, stderr, exit := run(t, sb, row.script)
			if stdout != row.stdout || stderr != row.stderr || exit != row.exit {
				t.Errorf("got %q, %q, %d; want %q, %q, %d", stdout, stderr, exit, row.stdout, row.stderr, row.exit)
			}
		})
	}
}

func TestCommandArguments(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	big := strings.Repeat("é\x01", 30<<10)
	var out bytes.Buffer
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{
		Args:   []string{"sh", "-c", `printf %s "$@"`, "sh", big, "", "a'b $c\n", "\xff"},
		Stdout: &out,
	})
	if want := big + "a'b $c\n\xff"; err != nil || exit != 0 || out.String() != want {
		t.Errorf("got %d, %v, %d bytes; want %d bytes", exit, err, out.Len(), len(want))
	}
	for _, r := range s.Requests("") {
		if len(r.Body) > sandbox.MaxArg {
			t.Errorf("%s sent %d bytes of command text", r.Op, len(r.Body))
		}
	}

	out.Reset()
	input := strings.Repeat("0123456789", 20<<10)
	exit, err = sb.Exec(t.Context(), sandbox.Cmd{
		Args:   sh(`cat; printf %s "$A"`),
		Env:    map[string]string{"A": "x y\nz'"},
		Stdin:  strings.NewReader(input),
		Stdout: &out,
	})
	if err != nil || exit != 0 || out.String() != input+"x y\nz'" {
		t.Errorf("stdin and env: got %d, %v, %d bytes", exit, err, out.Len())
	}

	var stderr bytes.Buffer
	exit, err = sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"no-such-program-xyz"}, Stderr: &stderr})
	if exit != 127 || err != nil || stderr.Len() == 0 {
		t.Errorf("missing program: got %d, %v, %q", exit, err, stderr.String())
	}
	run(t, sb, "echo x >f; mkdir -p sub")
	exit, err = sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"./f"}})
	if exit != 126 || err != nil {
		t.Errorf("not executable: got %d, %v", exit, err)
	}
	_, err = sb.Exec(t.Context(), sandbox.Cmd{Args: sh("echo x >../ran"), Dir: sb.Info().Dir + "/none"})
	wantCode(t, err, sandbox.CodeFileNotFound)
	_, err = sb.Exec(t.Context(), sandbox.Cmd{Args: sh("pwd"), Dir: sb.Info().Dir + "/f"})
	wantCode(t, err, sandbox.CodeNotADirectory)
	exit, err = sb.Exec(t.Context(), sandbox.Cmd{Args: sh("exit 97")})
	if exit != 97 || err != nil {
		t.Errorf("exit 97: got %d, %v", exit, err)
	}
	_, err = sb.Exec(t.Context(), sandbox.Cmd{Args: []string{" "}})
	wantCode(t, err, sandbox.CodeInvalidArgument)
	if out, _, _ := run(t, sb, "ls -A "+path.Dir(sb.Info().Dir)+"/tmp/.talkops-*"); strings.Count(out, "\n") > 4 { // of ls itself
		t.Errorf("files of ended commands are left: %s", out)
	}
}

func TestOutputArrivesWhileTheCommandRuns(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	out := newNotice()
	done := make(chan error, 1)
	go func() {
		exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: sh("echo first; while [ ! -e go ]; do sleep 0.05; done; echo last"), Stdout: out})
		if exit != 0 {
			err = errors.Join(err, fmt.Errorf("exit %d", exit))
		}
		done <- err
	}()
	<-out.first
	if err := sb.WriteFile(t.Context(), sb.Info().Dir+"/go", strings.NewReader(""), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || out.String() != "first\nlast\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestMuchOutputIsWhole(t *testing.T) {
	for _, row := range []struct {
		name   string
		behave runlooptest.Behaviour
		faults []runlooptest.Fault
	}{
		{"", runlooptest.Behaviour{}, nil},
		{"offsets of the begin", runlooptest.Behaviour{StartOffsets: true}, nil},
		{"streams cut", runlooptest.Behaviour{}, []runlooptest.Fault{{Op: "stdout", Cut: 100000}, {Op: "stdout", Cut: 90}, {Op: "stdout", Status: 502}}},
		{"streams cut, offsets of the begin", runlooptest.Behaviour{StartOffsets: true}, []runlooptest.Fault{{Op: "stdout", Cut: 100000}, {Op: "stdout", Cut: 200000}}},
		{"idle streams", runlooptest.Behaviour{IdleStreams: 3}, nil},
		{"the end of the streams never comes", runlooptest.Behaviour{LaggingStream: true}, nil},
		{"no stream works", runlooptest.Behaviour{}, []runlooptest.Fault{{Op: "stdout", Status: 404, Times: -1}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := runlooptest.New(t)
			sb := open(t, s)
			s.Behave(row.behave)
			for _, f := range row.faults {
				s.Inject(f)
			}
			var out bytes.Buffer
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{
				Args:   sh("echo x >>count; head -c 3000000 /dev/zero; sleep 0.2; printf '\\377\\n'; exit 4"),
				Stdout: &out,
			})
			if row.name == "no stream works" {
				// The status of a command that still runs cannot be known.
				wantCode(t, err, sandbox.CodeGone)
				return
			}
			if want := strings.Repeat("\x00", 3000000) + "\xff\n"; exit != 4 || err != nil || out.String() != want {
				t.Errorf("got %d, %v, %d bytes", exit, err, out.Len())
			}
			if n, _, _ := run(t, sb, "wc -l <count"); strings.TrimSpace(n) != "1" {
				t.Errorf("the command ran %s times", n)
			}
		})
	}
}

func TestFiftyMegabytesOfOutput(t *testing.T) {
	sb := open(t, runlooptest.New(t))
	var out, errOut countingWriter
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: sh("head -c 50000000 /dev/urandom | tee /dev/stderr"), Stdout: &out, Stderr: &errOut})
	if exit != 0 || err != nil || out != 50000000 || errOut != 50000000 {
		t.Errorf("got %d, %v, %d and %d bytes", exit, err, out, errOut)
	}
}

type countingWriter int64

func (c *countingWriter) Write(p []byte) (int, error) {
	*c += countingWriter(len(p))
	return len(p), nil
}

// ended waits until the process in the machine has ended.
func TestCommandEndsWithItsContext(t *testing.T) {
	for _, row := range []struct {
		name, script string
		deadline     bool
		exit         int
		code         sandbox.Code
	}{
		{"deadline", "sleep 300 & echo $!; wait", true, 124, sandbox.CodeTimeout},
		{"cancel", "sleep 300 & echo $!; wait", false, 130, sandbox.CodeCancelled},
		{"stubborn", "trap '' TERM; sleep 300 & echo $!; wait; sleep 300", false, 130, sandbox.CodeCancelled},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := runlooptest.New(t)
			sb := open(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			if row.deadline {
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			defer cancel()
			out := newNotice()
			if !row.deadline {
				go func() { <-out.first; cancel() }()
			}
			begin := time.Now()
			exit, err := sb.Exec(ctx, sandbox.Cmd{Args: sh(row.script), Stdout: out})
			if exit != row.exit {
				t.Errorf("got exit %d, want %d", exit, row.exit)
			}
			wantCode(t, err, row.code)
			if took := time.Since(begin); took > 9*time.Second {
				t.Errorf("took %v", took)
			}
			emulate.Ended(t, out.String())
			if stdout, _, exit := run(t, sb, "echo on"); stdout != "on\n" || exit != 0 {
				t.Errorf("afterwards: got %q, %d", stdout, exit)
			}
		})
	}
}

func TestNothingIsLeftOfACall(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	for _, row := range []struct {
		name, script string
		fault        runlooptest.Fault
	}{
		{"ended", "echo on", runlooptest.Fault{}},
		{"cancelled", "echo on; sleep 300", runlooptest.Fault{}},
		{"cancelled, and no stream answers", "sleep 300", runlooptest.Fault{Op: "stdout", Hang: true, Times: -1}},
		{"cancelled before the answer", "sleep 300", runlooptest.Fault{Op: "execute-async", Hold: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.fault.Op != "" {
				s.Inject(row.fault)
				defer s.Heal()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			sb.Exec(ctx, sandbox.Cmd{Args: sh("echo $$ >pid; " + row.script), Stdout: io.Discard, Stderr: io.Discard})
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			for _, of := range []string{"runloop.(*job)", "runloop.(*box)", "runloop.(*api)"} {
				if bytes.Contains(stacks, []byte(of)) {
					t.Errorf("a goroutine of %s is left", of)
				}
			}
			if pid, err := os.ReadFile(sb.Info().Dir + "/pid"); err == nil {
				emulate.Ended(t, string(pid))
			}
		})
	}
}

func TestInputThatStandsStillEndsWithItsContext(t *testing.T) {
	sb := open(t, runlooptest.New(t))
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	exit, err := sb.Exec(ctx, sandbox.Cmd{Args: []string{"cat"}, Stdin: r})
	if exit != 124 {
		t.Errorf("got %d", exit)
	}
	wantCode(t, err, sandbox.CodeTimeout)
}

func TestCancelledBeforeTheStart(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	exit, err := sb.Exec(ctx, sandbox.Cmd{Args: sh("echo x >ran")})
	if exit != 130 || sandbox.CodeOf(err) != sandbox.CodeCancelled {
		t.Errorf("got %d, %v", exit, err)
	}
	if n := len(s.Requests("execute-async")); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

func TestBackgroundProcessOutlivesItsCommand(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	pid, _, _ := run(t, sb, "nohup sleep 60 >/dev/null 2>&1 & echo $!")
	if _, _, exit := run(t, sb, "kill -0 "+pid); exit != 0 {
		t.Error("the process has ended with its command")
	}
}

func TestKill(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	other := open(t, s, func(spec *sandbox.Spec) { spec.ID = sb.Info().ID })
	out := newNotice()
	type result struct {
		exit int
		err  error
	}
	done := make(chan result, 1)
	go func() {
		exit, err := sb.Exec(t.Context(), sandbox.Cmd{ID: "the-one", Args: sh("sleep 300 & echo $!; wait"), Stdout: out})
		done <- result{exit, err}
	}()
	<-out.first
	if err := sandbox.Kill(t.Context(), other, "the-one"); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.exit != 143 || got.err != nil {
		t.Errorf("got %d, %v; want 143", got.exit, got.err)
	}
	emulate.Ended(t, out.String())
	if err := sandbox.Kill(t.Context(), other, "the-one"); err != nil {
		t.Errorf("killing again: %v", err)
	}
}

func TestConcurrentCommands(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			var out bytes.Buffer
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: sh(fmt.Sprintf("echo %d; sleep 0.2; echo %d", i, i)), Stdout: &out})
			if want := fmt.Sprintf("%d\n%d\n", i, i); exit != 0 || err != nil || out.String() != want {
				t.Errorf("got %d, %v, %q; want %q", exit, err, out.String(), want)
			}
		})
	}
	wg.Wait()
}

func TestFiles(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	dir := sb.Info().Dir
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, row := range []struct {
		name string
		data string
		perm fs.FileMode
	}{
		{"plain.txt", "hello\n", 0o644},
		{"deep/er/x y'z.sh", "#!/bin/sh\n", 0o755},
		{"bytes", string(all), 0o600},
		{"empty", "", 0o644},
		{"large", strings.Repeat("0123456789abcdef", 1<<18), 0o644},
		{"\xff.txt", "name", 0o644},
	} {
		t.Run(row.name, func(t *testing.T) {
			name := path.Join(dir, row.name)
			if err := sb.WriteFile(t.Context(), name, strings.NewReader(row.data), row.perm); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != row.perm {
				t.Errorf("mode: got %v, %v; want %v", info, err, row.perm)
			}
			var got bytes.Buffer
			if err := sb.ReadFile(t.Context(), name, &got); err != nil || got.String() != row.data {
				t.Errorf("got %d bytes, %v; want %d", got.Len(), err, len(row.data))
			}
		})
	}
	run(t, sb, "echo old >real; chmod 750 real; ln -s real link; mkdir d; echo x >secret; chmod 000 secret; ln -s nowhere/x dangling")
	if err := sb.WriteFile(t.Context(), dir+"/link", strings.NewReader("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, _ := run(t, sb, "cat real; readlink link; stat -c %a real; ls -A | grep talkops"); out != "newreal\n750\n" {
		t.Errorf("through a link: got %q", out)
	}
	for _, row := range []struct {
		name        string
		read, write sandbox.Code
	}{
		{dir + "/missing", sandbox.CodeFileNotFound, ""},
		{dir + "/d", sandbox.CodeIsDirectory, sandbox.CodeIsDirectory},
		{dir + "/real/x", sandbox.CodeNotADirectory, sandbox.CodeInvalidPath},
		{"/dev/null", sandbox.CodeNotAFile, sandbox.CodeNotAFile},
		{"relative", sandbox.CodeInvalidPath, sandbox.CodeInvalidPath},
		{dir + "/" + strings.Repeat("x/", 3000), sandbox.CodeInvalidPath, sandbox.CodeInvalidPath},
		{dir + "/dangling", sandbox.CodeFileNotFound, ""},
		{dir + "/secret", sandbox.CodePermissionDenied, sandbox.CodePermissionDenied},
	} {
		t.Run(path.Base(row.name), func(t *testing.T) {
			wantCode(t, sb.ReadFile(t.Context(), row.name, io.Discard), row.read)
			wantCode(t, sb.WriteFile(t.Context(), row.name, strings.NewReader("x"), 0o644), row.write)
		})
	}
}

func TestReadSurvivesABrokenConnection(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	data := strings.Repeat("0123456789", 50000)
	if err := sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader(data), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Inject(runlooptest.Fault{Op: "download", Cut: 70000, Times: 2})
	var got bytes.Buffer
	if err := sb.ReadFile(t.Context(), sb.Info().Dir+"/f", &got); err != nil || got.String() != data {
		t.Errorf("got %d bytes, %v; want %d", got.Len(), err, len(data))
	}
}

func TestFailedUploadLeavesTheFile(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	name := sb.Info().Dir + "/f"
	if err := sb.WriteFile(t.Context(), name, strings.NewReader("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := io.MultiReader(strings.NewReader("ne"), failing{})
	if err := sb.WriteFile(t.Context(), name, broken, 0o644); !errors.Is(err, errSource) {
		t.Errorf("got %v, want the reader's error", err)
	}
	var got bytes.Buffer
	if err := sb.ReadFile(t.Context(), name, &got); err != nil || got.String() != "old" {
		t.Errorf("got %q, %v; want old", got.String(), err)
	}
}

var errSource = errors.New("source failed")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errSource }

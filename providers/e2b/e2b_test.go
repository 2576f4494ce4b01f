//go:build unix

package e2b_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/e2b"
	"github.com/talkops-ai/talkops/providers/e2b/e2btest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func open(t *testing.T, s *e2btest.Server, change ...func(*sandbox.Spec)) sandbox.Sandbox {
	t.Helper()
	spec := sandbox.Spec{Settings: s.Settings()}
	for _, f := range change {
		f(&spec)
	}
	sb, err := e2b.Provider{}.Open(t.Context(), spec)
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
	s := e2btest.New(t)
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
	s := e2btest.New(t)
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
}

func TestOutputArrivesWhileTheCommandRuns(t *testing.T) {
	s := e2btest.New(t)
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
	for _, ignore := range []bool{false, true} {
		t.Run(fmt.Sprintf("range ignored %v", ignore), func(t *testing.T) {
			s := e2btest.New(t)
			s.Behave(e2btest.Behaviour{IgnoreRange: ignore})
			sb := open(t, s)
			s.Inject(e2btest.Fault{Op: "download", Cut: 1000})
			s.Inject(e2btest.Fault{Op: "download", Skip: 2, Cut: 1})
			var out countingWriter
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: sh("head -c 20000000 /dev/zero; sleep 0.2; echo; exit 4"), Stdout: &out})
			if exit != 4 || err != nil || out != 20000001 {
				t.Errorf("got %d, %v, %d bytes", exit, err, out)
			}
		})
	}
}

type countingWriter int64

func (c *countingWriter) Write(p []byte) (int, error) {
	*c += countingWriter(len(p))
	return len(p), nil
}

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
			s := e2btest.New(t)
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

func TestCancelledBeforeTheStart(t *testing.T) {
	s := e2btest.New(t)
	sb := open(t, s)
	before := len(s.Requests("Start"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	exit, err := sb.Exec(ctx, sandbox.Cmd{Args: sh("echo x >ran")})
	if exit != 130 || sandbox.CodeOf(err) != sandbox.CodeCancelled {
		t.Errorf("got %d, %v", exit, err)
	}
	if n := len(s.Requests("Start")) - before; n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

func TestBackgroundProcessOutlivesItsCommand(t *testing.T) {
	s := e2btest.New(t)
	sb := open(t, s)
	pid, _, _ := run(t, sb, "nohup sleep 60 >/dev/null 2>&1 & echo $!")
	if _, _, exit := run(t, sb, "kill -0 "+pid); exit != 0 {
		t.Error("the process has ended with its command")
	}
}

func TestKill(t *testing.T) {
	s := e2btest.New(t)
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
	s := e2btest.New(t)
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
	s := e2btest.New(t)
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
	s := e2btest.New(t)
	sb := open(t, s)
	data := strings.Repeat("0123456789", 50000)
	if err := sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader(data), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Inject(e2btest.Fault{Op: "download", Cut: 70000, Times: 2})
	var got bytes.Buffer
	if err := sb.ReadFile(t.Context(), sb.Info().Dir+"/f", &got); err != nil || got.String() != data {
		t.Errorf("got %d bytes, %v; want %d", got.Len(), err, len(data))
	}
}

func TestFailedUploadLeavesTheFile(t *testing.T) {
	s := e2btest.New(t)
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

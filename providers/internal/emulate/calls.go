//go:build unix

package emulate

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

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Calls holds a provider to what users see of commands and files. The rest says
// how that looks on the vendor's wire; operations are named as in Fault.Op.
type Calls struct {
	Subject
	Starts string // the operation that starts a command
	Most   int    // bytes of one request; 0 is not bounded
	Reads  string // the operation that reads a file; empty: it is tested elsewhere
	Stream string // the operation that brings output; empty: not every way to end is tried
	Left   string // a script that lists what commands leave in the machine, given its directory; empty: nothing does
	Own    int    // how many lines that script prints of its own command
}

// Run tries all of them.
func (c Calls) Run(t *testing.T) {
	t.Run("commands", c.commands)
	t.Run("arguments", c.arguments)
	t.Run("output arrives while the command runs", c.arriving)
	t.Run("fifty megabytes of output", c.large)
	t.Run("a command ends with its context", c.ending)
	t.Run("input that stands still ends with its context", c.input)
	t.Run("cancelled before the start", c.cancelled)
	t.Run("a background process outlives its command", c.background)
	t.Run("kill", c.kill)
	t.Run("commands at once", c.atOnce)
	t.Run("files", c.files)
	t.Run("a failed upload leaves the file", c.failing)
	if c.Reads != "" {
		t.Run("a read survives a broken connection", c.reading)
	}
	if c.Stream != "" {
		t.Run("nothing is left of a call", c.left)
	}
}

// service starts the vendor for the length of a test.
func (c Calls) service(t *testing.T) Service {
	t.Helper()
	s, stop, err := c.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

func (c Calls) open(t *testing.T) sandbox.Sandbox {
	t.Helper()
	return Open(t, c.Provider, c.service(t))
}

func (c Calls) commands(t *testing.T) {
	s := c.service(t)
	sb := Open(t, c.Provider, s, func(spec *sandbox.Spec) { spec.Env = map[string]string{"BOX": "a b"} })
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
			stdout, stderr, exit := Run(t, sb, row.script)
			if stdout != row.stdout || stderr != row.stderr || exit != row.exit {
				t.Errorf("got %q, %q, %d; want %q, %q, %d", stdout, stderr, exit, row.stdout, row.stderr, row.exit)
			}
		})
	}
}

func (c Calls) arguments(t *testing.T) {
	s := c.service(t)
	sb := Open(t, c.Provider, s)
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
		if c.Most > 0 && len(r.Body) > c.Most {
			t.Errorf("%s sent %d bytes", r.Op, len(r.Body))
		}
	}

	out.Reset()
	input := strings.Repeat("0123456789", 20<<10)
	exit, err = sb.Exec(t.Context(), sandbox.Cmd{
		Args:   Sh(`cat; printf %s "$A"`),
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
	Run(t, sb, "echo x >f; mkdir -p sub")
	exit, err = sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"./f"}})
	if exit != 126 || err != nil {
		t.Errorf("not executable: got %d, %v", exit, err)
	}
	_, err = sb.Exec(t.Context(), sandbox.Cmd{Args: Sh("echo x >../ran"), Dir: sb.Info().Dir + "/none"})
	WantCode(t, err, sandbox.CodeFileNotFound)
	_, err = sb.Exec(t.Context(), sandbox.Cmd{Args: Sh("pwd"), Dir: sb.Info().Dir + "/f"})
	WantCode(t, err, sandbox.CodeNotADirectory)
	exit, err = sb.Exec(t.Context(), sandbox.Cmd{Args: Sh("exit 97")})
	if exit != 97 || err != nil {
		t.Errorf("exit 97: got %d, %v", exit, err)
	}
	_, err = sb.Exec(t.Context(), sandbox.Cmd{Args: []string{" "}})
	WantCode(t, err, sandbox.CodeInvalidArgument)
	if c.Left != "" {
		if out, _, _ := Run(t, sb, "cd "+path.Dir(sb.Info().Dir)+"; "+c.Left+" | grep -v '^room[1-8]$'"); strings.Count(out, "\n") > c.Own {
			t.Errorf("files of ended commands are left: %s", out)
		}
	}
}

func (c Calls) arriving(t *testing.T) {
	sb := c.open(t)
	out := NewNotice()
	done := make(chan error, 1)
	go func() {
		exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: Sh("echo first; while [ ! -e go ]; do sleep 0.05; done; echo last"), Stdout: out})
		if exit != 0 {
			err = errors.Join(err, fmt.Errorf("exit %d", exit))
		}
		done <- err
	}()
	<-out.First
	if err := sb.WriteFile(t.Context(), sb.Info().Dir+"/go", strings.NewReader(""), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || out.String() != "first\nlast\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func (c Calls) large(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	sb := c.open(t)
	var out, errOut Counter
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: Sh("head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2"), Stdout: &out, Stderr: &errOut})
	if exit != 0 || err != nil || out != 50000000 || errOut != 50000000 {
		t.Errorf("got %d, %v, %d and %d bytes", exit, err, out, errOut)
	}
}

func (c Calls) ending(t *testing.T) {
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
			sb := c.open(t)
			ctx, cancel := context.WithCancel(t.Context())
			if row.deadline {
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			defer cancel()
			out := NewNotice()
			if !row.deadline {
				go func() { <-out.First; cancel() }()
			}
			begin := time.Now()
			exit, err := sb.Exec(ctx, sandbox.Cmd{Args: Sh(row.script), Stdout: out})
			if exit != row.exit {
				t.Errorf("got exit %d, want %d", exit, row.exit)
			}
			WantCode(t, err, row.code)
			if took := time.Since(begin); took > 9*time.Second {
				t.Errorf("took %v", took)
			}
			Ended(t, out.String())
			if stdout, _, exit := Run(t, sb, "echo on"); stdout != "on\n" || exit != 0 {
				t.Errorf("afterwards: got %q, %d", stdout, exit)
			}
		})
	}
}

func (c Calls) input(t *testing.T) {
	sb := c.open(t)
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	exit, err := sb.Exec(ctx, sandbox.Cmd{Args: []string{"cat"}, Stdin: r})
	if exit != 124 {
		t.Errorf("got %d", exit)
	}
	WantCode(t, err, sandbox.CodeTimeout)
}

func (c Calls) cancelled(t *testing.T) {
	s := c.service(t)
	sb := Open(t, c.Provider, s)
	before := len(s.Requests(c.Starts))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	exit, err := sb.Exec(ctx, sandbox.Cmd{Args: Sh("echo x >ran")})
	if exit != 130 || sandbox.CodeOf(err) != sandbox.CodeCancelled {
		t.Errorf("got %d, %v", exit, err)
	}
	if n := len(s.Requests(c.Starts)) - before; n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

func (c Calls) background(t *testing.T) {
	sb := c.open(t)
	pid, _, _ := Run(t, sb, "nohup sleep 60 >/dev/null 2>&1 & echo $!")
	if _, _, exit := Run(t, sb, "kill -0 "+pid); exit != 0 {
		t.Error("the process has ended with its command")
	}
}

func (c Calls) kill(t *testing.T) {
	s := c.service(t)
	sb := Open(t, c.Provider, s)
	other := Open(t, c.Provider, s, func(spec *sandbox.Spec) { spec.ID = sb.Info().ID })
	out := NewNotice()
	type result struct {
		exit int
		err  error
	}
	done := make(chan result, 1)
	go func() {
		exit, err := sb.Exec(t.Context(), sandbox.Cmd{ID: "the-one", Args: Sh("sleep 300 & echo $!; wait"), Stdout: out})
		done <- result{exit, err}
	}()
	<-out.First
	if err := sandbox.Kill(t.Context(), other, "the-one"); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.exit != 143 || got.err != nil {
		t.Errorf("got %d, %v; want 143", got.exit, got.err)
	}
	Ended(t, out.String())
	if err := sandbox.Kill(t.Context(), other, "the-one"); err != nil {
		t.Errorf("killing again: %v", err)
	}
}

func (c Calls) atOnce(t *testing.T) {
	sb := c.open(t)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			var out bytes.Buffer
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: Sh(fmt.Sprintf("echo %d; sleep 0.2; echo %d", i, i)), Stdout: &out})
			if want := fmt.Sprintf("%d\n%d\n", i, i); exit != 0 || err != nil || out.String() != want {
				t.Errorf("got %d, %v, %q; want %q", exit, err, out.String(), want)
			}
		})
	}
	wg.Wait()
}

func (c Calls) files(t *testing.T) {
	sb := c.open(t)
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
	Run(t, sb, "echo old >real; chmod 750 real; ln -s real link; mkdir d; echo x >secret; chmod 000 secret; ln -s nowhere/x dangling")
	if err := sb.WriteFile(t.Context(), dir+"/link", strings.NewReader("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, _ := Run(t, sb, "cat real; readlink link; stat -c %a real; ls -A | grep talkops"); out != "newreal\n750\n" {
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
			WantCode(t, sb.ReadFile(t.Context(), row.name, io.Discard), row.read)
			WantCode(t, sb.WriteFile(t.Context(), row.name, strings.NewReader("x"), 0o644), row.write)
		})
	}
}

func (c Calls) reading(t *testing.T) {
	s := c.service(t)
	sb := Open(t, c.Provider, s)
	data := strings.Repeat("0123456789", 50000)
	if err := sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader(data), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Inject(Fault{Op: c.Reads, Cut: 70000, Times: 2})
	var got bytes.Buffer
	if err := sb.ReadFile(t.Context(), sb.Info().Dir+"/f", &got); err != nil || got.String() != data {
		t.Errorf("got %d bytes, %v; want %d", got.Len(), err, len(data))
	}
}

func (c Calls) failing(t *testing.T) {
	sb := c.open(t)
	name := sb.Info().Dir + "/f"
	if err := sb.WriteFile(t.Context(), name, strings.NewReader("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := io.MultiReader(strings.NewReader("ne"), Failing{})
	if err := sb.WriteFile(t.Context(), name, broken, 0o644); !errors.Is(err, ErrSource) {
		t.Errorf("got %v, want the reader's error", err)
	}
	var got bytes.Buffer
	if err := sb.ReadFile(t.Context(), name, &got); err != nil || got.String() != "old" {
		t.Errorf("got %q, %v; want old", got.String(), err)
	}
}

func (c Calls) left(t *testing.T) {
	s := c.service(t)
	sb := Open(t, c.Provider, s)
	for _, row := range []struct {
		name, script string
		fault        Fault
	}{
		{"ended", "echo on", Fault{}},
		{"cancelled", "echo on; sleep 300", Fault{}},
		{"cancelled, and no stream answers", "sleep 300", Fault{Op: c.Stream, Hang: true, Times: -1}},
		{"cancelled before the answer", "sleep 300", Fault{Op: c.Starts, Hold: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.fault.Op != "" {
				s.Inject(row.fault)
				defer s.Heal()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			sb.Exec(ctx, sandbox.Cmd{Args: Sh("echo $$ >pid; " + row.script), Stdout: io.Discard, Stderr: io.Discard})
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			for _, of := range []string{"job", "box", "api"} {
				if of = fmt.Sprintf("%s.(*%s)", c.Provider.Describe().Name, of); bytes.Contains(stacks, []byte(of)) {
					t.Errorf("a goroutine of %s is left", of)
				}
			}
			if pid, err := os.ReadFile(sb.Info().Dir + "/pid"); err == nil {
				Ended(t, string(pid))
			}
		})
	}
}

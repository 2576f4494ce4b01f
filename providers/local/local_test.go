//go:build unix

package local_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func open(t *testing.T) sandbox.Sandbox {
	t.Helper()
	sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{
		Dir: t.TempDir(),
		Env: map[string]string{"PATH": os.Getenv("PATH"), "BASE": "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

func TestExec(t *testing.T) {
	sb := open(t)
	plain := filepath.Join(sb.Info().Dir, "plain")
	os.WriteFile(plain, []byte("echo x"), 0o644)
	for _, tt := range []struct {
		name           string
		args           []string
		stdin          io.Reader
		exit           int
		stdout, stderr string
	}{
		{"arguments are literal", []string{"printf", "%s", "$HOME `id`"}, nil, 0, "$HOME `id`", ""},
		{"streams are kept apart", []string{"sh", "-c", "echo o; echo e >&2; exit 3"}, nil, 3, "o\n", "e\n"},
		{"no input is empty input", []string{"cat"}, nil, 0, "", ""},
		{"input arrives", []string{"cat"}, strings.NewReader("in"), 0, "in", ""},
		{"unread input does not matter", []string{"true"}, strings.NewReader(strings.Repeat("x", 1<<20)), 0, "", ""},
		{"a signal is 128 and its number", []string{"sh", "-c", "kill -9 $$"}, nil, 137, "", ""},
		{"a missing program is 127", []string{"no-such-program"}, nil, 127, "", "no-such-program: not found\n"},
		{"a plain file is 126", []string{plain}, nil, 126, "", plain + ": permission denied\n"},
		{"the environment is the Spec's", []string{"sh", "-c", "echo $BASE${HOME-none}$ADDED"}, nil, 0, "1none2\n", ""},
		{"background children are left", []string{"sh", "-c", "sleep 30 & echo now"}, nil, 0, "now\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			begin := time.Now()
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{
				Args: tt.args, Stdin: tt.stdin, Stdout: &stdout, Stderr: &stderr, Env: map[string]string{"ADDED": "2"},
			})
			if err != nil || exit != tt.exit || stdout.String() != tt.stdout || stderr.String() != tt.stderr {
				t.Errorf("got %d, %v, stdout %q, stderr %q; want %d, stdout %q, stderr %q",
					exit, err, &stdout, &stderr, tt.exit, tt.stdout, tt.stderr)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestExecEndsWithItsContext(t *testing.T) {
	sb := open(t)
	for _, tt := range []struct {
		name string
		ctx  func() (context.Context, context.CancelFunc)
		exit int
		want error
	}{
		{"deadline", func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 300*time.Millisecond)
		}, 124, context.DeadlineExceeded},
		{"cancel", func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(300*time.Millisecond, cancel)
			return ctx, cancel
		}, 130, context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := tt.ctx()
			defer cancel()
			var stdout bytes.Buffer
			exit, err := sb.Exec(ctx, sandbox.Cmd{
				Args:   []string{"sh", "-c", "echo before; sleep 300 & echo $! > pid; wait"},
				Stdout: &stdout,
			})
			if exit != tt.exit || !errors.Is(err, tt.want) || stdout.String() != "before\n" {
				t.Errorf("got %d, %v, %q; want %d, %v, before", exit, err, &stdout, tt.exit, tt.want)
			}
			exit, _ = sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"sh", "-c",
				`p=$(cat pid); kill -0 "$p" 2>/dev/null && ! grep -q ") Z" "/proc/$p/stat"`}})
			if exit == 0 {
				t.Error("the child still runs")
			}
			exit, err = sb.Exec(ctx, sandbox.Cmd{Args: []string{"touch", "marker"}})
			if exit != tt.exit || !errors.Is(err, tt.want) {
				t.Errorf("after the end: got %d, %v", exit, err)
			}
			if _, err := os.Stat(filepath.Join(sb.Info().Dir, "marker")); err == nil {
				t.Error("a command was started after the end")
			}
		})
	}
}

func TestKillEndsACommandByItsID(t *testing.T) {
	sb := open(t)
	pr, pw := io.Pipe()
	go func() {
		pr.Read(make([]byte, 10))
		sandbox.Kill(context.Background(), sb, "one")
	}()
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{ID: "one", Args: []string{"sh", "-c", "echo up; exec sleep 60"}, Stdout: pw})
	if exit != 128+int(syscall.SIGTERM) || err != nil {
		t.Errorf("got %d, %v; want 143", exit, err)
	}
}

func TestMissingDirectory(t *testing.T) {
	sb := open(t)
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"pwd"}, Dir: filepath.Join(sb.Info().Dir, "none")})
	if got := sandbox.CodeOf(err); got != sandbox.CodeFileNotFound {
		t.Errorf("got %q, want file_not_found", got)
	}
}

func TestFiles(t *testing.T) {
	sb := open(t)
	dir := sb.Info().Dir
	at := func(name string) string { return filepath.Join(dir, name) }
	os.Mkdir(at("d"), 0o755)
	os.WriteFile(at("f"), []byte("old"), 0o755)
	os.Symlink("f", at("link"))
	os.Symlink("nowhere", at("dangling"))
	syscall.Mkfifo(at("fifo"), 0o644)

	for name, want := range map[string]sandbox.Code{
		"relative":   sandbox.CodeInvalidPath,
		at("none"):   sandbox.CodeFileNotFound,
		at("d"):      sandbox.CodeIsDirectory,
		at("fifo"):   sandbox.CodeNotAFile,
		at("link"):   "",
		at("a\x00b"): sandbox.CodeInvalidPath,
	} {
		if got := sandbox.CodeOf(sb.ReadFile(t.Context(), name, io.Discard)); got != want {
			t.Errorf("read %q: got %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]sandbox.Code{
		"relative":     sandbox.CodeInvalidPath,
		at("d"):        sandbox.CodeIsDirectory,
		at("fifo"):     sandbox.CodeNotAFile,
		at("f/x"):      sandbox.CodeInvalidPath,
		at("link"):     "",
		at("dangling"): "",
		at("a/b/c"):    "",
	} {
		if got := sandbox.CodeOf(sb.WriteFile(t.Context(), name, strings.NewReader("new"), 0o600)); got != want {
			t.Errorf("write %q: got %q, want %q", name, got, want)
		}
	}
	if info, _ := os.Lstat(at("link")); info.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	if info, _ := os.Stat(at("f")); info.Mode().Perm() != 0o755 {
		t.Errorf("mode is %v, want 0755", info.Mode())
	}
	if data, _ := os.ReadFile(at("nowhere")); string(data) != "new" {
		t.Errorf("the dangling link's target holds %q", data)
	}
}

func TestInterruptedWriteLeavesTheOldFile(t *testing.T) {
	sb := open(t)
	name := filepath.Join(sb.Info().Dir, "f")
	os.WriteFile(name, []byte("old"), 0o644)
	broken := io.MultiReader(strings.NewReader("half"), iotestErr{})
	if err := sb.WriteFile(t.Context(), name, broken, 0o644); err == nil {
		t.Fatal("no error")
	}
	data, _ := os.ReadFile(name)
	entries, _ := os.ReadDir(sb.Info().Dir)
	if string(data) != "old" || len(entries) != 1 {
		t.Errorf("the file holds %q beside %d entries", data, len(entries))
	}
}

type iotestErr struct{}

func (iotestErr) Read([]byte) (int, error) { return 0, errors.New("the stream broke") }

func TestOpenRefusesAnID(t *testing.T) {
	_, err := local.Provider{}.Open(t.Context(), sandbox.Spec{ID: "x", Dir: t.TempDir()})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v, want unsupported", err)
	}
}

// TestReadingEndsWithItsContext reads a file that never ends.
func TestReadingEndsWithItsContext(t *testing.T) {
	const name = "/proc/kmsg"
	if f, err := os.Open(name); err != nil {
		t.Skipf("%s cannot be opened here", name)
	} else {
		f.Close()
	}
	sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- sb.ReadFile(ctx, name, io.Discard) }()
	select {
	case err := <-done:
		if sandbox.CodeOf(err) != sandbox.CodeTimeout {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("reading goes on")
	}
}

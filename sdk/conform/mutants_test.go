package conform_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/sdk/conform"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A mutant is a sound sandbox with one deliberate fault.
type mutant struct {
	sandbox.Sandbox
	exec  func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error)
	read  func(ctx context.Context, sb sandbox.Sandbox, name string, w io.Writer) error
	write func(ctx context.Context, sb sandbox.Sandbox, name string, r io.Reader, perm fs.FileMode) error
	info  func(sandbox.Info) sandbox.Info
}

func (m *mutant) Exec(ctx context.Context, cmd sandbox.Cmd) (int, error) {
	if m.exec != nil {
		return m.exec(ctx, m.Sandbox, cmd)
	}
	return m.Sandbox.Exec(ctx, cmd)
}

func (m *mutant) ReadFile(ctx context.Context, name string, w io.Writer) error {
	if m.read != nil {
		return m.read(ctx, m.Sandbox, name, w)
	}
	return m.Sandbox.ReadFile(ctx, name, w)
}

func (m *mutant) WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error {
	if m.write != nil {
		return m.write(ctx, m.Sandbox, name, r, perm)
	}
	return m.Sandbox.WriteFile(ctx, name, r, perm)
}

func (m *mutant) Info() sandbox.Info {
	if m.info != nil {
		return m.info(m.Sandbox.Info())
	}
	return m.Sandbox.Info()
}

// faulty opens sandboxes of this computer with a fault.
type faulty struct {
	local.Provider
	fault mutant
}

func (p faulty) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	sb, err := p.Provider.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	m := p.fault
	m.Sandbox = sb
	return &m, nil
}

// onScript makes a fault that only shows in commands whose text holds mark, so
// that a rule's preparations still work.
func onScript(mark string, fault func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error)) mutant {
	return mutant{exec: func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
		if strings.Contains(strings.Join(cmd.Args, " "), mark) {
			return fault(ctx, sb, cmd)
		}
		return sb.Exec(ctx, cmd)
	}}
}

// leftovers are commands that mutants leave behind. They end with their rule.
type leftovers struct {
	until context.Context
	wg    sync.WaitGroup
}

type leftoversKey struct{}

// detached runs the command without the caller's deadline and only stops waiting.
func detached(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
	done := make(chan struct{})
	left := ctx.Value(leftoversKey{}).(*leftovers)
	left.wg.Go(func() {
		defer close(done)
		cmd.Stdout, cmd.Stderr = nil, nil
		sb.Exec(left.until, cmd)
	})
	select {
	case <-done:
		return 0, nil
	case <-ctx.Done():
		return sandbox.ExitOf(ctx)
	}
}

func writeTo(name string, data []byte, perm fs.FileMode) error { return os.WriteFile(name, data, perm) }

func mutants() map[string]mutant {
	swapped := func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
		w := &locked{w: cmd.Stdout}
		cmd.Stdout, cmd.Stderr = w, w
		return sb.Exec(ctx, cmd)
	}
	buffered := func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
		var b bytes.Buffer
		w := cmd.Stdout
		cmd.Stdout = &b
		exit, err := sb.Exec(ctx, cmd)
		w.Write(b.Bytes())
		return exit, err
	}
	text := func(change func([]byte) []byte) func(context.Context, sandbox.Sandbox, sandbox.Cmd) (int, error) {
		return func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			var b bytes.Buffer
			w := cmd.Stdout
			cmd.Stdout = &b
			exit, err := sb.Exec(ctx, cmd)
			w.Write(change(b.Bytes()))
			return exit, err
		}
	}
	status := func(change func(int) (int, error)) func(context.Context, sandbox.Sandbox, sandbox.Cmd) (int, error) {
		return func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			exit, err := sb.Exec(ctx, cmd)
			if err != nil {
				return exit, err
			}
			return change(exit)
		}
	}
	inShell := func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
		cmd.Args = []string{"/bin/sh", "-c", strings.Join(cmd.Args, " ")}
		return sb.Exec(ctx, cmd)
	}
	otherCode := func(code sandbox.Code) mutant {
		return mutant{
			read: func(ctx context.Context, sb sandbox.Sandbox, name string, w io.Writer) error {
				if err := sb.ReadFile(ctx, name, w); err != nil {
					return &sandbox.Error{Code: code}
				}
				return nil
			},
			write: func(ctx context.Context, sb sandbox.Sandbox, name string, r io.Reader, perm fs.FileMode) error {
				if err := sb.WriteFile(ctx, name, r, perm); err != nil {
					return &sandbox.Error{Code: code}
				}
				return nil
			},
		}
	}
	writes := func(f func(name string, data []byte, perm fs.FileMode) error) mutant {
		return mutant{write: func(_ context.Context, _ sandbox.Sandbox, name string, r io.Reader, perm fs.FileMode) error {
			data, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			return f(name, data, perm)
		}}
	}
	var serial = make(chan struct{}, 1)

	return map[string]mutant{
		"C16": onScript("echo hi", swappedStreams),
		"C17": onScript("exit 3", status(func(n int) (int, error) { return n, fmt.Errorf("exit status %d", n) })),
		"C18": onScript("printf out", swapped),
		"C19": onScript("kill -9", status(func(int) (int, error) { return 9, nil })),
		"C20": onScript("no-such-program", status(func(int) (int, error) { return 1, nil })),
		"C21": onScript("./f", status(func(int) (int, error) { return 1, nil })),
		"C22": onScript("printf", inShell),
		"C23": onScript("here", text(func(b []byte) []byte { return b[:1] })),
		"C24": {exec: func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			cmd.Stdin = limit(cmd.Stdin)
			return sb.Exec(ctx, cmd)
		}},
		"C25": onScript("cat", func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			cmd.Stdin = strings.NewReader("inherited")
			return sb.Exec(ctx, cmd)
		}),
		"C27": onScript("echo now", func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			time.Sleep(5100 * time.Millisecond)
			return sb.Exec(ctx, cmd)
		}),
		"C30": onScript("echo before", func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			exit, _ := sb.Exec(ctx, cmd)
			return exit, nil
		}),
		"C32": onScript("sleep 300", detached),
		"C33": onScript("trap", detached),
		"C37": onScript("echo go", func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			_, err := sb.Exec(ctx, cmd)
			return 137, err
		}),
		"C39": onScript("marker", func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			sb.Exec(context.WithoutCancel(ctx), cmd)
			return sandbox.ExitOf(ctx)
		}),
		"C40": onScript("1 2 3 4", buffered),
		"C41": onScript("no newline", text(func(b []byte) []byte { return append(b, '\n') })),
		"C42": onScript(`\377`, text(func(b []byte) []byte { return bytes.ToValidUTF8(b, []byte("?")) })),
		"C47": onScript("yes", text(func(b []byte) []byte { return b[:1000] })),
		"C48": onScript("echo line", text(func(b []byte) []byte { return b[len(b)/2:] })),
		"C49": onScript("pwd", func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			cmd.Dir = ""
			return sb.Exec(ctx, cmd)
		}),
		"C50": onScript(": >", func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			cmd.Dir = ""
			return sb.Exec(ctx, cmd)
		}),
		"C51": onScript("[$A]", func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			cmd.Env = map[string]string{"A": "1"}
			return sb.Exec(ctx, cmd)
		}),
		"C56": onScript("CONFORM_A", func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			cmd.Env = map[string]string{"CONFORM_A": strings.ReplaceAll(cmd.Env["CONFORM_A"], "\n", " ")}
			return sb.Exec(ctx, cmd)
		}),
		"C61": onScript("head -c 65536", text(func(b []byte) []byte { return b[:len(b)/2] })),
		"C62": {exec: func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			if len(cmd.Args) == 0 {
				return 0, nil
			}
			return sb.Exec(ctx, cmd)
		}},
		"C272": onScript("sleep 1", func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			serial <- struct{}{}
			defer func() { <-serial }()
			return sb.Exec(ctx, cmd)
		}),
		"C273": onScript("printf %s", status(func(int) (int, error) { return 0, nil })),
		"C278": onScript("echo go", func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			exit, err := sb.Exec(ctx, cmd)
			return exit + 1, err
		}),
		"C227": {read: func(ctx context.Context, sb sandbox.Sandbox, name string, w io.Writer) error {
			io.WriteString(w, "\ufeff")
			return sb.ReadFile(ctx, name, w)
		}},
		"C228": {read: func(ctx context.Context, sb sandbox.Sandbox, name string, w io.Writer) error {
			var b bytes.Buffer
			err := sb.ReadFile(ctx, name, &b)
			w.Write(bytes.ReplaceAll(b.Bytes(), []byte{0}, nil))
			return err
		}},
		"C10": {write: func(ctx context.Context, sb sandbox.Sandbox, name string, r io.Reader, perm fs.FileMode) error {
			return sb.WriteFile(ctx, strings.ReplaceAll(name, "\n", ""), r, perm)
		}},
		"C65": {write: func(ctx context.Context, sb sandbox.Sandbox, name string, r io.Reader, perm fs.FileMode) error {
			if _, err := os.Stat(name); err == nil {
				return fs.ErrExist
			}
			return sb.WriteFile(ctx, name, r, perm)
		}},
		"C66": {write: func(ctx context.Context, sb sandbox.Sandbox, name string, r io.Reader, perm fs.FileMode) error {
			os.Remove(name)
			return sb.WriteFile(ctx, name, r, perm)
		}},
		"C67": {write: func(ctx context.Context, sb sandbox.Sandbox, name string, r io.Reader, perm fs.FileMode) error {
			os.Remove(name)
			return sb.WriteFile(ctx, name, r, perm)
		}},
		"C73": otherCode(sandbox.CodeInternal),
		"C76": {write: func(_ context.Context, _ sandbox.Sandbox, name string, r io.Reader, perm fs.FileMode) error {
			data, err := io.ReadAll(r)
			return errors.Join(os.WriteFile(name, data, perm), err)
		}},
		"C232": otherCode(sandbox.CodeFileNotFound),
		"C8":   otherCode(sandbox.CodeFileNotFound),
		"C234": {read: func(ctx context.Context, sb sandbox.Sandbox, name string, w io.Writer) error {
			sb.ReadFile(ctx, name, w)
			return nil
		}},
		"C235": otherCode(sandbox.CodeFileNotFound),
		"C82":  otherCode(sandbox.CodeIsDirectory),
		"C237": writes(writeTo),
		"C238": otherCode(sandbox.CodeNotADirectory),
		"C239": writes(func(name string, data []byte, _ fs.FileMode) error { return os.WriteFile(name, data, 0o644) }),
		"C240": {read: func(ctx context.Context, sb sandbox.Sandbox, name string, w io.Writer) error {
			var b bytes.Buffer
			err := sb.ReadFile(ctx, name, &b)
			w.Write(b.Bytes()[:b.Len()-1])
			return err
		}},
		"C243": onScript("tar -xpof", func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			exit, err := sb.Exec(ctx, cmd)
			sb.Exec(ctx, sandbox.Cmd{Args: []string{"chmod", "-R", "a-x", cmd.Args[len(cmd.Args)-2] + "/run"}})
			return exit, err
		}),
		"C253": onScript("--no-unquote", func(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
			cmd.Args = cmd.Args[:len(cmd.Args)-1]
			return sb.Exec(ctx, cmd)
		}),
		"C275": writes(func(name string, data []byte, perm fs.FileMode) error {
			f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, perm)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.Write(data)
			return err
		}),
		"C277": {read: func(context.Context, sandbox.Sandbox, string, io.Writer) error { return sandbox.ErrUnavailable }},
		"C193": {info: func(i sandbox.Info) sandbox.Info { i.Dir += "/"; return i }},
	}
}

func swappedStreams(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Cmd) (int, error) {
	cmd.Stdout, cmd.Stderr = cmd.Stderr, cmd.Stdout
	return sb.Exec(ctx, cmd)
}

// locked is a writer that two streams can share.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func limit(r io.Reader) io.Reader {
	if r == nil {
		return nil
	}
	return io.LimitReader(r, 96<<10)
}

// elsewhere are rules that a mutant of this computer cannot break: those about
// machines that are made and ended, those about a user without rights, and the
// one about features that it does not have.
var elsewhere = []string{"C194", "C199", "C207", "C208", "C217", "C219", "C262", "C54", "C236", "C75", "C221"}

func TestEveryRuleCatchesItsMutant(t *testing.T) {
	faults := mutants()
	for _, rule := range conform.Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			t.Parallel()
			if slices.Contains(elsewhere, rule.ID) {
				t.Skip("a mutant of this computer cannot break it")
			}
			fault, ok := faults[rule.ID]
			if !ok {
				t.Fatal("no mutant shows that this rule can fail")
			}
			var got conform.Result
			until, end := context.WithCancel(t.Context())
			left := &leftovers{until: until}
			defer left.wg.Wait()
			defer end()
			target := conform.Target{Provider: faulty{fault: fault}, Spec: sandbox.Spec{Dir: t.TempDir(), Env: map[string]string{"PATH": os.Getenv("PATH")}}}
			if err := conform.Run(context.WithValue(t.Context(), leftoversKey{}, left), target, func(r conform.Result) { got = r }, rule); err != nil {
				t.Fatal(err)
			}
			if got.Verdict != conform.Fail {
				t.Errorf("%s: %s; want fail", rule.Say, got.Verdict)
			}
		})
	}
}

package emulate

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Open opens a sandbox for the length of a test. The changes are made to what is
// asked for.
func Open(t *testing.T, p sandbox.Provider, s Service, change ...func(*sandbox.Spec)) sandbox.Sandbox {
	t.Helper()
	spec := sandbox.Spec{Settings: s.Settings()}
	for _, f := range change {
		f(&spec)
	}
	sb, err := p.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Close() })
	return sb
}

// Sh is the command that runs a script.
func Sh(script string) []string { return []string{"/bin/sh", "-c", script, "sh"} }

// Run runs a script that must be run, whatever its status.
func Run(t *testing.T, sb sandbox.Sandbox, script string) (stdout, stderr string, exit int) {
	t.Helper()
	var o, e bytes.Buffer
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: Sh(script), Stdout: &o, Stderr: &e})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return o.String(), e.String(), exit
}

// WantCode fails the test if the error is of another code.
func WantCode(t *testing.T, err error, code sandbox.Code) {
	t.Helper()
	if got := sandbox.CodeOf(err); got != code {
		t.Errorf("got code %q (%v), want %q", got, err, code)
	}
}

// A Notice is a writer that tells of the first bytes it gets.
type Notice struct {
	First chan struct{} // closed by them

	mu  sync.Mutex
	buf bytes.Buffer
}

// NewNotice returns a writer that has got nothing yet.
func NewNotice() *Notice { return &Notice{First: make(chan struct{})} }

// Write implements io.Writer.
func (n *Notice) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.buf.Len() == 0 && len(p) > 0 {
		close(n.First)
	}
	return n.buf.Write(p)
}

// String is what was written.
func (n *Notice) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.String()
}

// A Counter counts the bytes written to it.
type Counter int64

// Write implements io.Writer.
func (c *Counter) Write(p []byte) (int, error) {
	*c += Counter(len(p))
	return len(p), nil
}

// ErrSource is the error of Failing.
var ErrSource = errors.New("source failed")

// Failing is a reader that fails at once.
type Failing struct{}

// Read implements io.Reader.
func (Failing) Read([]byte) (int, error) { return 0, ErrSource }

//go:build unix

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/runtime/model/modeltest"
	"github.com/talkops-ai/talkops/runtime/session"
)

// TestAStartIsShown holds the line that says how far a start is: at every width it is
// one line, and it is gone when the start is over.
func TestAStartIsShown(t *testing.T) {
	var mu sync.Mutex
	var b strings.Builder
	out := writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return b.Write(p)
	})
	for _, row := range []struct {
		width int
		at    session.Progress
		want  string
	}{
		{80, session.Progress{Step: "start"}, "… creating a Daytona sandbox, 3s"},
		{80, session.Progress{Step: "start", State: "creating"}, "… creating a Daytona sandbox, 3s"},
		{80, session.Progress{Step: "start", State: "pulling snapshot"}, "… creating a Daytona sandbox (pulling snapshot), 3s"},
		{80, session.Progress{Step: "attach to"}, "… reaching the Daytona sandbox, 3s"},
		{80, session.Progress{Step: "set up"}, "… setting up, 3s; Ctrl+C ends it"},
		{80, session.Progress{Step: "upload to", Files: 12, OfFiles: 40, Bytes: 1 << 20, OfBytes: 4 << 20}, "… uploading ████░░░░░░░░░░░░  25%, 12 of 40 entries, 1.0 MiB of 4.0 MiB"},
		{40, session.Progress{Step: "upload to", Files: 12, OfFiles: 40, Bytes: 1 << 20, OfBytes: 4 << 20}, "… uploading ██░░░░░░  25%, 12 of 40 en…"},
	} {
		clock := time.Unix(0, 0)
		s := newOpening(out, func() int { return row.width }, true, "Daytona")
		s.mu.Lock()
		s.now = func() time.Time { return clock }
		s.mu.Unlock()
		s.progress(row.at)
		s.mu.Lock()
		clock = clock.Add(3 * time.Second)
		s.mu.Unlock()
		s.Write([]byte("a note\n"))
		s.Close()
		if got := b.String(); !strings.Contains(got, "a note\n\r\x1b[K"+row.want+"\r\x1b[K") {
			t.Errorf("at %d: got %q, want %q in it", row.width, got, row.want)
		}
		if !strings.HasSuffix(b.String(), "\r\x1b[K") {
			t.Errorf("the line stays: %q", b.String())
		}
		b.Reset()
	}
}

// TestTheEndOfASetupIsShown holds what is seen of a setup script while it runs: its last
// lines, each within the width, in a place that is drawn over.
func TestTheEndOfASetupIsShown(t *testing.T) {
	var b strings.Builder
	width := 20
	s := &opening{w: &b, width: func() int { return width }, wraps: true, now: func() time.Time { return time.Unix(0, 0) }, since: time.Unix(0, 0)}
	for i := range 6 {
		s.printed(strings.Repeat("x", i) + " " + strings.Repeat("y", 30))
	}
	s.progress(session.Progress{Step: "set up"})
	want := "  xx " + strings.Repeat("y", 13) + "…\n  xxx " + strings.Repeat("y", 12) + "…\n  xxxx " + strings.Repeat("y", 11) + "…\n  xxxxx " + strings.Repeat("y", 10) + "…\n\r\x1b[K… setting up, 0s; …"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	b.Reset()
	s.Write([]byte("a note\n"))
	if got := b.String(); got != "\r\x1b[4A\x1b[Ja note\n"+want {
		t.Errorf("a note: %q", got)
	}
	b.Reset()
	s.progress(session.Progress{Step: "upload to"})
	if got := b.String(); !strings.HasPrefix(got, "\r\x1b[4A\x1b[J\r\x1b[K… uploading") {
		t.Errorf("the next step: %q", got)
	}
	s.progress(session.Progress{Step: "set up"})
	b.Reset()
	width = 10 // the four lines and the last are two each now
	s.Write([]byte("a note\n"))
	if got := b.String(); !strings.HasPrefix(got, "\r\x1b[9A\x1b[Ja note\n  xx yyy…\n") {
		t.Errorf("in a narrower window: %q", got)
	}
}

// TestChatStarts looks at a start that takes a while, at one that fails and is tried
// again, and at a setup script that fails.
func TestChatStarts(t *testing.T) {
	for _, width := range []int{60, 200} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			srv := modeltest.New(t)
			cloud, err := daytonatest.Start(daytonatest.Config{StartDelay: 3 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cloud.Close)
			cloud.Inject(daytonatest.Fault{Op: "create", Status: 403, Body: `{"statusCode":403,"message":"Total CPU limit exceeded"}`})
			p := terminal(t)
			p.write("setup.sh", "echo one; echo two; exit 3\n")
			p.write("main.tf", strings.Repeat("x", 1000))
			srv.Script(modeltest.Step{Text: "I heard it once."})
			p.start(width, 30, srv, daytona(cloud), "--sandbox", "daytona", "-m", "Say hello")
			p.await(`(?s)could not start a Daytona sandbox.*limit exceeded.*Nothing ran on this computer.*\[t\]ry again, or \[l\]eave`)
			p.say("t")
			p.await(`… creating a Daytona sandbox, [12]s`)
			p.await(`DAYTONA box-\d+`)
			p.await(`(?s)› Say hello.*I heard it once`)
			if seen := p.screen(); strings.Contains(seen, "sandbox is creating") {
				t.Errorf("that it is created is said twice:\n%s", seen)
			}
			if strings.Contains(p.screen(), "… creating") {
				t.Errorf("what is over is still there:\n%s", p.screen())
			}
			p.say("/exit")
			p.await(`ended with 0`)
			p.write("long.sh", "i=0; while [ $i -lt 9 ]; do i=$((i+1)); echo \"step $i\"; done; sleep 2\n")
			p = p.again(srv, daytona(cloud), "--sandbox", "daytona", "--sandbox-setup", "long.sh")
			p.await(`(?s)  step 6\s+step 7\s+step 8\s+step 9\s+… setting up`)
			if strings.Contains(p.screen(), "step 5") {
				t.Errorf("more than the end of the setup is shown:\n%s", p.screen())
			}
			p.await(`DAYTONA box-\d+`)
			if strings.Contains(p.screen(), "step 9") {
				t.Errorf("what is over is still there:\n%s", p.screen())
			}
			p.say("/output 1")
			p.await(`(?s)Output 1, 9 lines: long.sh\s+step 1\s.*step 9`)
			p.say("/exit")
			p.await(`ended with 0`)
			p = p.again(srv, daytona(cloud), "--sandbox", "daytona", "--sandbox-setup", "setup.sh")
			p.await(`(?s)could not set up a Daytona sandbox: the setup script ended with 3.*\| one.*\| two.*\[t\]ry again, or \[l\]eave`)
			p.write("setup.sh", "echo mended >made.txt\n")
			p.say("t")
			p.await(`DAYTONA box-\d+`)
			time.Sleep(11 * time.Second) // longer than progress is silent
			if strings.Contains(p.screen(), "still working") {
				t.Errorf("the start that failed is still working:\n%s", p.screen())
			}
			p.say("!cat made.txt")
			p.await(`  mended`)
			p.say("/exit")
			p.await(`ended with 0`)
			p.write("setup.sh", "exit 3\n")
			p = p.again(srv, daytona(cloud), "--sandbox", "daytona", "--sandbox-setup", "setup.sh")
			p.await(`ended with 3(?s:.*)\[t\]ry again, or \[l\]eave`)
			p.say("l")
			p.await(`ended with 5`)
			if seen := p.screen(); strings.Contains(seen, "(exit") || strings.Count(seen, "could not set up") != 1 {
				t.Errorf("the end is told before it comes, or what failed twice:\n%s", seen)
			}
			if left := cloud.Boxes(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if _, err := os.Stat(filepath.Join(p.home, "leases")); err == nil {
				if left, _ := filepath.Glob(filepath.Join(p.home, "leases", "*.json")); len(left) > 0 {
					t.Errorf("on record: %v", left)
				}
			}
		})
	}
}

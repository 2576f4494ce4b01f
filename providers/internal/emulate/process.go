package emulate

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Ended fails t unless the process with this id, as a command printed it, is
// gone. A process that was sent SIGKILL takes a moment to go, so it is asked
// about for up to two seconds, as long as a sandbox may take to end a command.
func Ended(t testing.TB, pid string) {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatalf("process id %q", pid)
	}
	for began := time.Now(); running(n); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 5*time.Second {
			t.Errorf("process %d still runs", n)
			return
		}
	}
}

func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

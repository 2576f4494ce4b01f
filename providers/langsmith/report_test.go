package langsmith

import (
	"strings"
	"testing"
)

// A report that never ends must not fill the memory.
func TestReportWithoutEnd(t *testing.T) {
	var r report
	piece := strings.Repeat("x", 1<<20)
	for n := range 100 {
		r.add(int64(n)<<20, piece)
	}
	if len(r.text) > 4<<20 || !r.gap {
		t.Errorf("%d bytes are kept, and it counts as whole: %v", len(r.text), !r.gap)
	}
}

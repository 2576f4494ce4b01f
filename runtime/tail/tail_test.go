package tail_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/talkops-ai/talkops/runtime/tail"
)

func TestBuffer(t *testing.T) {
	b := tail.Buffer{Most: 10}
	if b.String() != "" || b.Lines(3) != nil {
		t.Errorf("of nothing: %q, %q", b.String(), b.Lines(3))
	}
	fmt.Fprint(&b, "one\ntwo\nthree\n\n")
	if got := b.String(); got != "wo\nthree\n\n" {
		t.Errorf("got %q", got)
	}
	if got := b.Lines(1); !slices.Equal(got, []string{"three"}) {
		t.Errorf("the last line: %q", got)
	}
	if got := b.Lines(9); !slices.Equal(got, []string{"wo", "three"}) {
		t.Errorf("all lines: %q", got)
	}
	fmt.Fprint(&b, "é\xff0123456789")
	if got := b.String(); got != "0123456789" {
		t.Errorf("got %q", got)
	}
	fmt.Fprint(&b, "é0123456789"[1:])
	fmt.Fprint(&b, "\xff")
	if got := b.String(); got != "123456789\ufffd" {
		t.Errorf("what is no text: %q", got)
	}
}

func TestBothStreams(t *testing.T) {
	var b tail.Buffer
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 1000 {
				fmt.Fprintln(&b, "line")
			}
		})
	}
	wg.Wait()
	if got := b.String(); len(got) != 4<<10 || strings.Trim(got, "line\n") != "" {
		t.Errorf("%d bytes", len(got))
	}
}

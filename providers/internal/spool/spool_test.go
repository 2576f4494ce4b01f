package spool

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

var errTwice = errors.New("it ran before")

func line(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) + "\n" }

// The vendor's stream may begin anew with every connection and is cut anywhere.
func TestStreamLeavesOutWhatWasRead(t *testing.T) {
	sent := line("hello") + "\n" + line(" world") + ".11\n=3\n"
	for cut := range sent {
		var out strings.Builder
		o := Machine{}.New("", sandbox.Cmd{Stdout: &out})
		for _, piece := range []string{sent[:cut], sent[:cut/2], sent} {
			half := len(piece) / 2
			if err := errors.Join(o.Out.Take(piece[:half], 0), o.Out.Take(piece[half:], int64(half))); err != nil {
				t.Fatal(err)
			}
		}
		exit, err := o.Complete(t.Context())
		if out.String() != "hello world" || exit != 3 || err != nil || !o.Whole() || o.Out.Broken {
			t.Fatalf("cut at %d: got %q, %d, %v, whole %v", cut, out.String(), exit, err, o.Whole())
		}
	}
}

func TestSecondCopyIsTold(t *testing.T) {
	o := Machine{Twice: errTwice}.New("", sandbox.Cmd{})
	if err := o.Out.Take("!\n", 0); !errors.Is(err, errTwice) {
		t.Errorf("got %v, want that it ran before", err)
	}
}

// A line that never ends must not fill the memory: the file has what it holds.
func TestStreamWithoutLines(t *testing.T) {
	s := Machine{}.New("", sandbox.Cmd{Stdout: io.Discard}).Out
	for range 100 {
		if err := s.Take(strings.Repeat("QUJD", 64<<10), s.At); err != nil {
			t.Fatal(err)
		}
		if cap(s.rest) > 4*lineMost {
			t.Fatalf("%d bytes are kept", cap(s.rest))
		}
	}
	if !s.Broken {
		t.Error("the stream counts as whole")
	}
	if err := s.Take("==\n", s.At); err != nil || s.Whole {
		t.Errorf("the end of a line of base64 is taken for a status (%v)", err)
	}
}

// What did not arrive is in the files, or it is said to be missing.
func TestWhatIsMissingIsFetched(t *testing.T) {
	missing := errors.New("no such file")
	for _, row := range []struct {
		name    string
		sent    string
		salvage bool // the vendor says that the command has ended
		files   map[string]string
		out     string
		exit    int
		code    sandbox.Code
	}{
		{"nothing is missing", line("all") + ".3\n=0\n", false, nil, "all", 0, ""},
		{"the end of the output", line("al") + ".3\n=0\n", false, map[string]string{"f.o": "all"}, "all", 0, ""},
		{"what no line holds", line("a") + "***\n.3\n=0\n", false, map[string]string{"f.o": "all"}, "all", 0, ""},
		{"the size", line("al") + "=4\n", false, map[string]string{"f.o": "all"}, "all", 4, ""},
		{"the size and the file", line("al") + "=4\n", false, nil, "al", 0, sandbox.CodeInternal},
		{"the file was removed", ".\n=0\n", false, nil, "", 0, sandbox.CodeInternal},
		{"the file is shorter than it was", line("a") + ".3\n=0\n", false, map[string]string{"f.o": "al"}, "al", 0, sandbox.CodeUnavailable},
		{"everything behind the beginning", line("al"), true, map[string]string{"f.o": "all", "f.x": "7\n"}, "all", 7, ""},
		{"the status, for ever", line("al"), true, map[string]string{"f.o": "all"}, "al", 0, sandbox.CodeGone},
		{"a status that is none", line("al") + ".2\n=700\n", false, nil, "al", 0, sandbox.CodeInternal},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out strings.Builder
			o := Machine{
				Download: func(_ context.Context, name string, offset int64, w io.Writer) (int64, error) {
					data, ok := row.files[name]
					if !ok {
						return 0, missing
					}
					n, err := io.WriteString(w, data[min(int(offset), len(data)):])
					return int64(n), err
				},
				Absent:  func(err error) bool { return err == missing },
				Explain: func(_ context.Context, err error) error { return err },
			}.New("f", sandbox.Cmd{Stdout: &out})
			err := o.Out.Take(row.sent, 0)
			if err == nil && row.salvage {
				err = o.Salvage(t.Context())
			}
			exit := 0
			if err == nil {
				exit, err = o.Complete(t.Context())
			}
			if out.String() != row.out || exit != row.exit || sandbox.CodeOf(err) != row.code {
				t.Errorf("got %q, %d, %v; want %q, %d, code %q", out.String(), exit, err, row.out, row.exit, row.code)
			}
		})
	}
}

func TestStaleFilesAreSweptOnceAndNotAllAtOnce(t *testing.T) {
	var s Stale
	if got := s.Sweep(); got != "" {
		t.Errorf("of none: got %q", got)
	}
	s.Add("/run/it")
	if got, want := s.Sweep(), "rm -rf "+sandbox.Quote("/run/it")+".*; "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for range 70 {
		s.Add("/run/x")
	}
	if got := []int{strings.Count(s.Sweep(), "/run/x"), strings.Count(s.Sweep(), "/run/x"), strings.Count(s.Sweep(), "/run/x")}; !slices.Equal(got, []int{50, 20, 0}) {
		t.Errorf("got %v files, want 50, 20 and none", got)
	}
}

package rest_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/talkops-ai/talkops/providers/internal/rest"
)

func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	for _, row := range []struct {
		name, stream string
		want         []string // "name|data"
		end          error
	}{
		{"one", "data: a\n\n", []string{"|a"}, io.EOF},
		{"a name, no space and other fields", "id: 7\nevent: error\ndata:{}\nretry: 3\n\n", []string{"error|{}"}, io.EOF},
		{"comments and empty events", ": hello\n\nevent: none\n\ndata: a\n: in between\ndata:  b\n\n", []string{"|a\n b"}, io.EOF},
		{"carriage returns", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}, io.EOF},
		{"empty data", "data:\n\ndata\n\n", []string{"|", "|"}, io.EOF},
		{"a long line", "data: " + long + "\n\n", []string{"|" + long}, io.EOF},
		{"cut in a line", "data: a\n\ndata: b", []string{"|a"}, io.ErrUnexpectedEOF},
		{"cut before the end of an event", "data: a\n\ndata: b\n", []string{"|a"}, io.EOF},
	} {
		t.Run(row.name, func(t *testing.T) {
			events := rest.NewEvents(iotest.HalfReader(strings.NewReader(row.stream)))
			var got []string
			for {
				e, err := events.Next()
				if err != nil {
					if err != row.end {
						t.Errorf("ended with %v, want %v", err, row.end)
					}
					break
				}
				got = append(got, e.Name+"|"+string(e.Data))
			}
			if strings.Join(got, "\x00") != strings.Join(row.want, "\x00") {
				t.Errorf("got %.100q, want %.100q", got, row.want)
			}
		})
	}
}

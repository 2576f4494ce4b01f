package tooltest

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// rows returns the lines "row 1" to "row n".
func rows(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "row %d\n", i+1)
	}
	return b.String()
}

// reads checks the lines shown of f and what else the result says.
func reads(content string, a args, want string, notes ...string) func(*place) {
	return func(p *place) {
		p.Helper()
		p.put("f", content)
		a["file_path"] = "f"
		r := p.ok("read_file", a)
		if got := text(r); got != want {
			p.Errorf("got %.500q; want %.500q", got, want)
		}
		p.says(r, notes...)
	}
}

var nextOffset = regexp.MustCompile(`next offset (\d+)\]`)

// follow reads f by windows and joins them.
func (p *place) follow(limit int) string {
	p.Helper()
	var b strings.Builder
	offset := 0
	for {
		r := p.ok("read_file", args{"file_path": "f", "offset": offset, "limit": limit})
		b.WriteString(text(r))
		m := nextOffset.FindStringSubmatch(r.Text)
		if m == nil {
			return b.String()
		}
		offset, _ = strconv.Atoi(m[1])
	}
}

func binary(name, content string, want ...string) func(*place) {
	return func(p *place) {
		p.put(name, content)
		r := p.ok("read_file", args{"file_path": name})
		p.says(r, append(want, "binary")...)
		if len(r.Text) > 1000 || strings.Contains(r.Text, "\ufffd") || r.Media != nil {
			p.Errorf("got %.300q and %d bytes", r.Text, len(r.Media))
		}
	}
}

func allBytes() string {
	var b [256]byte
	for i := range b {
		b[i] = byte(i)
	}
	return string(b[:])
}

var readRules = []rule{
	{name: "C78 a small file is read whole", run: reads("1\n2\n3\n", args{}, "1\n2\n3\n")},
	{name: "C79 a missing file is file_not_found", run: func(p *place) {
		p.refused(sandbox.CodeFileNotFound, "none", "read_file", args{"file_path": "none"})
	}},
	{name: "C80 a directory is is_directory", run: func(p *place) {
		p.sh("mkdir d")
		p.refused(sandbox.CodeIsDirectory, "d", "read_file", args{"file_path": "d"})
	}},
	{name: "C81 an unreadable file is permission_denied", user: true, run: func(p *place) {
		p.sh("echo x >f; chmod 0 f")
		p.refused(sandbox.CodePermissionDenied, "f", "read_file", args{"file_path": "f"})
	}},
	{name: "C82 a FIFO is not_a_file", run: func(p *place) {
		p.sh("mkfifo f")
		p.refused(sandbox.CodeNotAFile, "f", "read_file", args{"file_path": "f"})
	}},
	{name: "C83 an empty file says so", run: reads("", args{}, "", "empty")},
	{name: "C84 offset skips lines", run: reads(rows(10), args{"offset": 5}, "row 6\nrow 7\nrow 8\nrow 9\nrow 10\n")},
	{name: "C85 limit ends the window", run: reads(rows(100), args{"limit": 5}, rows(5), "next offset 5")},
	{name: "C86 a window names its lines",
		run: reads(rows(20), args{"offset": 10, "limit": 5}, "row 11\nrow 12\nrow 13\nrow 14\nrow 15\n", "lines 11-15", "next offset 15")},
	{name: "C87 windows join to the file", run: func(p *place) {
		p.put("f", strings.TrimSuffix(rows(2500), "\n"))
		if got := p.follow(500); got != rows(2500) {
			p.Errorf("got %d bytes; want %d", len(got), len(rows(2500)))
		}
	}},
	{name: "C88 limit 0 shows nothing", run: reads(rows(3), args{"limit": 0}, "")},
	{name: "C89 an offset past the end is out_of_range", run: func(p *place) {
		p.put("f", rows(5))
		p.refused(sandbox.CodeOutOfRange, "5 lines", "read_file", args{"file_path": "f", "offset": 5})
		p.refused(sandbox.CodeOutOfRange, "5 lines", "read_file", args{"file_path": "f", "offset": 100})
	}},
	{name: "C90 negative numbers are refused", run: func(p *place) {
		p.put("f", rows(5))
		p.refused(sandbox.CodeInvalidArgument, "offset", "read_file", args{"file_path": "f", "offset": -1})
		p.refused(sandbox.CodeInvalidArgument, "limit", "read_file", args{"file_path": "f", "limit": -1})
	}},
	{name: "C91 an answer has at most 80,000 bytes of whole lines", run: func(p *place) {
		p.put("f", rows(200_000))
		r := p.ok("read_file", args{"file_path": "f", "limit": 200_000})
		shown := strings.Count(text(r), "\n")
		if len(r.Text) > 80_000 || len(r.Text) < 79_000 {
			p.Errorf("got %d bytes", len(r.Text))
		}
		p.says(r, fmt.Sprintf("\trow %d\n[", shown), fmt.Sprintf("next offset %d", shown))
	}},
	{name: "C92 a very long line is cut and counted once", run: func(p *place) {
		p.put("f", "first\n"+strings.Repeat("x", 3_000_000)+"\nlast\n")
		got := p.follow(100)
		if !strings.HasPrefix(got, "first\nxxx") || !strings.HasSuffix(got, "]\nlast\n") || !strings.Contains(got, "3000000 bytes") || len(got) > 81_000 {
			p.Errorf("got %d bytes: %.50q ... %q", len(got), got, got[len(got)-50:])
		}
	}},
	{name: "C93 a line of 3,000 characters is shown whole",
		run: reads(strings.Repeat("y", 3000)+"\n", args{}, strings.Repeat("y", 3000)+"\n")},
	{name: "C94 CRLF is noted and not shown", run: reads("a\r\nb\r\n", args{}, "a\nb\n", "CRLF")},
	{name: "C95 an image comes as it is", run: func(p *place) {
		p.put("x.png", allBytes())
		if r := p.ok("read_file", args{"file_path": "x.png"}); r.Type != "image/png" || !bytes.Equal(r.Media, []byte(allBytes())) {
			p.Errorf("got %q, %d bytes", r.Type, len(r.Media))
		}
	}},
	{name: "C96 another binary file is not shown", run: binary("x", "\x7fELF"+strings.Repeat(allBytes(), 8000), "2048004")},
	{name: "C97 a large image is too_large", run: func(p *place) {
		p.put("x.png", "\x89PNG\r\n\x1a\n"+strings.Repeat("\x00", 600_000))
		p.refused(sandbox.CodeTooLarge, "512000", "read_file", args{"file_path": "x.png"})
	}},
	{name: "C98 a character across a buffer's end is whole", run: func(p *place) {
		for _, n := range []int{4095, 8191, 8190, 32767} {
			want := strings.Repeat("x", n) + "\u4e16\u754c\n"
			reads(want, args{}, want)(p)
		}
	}},
	{name: "C99 text that is not UTF-8 is binary", run: binary("f", "caf\xe9 au lait\n", "not UTF-8")},
	{name: "C100 content decides what is binary", run: binary("notes.txt", "a\x00b\n")},
	{name: "C101 a link is read through", run: func(p *place) {
		p.put("f", "word\n")
		p.sh("ln -s f link")
		p.says(p.ok("read_file", args{"file_path": "link"}), "word")
	}},
	{name: "C102 a dangling link is file_not_found", run: func(p *place) {
		p.sh("ln -s none link")
		p.refused(sandbox.CodeFileNotFound, "link", "read_file", args{"file_path": "link"})
	}},
}

package tooltest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// edit returns the parameters of an edit of f.
func edit(old, new string) args { return args{"file_path": "f", "old_string": old, "new_string": new} }

// edits runs one edit of a file and checks what it holds then.
func edits(before, old, new, after string) func(*place) {
	return func(p *place) {
		p.put("f", before)
		p.ok("edit_file", edit(old, new))
		p.holds("f", after)
	}
}

// keeps runs an edit that is refused and checks that the file is untouched.
func keeps(code sandbox.Code, want, before string, a args) func(*place) {
	return func(p *place) {
		p.put("f", before)
		p.sh("chmod 640 f; touch -t 202001010000 f")
		stat := p.sh("ls -ln f")
		p.refused(code, want, "edit_file", a)
		p.holds("f", before)
		if now := p.sh("ls -ln f"); now != stat {
			p.Errorf("got %s; want %s", now, stat)
		}
	}
}

var editRules = []rule{
	{name: "C171 a text that occurs once is replaced", run: edits("a word here\n", "word", "term", "a term here\n")},
	{name: "C172 a text that occurs three times is refused with the count",
		run: keeps(sandbox.CodeMultipleMatches, "3", "w w w\n", edit("w", "x"))},
	{name: "C173 replace_all replaces every one", run: func(p *place) {
		p.put("f", "w w w\n")
		p.says(p.ok("edit_file", args{"file_path": "f", "old_string": "w", "new_string": "x", "replace_all": true}), "3")
		p.holds("f", "x x x\n")
	}},
	{name: "C174 a text that is absent is no_match", run: keeps(sandbox.CodeNoMatch, "", "abc\n", edit("x", "y"))},
	{name: "C175 a missing file stays missing", run: func(p *place) {
		p.refused(sandbox.CodeFileNotFound, "", "edit_file", edit("a", "b"))
		p.missing("f")
	}},
	{name: "C176 an empty old text is refused", run: func(p *place) {
		keeps(sandbox.CodeInvalidArgument, "old_string", "abc\n", edit("", "y"))(p)
		keeps(sandbox.CodeInvalidArgument, "old_string", "abc\n",
			args{"file_path": "f", "old_string": "", "new_string": "y", "replace_all": true})(p)
	}},
	{name: "C177 equal texts are no_change", run: keeps(sandbox.CodeNoChange, "", "abc\n", edit("b", "b"))},
	{name: "C178 an empty new text deletes", run: edits("abc\n", "b", "", "ac\n")},
	{name: "C179 both texts are literal", run: func(p *place) {
		for _, s := range []string{"$100.00", "[a-z]*", `\n`} {
			edits("x "+s+" y\n", s, `&\1$1`, `x &\1$1 y`+"\n")(p)
		}
	}},
	{name: "C180 two lines become one", run: edits("a\nb\nc\n", "a\nb\n", "ab\n", "ab\nc\n")},
	{name: "C181 line feeds match CRLF and become CRLF", run: edits("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n")},
	{name: "C182 each part of a mixed file keeps its line ends", run: func(p *place) {
		edits("a\r\nb\r\nc\nd\n", "a\nb", "x\ny", "x\r\ny\r\nc\nd\n")(p)
		edits("a\r\nb\r\nc\nd\n", "c\nd", "x\ny", "a\r\nb\r\nx\ny\n")(p)
		edits("a\r\nb\r\nc\nd\n", "b", "x\ny", "a\r\nx\r\ny\r\nc\nd\n")(p)
	}},
	{name: "C183 a missing final newline stays missing", run: edits("a\nb\nc", "b", "x", "a\nx\nc")},
	{name: "C184 the mode is kept", run: func(p *place) {
		p.put("f", "abc\n")
		p.sh("chmod 755 f")
		p.ok("edit_file", edit("b", "x"))
		p.sh(`case $(ls -l f) in -rwxr-xr-x*) ;; *) exit 1;; esac`)
	}},
	{name: "C185 a link stays a link", run: func(p *place) {
		p.put("f", "abc\n")
		p.sh("ln -s f link")
		p.ok("edit_file", args{"file_path": "link", "old_string": "b", "new_string": "x"})
		p.sh("[ -L link ]")
		p.holds("f", "axc\n")
	}},
	{name: "C186 a binary file is refused", run: keeps(sandbox.CodeInvalidArgument, "binary", "a\x00b\n", edit("b", "x"))},
	{name: "C187 a directory is refused", run: func(p *place) {
		p.sh("mkdir f")
		p.refused(sandbox.CodeIsDirectory, "", "edit_file", edit("b", "x"))
	}},
	{name: "C188 a long text in a large file is replaced", run: func(p *place) {
		long := strings.Repeat("0123456789\n", 6000)
		rest := strings.Repeat("line of text\n", 400_000)
		edits(rest+long+rest[:1000], long, "short\n", rest+"short\n"+rest[:1000])(p)
	}},
	{name: "C189 a file over the limit is refused", opts: tool.Options{EditBytes: 1000},
		run: keeps(sandbox.CodeTooLarge, "1000", "x"+strings.Repeat("y", 1000), edit("x", "z"))},
	{name: "C190 an edit applies to the current content", run: func(p *place) {
		p.put("f", "one\ntwo\n")
		p.ok("read_file", args{"file_path": "f"})
		p.sh("echo three >>f")
		p.ok("edit_file", edit("one", "1"))
		p.holds("f", "1\ntwo\nthree\n")
	}},
	{name: "C276 edits of one file at once all land", run: func(p *place) {
		var before, after strings.Builder
		for i := range 8 {
			fmt.Fprintf(&before, "<%d>\n", i)
			fmt.Fprintf(&after, "=%d=\n", i)
		}
		p.put("f", before.String())
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if r, err := p.run(p.Context(), "edit_file", edit(fmt.Sprintf("<%d>", i), fmt.Sprintf("=%d=", i))); err != nil || r.Code != "" {
					p.Errorf("got %v, %s", err, r.Text)
				}
			})
		}
		wg.Wait()
		p.holds("f", after.String())
	}},
}

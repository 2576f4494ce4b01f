package tooltest

import (
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// writes is a rule's test that a content arrives as it is.
func writes(content string) func(*place) {
	return func(p *place) {
		p.ok("write_file", args{"file_path": "f", "content": content})
		p.holds("f", content)
	}
}

var fileRules = []rule{
	{name: "C63 a written file can be read and is named", run: func(p *place) {
		p.says(p.ok("write_file", args{"file_path": "f", "content": "1\n2\n3\n"}), p.at("f"))
		if got := p.sh("cat f"); got != "1\n2\n3\n" {
			p.Errorf("got %q", got)
		}
	}},
	{name: "C64 write makes parents", run: func(p *place) {
		p.ok("write_file", args{"file_path": "a/b/c/f", "content": "x"})
		p.holds("a/b/c/f", "x")
	}},
	{name: "C65 write overwrites an existing file", run: func(p *place) {
		writes("old content")(p)
		writes("new")(p)
	}},
	{name: "C66 write keeps the mode", run: func(p *place) {
		p.sh("echo old >f; chmod 755 f")
		writes("new")(p)
		p.sh(`case $(ls -l f) in -rwxr-xr-x*) ;; *) exit 1;; esac`)
	}},
	{name: "C67 write follows a link and leaves it", run: func(p *place) {
		p.sh("echo old >f; ln -s f link")
		p.ok("write_file", args{"file_path": "link", "content": "new"})
		p.sh("[ -L link ]")
		p.holds("f", "new")
	}},
	{name: "C68 shell syntax is text", run: writes("$VAR `id` $(id) 'q' \"q\"\t\\n \\\nEOF\n")},
	{name: "C69 an empty file can be written", run: func(p *place) {
		writes("")(p)
		p.sh("[ -f f ] && [ ! -s f ]")
	}},
	{name: "C70 five newlines are five newlines", run: writes("\n\n\n\n\n")},
	{name: "C71 all scripts arrive byte for byte", run: writes("🦊 文件 ملف\n")},
	{name: "C72 CRLF is not translated", run: writes("a\r\nb\r\n")},
	{name: "C73 a directory is not overwritten", run: func(p *place) {
		p.sh("mkdir d; touch d/x")
		p.refused(sandbox.CodeIsDirectory, "d", "write_file", args{"file_path": "d", "content": "x"})
		p.sh("[ -f d/x ]")
	}},
	{name: "C74 a file is no parent", run: func(p *place) {
		p.put("f", "x")
		p.refused(sandbox.CodeInvalidPath, "f/x", "write_file", args{"file_path": "f/x", "content": "x"})
	}},
	{name: "C75 a directory without write permission stays as it is", user: true, run: func(p *place) {
		p.sh("mkdir d; chmod 555 d")
		p.refused(sandbox.CodePermissionDenied, "", "write_file", args{"file_path": "d/f", "content": "x"})
		p.lines(p.ok("ls", args{"path": "d"}))
	}},
	{name: "C77 10 MiB of text arrive", run: writes(strings.Repeat("0123456789abcde\n", 10<<20/16))},
	{name: "C103 delete removes a file and names it", run: func(p *place) {
		p.put("f", "x")
		p.says(p.ok("delete", args{"file_path": "f"}), p.at("f"))
		p.missing("f")
	}},
	{name: "C104 deleting what is missing fails", run: func(p *place) {
		p.refused(sandbox.CodeFileNotFound, "none", "delete", args{"file_path": "none"})
	}},
	{name: "C105 delete removes a tree", run: func(p *place) {
		p.put("d/e/f", "x")
		p.ok("delete", args{"file_path": "d"})
		p.missing("d")
	}},
	{name: "C106 of a link only the link is deleted", run: func(p *place) {
		p.put("d/f", "x")
		p.sh("ln -s d link")
		p.ok("delete", args{"file_path": "link/"})
		p.missing("link")
		p.holds("d/f", "x")
	}},
	{name: "C107 the working directory and its parents are not deleted", run: func(p *place) {
		p.put("f", "x")
		p.sh("ln -s / root")
		for _, name := range []string{".", p.dir, p.sb.Info().Dir, "/", "root" + p.dir} {
			p.refused(sandbox.CodeInvalidArgument, "", "delete", args{"file_path": name})
		}
		p.holds("f", "x")
	}},
	{name: "C108 what cannot be deleted is named", user: true, run: func(p *place) {
		p.put("d/e/f", "x")
		p.sh("chmod 555 d/e")
		p.refused(sandbox.CodePermissionDenied, "d/e/f", "delete", args{"file_path": "d"})
	}},
	{name: "C281 contents around 96 KiB arrive", run: func(p *place) {
		for _, n := range []int{98303, 98304, 98305, 200_000} {
			writes(strings.Repeat("x", n))(p)
		}
	}},
	{name: "C282 contents that grow when encoded arrive", run: writes(strings.Repeat("\x01\u00e9'", 15_000))},
}

package tooltest

import (
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// odd are names that a shell would like to read its own way.
var odd = []string{
	"a b", "it's", `say "x"`, "$HOME", "`id`", "$(id)", "a;b", "a&b", "*", "[x]", "(1)", `back\slash`, "tab\there", "-rf", "#x", "!x",
}

var pathRules = []rule{
	{name: "C1 a relative path is below the working directory", run: func(p *place) {
		p.put("a.txt", "one\n")
		if a, b := p.ok("read_file", args{"file_path": "a.txt"}), p.ok("read_file", args{"file_path": p.at("a.txt")}); a.Text != b.Text {
			p.Errorf("got %q and %q", a.Text, b.Text)
		}
	}},
	{name: "C2 doubled slashes and dots are cleaned away", run: func(p *place) {
		p.put("sub/a.txt", "one\n")
		p.says(p.ok("read_file", args{"file_path": "sub//./a.txt"}), "one")
	}},
	{name: "C3 a path does not lead up", run: func(p *place) {
		p.refused(sandbox.CodeInvalidPath, "../x", "write_file", args{"file_path": "../x", "content": "x"})
		p.missing("../x")
	}},
	{name: "C4 a path does not lead up and down again", run: func(p *place) {
		p.refused(sandbox.CodeInvalidPath, "", "read_file", args{"file_path": "sub/../../x"})
	}},
	{name: "C5 a tilde is refused by naming the home directory", run: func(p *place) {
		home := strings.TrimSpace(p.sh("cd ~ && pwd"))
		p.refused(sandbox.CodeInvalidPath, home, "read_file", args{"file_path": "~/notes"})
	}},
	{name: "C6 only a leading tilde is refused", run: func(p *place) {
		p.ok("write_file", args{"file_path": "./~draft", "content": "x"})
		p.lines(p.ok("ls", nil), "file  @/~draft")
	}},
	{name: "C7 drive letters are refused", run: func(p *place) {
		p.refused(sandbox.CodeInvalidPath, "", "read_file", args{"file_path": `C:\Users\x`})
		p.refused(sandbox.CodeInvalidPath, "", "read_file", args{"file_path": "C:/x"})
	}},
	{name: "C8 a path with NUL is refused", run: func(p *place) {
		for _, name := range []string{"read_file", "delete"} {
			p.refused(sandbox.CodeInvalidPath, "", name, args{"file_path": "a\x00b"})
		}
		p.refused(sandbox.CodeInvalidPath, "", "ls", args{"path": "a\x00b"})
		p.refused(sandbox.CodeInvalidPath, "", "grep", args{"path": "a\x00b", "pattern": "x"})
		p.refused(sandbox.CodeInvalidPath, "", "execute", args{"cwd": "a\x00b", "command": "true"})
	}},
	{name: "C9 a required path must not be empty", run: func(p *place) {
		p.refused(sandbox.CodeInvalidArgument, "file_path", "read_file", args{"file_path": ""})
		p.refused(sandbox.CodeInvalidArgument, "file_path", "write_file", args{"content": ""})
		p.refused(sandbox.CodeInvalidArgument, "file_path", "delete", args{})
	}},
	{name: "C10 odd names mean themselves", run: func(p *place) {
		for _, name := range odd {
			p.ok("write_file", args{"file_path": name, "content": "word\n"})
			p.says(p.ok("read_file", args{"file_path": name}), "word")
			p.ok("edit_file", args{"file_path": name, "old_string": "word", "new_string": "sword"})
			p.lines(p.ok("ls", nil), "file  @/"+name)
			p.lines(p.ok("glob", args{"pattern": "*"}), "@/"+name)
			p.lines(p.ok("grep", args{"pattern": "sword"}), "@/"+name+":1:sword")
			p.lines(p.ok("grep", args{"pattern": "sword", "path": name}), "@/"+name+":1:sword")
			p.ok("delete", args{"file_path": name})
			p.lines(p.ok("ls", nil))
		}
	}},
	{name: "C11 a path cannot carry a command", run: func(p *place) {
		for _, name := range []string{"x'; touch marker; '", `x"; touch marker; "`, "$(touch marker)", "`touch marker`",
			"');import os;os.system('touch marker')#", "x\ntouch marker\n"} {
			p.refused(sandbox.CodeFileNotFound, "", "ls", args{"path": name})
			p.refused(sandbox.CodeFileNotFound, "", "read_file", args{"file_path": name})
			p.missing("marker")
		}
	}},
	{name: "C12 names of all scripts come back byte for byte", run: func(p *place) {
		for _, name := range []string{"文件", "файл", "ملف", "🦊.txt"} {
			p.ok("write_file", args{"file_path": name, "content": name})
			p.says(p.ok("ls", nil), p.at(name)+"\n")
			p.says(p.ok("read_file", args{"file_path": name}), name)
		}
	}},
	{name: "C13 normal forms of one name are two names", run: func(p *place) {
		p.ok("write_file", args{"file_path": "\u00e9", "content": "one"})
		p.ok("write_file", args{"file_path": "e\u0301", "content": "two"})
		p.lines(p.ok("ls", nil), "file  @/e\u0301", "file  @/\u00e9")
		p.says(p.ok("read_file", args{"file_path": "\u00e9"}), "one")
	}},
	{name: "C14 names in results are absolute and clean", run: func(p *place) {
		p.says(p.ok("write_file", args{"file_path": "./s//f", "content": "w"}), p.at("s/f"))
		p.lines(p.ok("glob", args{"pattern": "*", "path": "./s/"}), "@/s/f")
		p.lines(p.ok("grep", args{"pattern": "w", "path": ".//s"}), "@/s/f:1:w")
	}},
	{name: "C15 an error has a code, the path as given and one sentence", run: func(p *place) {
		r := p.refused(sandbox.CodeFileNotFound, "./none.txt", "read_file", args{"file_path": "./none.txt"})
		if strings.Contains(r.Text, "\n") {
			p.Errorf("got %q", r.Text)
		}
	}},
	{name: "C284 a path of 4,096 bytes is refused", run: func(p *place) {
		long := strings.Repeat("d/", 2100) + "x"
		p.refused(sandbox.CodeInvalidPath, "", "read_file", args{"file_path": long})
		p.refused(sandbox.CodeInvalidPath, "", "ls", args{"path": long})
	}},
	{name: "unknown parameters and wrong types are named", run: func(p *place) {
		p.refused(sandbox.CodeInvalidArgument, "depth", "ls", args{"depth": 1})
		p.refused(sandbox.CodeInvalidArgument, "offset", "read_file", args{"file_path": "a", "offset": "1"})
	}},
}

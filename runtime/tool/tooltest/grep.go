package tooltest

import (
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// greps is a rule's test of a search in the file f.
func greps(content string, a args, want ...string) func(*place) {
	return func(p *place) {
		p.Helper()
		p.put("f", content)
		p.lines(p.ok("grep", a), want...)
	}
}

func badGrep(code sandbox.Code, a args) func(*place) {
	return func(p *place) {
		p.put("f", "x\n")
		p.refused(code, "", "grep", a)
	}
}

var grepRules = []rule{
	{name: "C143 a pattern is literal", run: greps("a (b)\nstr | int\nstr\n", args{"pattern": "str | int"}, "@/f:2:str | int")},
	{name: "C144 special characters mean themselves", run: func(p *place) {
		for i, s := range []string{"$100", "[a-z]*", "a.b"} {
			greps("$100\n[a-z]*\na.b\naxb\n", args{"pattern": s}, "@/f:"+string(rune('1'+i))+":"+s)(p)
		}
	}},
	{name: "C145 regular expressions are extended", run: greps("ab\na+b\naab\n", args{"pattern": "a+b", "regex": true}, "@/f:1:ab", "@/f:3:aab")},
	{name: "C146 a wrong regular expression is invalid_pattern", run: func(p *place) {
		p.put("f", "x\n")
		p.refused(sandbox.CodeInvalidPattern, "(", "grep", args{"pattern": "(", "regex": true})
	}},
	{name: "C147 a missing path is file_not_found", run: badGrep(sandbox.CodeFileNotFound, args{"pattern": "x", "path": "none"})},
	{name: "C149 no match is an empty result", run: greps("x\n", args{"pattern": "y"})},
	{name: "C150 no match of what looks like a regular expression is explained", run: func(p *place) {
		p.put("f", "x\n")
		p.says(p.ok("grep", args{"pattern": "x.*|y"}), "regex")
	}},
	{name: "C151 lines are numbered", run: greps("w\n\nw\nx\nw\n", args{"pattern": "w"}, "@/f:1:w", "@/f:3:w", "@/f:5:w")},
	{name: "C152 all levels are searched in order", run: func(p *place) {
		p.put("b/c/f", "w\nw\n")
		p.put("b/a", "w\n")
		p.put("a", "w\n")
		p.lines(p.ok("grep", args{"pattern": "w"}), "@/a:1:w", "@/b/a:1:w", "@/b/c/f:1:w", "@/b/c/f:2:w")
	}},
	{name: "C153 case counts", run: greps("Hello\nhello\nHELLO\n", args{"pattern": "Hello"}, "@/f:1:Hello")},
	{name: "C154 C155 a glob limits the files", run: func(p *place) {
		for _, name := range []string{"a.py", "a.txt", "d/b.py", "src/x/y.go", "y.go", ".h/c.py"} {
			p.put(name, "w\n")
		}
		p.lines(p.ok("grep", args{"pattern": "w", "glob": "*.py"}), "@/a.py:1:w", "@/d/b.py:1:w")
		p.lines(p.ok("grep", args{"pattern": "w", "glob": "src/**/*.go"}), "@/src/x/y.go:1:w")
		p.lines(p.ok("grep", args{"pattern": "w", "glob": "*.{go,txt}"}), "@/a.txt:1:w", "@/src/x/y.go:1:w", "@/y.go:1:w")
	}},
	{name: "C156 one file can be searched", run: func(p *place) {
		p.put("g", "w\n")
		greps("w\n", args{"pattern": "w", "path": "f"}, "@/f:1:w")(p)
	}},
	{name: "C157 C170 names with colons and line ends are exact", run: func(p *place) {
		p.put("a:12:b.txt", "x\nw: 1\n")
		p.put("c\nd", "w\n")
		p.lines(p.ok("grep", args{"pattern": "w"}), "@/a:12:b.txt:2:w: 1", `"@/c\nd":1:w`)
	}},
	{name: "C158 binary files are skipped", run: func(p *place) {
		p.put("bin", "w\x00w\n")
		r := p.ok("grep", args{"pattern": "w"})
		p.lines(r)
		if strings.Contains(r.Text, "inary") {
			p.Errorf("got %q", r.Text)
		}
	}},
	{name: "C159 dotfiles are searched, .git only when asked", run: func(p *place) {
		p.put(".env", "w\n")
		p.put(".git/x", "w\n")
		p.lines(p.ok("grep", args{"pattern": "w"}), "@/.env:1:w")
		p.lines(p.ok("grep", args{"pattern": "w", "path": ".git"}), "@/.git/x:1:w")
	}},
	{name: "C160 words of all scripts are found", run: greps("一 世界 二\nx\n", args{"pattern": "世界"}, "@/f:1:一 世界 二")},
	{name: "C161 CRLF is not shown", run: greps("w\r\n", args{"pattern": "w"}, "@/f:1:w")},
	{name: "C162 a long line is cut", run: greps("\n"+strings.Repeat("é", 100_000)+"w\nw\n", args{"pattern": "w"},
		"@/f:2:"+strings.Repeat("é", 2000)+" [line cut]", "@/f:3:w")},
	{name: "C163 matches are limited", run: func(p *place) {
		p.put("f", strings.Repeat("w\n", 5000))
		r := p.ok("grep", args{"pattern": "w"})
		p.says(r, "truncated")
		if n := strings.Count(r.Text, ":w\n"); n != 1000 {
			p.Errorf("got %d", n)
		}
	}},
	{name: "C164 max_count is for all files", run: func(p *place) {
		p.put("f", "w\nw\nw\n")
		p.put("g", "w\nw\n")
		r := p.ok("grep", args{"pattern": "w", "max_count": 2})
		p.lines(r, "@/f:1:w", "@/f:2:w")
		p.says(r, "truncated")
	}},
	{name: "C165 output can be files or counts", run: func(p *place) {
		p.put("f", "w\nx\nw\n")
		p.put("g", "w\n")
		p.lines(p.ok("grep", args{"pattern": "w", "output": "files"}), "@/f", "@/g")
		p.lines(p.ok("grep", args{"pattern": "w", "output": "count"}), "@/f:2", "@/g:1")
	}},
	{name: "C166 an empty pattern is refused", run: badGrep(sandbox.CodeInvalidArgument, args{"pattern": ""})},
	{name: "C167 links are followed only as the path", run: func(p *place) {
		p.put("d/f", "w\n")
		p.sh("ln -s d link")
		p.lines(p.ok("grep", args{"pattern": "w"}), "@/d/f:1:w")
		p.lines(p.ok("grep", args{"pattern": "w", "path": "link"}), "@/link/f:1:w")
	}},
	{name: "C168 an unreadable file is named beside the matches", user: true, run: func(p *place) {
		p.put("f", "w\n")
		p.sh("echo w >g; chmod 0 g")
		r := p.ok("grep", args{"pattern": "w"})
		p.lines(r, "@/f:1:w")
		p.says(r, "permission denied: "+p.at("g"))
	}},
	{name: "a file without a final line feed is searched", run: greps("x\nw", args{"pattern": "w"}, "@/f:2:w")},
	{name: "a pattern that looks like an option is a pattern", run: greps("-v\nx\n", args{"pattern": "-v"}, "@/f:1:-v")},
}

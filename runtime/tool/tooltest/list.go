package tooltest

import (
	"fmt"
	"strings"

	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// tree makes empty files.
func (p *place) tree(names ...string) {
	p.Helper()
	p.sh(`for f do case $f in */*) mkdir -p "${f%/*}";; esac; : >"./$f"; done`, names...)
}

// globs is a rule's test of one pattern in a tree of files.
func globs(tree, pattern string, want ...string) func(*place) {
	return func(p *place) {
		p.Helper()
		p.tree(strings.Fields(tree)...)
		p.lines(p.ok("glob", args{"pattern": strings.ReplaceAll(pattern, "@", p.dir)}), want...)
	}
}

func badPattern(pattern string) func(*place) {
	return func(p *place) { p.refused(sandbox.CodeInvalidPattern, "", "glob", args{"pattern": pattern}) }
}

var listRules = []rule{
	{name: "C109 ls sorts and marks directories", run: func(p *place) {
		p.tree("b.txt", "a.txt", "sub/x")
		p.lines(p.ok("ls", nil), "file  @/a.txt", "file  @/b.txt", "dir   @/sub")
	}},
	{name: "C110 ls includes dotfiles", run: func(p *place) {
		p.tree(".a", ".d/x")
		p.lines(p.ok("ls", nil), "file  @/.a", "dir   @/.d")
	}},
	{name: "C111 ls shows a link and its target", run: func(p *place) {
		p.tree("d/x")
		p.sh("ln -s d link; ln -s none dangling")
		p.lines(p.ok("ls", nil), "dir   @/d", "link  @/dangling -> none", "link  @/link -> d")
	}},
	{name: "C112 a trailing slash changes nothing", run: func(p *place) {
		p.tree("d/x")
		p.lines(p.ok("ls", args{"path": "d"}), "file  @/d/x")
		p.lines(p.ok("ls", args{"path": "d/"}), "file  @/d/x")
	}},
	{name: "C113 50 files are 50 entries", run: func(p *place) {
		p.sh("i=0; while [ $i -lt 50 ]; do : >f$i; i=$((i+1)); done")
		if n := strings.Count(p.ok("ls", nil).Text, "\n"); n != 50 {
			p.Errorf("got %d", n)
		}
	}},
	{name: "C114 odd names are one entry each", run: func(p *place) {
		p.tree("a\nb", "a b", "(1)", "[2]", "-3", "ü")
		p.lines(p.ok("ls", nil), "file  @/(1)", "file  @/-3", "file  @/[2]", `file  "@/a\nb"`, "file  @/a b", "file  @/ü")
		p.lines(p.ok("glob", args{"pattern": "*"}), `@/(1)`, "@/-3", "@/[2]", `"@/a\nb"`, "@/a b", "@/ü")
	}},
	{name: "C115 ls of what is missing is file_not_found", run: func(p *place) {
		p.refused(sandbox.CodeFileNotFound, "none", "ls", args{"path": "none"})
	}},
	{name: "C116 ls of a file is not_a_directory", run: func(p *place) {
		p.tree("f")
		p.refused(sandbox.CodeNotADirectory, "f", "ls", args{"path": "f"})
	}},
	{name: "C117 ls of an unreadable directory is permission_denied", user: true, run: func(p *place) {
		p.sh("mkdir d; chmod 0 d")
		p.refused(sandbox.CodePermissionDenied, "d", "ls", args{"path": "d"})
	}},
	{name: "C118 an empty directory has no entries", run: func(p *place) { p.lines(p.ok("ls", nil)) }},
	{name: "C119 a long list is truncated and counted", opts: tool.Options{ListEntries: 50}, run: func(p *place) {
		p.sh("i=0; while [ $i -lt 60 ]; do : >f$i; i=$((i+1)); done")
		r := p.ok("ls", nil)
		p.says(r, "truncated", "50 of 60")
		if n := strings.Count(r.Text, "file  "); n != 50 {
			p.Errorf("got %d", n)
		}
	}},
	{name: "C121 a pattern without a slash matches at any depth", run: globs("x.py y.txt d/z.py", "*.py", "@/d/z.py", "@/x.py")},
	{name: "C122 ** before a name means the same", run: globs("x.py y.txt d/z.py", "**/*.py", "@/d/z.py", "@/x.py")},
	{name: "C123 ./ ties a pattern to the search path", run: globs("x.py y.txt d/z.py", "./*.py", "@/x.py")},
	{name: "C124 a pattern with a slash is relative", run: globs("x.py y.txt d/z.py e/d/q.py", "d/*.py", "@/d/z.py")},
	{name: "C125 ** is zero or more directories", run: globs("a/b/c.txt a/c.txt c.txt", "a/**/c.txt", "@/a/b/c.txt", "@/a/c.txt")},
	{name: "C126 directories are never matches", run: globs("p/.x q/.x f", "*", "@/f")},
	{name: "C127 a dot matches dotfiles only", run: globs(".env visible.txt", ".*", "@/.env")},
	{name: "C128 wildcards never match a leading dot", run: func(p *place) {
		globs(".env x", "*", "@/x")(p)
		globs(".env x", "?env")(p)
		globs(".env x", "[.]env")(p)
		globs(".env x", "**", "@/x")(p)
	}},
	{name: "C129 ** does not enter dot directories, a dot does", run: func(p *place) {
		globs(".github/w.yml", "**/*.yml")(p)
		globs(".github/w.yml", ".github/**", "@/.github/w.yml")(p)
	}},
	{name: "C130 classes and question marks match one character", run: func(p *place) {
		tree := "file1 file2 file3 fileA"
		globs(tree, "file[1-2]", "@/file1", "@/file2")(p)
		globs(tree, "file?", "@/file1", "@/file2", "@/file3", "@/fileA")(p)
		globs(tree, "file[!1]", "@/file2", "@/file3", "@/fileA")(p)
	}},
	{name: "C131 braces are alternatives", run: globs("a.js a.ts a.go", "*.{js,ts}", "@/a.js", "@/a.ts")},
	{name: "C132 too many alternatives are refused", run: badPattern(strings.Repeat("{a,b}", 10))},
	{name: "C133 a pattern does not lead up", run: func(p *place) { badPattern("../*")(p); badPattern("a/../*")(p) }},
	{name: "C134 an unclosed class is refused", run: badPattern("[a")},
	{name: "C135 a missing search path is file_not_found", run: func(p *place) {
		p.refused(sandbox.CodeFileNotFound, "none", "glob", args{"pattern": "*", "path": "none"})
	}},
	{name: "C136 links to directories are not walked", run: func(p *place) {
		p.sh("ln -s /etc link")
		globs("f", "**/*", "@/f")(p)
	}},
	{name: "C137 a link to a file is a file", run: func(p *place) {
		p.sh("ln -s f link; ln -s none dangling")
		globs("f", "*", "@/f", "@/link")(p)
	}},
	{name: "C138 no match is an empty list", run: globs("f", "*.go")},
	{name: "C139 an absolute pattern matches absolute names", run: globs("src/a/x.go src/y.go z.go", "@/src/**/*.go", "@/src/a/x.go", "@/src/y.go")},
	{name: "C140 C141 a long list is sorted and truncated", opts: tool.Options{GlobMatches: 20}, run: func(p *place) {
		p.sh("i=100; while [ $i -lt 140 ]; do : >f$i; i=$((i+1)); done")
		var want []string
		for i := range 20 {
			want = append(want, fmt.Sprintf("@/f%d", 100+i))
		}
		for range 2 {
			r := p.ok("glob", args{"pattern": "*"})
			p.says(r, "truncated", "20 of 40")
			p.lines(r, want...)
		}
	}},
	{name: "C142 what cannot be read is named", user: true, run: func(p *place) {
		p.tree("f", "d/x")
		p.sh("chmod 0 d")
		r := p.ok("glob", args{"pattern": "**/*"})
		p.lines(r, "@/f")
		p.says(r, "d")
	}},
	{name: "C285 a search that takes too long is truncated", opts: tool.Options{GlobTime: 1, GrepTime: 1}, run: func(p *place) {
		p.says(p.ok("glob", args{"pattern": "*"}), "truncated")
		p.says(p.ok("grep", args{"pattern": "x"}), "truncated")
	}},
	{name: "C283 a tree of 200 levels is walked", run: func(p *place) {
		p.sh("i=0; while [ $i -lt 200 ]; do mkdir d && cd d; i=$((i+1)); done; echo word >f")
		deep := "@/" + strings.Repeat("d/", 200) + "f"
		p.lines(p.ok("glob", args{"pattern": "**/*"}), deep)
		p.lines(p.ok("grep", args{"pattern": "word"}), deep+":1:word")
	}},
}

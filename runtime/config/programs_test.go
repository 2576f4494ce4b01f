package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Programs of the user's own file hold; a project's need approval, which is given
// to the files they name as well.
func TestPrograms(t *testing.T) {
	const hooks = "[hooks.lint]\nevent = 'after_tool'\ncommand = ['sh', 'scripts/lint.sh']\n"
	for _, row := range []struct {
		name, user, project string
		trust               Trust
		hooks, servers      int
		untrusted, err      string
		warning             string
	}{
		{name: "the user's own", user: "[hooks.x]\nevent = 'session_end'\ncommand = ['true']\n[mcp.servers.y]\nurl = 'https://acme.example/mcp'\n", hooks: 1, servers: 1},
		{name: "the project's, not trusted", project: hooks, untrusted: "start sh scripts/lint.sh on this computer"},
		{name: "the project's, trusted", project: hooks, trust: Trusted, hooks: 1},
		{name: "the project's, left out", project: hooks, trust: Ignored},
		{name: "the user's, that starts what lies in the project", user: hooks, untrusted: "start sh scripts/lint.sh on this computer"},
		{name: "the same, trusted", user: hooks, trust: Trusted, hooks: 1},
		{name: "one of the same name in both", user: "[hooks.lint]\nevent = 'session_end'\ncommand = ['true']\n", project: hooks, trust: Trusted, hooks: 1, warning: "hooks.lint is in your own file too"},
		{name: "what is the user's to list", project: "[mcp.servers.y]\nurl = 'https://acme.example'\nallow = ['all']\ntoken_env = 'KEY'\n", trust: Trusted, servers: 1, warning: "mcp.servers.y.allow is yours to set"},
		{name: "variables for a program of the project", project: "[mcp.servers.y]\ncommand = ['srv']\nenv = ['KEY']\n", untrusted: "pass KEY to it"},
		{name: "a misspelled key", user: "[hooks.x]\nevent = 'session_end'\ncommand = ['true']\ncomand = 'x'\n", hooks: 1, warning: "unknown key hooks.x.comand"},
		{name: "no table", user: "hooks = 3\n", err: "hooks must be a table"},
		{name: "no table inside", user: "[hooks]\nx = 3\n", err: "hooks.x must be a table"},
		{name: "an unknown event", user: "[hooks.x]\nevent = 'sometimes'\ncommand = ['true']\n", err: "not one of: session_start"},
		{name: "a command in one string", user: "[hooks.x]\nevent = 'session_end'\ncommand = 'true'\n", err: "is not a list of strings"},
		{name: "an empty program", user: "[hooks.x]\nevent = 'session_end'\ncommand = ['']\n", err: "names no program"},
		{name: "a server that is nothing", user: "[mcp.servers.y]\nenv = ['A']\n", err: "either a command or a url"},
		{name: "a password in an address", user: "[mcp.servers.y]\nurl = 'https://u:p@acme.example'\n", err: "must not hold a user or password"},
		{name: "a host that begins like this computer", user: "[mcp.servers.y]\nurl = 'http://127.acme.example'\n", err: "must be https"},
		{name: "a plain address", user: "[mcp.servers.y]\nurl = 'http://acme.example'\n", err: "must be https"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(filepath.Join(w.project, "scripts", "lint.sh"), "echo lint")
			if row.user != "" {
				w.user(row.user)
			}
			if row.project != "" {
				w.projectFile(row.project)
			}
			w.src.Trust = row.trust
			c, err := Load(w.src)
			if row.err != "" {
				if err == nil || !strings.Contains(err.Error(), row.err) || !strings.Contains(err.Error(), "config.toml:") {
					t.Errorf("error %v, want %q", err, row.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Hooks) != row.hooks || len(c.Servers) != row.servers {
				t.Errorf("%d hooks and %d servers, want %d and %d", len(c.Hooks), len(c.Servers), row.hooks, row.servers)
			}
			for _, h := range c.Hooks {
				if h.Timeout != 30*time.Second {
					t.Errorf("timeout %v", h.Timeout)
				}
			}
			if got := strings.Join(c.Untrusted, "; "); !strings.Contains(got, row.untrusted) || row.untrusted == "" && got != "" {
				t.Errorf("asks %q, want %q", got, row.untrusted)
			}
			if got := strings.Join(c.Warnings, "; "); !strings.Contains(got, row.warning) || row.warning == "" && got != "" {
				t.Errorf("warns %q, want %q", got, row.warning)
			}
		})
	}
}

// What was read is what runs: a file that changes later, or appears, does not.
func TestApprovedProgramsAreTheOnesThatRun(t *testing.T) {
	w := newWorld(t)
	script := filepath.Join(w.project, "run.sh")
	w.write(script, "echo old")
	w.projectFile("[hooks.x]\nevent = 'session_start'\ncommand = ['sh', 'run.sh', 'later.sh', '-x']\n")
	w.src.Trust = Trusted
	c, err := Load(w.src)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(c.Authority["run.sh"]); got != "echo old" {
		t.Errorf("authority of run.sh is %q", got)
	}
	w.write(script, "echo new")
	dir := t.TempDir()
	args, err := c.Place(c.Hooks[0].Command, dir)
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(args[1]); string(data) != "echo old" || args[0] != "sh" || args[2] != "later.sh" || args[3] != "-x" {
		t.Errorf("got %q with %q", args, data)
	}
	if os.Remove(script) != nil || os.Symlink("/bin/true", script) != nil {
		t.Fatal("no link")
	}
	if args, err := c.Place(c.Hooks[0].Command, dir); err != nil || !strings.HasPrefix(args[1], dir) {
		t.Errorf("a link in its place: %q, %v", args, err)
	}
	w.write(filepath.Join(w.project, "later.sh"), "echo late")
	if args, err := c.Place(c.Hooks[0].Command, dir); err == nil {
		t.Errorf("a file that appeared is run: %q", args)
	}
}

// Which program a link of the project leads to is the project's to choose, and needs
// approval, also in a command of the user's own file.
func TestLinksOutOfTheProject(t *testing.T) {
	w := newWorld(t)
	outside := t.TempDir()
	for link, to := range map[string]string{"shell": "/bin/sh", "tools": outside} {
		if err := os.Symlink(to, filepath.Join(w.project, link)); err != nil {
			t.Fatal(err)
		}
	}
	w.write(filepath.Join(outside, "x.sh"), "echo x")
	w.user("[hooks.x]\nevent = 'session_start'\ncommand = ['./shell', 'tools/x.sh']\n")
	c, err := Load(w.src)
	if err != nil || len(c.Hooks) != 0 || len(c.Untrusted) != 1 {
		t.Fatalf("got %+v, asks %q, %v", c.Hooks, c.Untrusted, err)
	}
	w.src.Trust = Trusted
	c, err = Load(w.src)
	if err != nil {
		t.Fatal(err)
	}
	real, _ := filepath.EvalSymlinks("/bin/sh")
	if got := string(c.Authority["shell"]); got != "a link to "+real+"\n" {
		t.Errorf("approved of the link: %q", got)
	}
	args, err := c.Place(c.Hooks[0].Command, t.TempDir())
	if err != nil || args[0] != real || args[1] != filepath.Join(outside, "x.sh") {
		t.Errorf("got %q, %v", args, err)
	}
	os.Remove(filepath.Join(w.project, "shell"))
	if err := os.Symlink("/bin/cat", filepath.Join(w.project, "shell")); err != nil {
		t.Fatal(err)
	}
	if args, err := c.Place(c.Hooks[0].Command, t.TempDir()); err == nil {
		t.Errorf("a link that leads elsewhere is followed: %q", args)
	}
}

// A program of the project is found in every spelling in which a command can name
// it, and what only looks like one asks for nothing.
func TestHowACommandNamesThePrograms(t *testing.T) {
	w := newWorld(t)
	w.write(filepath.Join(w.project, "run.sh"), "echo run")
	w.write(filepath.Join(w.project, "~", "run.sh"), "echo tilde")
	w.write(filepath.Join(w.project, "a b", "my run.sh"), "echo blank")
	w.write(filepath.Join(w.project, "lib", "hook.js"), "run()")
	w.write(filepath.Join(w.project, "plain"), "#!/bin/sh\n")
	w.write(filepath.Join(w.project, "log.txt"), "1")
	w.write(filepath.Join(w.project, "npx"), "2")
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(w.project, alias); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, command, want string }{
		{"in the text for a shell", `['sh', '-c', 'exec ./run.sh --fast']`, "run.sh"},
		{"in quotes there", `['sh', '-c', 'bash "lib/../run.sh"']`, "run.sh"},
		{"in parentheses there", `['sh', '-c', 'x=$(./run.sh);echo $x']`, "run.sh"},
		{"by its first line", `['sh', '-c', '. plain']`, "plain"},
		{"in an option", `['node', '--require=./lib/hook.js', '/opt/x.js']`, "lib/hook.js"},
		{"at the end of an option", `['node', '-r./lib/hook.js', '/opt/x.js']`, "lib/hook.js"},
		{"in a variable", `['env', 'BASH_ENV=run.sh', 'bash', '-c', ':']`, "run.sh"},
		{"behind a ~ that nothing expands", `['sh', '~/run.sh']`, "~/run.sh"},
		{"with blanks", `['sh', 'a b/my run.sh']`, "a b/my run.sh"},
		{"by another way", `['sh', '` + alias + `/run.sh']`, "run.sh"},
		{"by its directory", `['node', './lib']`, "lib"},
		{"a file that is written", `['sh', '-c', 'cat >>log.txt']`, ""},
		{"a program of the system, called like a file", `['npx', '-y', 'server']`, ""},
		{"the project itself", `['docs-server', '.']`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			w.user("[hooks.x]\nevent = 'session_start'\ncommand = " + row.command + "\n")
			c, err := Load(w.src)
			if err != nil {
				t.Fatal(err)
			}
			_, read := c.Authority[row.want]
			if asks := len(c.Untrusted) > 0; asks != (row.want != "") || asks && !read || asks == (len(c.Hooks) > 0) {
				t.Errorf("asks %q, reads %d files, runs %d hooks", c.Untrusted, len(c.Authority), len(c.Hooks))
			}
		})
	}
}

// A program that is named inside a word runs as it was approved, or not at all.
func TestProgramsNamedInsideAWord(t *testing.T) {
	w := newWorld(t)
	script := filepath.Join(w.project, "run.sh")
	w.write(script, "echo old")
	w.projectFile("[hooks.x]\nevent = 'before_tool'\ncommand = ['sh', '-c', './run.sh; ./later.sh']\n")
	w.src.Trust = Trusted
	c, err := Load(w.src)
	if err != nil {
		t.Fatal(err)
	}
	command := c.Hooks[0].Command
	if args, err := c.Place(command, t.TempDir()); err != nil || args[2] != "./run.sh; ./later.sh" {
		t.Errorf("got %q, %v", args, err)
	}
	w.write(script, "echo new")
	if _, err := c.Place(command, t.TempDir()); err == nil || !strings.Contains(err.Error(), "run.sh has changed") {
		t.Errorf("a changed program: %v", err)
	}
	w.write(script, "echo old")
	w.write(filepath.Join(w.project, "later.sh"), "echo late")
	if _, err := c.Place(command, t.TempDir()); err == nil || !strings.Contains(err.Error(), "later.sh was not there") {
		t.Errorf("a program that appeared: %v", err)
	}
}

// Python looks for a module in the project first, which the user did not mean.
func TestModulesOfTheProject(t *testing.T) {
	for _, row := range []struct {
		command, file string
		asked         bool
	}{
		{`'python3', '-m', 'notify'`, "notify.py", true},
		{`'python3', '-mnotify'`, "notify.py", true},
		{`'env', 'X=1', '/usr/bin/python3', '-I', '-m', 'json.tool'`, "json/__init__.py", true},
		{`'python3', '-m', 'acme.notify'`, "acme/notify.py", true},
		{`'python3', '-m', 'acme'`, "acme/__main__.py", true},
		{`'python3', '-m', 'notify'`, "notify.so", true},
		{`'python3', '-m', 'notify'`, "other.py", false},
		{`'python3', '-m', 'notify'`, "notify.txt", false},
		{`'git', 'commit', '-m', 'notify'`, "notify.py", false},
	} {
		w := newWorld(t)
		w.write(filepath.Join(w.project, row.file), "x")
		w.user("[hooks.n]\nevent = 'session_start'\ncommand = [" + row.command + "]\n")
		c, err := Load(w.src)
		if err != nil {
			t.Fatal(err)
		}
		if asked := len(c.Untrusted) > 0; asked != row.asked || asked == (len(c.Hooks) > 0) {
			t.Errorf("[%s] with %s: asked for %v, %d hooks", row.command, row.file, asked, len(c.Hooks))
		}
	}
}

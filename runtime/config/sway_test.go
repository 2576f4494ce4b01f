package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a command of the user's own obeys once it is written.
func TestWhatAWriteSways(t *testing.T) {
	const nothing = ""
	for _, row := range []struct{ command, name, want string }{
		{`'make', 'fmt'`, "Makefile", "the hook make fmt obeys Makefile"},
		{`'make', 'fmt'`, "GNUmakefile", "the hook make fmt obeys GNUmakefile"},
		{`'make', 'fmt'`, "real.txt", "the hook make fmt obeys real.txt"},
		{`'make', 'fmt'`, "hard.txt", "the hook make fmt obeys hard.txt"},
		{`'make', 'fmt'`, "scripts/new.sh", "the hook make fmt may obey scripts/new.sh"},
		{`'make', 'fmt'`, "scripts/new", "the hook make fmt may obey scripts/new"},
		{`'make', 'fmt'`, "run.txt", "the hook make fmt may obey run.txt"},
		{`'make', 'fmt'`, "sub/package.json", "the hook make fmt may obey sub/package.json"},
		{`'make', 'fmt'`, "notes.txt", nothing},
		{`'make', 'fmt'`, "deploy.yaml", nothing},
		{`'make', 'fmt'`, "scripts", nothing},
		{`'make', 'fmt'`, "scripts/", "the hook make fmt may obey files in scripts"},
		{`'make', '-C', 'new'`, "new/Makefile", "the hook make -C new obeys new/Makefile"},
		{`'sh', '-c', 'cd linked && make'`, "scripts/Makefile", "the hook sh -c cd linked && make obeys scripts/Makefile"},
		{`'npm', 'run', 'lint'`, "package.json", "the hook npm run lint obeys package.json"},
		{`'npm', 'run', 'lint'`, "lib/a.ts", "the hook npm run lint may obey lib/a.ts"},
		{`'go', 'test', './...'`, "a_test.go", "the hook go test ./... may obey a_test.go"},
		{`'go', 'test', './...'`, "go.mod", "the hook go test ./... may obey go.mod"},
		{`'go', 'test', './...'`, "testdata/in.txt", nothing},
		{`'go', 'run', './tools/check'`, "tools/check/more.go", "the hook go run ./tools/check obeys tools/check/more.go"},
		{`'cargo', 'clippy'`, "src/lib.rs", "the hook cargo clippy may obey src/lib.rs"},
		{`'pytest', '-q'`, "tests/test_a.py", "the hook pytest -q may obey tests/test_a.py"},
		{`'python3', '-m', 'json.tool'`, "argparse.py", "the hook python3 -m json.tool obeys argparse.py"},
		{`'python3', '-c', 'import pk'`, "pk/__init__.py", "the hook python3 -c import pk obeys pk/__init__.py"},
		{`'sh', '-c', '. ./lib/*.sh'`, "lib/new.sh", "the hook sh -c . ./lib/*.sh obeys lib/new.sh"},
		{`'sh', '-c', '. ./lib/*.sh'`, "other.py", "the hook sh -c . ./lib/*.sh may obey other.py"},
		{`'sh', '-c', '. etc/conf.ini'`, "etc/conf.ini", "the hook sh -c . etc/conf.ini obeys etc/conf.ini"},
		{`'sh', 'new/check.sh'`, "new/check.sh", "the hook sh new/check.sh obeys new/check.sh"},
		{`'sh', 'new/check.sh'`, "new/lib.sh", "the hook sh new/check.sh may obey new/lib.sh"},
		{`'ansible-playbook', 'site.yml'`, "roles/a/tasks/main.yml", "the hook ansible-playbook site.yml may obey roles/a/tasks/main.yml"},
		{`'terraform', 'validate'`, "main.tf", "the hook terraform validate may obey main.tf"},
		{`'make', 'fmt'`, "main.tf", nothing},
		{`'golangci-lint', 'run'`, "main.go", "the hook golangci-lint run may obey main.go"},
		{`'HOME/lint.sh'`, "main.go", "the hook HOME/lint.sh may obey main.go"},
		{`'HOME/tell.sh'`, "main.go", nothing},
		{`'sh', '-c', 'cat >>log.txt'`, "log.txt", nothing},
		{`'sh', '-c', 'cat >>log.txt'`, "a.sh", nothing},
		{`'notify-send', 'done'`, "a.sh", nothing},
		{`'notify-send', 'done'`, "scripts/", nothing},
		{`'make', 'fmt'`, "../Makefile", nothing},
	} {
		t.Run(row.command+" "+row.name, func(t *testing.T) {
			w := newWorld(t)
			home := filepath.Dir(w.home)
			w.write(filepath.Join(home, "lint.sh"), "#!/bin/sh\nexec make fmt\n")
			w.write(filepath.Join(home, "tell.sh"), "#!/bin/sh\nnotify-send done\n")
			w.user("[hooks.x]\nevent = 'after_tool'\ncommand = [" + strings.ReplaceAll(row.command, "HOME", home) + "]\n")
			w.write(filepath.Join(w.project, "scripts", "a.txt"), "")
			w.write(filepath.Join(w.project, "run.txt"), "")
			w.write(filepath.Join(w.project, "real.txt"), "all:\n")
			for _, err := range []error{
				os.Chmod(filepath.Join(w.project, "run.txt"), 0o755),
				os.Symlink("real.txt", filepath.Join(w.project, "Makefile")),
				os.Symlink("scripts", filepath.Join(w.project, "linked")),
				os.Link(filepath.Join(w.project, "real.txt"), filepath.Join(w.project, "hard.txt")),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			c, err := Load(w.src)
			if err != nil || len(c.Hooks) != 1 {
				t.Fatalf("%d hooks, %q, %v", len(c.Hooks), c.Untrusted, err)
			}
			at := c.Root + "/" + row.name
			if got := c.Sways(at); strings.ReplaceAll(got, home, "HOME") != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

// A server of the user's own starts where nothing of the project lies; a project's starts
// in it.
func TestWhatAWriteSwaysOfServers(t *testing.T) {
	const text = "[mcp.servers.docs]\ncommand = ['npx', 'docs']\n"
	for _, row := range []struct {
		project bool
		want    string
	}{{false, ""}, {true, "the MCP server npx docs obeys package.json"}} {
		w := newWorld(t)
		if row.project {
			w.projectFile(text)
			w.src.Trust = Trusted
		} else {
			w.user(text)
		}
		c, err := Load(w.src)
		if err != nil || len(c.Servers) != 1 {
			t.Fatalf("%d servers, %v", len(c.Servers), err)
		}
		if got := c.Sways(filepath.Join(c.Root, "package.json")); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// What a command of the project leads to without its name is approved with it, and runs
// as it was approved or not at all.
func TestWhatACommandLeadsTo(t *testing.T) {
	for _, row := range []struct{ command, file string }{
		{`'node', './srv'`, "srv/index.js"},
		{`'node', 'srv'`, "srv/index.js"},
		{`'node', '.'`, "index.js"},
		{`'/usr/bin/node', './srv/index'`, "srv/index.js"},
		{`'node', 'app'`, "app.js"},
		{`'node', '-r', './app', '-e', '1'`, "app.js"},
		{`'node', '--require=./app', '-e', '1'`, "app.js"},
		{`'node', '-e', 'require("./app")'`, "app.js"},
		{`'python3', './pk'`, "pk/__main__.py"},
		{`'python3.12', 'pk'`, "pk/__main__.py"},
		{`'python3', '.'`, "__main__.py"},
		{`'python3', '-c', 'import pk'`, "pk/__init__.py"},
		{`'python3', '-m', 'json.tool'`, "argparse.py"},
		{`'sh', '-c', '. ./lib/*.sh'`, "lib/a.sh"},
		{`'sh', '-c', 'cd lib; sh a.sh'`, "lib/a.sh"},
		{`'env', '-C', 'lib', 'sh', 'a.sh'`, "lib/a.sh"},
		{`'sh', '-c', 'sh lib/a'`, "lib/a"},
		{`'sh', '-c', '. lib/conf.txt'`, "lib/conf.txt"},
		{`'make', '-s'`, "Makefile"},
		{`'make', '-C', 'lib'`, "lib/Makefile"},
		{`'sh', '-c', 'npm run lint'`, "package.json"},
		{`'sh', '-c', 'awk -f prog.txt'`, "prog.txt"},
		{`'sh', '-c', 'cat prog.txt | sh'`, "prog.txt"},
		{`'env', 'BASH_ENV=prog.txt', 'bash', '-c', 'true'`, "prog.txt"},
		{`'git', '-c', 'include.path=conf.ini', 'status'`, "conf.ini"},
		{`'make', '-fprog.txt'`, "prog.txt"},
		{`'sh', '-c', 'cd ci && ansible-playbook site.yml >log.txt'`, "ci/site.yml"},
		{`'go', 'run', './tools/check'`, "tools/check/main.go"},
		{`'go', 'run', './tools/check', '-v'`, "go.mod"},
		{`'go', 'run', '.'`, "main.go"},
		{`'go', '-C', 'tools', 'run', './check'`, "tools/check/main.go"},
		{`'sh', '-c', 'cd tools && go run ./check'`, "tools/check/main.go"},
		{`'cargo', 'xtask', 'lint'`, ".cargo/config.toml"},
		{`'docker', 'compose', 'run', 'lint'`, "compose.yaml"},
		{`'./gradlew', 'check'`, "build.gradle.kts"},
		{`'pytest', '-q'`, "conftest.py"},
		{`'sh', '-c', 'eslint src'`, "eslint.config.js"},
	} {
		t.Run(row.command, func(t *testing.T) {
			w := newWorld(t)
			file := filepath.Join(w.project, filepath.FromSlash(row.file))
			w.write(file, "1")
			w.projectFile("[hooks.x]\nevent = 'session_start'\ncommand = [" + row.command + "]\n")
			w.src.Trust = Trusted
			c, err := Load(w.src)
			if err != nil {
				t.Fatal(err)
			}
			if string(c.Authority[row.file]) != "1" {
				t.Fatalf("approved are %q", c.Authority)
			}
			if _, err := c.Place(c.Hooks[0].Command, t.TempDir()); err != nil {
				t.Errorf("unchanged: %v", err)
			}
			w.write(file, "2")
			if _, err := c.Place(c.Hooks[0].Command, t.TempDir()); err == nil || !strings.Contains(err.Error(), "changed") {
				t.Errorf("changed: %v", err)
			}
		})
	}
}

// What a command only writes is not what it runs.
func TestWhatACommandWritesMayChange(t *testing.T) {
	w := newWorld(t)
	w.write(filepath.Join(w.project, "log.txt"), "1")
	w.projectFile("[hooks.x]\nevent = 'session_start'\ncommand = ['sh', '-c', 'date >>log.txt; date > log.txt']\n")
	w.src.Trust = Trusted
	c, err := Load(w.src)
	if err != nil {
		t.Fatal(err)
	}
	w.write(filepath.Join(w.project, "log.txt"), "2")
	if _, err := c.Place(c.Hooks[0].Command, t.TempDir()); err != nil {
		t.Error(err)
	}
}

// What launchers obey in a command of the user's own is every project's, as it says.
func TestLaunchersOfTheUsersOwn(t *testing.T) {
	w := newWorld(t)
	w.write(filepath.Join(w.project, "Makefile"), "all:")
	w.write(filepath.Join(w.project, "terraform", "main.tf"), "")
	w.write(filepath.Join(w.project, "log.txt"), "")
	w.user("[hooks.a]\nevent = 'session_start'\ncommand = ['make', '-s']\n[hooks.b]\nevent = 'session_end'\ncommand = ['sh', '-c', '! grep -q terraform && cat >>log.txt']\n")
	c, err := Load(w.src)
	if err != nil || len(c.Hooks) != 2 || len(c.Untrusted) > 0 {
		t.Errorf("%d hooks, asks %q, %v", len(c.Hooks), c.Untrusted, err)
	}
}

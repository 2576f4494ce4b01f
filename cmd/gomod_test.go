package cmd

import (
	"os"
	"path/filepath"
	"testing"
)

// What go would fetch or include because a project says so is found.
func TestGoReaches(t *testing.T) {
	cache := t.TempDir()
	write := func(t *testing.T, dir, name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(t, cache, "cache/download/example.com/!known/@v/v1.0.0.mod", "module example.com/Known\n")
	const known = "module a\n\ngo 1.22\n\nrequire example.com/Known v1.0.0 // indirect\n"
	for _, row := range []struct {
		name  string
		files map[string]string
		want  bool
	}{
		{"no module", map[string]string{"a.go": "package a"}, false},
		{"no module, and C", map[string]string{"a.go": `import "C"`}, true},
		{"C with an escape", map[string]string{"a.go": `import "\x43"`}, true},
		{"for swig", map[string]string{"go.mod": "module a\n", "a.go": "package a", "x.swigcxx": "%module x"}, true},
		{"no requirements", map[string]string{"go.mod": "module a\n"}, false},
		{"all of them known", map[string]string{"go.mod": known, "a.go": "package a"}, false},
		{"one that is not", map[string]string{"go.mod": known + "require (\n\texample.com/other v1.0.0\n)\n"}, true},
		{"another version", map[string]string{"go.mod": "require example.com/Known v1.0.1"}, true},
		{"replaced by another", map[string]string{"go.mod": known + "replace example.com/Known => example.com/evil v1.0.0"}, true},
		{"with what it needs beside it", map[string]string{"go.mod": "go 1.14\nrequire example.com/other v1.0.0", "vendor/modules.txt": ""}, false},
		{"beside a module of an age in which that does not count", map[string]string{"go.mod": "go 1.13\nrequire example.com/other v1.0.0", "vendor/modules.txt": ""}, true},
		{"beside a module without an age", map[string]string{"go.mod": "require example.com/other v1.0.0", "vendor/modules.txt": ""}, true},
		{"replaced by a directory", map[string]string{"go.mod": known + "replace example.com/Known => ./sub", "sub/go.mod": known}, false},
		{"replaced by a directory that needs another", map[string]string{"go.mod": known + "replace example.com/Known => ./sub", "sub/go.mod": "require example.com/other v1.0.0"}, true},
		{"replaced by a directory beside the module, which is not looked through", map[string]string{"app/go.mod": known + "replace example.com/Known => ../sub", "sub/go.mod": "module example.com/Known", "sub/a.go": `import "C"`}, true},
		{"a work space", map[string]string{"go.mod": known, "go.work": "go 1.22"}, true},
		{"C", map[string]string{"go.mod": known, "sub/a.go": "package a\n\n// #include \"/home/dev/.netrc\"\nimport \"C\"\n"}, true},
		{"assembly", map[string]string{"go.mod": known, "sub/a_amd64.s": "#include \"x\""}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range row.files {
				write(t, dir, name, text)
			}
			at := dir
			if _, err := os.Stat(filepath.Join(dir, "app")); err == nil {
				at = filepath.Join(dir, "app")
			}
			if got := goReaches(at, cache); got != row.want {
				t.Errorf("goReaches is %v", got)
			}
		})
	}
	dir := t.TempDir()
	write(t, dir, "app/go.mod", known+"replace example.com/Known => ./sub")
	write(t, dir, "lib/go.mod", "module example.com/Known")
	if err := os.Symlink(filepath.Join("..", "lib"), filepath.Join(dir, "app", "sub")); err != nil {
		t.Skip("no links: ", err)
	}
	if !goReaches(filepath.Join(dir, "app"), cache) {
		t.Error("a module behind a link, which is not looked through, is none")
	}
}

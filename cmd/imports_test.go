package cmd

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatPythonImports(t *testing.T) {
	for name, want := range map[string]bool{
		"main.tf": false, "docs/a.md": false, ".venv/lib/x.py": false, "a-b/x.py": false, "x.py.txt": false,
		"json.py": true, "azure/cli/__main__.py": true, "logging/__init__.pyc": true, "ssl.abi3.so": true,
	} {
		dir := t.TempDir()
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := imports(dir); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if !imports(filepath.Join(t.TempDir(), "none")) {
		t.Error("a directory that is yet to come may hold anything")
	}
}

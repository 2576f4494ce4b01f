package approval

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Azure's client takes names that it was not given from a directory of the project.
func TestSettingsOfAzureInTheProject(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("paths of this computer begin with a letter")
	}
	dir := t.TempDir()
	at := Context{Place: Place{Host: true}, Dir: dir, Workspace: dir, Home: "/home/me", Real: func(name string) string { return name }}
	allowed := func(line string) bool { return Judge(line, at, "").Verdict == Allow }
	if !allowed("az vm list") {
		t.Error("az vm list is not allowed")
	}
	for _, d := range []string{".azure", "sub"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"az vm list", "cd sub && az vm list"} {
		if allowed(line) {
			t.Errorf("%q is allowed", line)
		}
	}
}

// A chart that is no directory of the project is fetched.
func TestChartsThatAreNotThere(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("paths of this computer begin with a letter")
	}
	dir := t.TempDir()
	at := Context{Place: Place{Host: true}, Dir: dir, Workspace: dir, Home: "/home/me", Real: func(name string) string { return name }}
	if err := os.MkdirAll(filepath.Join(dir, "charts", "web"), 0o700); err != nil {
		t.Fatal(err)
	}
	for line, allowed := range map[string]bool{"helm template charts/web": true, "helm template x ./charts/web": true, "helm template charts/api": false, "helm template x charts/api": false, "helm show values charts/api": false, "helm show values charts/web": true} {
		if j := Judge(line, at, ""); (j.Verdict == Allow) != allowed {
			t.Errorf("%q: %s (%s)", line, j.Verdict, j.Finding.Reason)
		}
	}
}

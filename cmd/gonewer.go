package cmd

import (
	"context"
	goversion "go/version"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// goNewer reports whether the go.mod or go.work around dir asks for a release of go
// that is neither installed nor in the cache of modules, so that go would fetch it.
func goNewer(dir, cache string) bool {
	var files []string
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		for _, name := range []string{"go.mod", "go.work"} {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				files = append(files, filepath.Join(at, name))
			}
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	asked := ""
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil || len(data) > 1<<20 {
			return true
		}
		for line := range strings.Lines(string(data)) {
			line, _, _ = strings.Cut(line, "//")
			words := strings.Fields(line)
			if len(words) != 2 || words[0] != "go" && words[0] != "toolchain" || words[1] == "default" || words[1] == "local" {
				continue
			}
			v := "go" + strings.TrimPrefix(strings.Trim(words[1], "\"`"), "go")
			if !goversion.IsValid(v) {
				return true
			}
			if asked == "" || goversion.Compare(v, asked) > 0 {
				asked = v
			}
		}
	}
	if asked == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = string(filepath.Separator)
	cmd.Env = append(cmd.Environ(), "GOTOOLCHAIN=local")
	out, err := cmd.Output()
	if err != nil {
		return ctx.Err() != nil // there is no go that could do it
	}
	installed, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if goversion.Compare(asked, installed) <= 0 {
		return false
	}
	_, err = os.Stat(filepath.Join(cache, "golang.org", "toolchain@v0.0.1-"+asked+"."+runtime.GOOS+"-"+runtime.GOARCH))
	return err != nil
}

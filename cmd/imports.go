package cmd

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// identifier matches what a module or a package of Python can be called.
var identifier = regexp.MustCompile(`^\w+$`)

// imports reports whether a Python that is started in dir for a module, as by az, may
// find code of its own there. A tree that is too large to look through counts as one
// that has some.
func imports(dir string) bool {
	const most = 50_000
	seen, found := 0, false
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > most {
			return fs.SkipAll
		}
		if err != nil {
			return err
		}
		if name == dir {
			return nil
		}
		if d.IsDir() {
			if !identifier.MatchString(d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		leads := false // to packages
		if d.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(name)
			leads = err == nil && info.IsDir()
		}
		if leads || slices.Contains([]string{".py", ".pyc", ".pyd", ".pyw", ".so", ".dll"}, filepath.Ext(name)) {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found || err != nil || seen > most
}

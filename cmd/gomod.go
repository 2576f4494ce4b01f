package cmd

import (
	"bytes"
	goversion "go/version"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// goReaches reports whether go, to look at the packages of a directory, may fetch
// modules that the project names, or start a compiler that reads what its files
// include. Cache is the cache of modules.
func goReaches(dir, cache string) bool {
	root := filepath.Clean(dir)
	for {
		if _, err := os.Lstat(filepath.Join(root, "go.work")); err == nil {
			return true
		}
		if _, err := os.Lstat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			return includes(dir) // of files that are named, or with GO111MODULE=off
		}
		root = filepath.Dir(root)
	}
	if !vendors(root) && !fetched(filepath.Join(root, "go.mod"), root, cache, 0) {
		return true
	}
	return includes(root)
}

// vendors reports whether go takes what a module needs from beside it, without being told:
// it does so for those that are written for go 1.14 or later.
func vendors(root string) bool {
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if _, there := os.Stat(filepath.Join(root, "vendor", "modules.txt")); err != nil || there != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "//")
		if words := strings.Fields(line); len(words) == 2 && words[0] == "go" {
			return goversion.Compare("go"+words[1], "go1.14") >= 0
		}
	}
	return false
}

// fetched reports whether the modules that a go.mod names are all in the cache, with those
// that modules name which lie in directories below root; others are not looked through.
func fetched(file, root, cache string, depth int) bool {
	const deepest = 20
	data, err := os.ReadFile(file)
	if err != nil || len(data) > 1<<20 || depth > deepest {
		return false
	}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "//")
		if _, to, is := strings.Cut(line, "=>"); is {
			line = to
			if at := strings.Trim(strings.TrimSpace(to), "\"`"); strings.HasPrefix(at, ".") || strings.HasPrefix(at, "/") {
				if !filepath.IsAbs(at) {
					at = filepath.Join(filepath.Dir(file), at)
				}
				if !strings.HasPrefix(filepath.Clean(at), root+string(filepath.Separator)) || !fetched(filepath.Join(at, "go.mod"), root, cache, depth+1) {
					return false
				}
			}
		}
		words := strings.Fields(strings.NewReplacer("(", " ", ")", " ", `"`, "", "`", "").Replace(line))
		for i, w := range words {
			if i == 0 || len(w) < 2 || w[0] != 'v' || !unicode.IsDigit(rune(w[1])) {
				continue
			}
			if _, err := os.Stat(filepath.Join(cache, "cache", "download", escaped(words[i-1]), "@v", escaped(w)+".mod")); err != nil {
				return false
			}
		}
	}
	return true
}

// escaped is the path of a module as the cache spells it, for file systems that know
// no case.
func escaped(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return filepath.FromSlash(b.String())
}

// escapedC finds the same name, written with an escape.
var escapedC = regexp.MustCompile(`"\\(?:x43|u0043|U00000043|103)"`)

// includes reports whether a file below root is one that names others to include: of
// assembly, of Go with C in it, or for swig. A tree that is too large counts as one that has.
func includes(root string) bool {
	const most = 50_000
	seen, found := 0, false
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > most || err != nil {
			return fs.SkipAll
		}
		switch {
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
		case d.Type()&fs.ModeSymlink != 0 && leadsToFiles(name):
			found = true // go reads what is there
		case slices.Contains([]string{".s", ".swig", ".swigcxx"}, strings.ToLower(filepath.Ext(name))):
			found = true
		case filepath.Ext(name) == ".go":
			if !d.Type().IsRegular() {
				found = true // a link or a pipe is not opened
				break
			}
			data, err := os.ReadFile(name)
			found = err != nil || bytes.Contains(data, []byte(`"C"`)) || bytes.Contains(data, []byte("`C`")) || escapedC.Match(data)
		}
		if found {
			return fs.SkipAll
		}
		return nil
	})
	return found || err != nil || seen > most
}

// leadsToFiles reports whether a link leads to a directory.
func leadsToFiles(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

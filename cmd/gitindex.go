package cmd

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
)

// namedIndex reports whether git's index of the repository at root holds a path of those
// that is tells, whether or not there is such a file. An index that cannot be read
// counts as one that does.
func namedIndex(root string, is func(name string) bool) bool {
	at := filepath.Join(root, ".git")
	if info, err := os.Lstat(at); err != nil {
		return !os.IsNotExist(err)
	} else if !info.IsDir() {
		text, err := os.ReadFile(at)
		dir, linked := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		if err != nil || !linked {
			return true
		}
		if at = dir; !filepath.IsAbs(at) {
			at = filepath.Join(root, at)
		}
	}
	data, err := os.ReadFile(filepath.Join(at, "index"))
	if err != nil {
		return !os.IsNotExist(err)
	}
	const header, fixed = 12, 62 // bytes before the entries, and before the name in each
	if len(data) < header || string(data[:4]) != "DIRC" {
		return true
	}
	version := binary.BigEndian.Uint32(data[4:])
	if version != 2 && version != 3 {
		return true
	}
	rest := data[header:]
	for range binary.BigEndian.Uint32(data[8:]) {
		if len(rest) < fixed {
			return true
		}
		name := fixed
		if version == 3 && rest[60]&0x40 != 0 {
			name += 2
		}
		end := bytes.IndexByte(rest[min(name, len(rest)):], 0)
		if end < 0 {
			return true
		}
		if is(string(rest[name : name+end])) {
			return true
		}
		size := (name + end + 8) &^ 7
		if size > len(rest) {
			return true
		}
		rest = rest[size:]
	}
	return false
}

package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// Set writes key = value to the configuration file at path, which it makes if
// missing. Everything else in the file stays byte for byte. The error of a value
// or file that cannot be used is an *Error, and the file is untouched.
func Set(path string, key Key, value any) error {
	return edit(path, func(data []byte) ([]byte, error) {
		return setValue(data, key, literal(value)), nil
	})
}

// Unset removes key from the configuration file at path, and reports whether it
// was there.
func Unset(path string, key Key) (bool, error) {
	removed := false
	err := edit(path, func(data []byte) ([]byte, error) {
		for {
			at := slices.IndexFunc(entries(data), func(e entry) bool { return !e.table && isKey(key, e) })
			if at < 0 {
				return data, nil
			}
			data, removed = removeEntry(data, entries(data)[at]), true
		}
	})
	return removed, err
}

// edit changes a valid file into a valid one.
func edit(path string, change func([]byte) ([]byte, error)) error {
	return rewrite(path, func(data []byte) ([]byte, error) {
		if _, err := parse(path, data); err != nil {
			return nil, err
		}
		return change(data)
	})
}

// rewrite changes the file under a lock, whole or not at all.
func rewrite(path string, change func([]byte) ([]byte, error)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	defer lock.Unlock()
	path, err := target(path)
	if err != nil {
		return err
	}
	mode := os.FileMode(0o600)
	data, err := os.ReadFile(path)
	if err == nil {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		mode = info.Mode().Perm()
	} else if !os.IsNotExist(err) {
		return err
	}
	next, err := change(bytes.Clone(data))
	if err != nil {
		return err
	}
	if _, err := parse(path, next); err != nil {
		return errorf("%s would no longer be valid; it is unchanged: %v", path, err)
	}
	if bytes.Equal(next, data) {
		return nil
	}
	return replace(path, next, mode)
}

// target follows path to the file that it names, whether that exists or not, so
// that a link stays one.
func target(path string) (string, error) {
	for range 40 {
		to, err := os.Readlink(path)
		if err != nil {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				return real, nil
			}
			return path, nil
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", errorf("%s is a link that leads to itself", path)
}

// Check reports whether data could be the user's configuration file at path. The
// error is an *Error that names the line.
func Check(path string, data []byte) error {
	f, err := parse(path, data)
	if err != nil {
		return err
	}
	c := &Config{Providers: map[string]Provider{}}
	if err := c.checkKeys(f, true); err != nil {
		return err
	}
	for _, k := range Keys() {
		if _, _, err := fromFile(k, f, LayerUser); err != nil {
			return err
		}
	}
	return c.tables(Sources{}, f, nil)
}

// ErrChanged is a file that was changed by somebody else in between.
var ErrChanged = errors.New("the file was changed in the meantime")

// Replace puts after in place of before as the whole content of the file at path.
// If the file no longer holds before, the error is ErrChanged.
func Replace(path string, before, after []byte) error {
	return rewrite(path, func(data []byte) ([]byte, error) {
		if !bytes.Equal(data, before) {
			return nil, ErrChanged
		}
		return after, nil
	})
}

// replace puts data in place of the file at path.
func replace(path string, data []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".config-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

func isKey(key Key, e entry) bool { return slices.Contains(key.Paths, strings.Join(e.path, ".")) }

// setValue changes the value where it stands, else adds it where it belongs.
func setValue(data []byte, key Key, value string) []byte {
	list := entries(data)
	for _, e := range list {
		if !e.table && isKey(key, e) {
			return slices.Concat(data[:e.start], []byte(value), data[e.end:])
		}
	}
	parts := strings.Split(key.Paths[0], ".")
	table, name := strings.Join(parts[:len(parts)-1], "."), parts[len(parts)-1]
	eol := "\n"
	if bytes.Contains(data, []byte("\r\n")) {
		eol = "\r\n"
	}
	// The table may have a header (member is the last entry that follows it
	// directly), be an inline table, or exist only through dotted keys.
	header, member, dotted, inline := -1, -1, -1, -1
	for i, e := range list {
		full := strings.Join(e.path, ".")
		switch {
		case e.table && full == table:
			header, member = i, i
		case e.table:
		case full == table && e.start < len(data) && data[e.start] == '{':
			inline = i
		case header >= 0 && member == i-1:
			member = i
		case header < 0 && strings.HasPrefix(full, table+"."):
			dotted = i
		}
	}
	switch {
	case inline >= 0:
		e := list[inline]
		end := e.end - 1
		sep := ", "
		if len(bytes.TrimSpace(data[e.start+1:end])) == 0 {
			sep = " "
		}
		end = e.start + len(bytes.TrimRight(data[e.start:end], " \t"))
		return slices.Concat(data[:end], []byte(sep+name+" = "+value), data[end:])
	case header >= 0:
		return insertAfter(data, list[member].end, name+" = "+value, eol)
	case dotted >= 0 && len(list[dotted].path) > 1 && !underHeader(list, dotted):
		return insertAfter(data, list[dotted].end, table+"."+name+" = "+value, eol)
	}
	text := "[" + table + "]" + eol + name + " = " + value + eol
	if len(data) > 0 {
		if !bytes.HasSuffix(data, []byte("\n")) {
			text = eol + text
		}
		text = eol + text
	}
	return append(data, text...)
}

// underHeader reports whether a table header stands before entry i.
func underHeader(list []entry, i int) bool {
	return slices.ContainsFunc(list[:i], func(e entry) bool { return e.table })
}

// insertAfter adds a line after the one that holds byte i, with its indentation.
func insertAfter(data []byte, i int, line, eol string) []byte {
	start := bytes.LastIndexByte(data[:i], '\n') + 1
	indent := data[start : start+len(data[start:])-len(bytes.TrimLeft(data[start:], " \t"))]
	end := bytes.IndexByte(data[i:], '\n')
	if end < 0 {
		return slices.Concat(data, []byte(eol), indent, []byte(line))
	}
	end += i + 1
	return slices.Concat(data[:end], indent, []byte(line+eol), data[end:])
}

// removeEntry takes an entry out with its line, or out of its inline table.
func removeEntry(data []byte, e entry) []byte {
	start := bytes.LastIndexByte(data[:e.start], '\n') + 1
	head := data[start:e.start]
	if open := bytes.LastIndexAny(head, "{,"); open >= 0 && bytes.Count(head, []byte("=")) > 0 && !bytes.ContainsAny(head[:open], "#") && bytes.ContainsRune(head, '{') {
		from, to := start+open+1, e.end
		rest := bytes.TrimLeft(data[to:], " \t")
		if len(rest) > 0 && rest[0] == ',' {
			to = len(data) - len(rest) + 1
		} else if head[open] == ',' {
			from--
		}
		return slices.Concat(data[:from], data[to:])
	}
	end := bytes.IndexByte(data[e.end:], '\n')
	if end < 0 {
		return data[:start]
	}
	return slices.Concat(data[:start], data[e.end+end+1:])
}

// literal writes a value as TOML.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case []string:
		items := make([]string, len(v))
		for i, s := range v {
			items[i] = quote(s)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case bool, int64:
		return fmt.Sprint(v)
	case float64:
		s := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	return quote(fmt.Sprint(v))
}

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

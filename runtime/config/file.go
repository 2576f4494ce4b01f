package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	gotoml "github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// A file is one configuration file, parsed.
type file struct {
	path  string
	k     *koanf.Koanf
	lines map[string]int // line of each key, by its path joined with "."
}

// What a configuration file may have at most; parsers take a time that grows
// faster than what is beyond.
const (
	maxFile  = 256 << 10 // bytes
	maxDepth = 50        // brackets in brackets, and words of one key
	maxKeys  = 5000      // keys and table headers
)

// bounded reports the line at which data has more than that, and what of.
func bounded(data []byte) (line int, why string) {
	depth, dots, keys := 0, 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"', '\'':
			i = stringEnd(data, i) - 1
			continue
		case '#':
			for i+1 < len(data) && data[i+1] != '\n' {
				i++
			}
		case '[', '{':
			if depth == 0 {
				keys++
			}
			depth++
			dots = 0
		case ']', '}':
			depth = max(depth-1, 0)
		case '.':
			dots++
		case '=':
			keys++
			dots = 0
		case '\n', ',':
			dots = 0
		}
		switch {
		case depth > maxDepth || dots > maxDepth:
			why = "too deeply nested"
		case keys > maxKeys:
			why = "too many settings"
		default:
			continue
		}
		return bytes.Count(data[:i], []byte("\n")) + 1, why
	}
	return 0, ""
}

// readFile parses the file at path. A missing file is nil without an error; a
// malformed one is an *Error with line and column.
func readFile(path string) (*file, error) {
	data, err := readRegular(os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0))(maxFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errorf("read configuration: %s: %v", path, err)
	}
	return parse(path, data)
}

func parse(path string, data []byte) (*file, error) {
	if line, why := bounded(data); why != "" {
		return nil, errorf("%s:%d: %s", path, line, why)
	}
	var probe map[string]any
	if err := gotoml.Unmarshal(data, &probe); err != nil {
		if d, ok := errors.AsType[*gotoml.DecodeError](err); ok {
			line, col := d.Position()
			return nil, &Error{Text: fmt.Sprintf("%s:%d:%d: %s", path, line, col, strings.TrimPrefix(d.Error(), "toml: "))}
		}
		return nil, &Error{Text: fmt.Sprintf("%s: %v", path, err)}
	}
	f := &file{path: path, k: koanf.New("."), lines: map[string]int{}}
	if err := f.k.Load(rawbytes.Provider(data), toml.Parser()); err != nil {
		return nil, &Error{Text: fmt.Sprintf("%s: %v", path, err)}
	}
	for _, e := range entries(data) {
		name := strings.Join(e.path, ".")
		if _, seen := f.lines[name]; !seen {
			f.lines[name] = e.line
		}
	}
	return f, nil
}

// at names the place of a key in the file.
func (f *file) at(path string) string {
	if line := f.lines[path]; line > 0 {
		return fmt.Sprintf("%s:%d", f.path, line)
	}
	return f.path
}

// An entry is one `key = value` or table header of a TOML document, inline
// tables opened up.
type entry struct {
	path       []string
	table      bool
	line       int
	start, end int // byte range of the value; of the header's line for a table
}

// entries lists what a valid TOML document holds, in order.
func entries(data []byte) []entry {
	var p unstable.Parser
	p.Reset(data)
	var table []string
	var list []entry
	at := &counter{data: data}
	for p.NextExpression() {
		e := p.Expression()
		keys, last := keyPath(&p, e)
		line := at.line(int(last.Offset))
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = keys
			list = append(list, entry{path: keys, table: true, line: line, start: int(last.Offset), end: int(last.Offset + last.Length)})
		case unstable.KeyValue:
			full := append(append([]string{}, table...), keys...)
			list = appendValue(list, &p, at, full, e.Value(), last)
		}
	}
	return list
}

func appendValue(list []entry, p *unstable.Parser, at *counter, path []string, v *unstable.Node, key unstable.Range) []entry {
	data, start := at.data, int(key.Offset+key.Length)
	for start < len(data) && data[start] != '=' {
		start++
	}
	start++
	for start < len(data) && (data[start] == ' ' || data[start] == '\t') {
		start++
	}
	list = append(list, entry{path: path, line: at.line(int(key.Offset)), start: start, end: valueEnd(data, start)})
	if v.Kind == unstable.InlineTable {
		for it := v.Children(); it.Next(); {
			kv := it.Node()
			keys, last := keyPath(p, kv)
			list = appendValue(list, p, at, append(append([]string{}, path...), keys...), kv.Value(), last)
		}
	}
	return list
}

// A counter tells line numbers of offsets that mostly grow.
type counter struct {
	data   []byte
	offset int
	lines  int
}

func (c *counter) line(offset int) int {
	if offset < c.offset {
		c.offset, c.lines = 0, 0
	}
	c.lines += bytes.Count(c.data[c.offset:offset], []byte("\n"))
	c.offset = offset
	return c.lines + 1
}

func keyPath(p *unstable.Parser, e *unstable.Node) ([]string, unstable.Range) {
	var keys []string
	var last unstable.Range
	for it := e.Key(); it.Next(); {
		n := it.Node()
		keys = append(keys, string(n.Data))
		last = n.Raw
		if last.Length == 0 {
			last = p.Range(n.Data)
		}
	}
	return keys, last
}

// valueEnd returns where the TOML value that starts at i ends.
func valueEnd(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch c := data[i]; c {
		case '"', '\'':
			i = stringEnd(data, i)
			if depth == 0 {
				return i
			}
			continue
		case '[', '{':
			depth++
		case ']', '}':
			if depth == 0 {
				return trimRight(data, i)
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case '#':
			if depth == 0 {
				return trimRight(data, i)
			}
			for i < len(data) && data[i] != '\n' {
				i++
			}
			continue
		case '\n', ',':
			if depth == 0 {
				return trimRight(data, i)
			}
		}
		i++
	}
	return trimRight(data, i)
}

func stringEnd(data []byte, i int) int {
	q := data[i]
	if i+2 < len(data) && data[i+1] == q && data[i+2] == q {
		for j := i + 3; j+2 < len(data); j++ {
			if data[j] == '\\' && q == '"' {
				j++
				continue
			}
			if data[j] == q && data[j+1] == q && data[j+2] == q {
				for j+3 < len(data) && data[j+3] == q {
					j++
				}
				return j + 3
			}
		}
		return len(data)
	}
	for j := i + 1; j < len(data); j++ {
		if data[j] == '\\' && q == '"' {
			j++
			continue
		}
		if data[j] == q {
			return j + 1
		}
	}
	return len(data)
}

func trimRight(data []byte, i int) int {
	for i > 0 && (data[i-1] == ' ' || data[i-1] == '\t' || data[i-1] == '\r') {
		i--
	}
	return i
}

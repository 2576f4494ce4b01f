package wasm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/talkops-ai/talkops/sdk/abi"
)

// MaxModule is the most bytes a module may have.
const MaxModule = 32 << 20

// A BadModule says in one line what is wrong with a module and what to do.
type BadModule struct{ Text string }

func (e *BadModule) Error() string { return e.Text }

func bad(format string, args ...any) error { return &BadModule{fmt.Sprintf(format, args...)} }

// A Module is what a file's bytes tell without running any of them.
type Module struct {
	Name     string // of the file
	SHA256   string
	Size     int
	ABI      int // the major it speaks
	Exports  []string
	Imports  []string // "namespace.name" of host functions
	MinPages int      // of memory, 64 KiB each
	WASI     bool     // it wants a clock and the like, or has to be initialised
	Alias    bool     // it imports the host functions from the kits' own namespace
	Warnings []string
}

// Has reports whether the module exports that function.
func (m *Module) Has(export string) bool { return slices.Contains(m.Exports, export) }

const (
	maxBody      = 256 << 10
	maxFunctions = 50_000
	maxTable     = 65_536
)

// Inspect checks a module's bytes before anything of it is compiled or run. The
// error is a *BadModule.
func Inspect(name string, data []byte) (*Module, error) {
	sum := sha256.Sum256(data)
	m := &Module{Name: name, SHA256: hex.EncodeToString(sum[:]), Size: len(data)}
	switch {
	case len(data) > MaxModule:
		return nil, bad("%s has %d MB; the limit is %d MiB. Strip debug information (Go: -ldflags=\"-s -w\").", name, len(data)/1e6, MaxModule>>20)
	case !bytes.HasPrefix(data, []byte("\x00asm")):
		return nil, bad("%s is not a WebAssembly module: it looks like %s.", name, looksLike(data))
	case len(data) < 8:
		return nil, bad("%s is damaged: it ends within its first line.", name)
	case data[6] == 1 && data[7] == 0:
		return nil, bad("%s is a WebAssembly component (WASI 0.2). talkops loads core modules: build for wasip1 (wasm32-wasi) or wasm32-unknown-unknown, without the component step.", name)
	case !bytes.Equal(data[4:8], []byte{1, 0, 0, 0}):
		return nil, bad("%s has WebAssembly version %d; talkops loads version 1.", name, data[4])
	}
	p := &parser{m: m, data: data, at: 8}
	if err := p.sections(); err != nil {
		return nil, err
	}
	return m, p.check()
}

// looksLike names what a file is that is no module.
func looksLike(data []byte) string {
	text := strings.TrimSpace(string(data[:min(len(data), 512)]))
	lower := strings.ToLower(text)
	switch {
	case len(data) == 0:
		return "an empty file"
	case strings.HasPrefix(text, "PK\x03\x04"):
		return "a zip archive or Python wheel"
	case strings.HasPrefix(text, "\x1f\x8b"):
		return "a gzip archive"
	case strings.HasPrefix(text, "\x7fELF"), strings.HasPrefix(text, "MZ"), strings.HasPrefix(text, "\xcf\xfa\xed\xfe"):
		return "a program for a computer. Build it for WebAssembly"
	case strings.HasPrefix(lower, "<!doctype"), strings.HasPrefix(lower, "<html"):
		return "a web page. The download may have failed"
	case strings.HasPrefix(text, "(module"), strings.HasPrefix(text, ";;"):
		return "WebAssembly text. Assemble it with wat2wasm"
	case strings.HasPrefix(text, "#!"), strings.HasPrefix(text, "import "), strings.HasPrefix(text, "from "), strings.HasPrefix(text, "def "), strings.HasPrefix(text, "class "):
		return "a script. Python is not loaded; build a WebAssembly module"
	case strings.HasPrefix(text, "version https://git-lfs"):
		return "a Git LFS pointer. Fetch the file with git lfs pull"
	}
	return "something else"
}

// A parser reads the sections of a module. It never allocates by a length it
// read.
type parser struct {
	m     *Module
	data  []byte
	at    int
	end   int // of the section
	types []string
	funcs []int // types of the functions, imports first
	used  map[string]string
	hosts int // imported functions
	sigs  map[string]string
	err   error
}

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = bad("%s is damaged: %s at byte %d.", p.m.Name, what, p.at)
	}
}

func (p *parser) byte() byte {
	if p.err != nil || p.at >= p.end {
		p.fail("it ends too early")
		return 0
	}
	p.at++
	return p.data[p.at-1]
}

func (p *parser) number() int {
	var n uint64
	for shift := 0; ; shift += 7 {
		b := p.byte()
		n |= uint64(b&0x7f) << shift
		if b&0x80 == 0 || p.err != nil {
			break
		}
		if shift > 28 {
			p.fail("a number is too long")
			return 0
		}
	}
	return int(n & 0xffffffff)
}

func (p *parser) text() string {
	n := p.number()
	if p.err == nil && n > p.end-p.at {
		p.fail("a name runs past the end")
	}
	if p.err != nil {
		return ""
	}
	p.at += n
	return string(p.data[p.at-n : p.at])
}

func (p *parser) sections() error {
	p.used, p.sigs = map[string]string{}, map[string]string{}
	for p.at < len(p.data) && p.err == nil {
		p.end = len(p.data)
		start := p.at
		id := p.byte()
		size := p.number()
		if p.err == nil && size > len(p.data)-p.at {
			return bad("%s is damaged: section %d at byte %d runs past the end.", p.m.Name, id, start)
		}
		p.end = p.at + size
		next := p.end
		switch id {
		case 1:
			p.each(p.readType)
		case 2:
			p.each(p.readImport)
		case 3:
			p.each(func() { p.funcs = append(p.funcs, p.number()) })
			if len(p.funcs) > maxFunctions {
				return bad("%s has %d functions; the limit is %d.", p.m.Name, len(p.funcs), maxFunctions)
			}
		case 4:
			p.each(func() {
				p.byte()
				if low, _ := p.limits(); low > maxTable {
					p.err = bad("%s has a table of %d entries; the limit is %d.", p.m.Name, low, maxTable)
				}
			})
		case 5:
			p.each(func() { p.m.MinPages, _ = p.limits() })
		case 7:
			p.each(p.readExport)
		case 10:
			n := 0
			p.each(func() {
				size := p.number()
				if size > maxBody && p.err == nil {
					p.err = bad("%s: function %d is %d KB of code; such modules cannot be compiled safely.", p.m.Name, p.hosts+n, size>>10)
				}
				if p.err == nil && size > p.end-p.at {
					p.fail("a function runs past the end")
				}
				p.at += size
				n++
			})
		}
		if p.err == nil && p.at > next {
			p.fail("a section runs over")
		}
		p.at = next
	}
	return p.err
}

func (p *parser) each(f func()) {
	for n := p.number(); n > 0 && p.err == nil; n-- {
		f()
	}
}

func (p *parser) limits() (low, high int) {
	flags := p.byte()
	low = p.number()
	if flags&1 != 0 {
		high = p.number()
	}
	if flags&^1 != 0 && p.err == nil {
		p.err = bad("%s wants shared or 64-bit memory, which talkops does not offer.", p.m.Name)
	}
	return low, high
}

var valueTypes = map[byte]string{0x7f: "i", 0x7e: "I", 0x7d: "f", 0x7c: "F"}

// readType keeps a signature as in abi.Function: "params:results".
func (p *parser) readType() {
	if p.byte() != 0x60 {
		p.fail("a type is no function")
		return
	}
	var s strings.Builder
	for i := range 2 {
		p.each(func() {
			t, ok := valueTypes[p.byte()]
			if !ok {
				t = "?"
			}
			s.WriteString(t)
		})
		if i == 0 {
			s.WriteByte(':')
		}
	}
	p.types = append(p.types, s.String())
}

func (p *parser) signature(typ int) string {
	if typ < 0 || typ >= len(p.types) {
		return "?"
	}
	return p.types[typ]
}

func (p *parser) readImport() {
	module, name := p.text(), p.text()
	switch p.byte() {
	case 0:
		typ := p.number()
		p.funcs = append(p.funcs, typ)
		p.hosts++
		p.used[module+"\x00"+name] = p.signature(typ)
	case 1:
		p.byte()
		p.limits()
		p.used[module+"\x00"+name] = "table"
	case 2:
		p.limits()
		p.used[module+"\x00"+name] = "memory"
	case 3:
		p.byte()
		p.byte()
		p.used[module+"\x00"+name] = "global"
	default:
		p.fail("an import is of no known kind")
	}
}

func (p *parser) readExport() {
	name, kind, index := p.text(), p.byte(), p.number()
	if kind != 0 || p.err != nil {
		return
	}
	p.m.Exports = append(p.m.Exports, name)
	if index >= 0 && index < len(p.funcs) {
		p.sigs[name] = p.signature(p.funcs[index])
	}
}

// check holds imports and exports against the ABI.
func (p *parser) check() error {
	m := p.m
	slices.Sort(m.Exports)
	if err := p.checkExports(); err != nil {
		return err
	}
	known := map[string]string{}
	for _, f := range abi.Functions() {
		sig := strings.ReplaceAll(f.Params, "b", "I") + ":" + strings.ReplaceAll(f.Result, "b", "I")
		known[f.Name] = sig
	}
	for key, sig := range p.used {
		module, name, _ := strings.Cut(key, "\x00")
		switch module {
		case abi.Namespace, abi.UserNamespace:
			m.Alias = m.Alias || module == abi.UserNamespace
			want, ok := known[name]
			switch {
			case !ok:
				return bad("%s needs the host function %q of %s, which this talkops (ABI %d.%d) does not have. Update talkops, or build with its kit.", m.Name, name, module, abi.Major, abi.Minor)
			case sig != want:
				return bad("%s imports the host function %s with another type than it has: build with the kit of ABI %d.", m.Name, name, abi.Major)
			}
			m.Imports = append(m.Imports, name)
		case "extism:host/env":
			switch {
			case name == "http_request":
				m.Warnings = append(m.Warnings, "uses Extism's HTTP, which talkops denies; use http")
			case strings.HasPrefix(name, "var_"), name == "config_get":
				m.Warnings = append(m.Warnings, "uses Extism's "+name+", which holds nothing here")
			}
		case "wasi_snapshot_preview1":
			m.WASI = true
		default:
			return bad("%s asks for %s, which talkops does not offer%s.", m.Name, strconv.Quote(module+"."+name), importHint(module, name))
		}
	}
	slices.Sort(m.Imports)
	slices.Sort(m.Warnings)
	m.WASI = m.WASI || m.Has("_initialize")
	return nil
}

func (p *parser) checkExports() error {
	m := p.m
	other := 0
	for _, e := range m.Exports {
		if text, ok := strings.CutPrefix(e, abi.MarkerPrefix); ok {
			if n, err := strconv.Atoi(text); err == nil && n == abi.Major {
				m.ABI = n
			} else if err == nil {
				other = n
			}
		}
	}
	for key := range p.used {
		// What a wrong tool leaves in a module is the better hint.
		if module, name, _ := strings.Cut(key, "\x00"); m.ABI == 0 && other == 0 && importHint(module, name) != "" {
			return bad("%s asks for %s, which talkops does not offer%s.", m.Name, strconv.Quote(module+"."+name), importHint(module, name))
		}
	}
	switch {
	case m.ABI != 0:
	case other > abi.Major:
		return bad("%s speaks provider ABI %d; this talkops speaks %d. Update talkops.", m.Name, other, abi.Major)
	case other != 0:
		return bad("%s speaks provider ABI %d; this talkops speaks %d. Build it with a newer kit.", m.Name, other, abi.Major)
	case m.Has("_start"):
		return bad("%s is a program. Build a library: Go -buildmode=c-shared, C -mexec-model=reactor, Rust --crate-type cdylib.", m.Name)
	default:
		return bad("%s is not a talkops provider: it does not export %s.", m.Name, abi.Marker)
	}
	for _, e := range abi.Required() {
		if !m.Has(e) {
			return bad("%s lacks the function %s, which every provider has.", m.Name, e)
		}
	}
	for _, e := range append(abi.Required(), abi.Optional()...) {
		if m.Has(e) && p.sigs[e] != ":i" {
			return bad("%s: %s has the wrong type: it must take nothing and return i32.", m.Name, e)
		}
	}
	return nil
}

// importHint says what an import from nowhere comes from.
func importHint(module, name string) string {
	switch {
	case module == "env" && name == "abort":
		return " (AssemblyScript: build with --use abort=)"
	case module == "gojs", module == "go":
		return " (it was built for a browser: use GOOS=wasip1)"
	case module == "wasi_unstable":
		return " (an old WASI: build for wasip1)"
	case strings.HasPrefix(module, "wasi:"):
		return " (it is made for components: build for wasip1)"
	case strings.HasPrefix(module, "__wbindgen"), module == "wbg":
		return " (it is made for JavaScript hosts: build without wasm-bindgen)"
	}
	return ""
}

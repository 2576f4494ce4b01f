package wasmtest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/sdk/abi"
)

// A Source is a module written by hand. Its exports that Code does not name answer
// in good order: describe with Describe, open with a machine, everything else with
// nothing to tell.
type Source struct {
	Describe string            // a JSON reply; empty: a provider called hand
	Code     map[string][]byte // the body of an export, or of the function "start"
	Marker   string            // empty: that of this ABI
	Without  string            // an export that is missing
	Imports  [][2]string       // more functions to import, of no parameters and results
	Pages    int               // of memory at the start

	Namespace string // of the host functions; empty: talkops' own
	Fetch     bool   // it imports Extism's own HTTP, for Fetch
}

// The functions a body may call.
const (
	CallAlloc     = 0 // i64 length → i64
	CallStore     = 1 // i64 offset, i64 value
	CallOutput    = 2 // i64 offset, i64 length
	CallEmit      = 3 // i32 stream, i64 block → i32
	CallSleep     = 4 // i32 milliseconds → i32
	CallLog       = 5 // i32 level, i64 block → i32
	CallHTTP      = 6 // i64 block → i64
	CallCreated   = 7 // i64 block → i32, if not:
	callFetch     = 7 // i64 request, i64 body → i64, if it is imported
	hostFunctions = 8
	CallTree      = hostFunctions // i32 depth: a tree of calls without a loop
	CallSelf      = hostFunctions + 1
)

// Instructions.
const (
	opUnreachable = 0x00
	opLoop        = 0x03
	opIf          = 0x04
	opEnd         = 0x0b
	opBr          = 0x0c
	opCall        = 0x10
	opDrop        = 0x1a
	opGet         = 0x20
	opSet         = 0x21
	opGrow        = 0x40
	opSize        = 0x3f
	opI32         = 0x41
	opI64         = 0x42
	opEqI32       = 0x46
	opSubI32      = 0x6b
	opShlI32      = 0x74
	opAddI64      = 0x7c
	opFill        = 0xfc
	void          = 0x40
)

// Bodies of hostile functions. The one local is an i64.
func Spin() []byte    { return []byte{opLoop, void, opBr, 0, opEnd, opI32, 0} }
func Recurse() []byte { return []byte{opCall, CallSelf, opI32, 0} }
func Tree() []byte    { return []byte{opI32, 60, opCall, CallTree, opI32, 0} }
func Trap() []byte    { return []byte{opUnreachable} }
func Silent() []byte  { return []byte{opI32, 0} }
func Fails() []byte   { return []byte{opI32, 7} }

// Grow asks for memory without end.
func Grow() []byte {
	return []byte{opLoop, void, opI32, 16, opGrow, 0, opDrop, opBr, 0, opEnd, opI32, 0}
}

// GrowAndTouch takes memory to the end, uses all of it, and breaks.
func GrowAndTouch() []byte {
	return []byte{
		opLoop, void,
		opI32, 16, opGrow, 0, opI32, 0x7f, opEqI32, // was it the last?
		opIf, void, opUnreachable, opEnd,
		opI32, 0, opI32, 1, opSize, 0, opI32, 16, opShlI32, opFill, 0x0b, 0,
		opBr, 0, opEnd, opI32, 0,
	}
}

// Nested is a function of that many loops, one in the other, which takes very long
// to compile.
func Nested(depth int) []byte {
	return slices.Concat(bytes.Repeat([]byte{opLoop, void}, depth), bytes.Repeat([]byte{opEnd}, depth), []byte{opI32, 0})
}

// Blocks asks the kernel for memory without end.
func Blocks() []byte {
	return slices.Concat([]byte{opLoop, void}, I64(60<<10), []byte{opCall, CallAlloc, opDrop, opBr, 0, opEnd, opI32, 0})
}

// Flood emits output without end.
func Flood() []byte {
	return slices.Concat(I64(60<<10), []byte{opCall, CallAlloc, opSet, 0, opLoop, void, opI32, 1, opGet, 0, opCall, CallEmit, opDrop, opBr, 0, opEnd, opI32, 0})
}

// Chatter logs without end.
func Chatter() []byte {
	return slices.Concat(I64(1000), []byte{opCall, CallAlloc, opSet, 0, opLoop, void, opI32, 1, opGet, 0, opCall, CallLog, opDrop, opBr, 0, opEnd, opI32, 0})
}

// Sleep sleeps on and on, whatever it is told.
func Sleep() []byte {
	return []byte{opLoop, void, opI32, 0xa0, 0x8d, 0x06, opCall, CallSleep, opDrop, opBr, 0, opEnd, opI32, 0}
}

// Say answers with a text.
func Say(text string) []byte {
	return slices.Concat(block(text), []byte{opGet, 0}, I64(int64(len(text))), []byte{opCall, CallOutput, opI32, 0})
}

// Output is a command that writes eight bytes and succeeds.
func Output(text string) []byte {
	code := slices.Concat(I64(int64(len(text))), []byte{opCall, CallAlloc, opSet, 0, opGet, 0}, I64(int64(binary.LittleEndian.Uint64([]byte(text)))), []byte{opCall, CallStore})
	return slices.Concat(code, []byte{opI32, 1, opGet, 0, opCall, CallEmit, opDrop}, Say(`{"ok":{"exit":0}}`))
}

// Opens tells of a machine, and answers with a text.
func Opens(created, answer string) []byte {
	told := slices.Concat(block(created+strings.Repeat(" ", (8-len(created)%8)%8)), []byte{opGet, 0, opCall, CallCreated, opDrop})
	return slices.Concat(told, Say(answer))
}

// Fetch makes a request by Extism's own HTTP, of a module that imports it.
func Fetch(request string) []byte {
	return slices.Concat(block(request+strings.Repeat(" ", (8-len(request)%8)%8)), []byte{opGet, 0}, I64(0), []byte{opCall, callFetch, opDrop, opI32, 0})
}

// block makes a block that holds text, and keeps where it is.
func block(text string) []byte {
	code := slices.Concat(I64(int64((len(text)+7)/8*8)), []byte{opCall, CallAlloc, opSet, 0})
	for i := 0; i < len(text); i += 8 {
		var chunk [8]byte
		copy(chunk[:], text[i:])
		code = slices.Concat(code, []byte{opGet, 0}, I64(int64(i)), []byte{opAddI64}, I64(int64(binary.LittleEndian.Uint64(chunk[:]))), []byte{opCall, CallStore})
	}
	return code
}

// I64 pushes a number.
func I64(n int64) []byte {
	out := []byte{opI64}
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func number(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func section(id byte, items ...[]byte) []byte {
	body := slices.Concat(append([][]byte{number(len(items))}, items...)...)
	return slices.Concat([]byte{id}, number(len(body)), body)
}

func name(s string) []byte { return append(number(len(s)), s...) }

// Assemble returns the module's bytes.
func (s Source) Assemble() []byte {
	const i32, i64 = 0x7f, 0x7e
	types := [][]byte{
		{0x60, 0, 1, i32},           // 0: an export
		{0x60, 1, i64, 1, i64},      // 1: alloc, http
		{0x60, 2, i64, i64, 0},      // 2: store, output
		{0x60, 2, i32, i64, 1, i32}, // 3: emit, log
		{0x60, 1, i32, 1, i32},      // 4: sleep
		{0x60, 1, i32, 0},           // 5: tree
		{0x60, 0, 0},                // 6: start, others
		{0x60, 2, i64, i64, 1, i64}, // 7: Extism's HTTP
		{0x60, 1, i64, 1, i32},      // 8: created
	}
	var imports [][]byte
	add := func(module, fn string, typ byte) {
		imports = append(imports, slices.Concat(name(module), name(fn), []byte{0, typ}))
	}
	add("extism:host/env", "alloc", 1)
	add("extism:host/env", "store_u64", 2)
	add("extism:host/env", "output_set", 2)
	from := cmp.Or(s.Namespace, abi.Namespace)
	add(from, "emit", 3)
	add(from, "sleep", 4)
	add(from, "log", 3)
	add(from, "http", 1)
	if s.Fetch {
		add("extism:host/env", "http_request", 7)
	} else {
		add(from, "created", 8)
	}
	if len(s.Imports) > 0 {
		// They come last, so that the numbers above hold; the module is refused
		// before anything is called.
		for _, i := range s.Imports {
			add(i[0], i[1], 6)
		}
	}
	tree := []byte{opGet, 0, opIf, void, opGet, 0, opI32, 1, opSubI32, opCall, CallTree, opGet, 0, opI32, 1, opSubI32, opCall, CallTree, opEnd}
	funcs := [][]byte{{5}, {6}}
	bodies := [][]byte{tree, {opCall, CallSelf}}
	marker := s.Marker
	if marker == "" {
		marker = abi.Marker
	}
	if s.Describe == "" {
		s.Describe = `{"ok":{"abi":[1,0],"name":"hand","features":{"attach":true}}}`
	}
	usual := map[string][]byte{abi.Describe: Say(s.Describe), abi.Open: Say(`{"ok":{"id":"m-1","dir":"/work"}}`), abi.Exec: Say(`{"ok":{"exit":0}}`)}
	var exports [][]byte
	wanted := append([]string{marker}, abi.Required()...)
	for _, e := range abi.Optional() {
		if s.Code[e] != nil {
			wanted = append(wanted, e)
		}
	}
	for _, e := range wanted {
		if e == s.Without {
			continue
		}
		body, ok := s.Code[e]
		if !ok {
			if body, ok = usual[e]; !ok {
				body = Say(`{"ok":{}}`)
			}
		}
		exports = append(exports, slices.Concat(name(e), []byte{0}, number(len(imports)+len(bodies))))
		funcs, bodies = append(funcs, []byte{0}), append(bodies, body)
	}
	var start []byte
	if body, ok := s.Code["start"]; ok {
		n := number(len(imports) + len(bodies))
		start = slices.Concat([]byte{8}, number(len(n)), n)
		funcs, bodies = append(funcs, []byte{6}), append(bodies, append(slices.Clone(body), opDrop))
	}
	var code [][]byte
	for _, b := range bodies {
		b = slices.Concat([]byte{1, 1, i64}, b, []byte{opEnd})
		if len(code) == 0 {
			b = slices.Concat([]byte{0}, tree, []byte{opEnd}) // its own parameter is its local
		}
		code = append(code, slices.Concat(number(len(b)), b))
	}
	pages := max(s.Pages, 1)
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), section(1, types...), section(2, imports...), section(3, funcs...),
		section(5, slices.Concat([]byte{0}, number(pages))), section(7, exports...), start, section(10, code...))
}

// Write writes the module to a file.
func (s Source) Write(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hand.wasm")
	if err := os.WriteFile(file, s.Assemble(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

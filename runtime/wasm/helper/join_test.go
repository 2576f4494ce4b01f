package helper

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// dataModule is a module with one memory and these segments: an offset, then bytes.
func dataModule(extra []byte, segments ...segment) []byte {
	body := binary.AppendUvarint(nil, uint64(len(segments)))
	for _, s := range segments {
		body = append(append(append(body, 0, 0x41), appendSigned(nil, s.offset)...), 0x0b)
		body = append(binary.AppendUvarint(body, uint64(len(s.data))), s.data...)
	}
	m := append([]byte("\x00asm\x01\x00\x00\x00"), 5, 3, 1, 0, 2) // a memory of two pages
	m = append(m, extra...)
	m = append(binary.AppendUvarint(append(m, 11), uint64(len(body))), body...)
	return append(m, 0, 2, 1, 'x') // a section that is left alone
}

func TestNeighbouringDataIsJoined(t *testing.T) {
	got := join(dataModule(nil, segment{100, []byte("ef")}, segment{8, []byte("ab")}, segment{12, []byte("cd")}, segment{60000, []byte("z")}))
	want := dataModule(nil, segment{8, append(append([]byte("ab\x00\x00cd"), make([]byte, 86)...), "ef"...)}, segment{60000, []byte("z")})
	if !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestUnusualDataIsLeftAlone(t *testing.T) {
	plain := dataModule(nil, segment{8, []byte("ab")}, segment{12, []byte("cd")})
	passive := bytes.Replace(plain, []byte{0, 0x41, 8, 0x0b}, []byte{1, 0x41, 8, 0x0b}, 1)
	for name, m := range map[string][]byte{
		"overlapping":       dataModule(nil, segment{8, []byte("abcd")}, segment{10, []byte("xy")}),
		"counted":           dataModule([]byte{12, 1, 2}, segment{8, []byte("ab")}, segment{12, []byte("cd")}),
		"passive":           passive,
		"below the start":   dataModule(nil, segment{-8, []byte("ab")}, segment{0, []byte("cd")}),
		"cut":               plain[:len(plain)-6],
		"nothing":           nil,
		"no data":           []byte("\x00asm\x01\x00\x00\x00"),
		"an endless length": append([]byte("\x00asm\x01\x00\x00\x00"), 11, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
	} {
		if got := join(m); !bytes.Equal(got, m) {
			t.Errorf("%s: %q became %q", name, m, got)
		}
	}
	if bytes.Equal(join(plain), plain) {
		t.Error("what they differ from is joined")
	}
}

func FuzzJoin(f *testing.F) {
	f.Add(dataModule(nil, segment{8, []byte("ab")}, segment{12, []byte("cd")}))
	f.Fuzz(func(_ *testing.T, m []byte) { join(m) })
}

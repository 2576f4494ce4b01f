package helper

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// join returns the module with neighbouring data segments made one. Go's linker
// leaves tens of thousands, a few zero bytes apart, which take longer to evaluate
// at every start of an instance than all else. The memory that results is the
// same. A module with anything unusual about its data is returned as it is.
func join(module []byte) []byte {
	const dataSection, countSection = 11, 12
	if len(module) < 8 {
		return module
	}
	for at := 8; at < len(module); {
		id := module[at]
		size, n := binary.Uvarint(module[at+1:])
		if n <= 0 || size > uint64(len(module)-at-1-n) {
			return module
		}
		body := at + 1 + n
		next := body + int(size)
		switch id {
		case countSection: // segments are named by their number
			return module
		case dataSection:
			joined, ok := joinSegments(module[body:next])
			if !ok {
				return module
			}
			out := append(slices.Clone(module[:at]), dataSection)
			out = binary.AppendUvarint(out, uint64(len(joined)))
			return append(append(out, joined...), module[next:]...)
		}
		at = next
	}
	return module
}

type segment struct {
	offset int64
	data   []byte
}

// joinSegments joins those of a data section, given without its head.
func joinSegments(b []byte) ([]byte, bool) {
	const active, constant, end = 0x00, 0x41, 0x0b
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, false
	}
	b = b[n:]
	segments := make([]segment, 0, count)
	for range count {
		if len(b) < 2 || b[0] != active || b[1] != constant {
			return nil, false
		}
		offset, n := signed(b[2:])
		if n <= 0 || offset < 0 || len(b) <= 2+n || b[2+n] != end {
			return nil, false
		}
		b = b[3+n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, false
		}
		segments = append(segments, segment{offset, b[n : n+int(size)]})
		b = b[n+int(size):]
	}
	if len(b) > 0 {
		return nil, false
	}
	slices.SortStableFunc(segments, func(a, b segment) int { return int(a.offset - b.offset) })
	const widest = 1 << 10 // gap that is filled with zeros
	var joined []segment
	for _, s := range segments {
		if len(joined) == 0 {
			joined = append(joined, segment{s.offset, slices.Clone(s.data)})
			continue
		}
		last := &joined[len(joined)-1]
		gap := s.offset - last.offset - int64(len(last.data))
		switch {
		case gap < 0: // one lies over the other, and their order counts
			return nil, false
		case gap <= widest:
			last.data = append(append(last.data, make([]byte, gap)...), s.data...)
		default:
			joined = append(joined, segment{s.offset, slices.Clone(s.data)})
		}
	}
	var out bytes.Buffer
	out.Write(binary.AppendUvarint(nil, uint64(len(joined))))
	for _, s := range joined {
		out.Write([]byte{active, constant})
		out.Write(appendSigned(nil, s.offset))
		out.WriteByte(end)
		out.Write(binary.AppendUvarint(nil, uint64(len(s.data))))
		out.Write(s.data)
	}
	return out.Bytes(), true
}

// signed reads a number as WebAssembly writes its constants. N is how many bytes
// it took, 0 if it is none.
func signed(b []byte) (v int64, n int) {
	for shift := 0; n < len(b) && n < 5; shift += 7 {
		c := b[n]
		n++
		v |= int64(c&0x7f) << shift
		if c&0x80 == 0 {
			if c&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v, n
		}
	}
	return 0, 0
}

func appendSigned(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

package workspace

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"os"
	"strings"
)

// localSum is the checksum of a local file, of the kind that like is.
func localSum(name, like string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if strings.HasPrefix(like, "cksum:") {
		h := &posixSum{}
		_, err := io.Copy(h, f)
		return fmt.Sprintf("cksum:%d", h.sum()), err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return fmt.Sprintf("sha256:%x", h.Sum(nil)), err
}

// sumOf is the checksum of a text.
func sumOf(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// posixSum computes what cksum(1) prints: a CRC-32 with the same polynomial as
// hash/crc32, most significant bit first, over the bytes and then their count.
type posixSum struct {
	crc uint32 // bit-reversed
	n   uint64
}

var ieee = crc32.MakeTable(crc32.IEEE)

func (s *posixSum) Write(p []byte) (int, error) {
	for _, b := range p {
		s.step(b)
	}
	s.n += uint64(len(p))
	return len(p), nil
}

func (s *posixSum) step(b byte) {
	s.crc = ieee[byte(s.crc)^bits.Reverse8(b)] ^ s.crc>>8
}

func (s *posixSum) sum() uint32 {
	t := *s
	for n := s.n; n > 0; n >>= 8 {
		t.step(byte(n))
	}
	return ^bits.Reverse32(t.crc)
}

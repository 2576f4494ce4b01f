package workspace

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"os"
	"strconv"
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Fetch writes the changed files below dir of sb to w as one tar archive. Their
// names travel in as many batches as command lines of a safe length need. What
// the sandbox could not pack is returned as missing; the rest is in the archive.
func (c Changes) Fetch(ctx context.Context, sb sandbox.Sandbox, dir string, w io.Writer) (missing []string, err error) {
	got := map[string]bool{}
	tw := tar.NewWriter(w)
	var batch []string
	size := 0
	for i, name := range c.Written {
		batch, size = append(batch, "./"+name), size+len(name)+8
		if size < sandbox.MaxArg/2 && i < len(c.Written)-1 {
			continue
		}
		if err := fetch(ctx, sb, dir, batch, tw, got); err != nil {
			return nil, err
		}
		batch, size = nil, 0
	}
	for _, name := range c.Written {
		if !got[name] {
			missing = append(missing, name)
		}
	}
	return missing, tw.Close()
}

// fetch adds the named files to an archive and notes which came.
func fetch(ctx context.Context, sb sandbox.Sandbox, dir string, names []string, tw *tar.Writer, got map[string]bool) error {
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pw.CloseWithError(sandbox.Pack(ctx, sb, dir, names, pw))
	}()
	err := func() error {
		for tr := tar.NewReader(pr); ; {
			h, err := tr.Next()
			if err == io.EOF {
				// What follows the end mark is padding, and Pack's own error.
				_, err := io.Copy(io.Discard, pr)
				if sandbox.CodeOf(err) == sandbox.CodeInternal {
					return nil // tar itself complained: what it lacks is missing from got
				}
				return err
			}
			if err != nil {
				return err
			}
			if err := tw.WriteHeader(h); err != nil {
				return err
			}
			if _, err := io.Copy(tw, tr); err != nil {
				return err
			}
			got[strings.TrimPrefix(h.Name, "./")] = true
		}
	}()
	pr.CloseWithError(err)
	<-done
	return err
}

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

// String lists the changes for people.
func (c Changes) String() string {
	return strconv.Itoa(len(c.Written)) + " written, " + strconv.Itoa(len(c.Deleted)) + " deleted"
}

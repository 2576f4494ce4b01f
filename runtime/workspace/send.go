package workspace

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Tar writes what is new or changed as a tar archive.
func (h *Home) Tar(w io.Writer, changes []Change) error {
	_, err := h.tar(w, changes, false)
	return err
}

// Send makes what is new or changed below dir of sb. It returns the names of files
// whose holes are zeros there.
func (h *Home) Send(ctx context.Context, sb sandbox.Sandbox, dir string, changes []Change) (filled []string, err error) {
	holes := slices.ContainsFunc(changes, h.sparse)
	if holes {
		if holes, err = takesHoles(ctx, sb); err != nil {
			return nil, fmt.Errorf("prepare to send: %w", err)
		}
	}
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() {
		large := bufio.NewWriterSize(pw, 256<<10)
		var err error
		if filled, err = h.tar(large, changes, holes); err == nil {
			err = large.Flush()
		}
		pw.CloseWithError(err)
		done <- err
	}()
	err = sandbox.Unpack(ctx, sb, dir, pr, zstandard())
	if err != nil {
		pr.CloseWithError(err)
	} else {
		io.Copy(io.Discard, pr) // padding at the end
	}
	if terr := <-done; err == nil {
		err = terr
	}
	return filled, err
}

// sparse reports whether a change is a file that has holes here.
func (h *Home) sparse(c Change) bool {
	if c.Now == nil || c.Now.Kind != File {
		return false
	}
	info, err := os.Lstat(h.content(c.Now.Sum))
	return err == nil && Item{Size: info.Size(), Stored: stored(info)}.sparse()
}

// tar writes the archive. With holes, those of files are in it as such; without, the
// files that have some are returned.
func (h *Home) tar(w io.Writer, changes []Change, holes bool) (filled []string, err error) {
	tw := tar.NewWriter(w)
	buf := make([]byte, 128<<10)
	for _, c := range changes {
		if c.Now == nil {
			continue
		}
		hd := &tar.Header{Name: c.Name, Mode: int64(c.Now.Mode), ModTime: h.Run.Started.Truncate(time.Second), Format: tar.FormatPAX}
		switch c.Now.Kind {
		case Dir:
			hd.Typeflag, hd.Name = tar.TypeDir, c.Name+"/"
		case Link:
			hd.Typeflag, hd.Linkname, hd.Mode = tar.TypeSymlink, c.Now.Target, 0o777
		default:
			hd.Typeflag, hd.Size = tar.TypeReg, c.Now.Size
			whole, err := h.tarFile(tw, w, hd, c, holes, buf)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", c.Name, err)
			}
			if whole {
				filled = append(filled, c.Name)
			}
			continue
		}
		if err := tw.WriteHeader(hd); err != nil {
			return nil, fmt.Errorf("%q: %w", c.Name, err)
		}
	}
	return filled, tw.Close()
}

// tarFile writes a file, and reports whether it has holes that were written as zeros.
func (h *Home) tarFile(tw *tar.Writer, w io.Writer, hd *tar.Header, c Change, holes bool, buf []byte) (filled bool, err error) {
	f, err := h.open(*c.Now)
	if err != nil {
		return false, err
	}
	defer f.Close()
	sum := sha256.New()
	var data []extent
	if filled = h.sparse(c); filled && holes {
		data = extents(f, hd.Size)
	}
	if data != nil {
		filled, err = false, writeSparse(tw, w, hd, f, data, buf, sum)
	} else {
		if err := tw.WriteHeader(hd); err != nil {
			return false, err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return false, err
		}
		_, err = io.CopyBuffer(io.MultiWriter(tw, sum), f, buf)
	}
	if err == nil && "sha256:"+hex.EncodeToString(sum.Sum(nil)) != c.Now.Sum {
		err = errDamaged
	}
	return filled, err
}

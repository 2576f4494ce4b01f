package workspace

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// leastHole is what a file must save on the disk to be sent with its holes.
const leastHole = 64 << 10

// sparse reports whether a file has holes that are worth keeping.
func (item Item) sparse() bool { return item.Stored >= 0 && item.Size-item.Stored >= leastHole }

// OnDisk is how many bytes of disk a file takes; where that is not known, how many it
// reads as.
func OnDisk(info fs.FileInfo) int64 {
	if n := stored(info); n >= 0 {
		return n
	}
	return info.Size()
}

// An extent is a part of a file that is no hole.
type extent struct{ at, size int64 }

// takesHoles reports whether the archive for sb may have holes in it: its tar is
// known to make them, and no other program reads the archive first.
func takesHoles(ctx context.Context, sb sandbox.Sandbox) (bool, error) {
	if _, own := sandbox.As[sandbox.Unpacker](sb); own {
		return false, nil
	}
	const script = `case $(tar --version 2>/dev/null) in *"GNU tar"*|*bsdtar*) exit 0; esac; exit 1`
	exit, err := sb.Exec(ctx, sandbox.Cmd{Args: []string{"/bin/sh", "-c", script}, Dir: "/"})
	return exit == 0, err
}

// tarBlock is what parts of an archive are multiples of.
const tarBlock = 512

// writeSparse writes the header and the data of a file with holes in the form that
// GNU calls PAX 1.0, which archive/tar reads but does not write. tw must not be in
// the middle of an entry. The sum is of the whole content.
func writeSparse(tw *tar.Writer, w io.Writer, h *tar.Header, f io.ReaderAt, data []extent, buf []byte, sum io.Writer) error {
	if err := tw.Flush(); err != nil {
		return err
	}
	var list []extent
	packed := int64(0)
	for _, e := range data { // whole blocks, but for the end of the file
		from := e.at &^ (tarBlock - 1)
		to := min((e.at+e.size+tarBlock-1)&^(tarBlock-1), h.Size)
		if n := len(list); n > 0 && from <= list[n-1].at+list[n-1].size {
			packed -= list[n-1].size
			from, list = list[n-1].at, list[:n-1]
		}
		list, packed = append(list, extent{from, to - from}), packed+to-from
	}
	if n := len(list); n == 0 || list[n-1].at+list[n-1].size < h.Size {
		list = append(list, extent{h.Size, 0})
	}
	var table bytes.Buffer
	fmt.Fprintf(&table, "%d\n", len(list))
	for _, e := range list {
		fmt.Fprintf(&table, "%d\n%d\n", e.at, e.size)
	}
	table.Write(make([]byte, padding(int64(table.Len()))))

	var records strings.Builder
	for _, r := range [][2]string{
		{"GNU.sparse.major", "1"}, {"GNU.sparse.minor", "0"}, {"GNU.sparse.name", h.Name}, {"GNU.sparse.realsize", strconv.FormatInt(h.Size, 10)},
		{"size", strconv.FormatInt(int64(table.Len())+packed, 10)}, {"mtime", fmt.Sprintf("%d.%09d", h.ModTime.Unix(), h.ModTime.Nanosecond())},
	} {
		records.WriteString(paxRecord(r[0], r[1]))
	}
	extra := records.String()
	head := ustar("PaxHeaders/sparse", tar.TypeXHeader, h.Mode, int64(len(extra)), h.ModTime)
	head = append(head, extra...)
	head = append(head, make([]byte, padding(int64(len(extra))))...)
	head = append(head, ustar("GNUSparseFile/sparse", tar.TypeReg, h.Mode, int64(table.Len())+packed, h.ModTime)...)
	if _, err := w.Write(append(head, table.Bytes()...)); err != nil {
		return err
	}
	at := int64(0)
	for _, e := range list {
		if _, err := io.CopyBuffer(sum, io.LimitReader(zeros{}, e.at-at), buf); err != nil {
			return err
		}
		both := io.MultiWriter(w, sum)
		n, err := io.CopyBuffer(both, io.NewSectionReader(f, e.at, e.size), buf)
		if err == nil { // it became shorter meanwhile
			_, err = io.CopyBuffer(both, io.LimitReader(zeros{}, e.size-n), buf)
		}
		if err != nil {
			return err
		}
		at = e.at + e.size
	}
	_, err := w.Write(make([]byte, padding(packed)))
	return err
}

func padding(n int64) int64 { return -n & (tarBlock - 1) }

// paxRecord is a record of an extended header, which begins with its own length.
func paxRecord(key, value string) string {
	rest := " " + key + "=" + value + "\n"
	n := len(rest)
	for n != len(rest)+len(strconv.Itoa(n)) {
		n = len(rest) + len(strconv.Itoa(n))
	}
	return strconv.Itoa(n) + rest
}

// ustar is the block that begins an entry. A size that has no place in it is the
// extended header's alone.
func ustar(name string, kind byte, mode, size int64, at time.Time) []byte {
	b := make([]byte, tarBlock)
	const most = 1<<33 - 1
	copy(b, name)
	copy(b[100:], fmt.Sprintf("%07o", mode))
	copy(b[108:], "0000000")
	copy(b[116:], "0000000")
	copy(b[124:], fmt.Sprintf("%011o", min(size, most)))
	copy(b[136:], fmt.Sprintf("%011o", min(max(at.Unix(), 0), most)))
	copy(b[148:], "        ")
	b[156] = kind
	copy(b[257:], "ustar\x0000")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// zeros are what a hole reads as.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A holed writer writes a new file and leaves holes where there are blocks of
// zeros. Its end must be called when all is written.
type holed struct {
	f  *os.File
	at int64
}

const holeBlock = 4096

var noBytes [holeBlock]byte

func (w *holed) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		// As many blocks as are alike: data, or nothing.
		from, empty := done, false
		for done < len(p) {
			n := min(len(p)-done, holeBlock-int((w.at+int64(done-from))%holeBlock))
			is := bytes.Equal(p[done:done+n], noBytes[:n])
			if done > from && is != empty {
				break
			}
			empty = is
			done += n
		}
		if !empty {
			if n, err := w.f.WriteAt(p[from:done], w.at); err != nil {
				return from + n, err
			}
		}
		w.at += int64(done - from)
	}
	return done, nil
}

// end gives the file its size.
func (w *holed) end() error { return w.f.Truncate(w.at) }

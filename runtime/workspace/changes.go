package workspace

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Sum is the state of one entry in a sandbox.
type Sum struct {
	Sum  string // checksum, size and mode of a file; a word for a directory or another thing
	Link string // target of a link
}

// caches can be made again and stay behind.
var caches = []string{".git", ".venv", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".terraform", ".terragrunt-cache", "cdk.out", ".cache", ".npm"}

// histories are what a shell or client keeps in a home directory.
var histories = []string{".bash_history", ".ash_history", ".sh_history", ".python_history", ".wget-hsts", ".lesshst", ".viminfo"}

// listScript prints the state and the name of each entry, both ended by NUL: the
// state is checksum, size and execute bit of a file, "link" and the target, or
// one of the words below. What the last pair says is that nothing was lost on
// the way, as on a full disk. It needs POSIX utilities only.
const listScript = `cd -- "$1" || exit 91
find . %s -exec sh -c '
for f do
	if [ -h "$f" ]; then printf "link %%s\0%%s\0" "$(readlink "$f")" "$f"
	elif [ -d "$f" ]; then
		if [ -r "$f" ] && [ -x "$f" ]; then s=dir; else s=closed; fi
		printf "%%s\0%%s\0" "$s" "$f"
	elif [ -f "$f" ]; then
		s=$(cksum < "$f" 2>/dev/null) || s="unreadable"
		if [ -x "$f" ]; then x=x; else x=-; fi
		printf "%%s %%s\0%%s\0" "$s" "$x" "$f"
	else printf "other\0%%s\0" "$f"
	fi
done' sh {} +
r=$?
printf 'end\0\0' && exit $r`

// The states of what is neither a file nor a link.
const (
	isDir    = "dir"
	isClosed = "closed" // a directory whose entries cannot be looked at
	isOther  = "other"
)

// Sums lists what stands below dir of sb. Caches that can be made again are left
// out, unless sent (which may be nil) holds one of that name; so are histories.
// blind holds a line for everything that could not be looked at.
func Sums(ctx context.Context, sb sandbox.Sandbox, dir string, sent *Plan) (sums map[string]Sum, blind []string, err error) {
	return list(ctx, sb, dir, `\( `+strings.Join(leftOut(sent), " -o ")+` \) -prune -o \( -type f -o -type l \)`)
}

// leftOut are the tests of find for what Sums leaves out.
func leftOut(sent *Plan) []string {
	var tests []string
	for _, c := range caches {
		if c == ".git" || !sent.holds(c) {
			tests = append(tests, "-type d -name "+sandbox.Quote(c))
		}
	}
	for _, h := range histories {
		tests = append(tests, "-path "+sandbox.Quote("./"+h))
	}
	return tests
}

// list runs listScript on what the tests of find select.
func list(ctx context.Context, sb sandbox.Sandbox, dir, tests string) (sums map[string]Sum, blind []string, err error) {
	var stdout, stderr bytes.Buffer
	exit, err := sb.Exec(ctx, sandbox.Cmd{
		Args:   []string{"/bin/sh", "-c", fmt.Sprintf(listScript, tests), "sh", dir},
		Stdout: &stdout, Stderr: &stderr,
	})
	if err != nil {
		return nil, nil, err
	}
	if exit == 91 {
		return nil, nil, sandbox.Errorf(sandbox.CodeFileNotFound, "no directory %s in the sandbox", dir)
	}
	listed, whole := strings.CutSuffix(stdout.String(), "end\x00\x00")
	if !whole {
		return nil, nil, sandbox.Errorf(sandbox.CodeNoSpace, "the list of files in %s did not come whole; is a disk of the sandbox full?", dir)
	}
	sums = map[string]Sum{}
	fields := strings.Split(listed, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		state, name := fields[i], strings.TrimPrefix(fields[i+1], "./")
		if target, isLink := strings.CutPrefix(state, "link "); isLink {
			sums[name] = Sum{Link: target}
		} else {
			sums[name] = Sum{Sum: state}
		}
	}
	if exit != 0 {
		blind = strings.FieldsFunc(stderr.String(), func(r rune) bool { return r == '\n' })
		if len(blind) == 0 {
			blind = []string{fmt.Sprintf("listing %s ended with %d", dir, exit)}
		}
	}
	return sums, blind, nil
}

// holds reports whether the plan sends something below a directory of that name.
func (p *Plan) holds(dir string) bool {
	if p == nil {
		return false
	}
	for _, item := range p.Items {
		if item.Mode.IsDir() && (item.Name == dir || strings.HasSuffix(item.Name, "/"+dir)) {
			return true
		}
	}
	return false
}

// Changes are what happened below a directory since an earlier state.
type Changes struct {
	Written []string // new or changed, sorted
	Deleted []string
}

// Empty reports whether nothing happened.
func (c Changes) Empty() bool { return len(c.Written) == 0 && len(c.Deleted) == 0 }

// Compare tells how to get from before to after.
func Compare(before, after map[string]Sum) Changes {
	var c Changes
	for name, sum := range after {
		if old, was := before[name]; !was || old != sum {
			c.Written = append(c.Written, name)
		}
	}
	for name := range before {
		if _, is := after[name]; !is {
			c.Deleted = append(c.Deleted, name)
		}
	}
	sort.Strings(c.Written)
	sort.Strings(c.Deleted)
	return c
}

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

// fileSum is the state of a local file as listScript would print it.
func fileSum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	h := &posixSum{}
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	x := "-"
	if info.Mode()&0o111 != 0 {
		x = "x"
	}
	return fmt.Sprintf("%d %d %s", h.sum(), h.n, x), nil
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

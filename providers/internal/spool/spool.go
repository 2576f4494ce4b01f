// Package spool brings home what a command prints where a vendor's stream is text and
// may break: the output goes to files of the machine, and a script sends it on as lines
// of base64, so that bytes arrive as they are and what is lost on its way is fetched.
package spool

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	smallFiles = 1 << 20 // files of a command up to this size wait for the next command
	lineMost   = 4 << 20 // no line of a script is so long
)

// ErrLost says that the vendor no longer knows the command, or not how it ended; its
// files may.
var ErrLost error = &sandbox.Error{Code: sandbox.CodeGone, Op: "watch command", Msg: "the command was lost before its outcome was known"}

// What a size or status is that has no value.
const (
	unknown = -1 - iota
	lost    // the file is not there
)

// A Stream is one output of a command: a file of the machine that arrives as lines of
// base64, followed by "." and its size, and on stdout "#" if the disk was full and "="
// and the status. It is not safe for concurrent use.
type Stream struct {
	At     int64 // how much of the vendor's stream has been read
	Whole  bool  // everything has been read
	Broken bool  // something is missing: the file has the rest

	file   string
	w      io.Writer // nil: nobody wants it
	last   bool      // the line with the status follows the size
	twice  error
	have   int64  // bytes delivered
	rest   []byte // the line that is not complete
	size   int64  // of the file
	status int64  // of the command
	full   bool   // the disk was full when the command ended
}

// Take reads a piece of the vendor's stream that begins at from. What was read before
// is left out.
func (s *Stream) Take(piece string, from int64) error {
	if from > s.At {
		// What came between is lost here, but not in the file.
		s.Broken, s.rest = true, nil
		s.At = from
	}
	piece = piece[min(s.At-from, int64(len(piece))):]
	s.At += int64(len(piece))
	s.rest = append(s.rest, piece...)
	end := bytes.LastIndexByte(s.rest, '\n') + 1
	var data []byte
	for line := range bytes.Lines(s.rest[:end]) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) > 0 && bytes.IndexByte([]byte("!.=#"), line[0]) >= 0 {
			if line[0] == '!' {
				return s.twice
			}
			s.mark(line[0], string(line[1:]))
			continue
		}
		if s.Broken || s.w == nil {
			continue
		}
		more, err := base64.StdEncoding.AppendDecode(data, line)
		if err != nil {
			s.Broken = true
			continue
		}
		data = more
	}
	s.rest = append(s.rest[:0], s.rest[end:]...)
	if len(s.rest) > lineMost {
		s.Broken, s.rest = true, nil
	}
	if len(data) == 0 {
		return nil
	}
	n, err := s.w.Write(data)
	s.have += int64(n)
	if err != nil {
		return rest.WriteFailed(err)
	}
	return nil
}

// mark reads a line that is no output.
func (s *Stream) mark(kind byte, text string) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case kind == '#':
		s.full = true
	case kind == '=' && err == nil: // else, after a gap, the end of a line of base64
		s.status, s.Whole = n, true
	case kind == '.' && err != nil:
		s.size, s.Whole = lost, !s.last
	case kind == '.':
		s.size, s.Whole = n, !s.last
	}
}

// An Output is what a command prints, and how it ends.
type Output struct {
	Out *Stream
	Err *Stream // nil: nobody wants it

	// Wanted names the outputs to the script: "o", "e", both or none.
	Wanted string

	files   string
	machine Machine
}

// A Machine is where the files are.
type Machine struct {
	// Download copies the file name from offset on to w and returns how many bytes w
	// took, also when it fails. Absent says of its error that there is no such file.
	Download func(ctx context.Context, name string, offset int64, w io.Writer) (int64, error)
	Absent   func(err error) bool
	Explain  func(ctx context.Context, err error) error // says whether the machine is gone

	// Twice is the error of a script that finds that another has run the command.
	Twice error
}

// New returns the output of cmd, which the script keeps in files+".o" and files+".e",
// with the status in files+".x".
func (m Machine) New(files string, cmd sandbox.Cmd) *Output {
	stream := func(kind string, w io.Writer) *Stream {
		return &Stream{file: files + "." + kind, w: w, last: kind == "o", twice: m.Twice, size: unknown, status: unknown}
	}
	// The status comes on stdout even if nobody wants that.
	o := &Output{Out: stream("o", cmd.Stdout), files: files, machine: m}
	if cmd.Stdout != nil {
		o.Wanted += "o"
	}
	if cmd.Stderr != nil {
		o.Wanted += "e"
		o.Err = stream("e", cmd.Stderr)
	}
	return o
}

// Streams are those that arrive.
func (o *Output) Streams() []*Stream {
	if o.Err == nil {
		return []*Stream{o.Out}
	}
	return []*Stream{o.Out, o.Err}
}

// Whole reports whether everything has been read.
func (o *Output) Whole() bool { return o.Out.Whole && (o.Err == nil || o.Err.Whole) }

// At is how much of the vendor's streams has been read.
func (o *Output) At() (n int64) {
	for _, s := range o.Streams() {
		n += s.At
	}
	return n
}

// Small reports whether the command's files may wait for the next command.
func (o *Output) Small() bool {
	return o.Out.have <= smallFiles && (o.Err == nil || o.Err.have <= smallFiles)
}

// Salvage finds the status of a command that has ended, and the rest of its output,
// in its files.
func (o *Output) Salvage(ctx context.Context) error {
	if o.Out.status < 0 {
		var text posix.Text
		if err := o.fetch(ctx, &Stream{file: o.files + ".x", w: &text}); err != nil {
			return err
		}
		status, err := strconv.ParseInt(strings.TrimSpace(text.String()), 10, 64)
		if err != nil {
			return ErrLost
		}
		o.Out.status = status
	}
	for _, s := range o.Streams() {
		if !s.Whole && s.w != nil {
			if err := o.fetch(ctx, s); err != nil {
				return err
			}
		}
		if !s.Whole {
			s.size = s.have
		}
	}
	return nil
}

// Complete delivers what is missing of streams whose end is known, and returns the
// command's status.
func (o *Output) Complete(ctx context.Context) (int, error) {
	for _, s := range o.Streams() {
		if err := o.complete(ctx, s); err != nil {
			return 0, err
		}
	}
	if o.Out.status < 0 || o.Out.status > 255 {
		return 0, &sandbox.Error{Code: sandbox.CodeInternal, Op: "watch command", Msg: fmt.Sprintf("the command's status is %d", o.Out.status)}
	}
	return int(o.Out.status), nil
}

func (o *Output) complete(ctx context.Context, s *Stream) error {
	if s.w == nil {
		return nil
	}
	if s.size == unknown {
		// What sends it on was killed, or its last word was in a gap.
		switch err := o.fetch(ctx, s); {
		case errors.Is(err, ErrLost):
			s.size = lost
		case err != nil:
			return err
		default:
			s.size = s.have
		}
	}
	if s.size == lost {
		return &sandbox.Error{Code: sandbox.CodeInternal, Op: "read output", Msg: "the command's output is lost"}
	}
	if s.have < s.size {
		if err := o.fetch(ctx, s); err != nil {
			return err
		}
	}
	if s.have < s.size {
		return posix.Short("read output", s.have, s.size)
	}
	return nil
}

// fetch delivers what the file of s holds beyond what has been delivered.
func (o *Output) fetch(ctx context.Context, s *Stream) error {
	for n := 1; ; n++ {
		got, err := o.machine.Download(ctx, s.file, s.have, s.w)
		s.have += got
		if err == nil {
			return nil
		}
		if err = o.machine.Explain(ctx, err); o.machine.Absent(err) {
			return ErrLost
		}
		if n >= 4 || sandbox.CodeOf(err) != sandbox.CodeUnavailable || errors.Is(err, rest.ErrWrite) {
			return err
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return rest.Ended(ctx, "read output")
		}
	}
}

// Fault is what is wrong with a command that ended with exit: it could not enter dir,
// or the disk was full. It may be nil.
func (o *Output) Fault(ctx context.Context, exit int, dir string) error {
	if exit == posix.NoDir {
		var why posix.Text
		if _, err := o.machine.Download(ctx, o.files+".f", 0, &why); err == nil {
			if err := posix.NoDirError(dir, why.String()); err != nil {
				return err
			}
		}
	}
	if o.Out.full {
		return posix.FullDisk(exit)
	}
	return nil
}

// Stale are files of ended commands, which the next command deletes. The zero value
// is none. It is safe for concurrent use.
type Stale struct {
	mu    sync.Mutex
	files []string
}

// Add adds a command's files, given without their suffix.
func (s *Stale) Add(files string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, files)
}

// Forget forgets them: they are gone.
func (s *Stale) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = nil
}

// Sweep returns the beginning of a command line that deletes some.
func (s *Stale) Sweep() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.files), 50)
	if n == 0 {
		return ""
	}
	line := "rm -rf"
	for _, files := range s.files[:n] {
		line += " " + sandbox.Quote(files) + ".*"
	}
	s.files = s.files[n:]
	return line + "; "
}

package hostfuncs

import (
	"errors"
	"io"
	"time"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Source is bytes of the caller that a module can send somewhere by handle.
type Source struct {
	r      io.Reader
	err    error      // of the reader, io.EOF aside
	pieces chan piece // once it is read in pieces
	left   []byte     // of the last piece
	ended  bool
}

type piece struct {
	data []byte
	err  error
}

// AddSource gives r a handle for this operation.
func (c *Call) AddSource(r io.Reader) (int32, *Source) {
	s := &Source{r: r}
	return c.add(s), s
}

// Err is the failure of the reader, or nil. It may be asked when the call is over.
func (s *Source) Err() error { return s.err }

// Read reads as an io.Reader does, after what has been read in pieces.
func (s *Source) Read(p []byte) (int, error) {
	if s.pieces == nil {
		n, err := s.r.Read(p)
		if err != nil && err != io.EOF {
			s.err = err
		}
		return n, err
	}
	for len(s.left) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		x, ok := <-s.pieces
		if !ok {
			s.ended = true
			continue
		}
		s.take(x)
		if s.err != nil {
			return 0, s.err
		}
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

func (s *Source) take(x piece) {
	s.left = x.data
	if x.err != nil {
		s.ended = true
		if x.err != io.EOF {
			s.err = x.err
		}
	}
}

// refRead gives the next bytes of a source within a time.
func (c *Call) refRead(handle, most, waitMS int32) (int64, []byte) {
	if c.stopping() {
		return abi.StatusStop, nil
	}
	most = min(max(most, 1), abi.MaxBlock)
	if f, ok := c.handles[handle].(*openFile); ok {
		return c.fileRead(f, most)
	}
	s, ok := c.handles[handle].(*Source)
	if !ok {
		return c.fail(sandbox.CodeInvalidArgument, "%d is no handle to read from", handle), nil
	}
	if s.pieces == nil && !s.ended {
		s.pieces = make(chan piece, 1)
		// A reader that stands still, such as a terminal, is left behind.
		go func() {
			defer close(s.pieces)
			for {
				buf := make([]byte, abi.MaxBlock)
				n, err := s.r.Read(buf)
				select {
				case s.pieces <- piece{buf[:n], err}:
				case <-c.ctx.Done():
					return
				}
				if err != nil {
					return
				}
			}
		}()
	}
	if len(s.left) == 0 && !s.ended {
		t := time.NewTimer(time.Duration(max(waitMS, 0)) * time.Millisecond)
		defer t.Stop()
		select {
		case x, ok := <-s.pieces:
			if !ok {
				x.err = io.EOF
			}
			s.take(x)
		case <-t.C:
			return abi.StatusWait, nil
		case <-c.stop():
			c.told = true
			return abi.StatusStop, nil
		case <-c.ctx.Done():
			return abi.StatusStop, nil
		}
	}
	switch {
	case len(s.left) > 0:
		n := min(int(most), len(s.left))
		out := s.left[:n]
		s.left = s.left[n:]
		return 0, out
	case s.err != nil:
		return c.fail(sandbox.CodeInternal, "the source cannot be read"), nil
	case s.ended:
		return abi.StatusEnd, nil
	}
	return abi.StatusWait, nil
}

// A Sink is where the caller wants bytes.
type Sink struct {
	w   io.Writer
	n   int64
	err error
}

// AddSink gives w a handle for this operation.
func (c *Call) AddSink(w io.Writer) (int32, *Sink) {
	s := &Sink{w: w}
	return c.add(s), s
}

// Err is the failure of the writer, or nil.
func (s *Sink) Err() error { return s.err }

// N is how many bytes were delivered.
func (s *Sink) N() int64 { return s.n }

func (s *Sink) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.n += int64(n)
	if err != nil {
		s.err = err
	}
	return n, err
}

// refWrite delivers bytes.
func (c *Call) refWrite(handle int32, block []byte) int64 {
	if len(block) > abi.MaxBlock {
		return c.fail(sandbox.CodeTooLarge, "a block of %d bytes; the limit is %d", len(block), abi.MaxBlock)
	}
	w, ok := c.handles[handle].(io.Writer)
	if !ok {
		return c.fail(sandbox.CodeInvalidArgument, "%d is no handle to write to", handle)
	}
	if _, err := w.Write(block); err != nil {
		return c.fail(sandbox.CodeInternal, "the bytes cannot be delivered")
	}
	return 0
}

// closeHandle lets go of a stream or file.
func (c *Call) closeHandle(handle int32) int64 {
	x, ok := c.handles[handle].(io.Closer)
	if !ok {
		return c.fail(sandbox.CodeInvalidArgument, "%d is no handle to close", handle)
	}
	c.handles[handle] = nil
	c.open--
	if err := x.Close(); err != nil {
		if e, ok := errors.AsType[*abi.Error](err); ok {
			return c.failed(e)
		}
		return c.fail(sandbox.CodeInternal, "close: %v", err)
	}
	return 0
}
